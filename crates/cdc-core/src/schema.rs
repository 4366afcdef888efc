//! The columns a table's copy has: the union over its capture instances, and what may change in
//! them.

use std::collections::HashSet;

use crate::{
    error::{Error, ErrorKind, Result},
    table::{CaptureInstance, Column},
};

/// The columns of a copy that is filled from these instances, oldest first: by name ignoring
/// case, in the order they first appear. Where two types meet, the newer one holds when it takes
/// every value of the older one.
///
/// # Errors
/// [`ErrorKind::SchemaChanged`] naming the column and both types when the newer type cannot take
/// the older one's values; [`ErrorKind::Unsupported`] naming the column when an instance has
/// another of its name.
pub fn union(instances: &[CaptureInstance]) -> Result<Vec<Column>> {
    let mut columns: Vec<Column> = Vec::new();
    for instance in instances {
        each_name_once(instance)?;
        for column in &instance.columns {
            match columns.iter_mut().find(|known| same_name(known, column)) {
                None => columns.push(column.clone()),
                Some(known) if known.sql_type.fits(&column.sql_type) => {
                    known.sql_type = column.sql_type.clone();
                    known.computed = column.computed;
                }
                Some(known) => return Err(narrowed(instance, column, known)),
            }
        }
    }
    Ok(columns)
}

/// The columns of `instance` that a copy with `columns` lacks.
///
/// # Errors
/// [`ErrorKind::SchemaChanged`] naming the column and both types when a captured type no longer
/// fits the copy's; [`ErrorKind::Unsupported`] as for [`union`].
pub fn missing(instance: &CaptureInstance, columns: &[Column]) -> Result<Vec<Column>> {
    each_name_once(instance)?;
    let mut missing = Vec::new();
    for column in &instance.columns {
        match columns.iter().find(|known| same_name(known, column)) {
            None => missing.push(column.clone()),
            Some(known) if column.sql_type.fits(&known.sql_type) => {}
            Some(known) => return Err(narrowed(instance, column, known)),
        }
    }
    Ok(missing)
}

/// The columns to ask an instance for: those it captures, in the copy's types, in the copy's order.
#[must_use]
pub fn wanted(instance: &CaptureInstance, columns: &[Column]) -> Vec<Column> {
    columns
        .iter()
        .filter_map(|known| {
            let captured = instance.columns.iter().find(|column| same_name(known, column))?;
            Some(Column { sql_type: known.sql_type.clone(), ..captured.clone() })
        })
        .collect()
}

fn same_name(a: &Column, b: &Column) -> bool {
    a.name == b.name || a.name.to_lowercase() == b.name.to_lowercase()
}

/// Two columns of one name would become one, and the values of the second be lost.
fn each_name_once(instance: &CaptureInstance) -> Result<()> {
    let mut seen = HashSet::new();
    match instance.columns.iter().find(|column| !seen.insert(column.name.to_lowercase())) {
        None => Ok(()),
        Some(second) => Err(Error::new(
            ErrorKind::Unsupported,
            "two columns of a capture instance differ only in case",
        )
        .with("table", &instance.table)
        .with("instance", &instance.name)
        .with("column", &second.name)
        .remedy("leave one of them out of the capture instance's column list")),
    }
}

fn narrowed(instance: &CaptureInstance, column: &Column, known: &Column) -> Error {
    Error::new(ErrorKind::SchemaChanged, "a captured column's type no longer fits the copy's")
        .with("table", &instance.table)
        .with("instance", &instance.name)
        .with("column", &column.name)
        .with("captured", &column.sql_type)
        .with("copy", &known.sql_type)
        .remedy("widen the column in the target, or copy the table into a new target")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InstanceName, Lsn, SqlType, TableName};

    fn instance(name: &str, columns: &[(&str, SqlType)]) -> CaptureInstance {
        CaptureInstance {
            name: InstanceName::new(name),
            table: TableName::new("dbo", "t"),
            start: Lsn::ZERO.into(),
            columns: columns
                .iter()
                .zip(1..)
                .map(|((name, sql_type), id)| Column::new(*name, id, sql_type.clone(), true))
                .collect(),
            key: Vec::new(),
        }
    }

    #[test]
    fn the_newer_wider_type_wins_and_a_narrower_one_stops() {
        let old = instance("old", &[("Id", SqlType::Int), ("gone", SqlType::Bit)]);
        let new = instance("new", &[("id", SqlType::BigInt), ("added", SqlType::Date)]);
        let columns = union(&[old.clone(), new.clone()]).expect("widened");
        let names: Vec<_> = columns.iter().map(|c| (c.name.as_str(), &c.sql_type)).collect();
        assert_eq!(
            names,
            [("Id", &SqlType::BigInt), ("gone", &SqlType::Bit), ("added", &SqlType::Date)]
        );
        let error = union(&[new, old]).expect_err("narrowed");
        assert_eq!(error.kind(), ErrorKind::SchemaChanged);
        assert_eq!(
            (error.context("captured"), error.context("copy")),
            (Some("int"), Some("bigint"))
        );
    }

    #[test]
    fn two_columns_that_differ_only_in_case_never_become_one() {
        let both = instance("both", &[("id", SqlType::Int), ("ID", SqlType::Int)]);
        let copy = [Column::new("id", 1, SqlType::Int, true)];
        for error in [
            union(std::slice::from_ref(&both)).expect_err("two of a name"),
            missing(&both, &copy).expect_err("two of a name"),
        ] {
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert_eq!(error.context("column"), Some("ID"));
            assert_eq!(error.context("instance"), Some("both"));
        }
    }

    #[test]
    fn an_instance_is_asked_for_what_it_captures_in_the_types_of_the_copy() {
        let old = instance("old", &[("id", SqlType::Int), ("x", SqlType::Bit)]);
        let new = instance("new", &[("added", SqlType::Date), ("ID", SqlType::BigInt)]);
        let columns = union(&[old.clone(), new.clone()]).expect("union");
        let asked: Vec<_> =
            wanted(&old, &columns).into_iter().map(|c| (c.name, c.sql_type)).collect();
        assert_eq!(asked, [("id".to_owned(), SqlType::BigInt), ("x".to_owned(), SqlType::Bit)]);
        let asked: Vec<_> = wanted(&new, &columns).into_iter().map(|c| c.name).collect();
        assert_eq!(asked, ["ID", "added"]);
        let added = missing(&new, &old.columns).expect_err("bigint does not fit int");
        assert_eq!(added.kind(), ErrorKind::SchemaChanged);
        let added: Vec<_> =
            missing(&new, &columns).expect("fits").into_iter().map(|c| c.name).collect();
        assert_eq!(added, Vec::<String>::new());
    }
}
