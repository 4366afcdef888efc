//! Change tables, the mapping, and the functions over them.

use cdc_core::{InstanceName, Length, Lsn, SqlType, TableName};
use cdc_fake::{
    ChangeTableRows, FakeDatabase, InstanceInfo, Login, MappingEntry, Permission, Securable,
    SqlError, SqlResult, Value,
};

use crate::{
    kind::{Kind, Typed},
    model::{
        Names, denied,
        shape::{columns, row},
    },
    relation::{Comparison, Relation, RelationColumn, Row, Rows, Scan},
    scalar,
};

/// Rows of the mapping that one look takes.
const MAPPING_ROWS: usize = 1024;

/// The columns before the captured ones.
const HEAD: &str = "__$start_lsn binary(10); __$end_lsn binary(10)?; __$seqval binary(10); \
                    __$operation int; __$update_mask varbinary(128)?";

/// A change table.
pub(super) struct ChangeTable {
    database: FakeDatabase,
    name: InstanceName,
    columns: Vec<RelationColumn>,
    order: [usize; 4],
    /// The newest LSN that a snapshot transaction sees.
    seen: Option<Lsn>,
}

impl ChangeTable {
    pub(super) fn new(database: &FakeDatabase, info: &InstanceInfo, seen: Option<Lsn>) -> Self {
        let columns = change_columns(info);
        let command = columns.len() - 1;
        Self {
            database: database.clone(),
            name: info.name.clone(),
            columns,
            order: [0, command, 2, 3],
            seen,
        }
    }
}

/// The columns of an instance's change table.
pub(super) fn change_columns(info: &InstanceInfo) -> Vec<RelationColumn> {
    let mut all = columns(HEAD);
    all.extend(captured_columns(info));
    all.extend(columns("__$command_id int?"));
    all
}

/// The captured columns as the change table has them: each as in the source, but a row version is
/// bytes, and everything may be NULL.
fn captured_columns(info: &InstanceInfo) -> impl Iterator<Item = RelationColumn> {
    info.columns.iter().zip(&info.collations).map(|(column, collation)| {
        let sql_type = match &column.sql_type {
            SqlType::RowVersion => SqlType::Binary(8),
            other => other.clone(),
        };
        let mut kind = Kind::new(sql_type, true);
        kind.collation = collation.as_deref().and_then(scalar::collation);
        RelationColumn::new(column.name.clone(), kind)
    })
}

/// The LSNs that a scan wants, by its bounds on a column.
fn range(scan: &Scan, column: usize) -> (Lsn, Lsn) {
    let (mut from, mut to) = (Lsn::ZERO, Lsn::MAX);
    for bound in scan.bounds.iter().filter(|bound| bound.column == column) {
        let Some(lsn) = lsn_of(&bound.value) else { continue };
        match bound.comparison {
            Comparison::Equal => {
                from = from.max(lsn);
                to = to.min(lsn);
            }
            Comparison::Greater if lsn == Lsn::MAX => to = Lsn::ZERO,
            Comparison::Greater => from = from.max(lsn.increment()),
            Comparison::GreaterOrEqual => from = from.max(lsn),
            Comparison::Less => to = to.min(lsn.decrement()),
            Comparison::LessOrEqual => to = to.min(lsn),
        }
    }
    (from, to)
}

/// The LSN in a binary value: ten bytes, or fewer and then zeros.
pub(super) fn lsn_of(value: &Value) -> Option<Lsn> {
    let Value::Bytes(bytes) = value else { return None };
    let mut wide = [0; Lsn::WIDTH];
    for (place, byte) in wide.iter_mut().zip(bytes.iter()) {
        *place = *byte;
    }
    (bytes.len() <= Lsn::WIDTH).then(|| Lsn::new(wide))
}

/// An LSN as a value.
pub(super) fn lsn_value(lsn: Lsn) -> Value {
    Value::bytes(lsn.as_bytes())
}

impl Relation for ChangeTable {
    fn columns(&self) -> &[RelationColumn] {
        &self.columns
    }

