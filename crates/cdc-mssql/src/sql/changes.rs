//! Change rows. The table functions of the server are not used: they do not give `__$command_id`,
//! without which the changes of one commit have no order.

use cdc_core::{InstanceName, Lsn, Result, SqlType};

use super::{Parameters, lsn_column, number_column, question, reading_column};
use crate::{
    driver::{Form, Matching, ResultColumn, Statement},
    name::ObjectName,
};

/// Columns in front of the captured ones.
pub(crate) const LEADING: usize = 5;

/// Which entries of the mapping a read of changes gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entries {
    /// Those with changes of the instance.
    Own,
    /// All of the range: those without have NULL for everything of the instance. A clock needs them
    /// where a reading may stand for two moments.
    All,
}

/// What is read.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) instance: &'a InstanceName,
    /// Expressions over the alias `c`, and what becomes of them.
    pub(crate) columns: Vec<(String, ResultColumn)>,
    pub(crate) range: (Lsn, Lsn),
    pub(crate) entries: Entries,
    pub(crate) batch_rows: usize,
}

/// The changes of a closed range in change order, with the readings of their commits. A commit
/// whose entry was removed from the mapping is not found: cleanup removes entries below the
/// lowest watermark alone.
///
/// # Errors
/// `Config` for a name that no instance can have.
pub(crate) fn changes(wanted: &Wanted<'_>) -> Result<Statement> {
    let table = ObjectName::of_changes(wanted.instance)?;
    let mut parameters = Parameters::default();
    let (from, to) = (parameters.lsn(wanted.range.0), parameters.lsn(wanted.range.1));
    let own = "c.[__$start_lsn]";
    let (lsn, source) = match wanted.entries {
        Entries::Own => (
            own,
            format!("{table} AS c INNER JOIN cdc.lsn_time_mapping AS m ON m.start_lsn = {own}"),
        ),
        Entries::All => (
            "m.start_lsn",
            format!("cdc.lsn_time_mapping AS m LEFT JOIN {table} AS c ON {own} = m.start_lsn"),
        ),
    };
    let expressions: String =
        wanted.columns.iter().map(|(expression, _)| format!(", {expression}")).collect();
    let text = format!(
        "SELECT {lsn}, c.[__$seqval], c.[__$operation], c.[__$command_id], \
         m.tran_end_time{expressions} FROM {source} WHERE {lsn} BETWEEN {from} AND {to} \
         ORDER BY {lsn}, c.[__$command_id], c.[__$seqval], c.[__$operation]"
    );
    let int = |name: &str| ResultColumn::new(name, Form::Sql(SqlType::Int));
    let mut columns = vec![
        lsn_column("__$start_lsn"),
        lsn_column("__$seqval"),
        int("__$operation"),
        int("__$command_id"),
        reading_column("tran_end_time"),
    ];
    columns.extend(wanted.columns.iter().map(|(_, column)| column.clone()));
    let mut statement = question(text, parameters, columns, Matching::Place);
    statement.batch_rows = wanted.batch_rows;
    Ok(statement)
}

/// For each instance and range, with its place in the list, whether there is a change: one seek
/// each, all in one answer.
///
/// # Errors
/// `Config` for a name that no instance can have.
pub(crate) fn has_changes(pairs: &[(&InstanceName, Lsn, Lsn)]) -> Result<Statement> {
    let mut parameters = Parameters::default();
    let mut selects = Vec::with_capacity(pairs.len());
    for (place, (instance, from, to)) in pairs.iter().enumerate() {
        let table = ObjectName::of_changes(instance)?;
        let (from, to) = (parameters.lsn(*from), parameters.lsn(*to));
        selects.push(format!(
            "SELECT {place} AS place, CASE WHEN EXISTS (SELECT 1 FROM {table} AS c \
             WHERE c.[__$start_lsn] BETWEEN {from} AND {to}) THEN 1 ELSE 0 END AS found"
        ));
    }
    Ok(question(
        selects.join("; "),
        parameters,
        vec![number_column("place"), number_column("found")],
        Matching::Place,
    ))
}
