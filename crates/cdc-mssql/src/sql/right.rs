//! Rights: what the login may read, asked in a way that no language of the server changes.

use super::{Parameters, number_column, question, text_column};
use crate::{
    driver::{Matching, Statement},
    name::ObjectName,
};

/// For each object with its place in the list: 1 when the login may read it, 0 when it may not,
/// NULL when there is no such object.
pub(crate) fn may_select(objects: &[ObjectName]) -> Statement {
    let mut parameters = Parameters::default();
    let values: Vec<_> = objects
        .iter()
        .enumerate()
        .map(|(place, name)| format!("({place}, {})", parameters.text(&name.to_string())))
        .collect();
    question(
        format!(
            "SELECT v.place, HAS_PERMS_BY_NAME(v.name, 'OBJECT', 'SELECT') AS allowed, \
             OBJECT_ID(v.name) AS id FROM (VALUES {}) AS v (place, name)",
            values.join(", ")
        ),
        parameters,
        vec![number_column("place"), number_column("allowed"), number_column("id")],
        Matching::Place,
    )
}

/// The name of the login's user in the database, to whom a right is granted.
pub(crate) fn user() -> Statement {
    question(
        "SELECT USER_NAME() AS name".into(),
        Parameters::default(),
        vec![text_column("name")],
        Matching::Place,
    )
}
