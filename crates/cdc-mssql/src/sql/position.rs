//! Positions and times: what the server's functions and `cdc.lsn_time_mapping` say.
//!
//! Everybody may read the mapping and call the functions of positions; `fn_cdc_get_min_lsn` gives
//! zero to whoever may not read the instance.

use cdc_core::{InstanceName, Lsn, ServerTime};

use super::{Parameters, lsn_column, number_column, question, reading_column};
use crate::driver::{Matching, Statement};

/// The newest position that capture has processed; NULL before it wrote anything.
pub(crate) fn high() -> Statement {
    question(
        "SELECT sys.fn_cdc_get_max_lsn() AS lsn".into(),
        Parameters::default(),
        vec![lsn_column("lsn")],
        Matching::Place,
    )
}

/// The low watermark of each instance with its place in the list.
pub(crate) fn low(instances: &[InstanceName]) -> Statement {
    let mut parameters = Parameters::default();
    let values: Vec<_> = instances
        .iter()
        .enumerate()
        .map(|(place, name)| format!("({place}, {})", parameters.text(name.as_str())))
        .collect();
    question(
        format!(
            "SELECT v.place, sys.fn_cdc_get_min_lsn(v.name) AS lsn \
             FROM (VALUES {}) AS v (place, name)",
            values.join(", ")
        ),
        parameters,
        vec![number_column("place"), lsn_column("lsn")],
        Matching::Place,
    )
}

/// The reading of the entry at a position; no row when there is none.
pub(crate) fn reading_at(at: Lsn) -> Statement {
    let mut parameters = Parameters::default();
    let at = parameters.lsn(at);
    question(
        format!(
            "SELECT m.start_lsn, m.tran_end_time FROM cdc.lsn_time_mapping AS m \
             WHERE m.start_lsn = {at}"
        ),
        parameters,
        vec![lsn_column("start_lsn"), reading_column("tran_end_time")],
        Matching::Place,
    )
}

/// The last entry at or before a position; no row when there is none.
pub(crate) fn entry_until(at: Lsn) -> Statement {
    let mut parameters = Parameters::default();
    let at = parameters.lsn(at);
    question(
        format!(
            "SELECT TOP (1) m.start_lsn, m.tran_end_time FROM cdc.lsn_time_mapping AS m \
             WHERE m.start_lsn <= {at} ORDER BY m.start_lsn DESC"
        ),
        parameters,
        vec![lsn_column("start_lsn"), reading_column("tran_end_time")],
        Matching::Place,
    )
}

/// The readings of the entries before a position that are at or after a reading, in log order: the
/// index on `tran_end_time` finds them.
pub(crate) fn readings_before(from: ServerTime, until: Lsn) -> Statement {
    let mut parameters = Parameters::default();
    let (from, until) = (parameters.reading(from), parameters.lsn(until));
    question(
        format!(
            "SELECT m.tran_end_time FROM cdc.lsn_time_mapping AS m \
             WHERE m.tran_end_time >= {from} AND m.start_lsn < {until} ORDER BY m.start_lsn"
        ),
        parameters,
        vec![reading_column("tran_end_time")],
        Matching::Place,
    )
}

/// What a clock has to know of a range before its changes are read: the last entry before it, the
/// least and the greatest reading in it, and how often a reading is below the one before.
pub(crate) fn range_facts(from: Lsn, to: Lsn) -> Statement {
    let mut parameters = Parameters::default();
    let (from, to) = (parameters.lsn(from), parameters.lsn(to));
    let before = |column: &str| {
        format!(
            "(SELECT TOP (1) b.{column} FROM cdc.lsn_time_mapping AS b \
             WHERE b.start_lsn < {from} ORDER BY b.start_lsn DESC)"
        )
    };
    question(
        format!(
            "SELECT {} AS before_lsn, {} AS before_time, MIN(r.tran_end_time) AS least, \
             MAX(r.tran_end_time) AS greatest, SUM(r.back) AS back FROM \
             (SELECT m.tran_end_time, CASE WHEN m.tran_end_time < LAG(m.tran_end_time) \
             OVER (ORDER BY m.start_lsn) THEN 1 ELSE 0 END AS back \
             FROM cdc.lsn_time_mapping AS m WHERE m.start_lsn BETWEEN {from} AND {to}) AS r",
            before("start_lsn"),
            before("tran_end_time"),
        ),
        parameters,
        vec![
            lsn_column("before_lsn"),
            reading_column("before_time"),
            reading_column("least"),
            reading_column("greatest"),
            number_column("back"),
        ],
        Matching::Place,
    )
}

/// The last entry whose reading is at or before `argument`, as the server itself looks it up.
pub(crate) fn position_at(argument: ServerTime) -> Statement {
    let mut parameters = Parameters::default();
    let argument = parameters.reading(argument);
    question(
        format!(
            "SELECT sys.fn_cdc_map_time_to_lsn('largest less than or equal', {argument}) AS lsn"
        ),
        parameters,
        vec![lsn_column("lsn")],
        Matching::Place,
    )
}

/// The greatest of the first `count` entries behind a position; NULL when there is none.
pub(crate) fn nth_after(after: Lsn, count: i64) -> Statement {
    let mut parameters = Parameters::default();
    let count = parameters.add(crate::driver::Parameter::Int(count));
    let after = parameters.lsn(after);
    question(
        format!(
            "SELECT MAX(n.start_lsn) AS lsn FROM (SELECT TOP ({count}) m.start_lsn \
             FROM cdc.lsn_time_mapping AS m WHERE m.start_lsn > {after} \
             ORDER BY m.start_lsn) AS n"
        ),
        parameters,
        vec![lsn_column("lsn")],
        Matching::Place,
    )
}