    fn scan<'a>(&'a self, scan: &Scan) -> SqlResult<Rows<'a>> {
        let (from, to) = range(scan, 0);
        let to = to.min(self.seen.unwrap_or(Lsn::MAX));
        let rows: ChangeTableRows = self.database.read_changes(&self.name, from, to)?;
        Ok(Box::new(rows))
    }

    fn order(&self) -> &[usize] {
        &self.order
    }
}

/// `cdc.lsn_time_mapping`.
pub(super) struct Mapping {
    database: FakeDatabase,
    columns: Vec<RelationColumn>,
    /// The newest LSN that a snapshot transaction sees.
    seen: Option<Lsn>,
}

/// The columns of the mapping.
pub(super) const MAPPING: &str = "start_lsn binary(10); tran_begin_time datetime?; \
    tran_end_time datetime?; tran_id varbinary(10)?; tran_begin_lsn binary(10)?";

impl Mapping {
    pub(super) fn new(database: &FakeDatabase, seen: Option<Lsn>) -> Self {
        Self { database: database.clone(), columns: columns(MAPPING), seen }
    }
}

impl Relation for Mapping {
    fn columns(&self) -> &[RelationColumn] {
        &self.columns
    }

    fn scan<'a>(&'a self, scan: &Scan) -> SqlResult<Rows<'a>> {
        let (from, to) = range(scan, 0);
        let to = to.min(self.seen.unwrap_or(Lsn::MAX));
        let rows =
            MappingRows { database: &self.database, next: Some(from), to, found: Vec::new() };
        Ok(Box::new(rows.map(|entry| Ok(mapping_row(&entry)))))
    }

    fn order(&self) -> &[usize] {
        &[0]
    }
}

struct MappingRows<'a> {
    database: &'a FakeDatabase,
    next: Option<Lsn>,
    to: Lsn,
    /// The last first.
    found: Vec<MappingEntry>,
}

impl Iterator for MappingRows<'_> {
    type Item = MappingEntry;

    fn next(&mut self) -> Option<MappingEntry> {
        if self.found.is_empty()
            && let Some(from) = self.next.take()
            && from <= self.to
        {
            self.found = self.database.mapping_between(from, self.to, MAPPING_ROWS);
            if self.found.len() == MAPPING_ROWS {
                self.next = self.found.last().map(|entry| entry.lsn.increment());
            }
            self.found.reverse();
        }
        self.found.pop()
    }
}

/// An entry as a row: an idle one has no transaction.
fn mapping_row(entry: &MappingEntry) -> Row {
    let (transaction, begin) = if entry.idle {
        (Value::bytes(&[0]), lsn_value(Lsn::ZERO))
    } else {
        let [a, b, c, d] = entry.transaction.to_be_bytes();
        (Value::bytes(&[0, 0, a, b, c, d]), lsn_value(entry.lsn.decrement()))
    };
    row![lsn_value(entry.lsn), entry.began, entry.time, transaction, begin]
}

/// A kind of function over the changes of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Changes {
    All,
    Net,
}

/// The instance and the kind of a function's name.
fn function_of(name: &str) -> Option<(Changes, &str)> {
    let lower = name.to_ascii_lowercase();
    let prefix = |prefix: &str| lower.starts_with(prefix).then(|| name.get(prefix.len()..));
    if let Some(Some(instance)) = prefix("fn_cdc_get_all_changes_") {
        return Some((Changes::All, instance));
    }
    match prefix("fn_cdc_get_net_changes_") {
        Some(Some(instance)) => Some((Changes::Net, instance)),
        _ => None,
    }
}

/// The columns of a function over changes; none when it is no such function.
pub(super) fn function_columns(
    names: &Names<'_>,
    name: &str,
) -> Option<SqlResult<Vec<RelationColumn>>> {
    let (changes, instance) = function_of(name)?;
    Some(instance_for(names, changes, instance, name).map(|info| columns_of(changes, &info)))
}

