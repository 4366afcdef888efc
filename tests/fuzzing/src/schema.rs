//! Columns of capture instances of any shape, and the columns of their table's copy.

use std::collections::HashSet;

use arbitrary::{Result, Unstructured};
use cdc_core::{
    CaptureInstance, Column, ErrorKind, InstanceName, Lsn, TableName, TableSpec, schema,
};

use crate::draw;

/// Names that meet, differ in case alone, or are strange.
const NAMES: [&str; 14] = [
    "id",
    "ID",
    "Id",
    "name",
    "Straße",
    "STRASSE",
    "ſ",
    "s",
    "İ",
    "i",
    "",
    "a b",
    "_start_lsn",
    "x",
];

/// Runs one input: up to three instances of one table.
pub fn run(data: &[u8]) {
    let mut input = Unstructured::new(data);
    if let Ok(instances) = instances(&mut input) {
        check(&instances);
    }
}

fn instances(input: &mut Unstructured<'_>) -> Result<Vec<CaptureInstance>> {
    let count = input.int_in_range(0..=3)?;
    (0..count)
        .map(|at| {
            let columns = input.int_in_range(0..=6)?;
            let columns = (0..columns).map(|id| {
                let name = *input.choose(&NAMES)?;
                let mut column = Column::new(name, id, draw::sql_type(input)?, input.arbitrary()?);
                column.computed = input.ratio(1, 8)?;
                Ok(column)
            });
            Ok(CaptureInstance {
                name: InstanceName::new(&format!("dbo_t{at}")),
                table: TableName::new("dbo", "t"),
                start: Lsn::ZERO.into(),
                columns: columns.collect::<Result<_>>()?,
                key: Vec::new(),
            })
        })
        .collect()
}

fn folded(column: &Column) -> String {
    column.name.to_lowercase()
}

/// No column is lost: each instance's columns are in the copy, one for one, and are asked for.
/// What cannot be is refused with its table, instance and column.
fn check(instances: &[CaptureInstance]) {
    types(instances);
    let union = match schema::union(instances) {
        Ok(union) => union,
        Err(error) => {
            let kind = error.kind();
            assert!(matches!(kind, ErrorKind::SchemaChanged | ErrorKind::Unsupported), "{kind}");
            for key in ["table", "instance", "column"] {
                assert!(error.context(key).is_some(), "{}", error.report());
            }
            return;
        }
    };
    let spec = match TableSpec::new("t", TableName::new("dbo", "t"), union.clone(), Vec::new()) {
        Ok(spec) => spec,
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::InvalidData));
            assert!(error.context("table").is_some() && error.context("column").is_some());
            return;
        }
    };
    let names: HashSet<_> = spec.columns.iter().map(folded).collect();
    assert_eq!(names.len(), spec.columns.len());
    for instance in instances {
        let wanted = schema::wanted(instance, &spec.columns);
        let mut asked: Vec<_> = wanted.iter().map(|column| column.name.as_str()).collect();
        let mut captured: Vec<_> = instance.columns.iter().map(|c| c.name.as_str()).collect();
        asked.sort_unstable();
        captured.sort_unstable();
        assert_eq!(asked, captured, "{}", instance.name);
        match schema::missing(instance, &spec.columns) {
            Ok(missing) => assert_eq!(missing, []),
            // Three types in a row need not fit as each two neighbours do.
            Err(error) => assert!(instances.len() > 2, "{}", error.report()),
        }
    }
    let copy =
        instances.first().map(|first| CaptureInstance { columns: union.clone(), ..first.clone() });
    assert_eq!(schema::union(copy.as_slice()).unwrap(), union);
}

/// A type fits itself, and one that fits another has a column form that the other's column takes.
fn types(instances: &[CaptureInstance]) {
    let types: Vec<_> =
        instances.iter().flat_map(|instance| &instance.columns).map(|c| &c.sql_type).collect();
    for narrow in &types {
        assert!(narrow.fits(narrow));
        #[cfg(feature = "delta")]
        for wide in &types {
            if let (true, Ok(from), Ok(to)) = (narrow.fits(wide), narrow.arrow(), wide.arrow()) {
                assert!(cdc_delta::fuzzing::fits(&from, &to), "{narrow} -> {wide}");
            }
        }
    }
}