fn columns_of(changes: Changes, info: &InstanceInfo) -> Vec<RelationColumn> {
    let mut all = match changes {
        Changes::All => columns(
            "__$start_lsn binary(10); __$seqval binary(10); __$operation int; \
             __$update_mask varbinary(128)?",
        ),
        Changes::Net => {
            columns("__$start_lsn binary(10); __$operation int; __$update_mask varbinary(128)?")
        }
    };
    all.extend(captured_columns(info));
    all
}

fn instance_for(
    names: &Names<'_>,
    changes: Changes,
    instance: &str,
    name: &str,
) -> SqlResult<InstanceInfo> {
    let found = names.database.instance_info(instance);
    let found = found.filter(|info| changes == Changes::All || info.net_changes);
    let found = found.ok_or_else(|| SqlError::invalid_object(&format!("cdc.{name}")))?;
    if !may_read_changes(names, &found) {
        return Err(denied(Permission::Select, names.database, &TableName::new("cdc", name)));
    }
    Ok(found)
}

/// True when a login may use the functions over an instance: it may read the captured table, and
/// is in the gating role where there is one.
pub(super) fn may_read_changes(names: &Names<'_>, info: &InstanceInfo) -> bool {
    let login: &Login = &names.access.rights;
    let source = Securable::Object(info.table.clone());
    names.database.permits(login, Permission::Select, &source)
        && info.role.as_ref().is_none_or(|role| names.database.is_member(login, role))
}

/// The result of a function over changes; none when it is no such function.
pub(super) fn table_function(
    names: &Names<'_>,
    name: &str,
    arguments: &[Typed],
) -> Option<SqlResult<super::base_table::Listed>> {
    let (changes, instance) = function_of(name)?;
    Some(instance_for(names, changes, instance, name).and_then(|info| {
        let rows = match changes {
            Changes::All => all_changes(names, &info, name, arguments)?,
            Changes::Net => net_changes(names, &info, name, arguments)?,
        };
        Ok(super::base_table::Listed { columns: columns_of(changes, &info), rows })
    }))
}

/// The range of a call, which has to lie in what the instance still has. Outside of it the
/// server's function fails as if it had been called with too few arguments.
fn call_range(
    names: &Names<'_>,
    info: &InstanceInfo,
    name: &str,
    arguments: &[Typed],
    filters: &[&str],
) -> SqlResult<(Lsn, Lsn, String)> {
    let outside = || {
        let short = match name.to_ascii_lowercase() {
            name if name.starts_with("fn_cdc_get_net") => "fn_cdc_get_net_changes_ ...",
            _ => "fn_cdc_get_all_changes_ ...",
        };
        SqlError::new(
            313,
            format!(
                "An insufficient number of arguments were supplied for the procedure or function \
                 cdc.{short} ."
            ),
        )
    };
    if arguments.len() > 3 {
        return Err(super::function::too_many_arguments(&format!("cdc.{name}")));
    }
    let [from, to, filter] = arguments else { return Err(outside()) };
    let (Some(from), Some(to)) = (lsn_of(&from.value), lsn_of(&to.value)) else {
        return Err(outside());
    };
    let filter = match &filter.value {
        Value::Text(text) => text.trim().to_ascii_lowercase(),
        _ => return Err(outside()),
    };
    let (Some(low), Some(high)) = (info.low, names.high()?) else {
        return Err(outside());
    };
    if from < low || to > high || from > to || !filters.contains(&filter.as_str()) {
        return Err(outside());
    }
    Ok((from, to, filter))
}

/// Places in a row of a change table.
const START: usize = 0;
const SEQVAL: usize = 2;
const OPERATION: usize = 3;
const MASK: usize = 4;
const CAPTURED: usize = 5;

fn at(row: &Row, place: usize) -> Value {
    row.get(place).cloned().unwrap_or(Value::Null)
}

fn captured(row: &Row) -> impl Iterator<Item = Value> {
    let last = row.len().saturating_sub(1);
    row.get(CAPTURED..last).unwrap_or_default().iter().cloned()
}

fn all_changes(
    names: &Names<'_>,
    info: &InstanceInfo,
    name: &str,
    arguments: &[Typed],
) -> SqlResult<Vec<Row>> {
    let filters = ["all", "all update old"];
    let (from, to, filter) = call_range(names, info, name, arguments, &filters)?;
    let mut rows = Vec::new();
    for row in names.database.read_changes(&info.name, from, to)? {
        let row = row?;
        if filter == "all" && at(&row, OPERATION) == Value::Int(3) {
            continue;
        }
        let head = [at(&row, START), at(&row, SEQVAL), at(&row, OPERATION), at(&row, MASK)];
        rows.push(head.into_iter().chain(captured(&row)).collect());
    }
    Ok(rows)
}

/// The first and the last change of a key in a range.
struct Net {
    first: i64,
    last: Row,
    mask: Vec<u8>,
}

fn net_changes(
    names: &Names<'_>,
    info: &InstanceInfo,
    name: &str,
    arguments: &[Typed],
) -> SqlResult<Vec<Row>> {
    let filters = ["all", "all with mask", "all with merge"];
    let (from, to, filter) = call_range(names, info, name, arguments, &filters)?;
    let key: Vec<usize> = info
        .key
        .iter()
        .filter_map(|name| info.columns.iter().position(|column| column.name == *name))
        .map(|place| place + CAPTURED)
        .collect();
    let mut keys: Vec<Vec<u8>> = Vec::new();
    let mut nets: std::collections::HashMap<Vec<u8>, Net> = std::collections::HashMap::new();
    for row in names.database.read_changes(&info.name, from, to)? {
        let row = row?;
        let Some(operation) = at(&row, OPERATION).as_int().filter(|number| *number != 3) else {
            continue;
        };
        let identity = key_bytes(info, &key, &row);
        let mask = match at(&row, MASK) {
            Value::Bytes(bytes) => bytes.to_vec(),
            _ => Vec::new(),
        };
        match nets.get_mut(&identity) {
            Some(net) => {
                for (sum, byte) in net.mask.iter_mut().zip(&mask) {
                    *sum |= byte;
                }
                net.last = row;
            }
            None => {
                keys.push(identity.clone());
                nets.insert(identity, Net { first: operation, last: row, mask });
            }
        }
    }
    let mut rows: Vec<(Lsn, Value, Row)> = Vec::new();
    for identity in keys {
        let Some(net) = nets.remove(&identity) else { continue };
        let Some(shown) = net_operation(net.first, at(&net.last, OPERATION).as_int(), &filter)
        else {
            continue;
        };
        let mask = if filter == "all with mask" && shown == 4 {
            Value::bytes(&net.mask)
        } else {
            Value::Null
        };
        let head = [at(&net.last, START), Value::Int(shown), mask];
        let lsn = lsn_of(&at(&net.last, START)).unwrap_or(Lsn::ZERO);
        let row = head.into_iter().chain(captured(&net.last)).collect();
        rows.push((lsn, at(&net.last, SEQVAL), row));
    }
    rows.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| bytes_of(&a.1).cmp(bytes_of(&b.1))));
    Ok(rows.into_iter().map(|(_, _, row)| row).collect())
}

fn bytes_of(value: &Value) -> &[u8] {
    match value {
        Value::Bytes(bytes) => bytes,
        _ => &[],
    }
}

/// What a row's changes come to: nothing when it was not there before and is not there after.
fn net_operation(first: i64, last: Option<i64>, filter: &str) -> Option<i64> {
    let shown = match (first, last?) {
        (2, 1) => return None,
        (_, 1) => 1,
        (2, _) => 2,
        // Deleted and inserted again, or updated.
        _ => 4,
    };
    if filter == "all with merge" && shown != 1 { Some(5) } else { Some(shown) }
}

fn key_bytes(info: &InstanceInfo, key: &[usize], row: &Row) -> Vec<u8> {
    let kind = |place: usize| {
        let column = info.columns.get(place - CAPTURED);
        column.map_or(Kind::new(SqlType::VarBinary(Length::Max), true), |column| {
            Kind::new(column.sql_type.clone(), true)
        })
    };
    let cells: Vec<(Value, Kind)> =
        key.iter().map(|place| (at(row, *place), kind(*place))).collect();
    crate::scalar::order_key(cells.iter().map(|(value, kind)| (value, kind, false)))
}
