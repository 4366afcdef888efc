//! What binding refuses, with the server's numbers and words.

use cdc_fake::SqlError;

/// The number of the refusal of what is read but not evaluated.
pub(super) const NOT_SUPPORTED: i32 = 50_000;

/// A construct that is read but not evaluated.
pub(super) fn unsupported(construct: impl std::fmt::Display) -> SqlError {
    SqlError::new(NOT_SUPPORTED, format!("not supported by this server: {construct}"))
}

/// A text that is no T-SQL, at a word.
pub(super) fn syntax(near: impl std::fmt::Display) -> SqlError {
    SqlError::new(102, format!("Incorrect syntax near '{near}'."))
}

/// An aggregate of an aggregate or of a query.
pub(super) fn aggregate_of_query() -> SqlError {
    SqlError::new(
        130,
        "Cannot perform an aggregate function on an expression containing an aggregate or a \
         subquery.",
    )
}

/// A value where a condition has to be.
pub(super) fn no_condition(near: impl std::fmt::Display) -> SqlError {
    SqlError::new(
        4145,
        format!(
            "An expression of non-boolean type specified in a context where a condition is \
             expected, near '{near}'."
        ),
    )
}

/// A column that no source has.
pub(super) fn no_column(name: &str) -> SqlError {
    SqlError::new(207, format!("Invalid column name '{name}'."))
}

/// A column that several sources have.
pub(super) fn ambiguous(name: &str) -> SqlError {
    SqlError::new(209, format!("Ambiguous column name '{name}'."))
}

/// A name of several parts that means nothing here.
pub(super) fn unbound(name: &str) -> SqlError {
    SqlError::new(4104, format!("The multi-part identifier \"{name}\" could not be bound."))
}

/// A prefix of `*` that no source has.
pub(super) fn no_prefix(name: &str) -> SqlError {
    SqlError::new(
        107,
        format!(
            "The column prefix '{name}' does not match with a table name or alias name used in \
             the query."
        ),
    )
}

/// A variable that is not declared.
pub(super) fn no_variable(name: &str) -> SqlError {
    SqlError::new(137, format!("Must declare the scalar variable \"{name}\"."))
}

/// A function that does not exist, by its name of one part.
pub(super) fn no_function(name: &str) -> SqlError {
    SqlError::new(195, format!("'{name}' is not a recognized built-in function name."))
}

/// A function that does not exist, by its name of several parts.
pub(super) fn no_qualified_function(prefix: &str, name: &str) -> SqlError {
    SqlError::new(
        4121,
        format!(
            "Cannot find either column \"{prefix}\" or the user-defined function or aggregate \
             \"{name}\", or the name is ambiguous."
        ),
    )
}

/// A wrong number of arguments.
pub(super) fn argument_count(function: &str, wanted: usize) -> SqlError {
    SqlError::new(
        174,
        format!("The {} function requires {wanted} argument(s).", function.to_lowercase()),
    )
}

/// Where a column that is not grouped by is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clause {
    SelectList,
    Having,
    OrderBy,
}

/// A column that is neither grouped by nor aggregated.
pub(super) fn not_grouped(column: &str, clause: Clause) -> SqlError {
    let (number, place) = match clause {
        Clause::SelectList => (8120, "the select list"),
        Clause::Having => (8121, "the HAVING clause"),
        Clause::OrderBy => (8127, "the ORDER BY clause"),
    };
    SqlError::new(
        number,
        format!(
            "Column '{column}' is invalid in {place} because it is not contained in either an \
             aggregate function or the GROUP BY clause."
        ),
    )
}

/// An aggregate in WHERE, ON or the like.
pub(super) fn misplaced_aggregate() -> SqlError {
    SqlError::new(
        147,
        "An aggregate may not appear in the WHERE clause unless it is in a subquery contained in \
         a HAVING clause or a select list, and the column being aggregated is an outer reference.",
    )
}

/// A window function elsewhere than in the select list or ORDER BY.
pub(super) fn misplaced_window() -> SqlError {
    SqlError::new(4108, "Windowed functions can only appear in the SELECT or ORDER BY clauses.")
}

/// More than one column where a value is wanted.
pub(super) fn several_columns() -> SqlError {
    SqlError::new(
        116,
        "Only one expression can be specified in the select list when the subquery is not \
         introduced with EXISTS.",
    )
}

/// More than one row where a value is wanted.
pub(super) fn several_rows() -> SqlError {
    SqlError::new(
        512,
        "Subquery returned more than 1 value. This is not permitted when the subquery follows =, \
         !=, <, <= , >, >= or when the subquery is used as an expression.",
    )
}

/// Expressions or queries nested too deeply.
pub(super) fn too_deep() -> SqlError {
    SqlError::new(
        8631,
        "Internal error: Server stack limit has been reached. Please look for potentially deep \
         nesting in your query, and try to simplify it.",
    )
}

/// More rows than a statement may hold at once.
pub(super) fn too_many_rows() -> SqlError {
    SqlError::new(701, "There is insufficient system memory to run this query.")
}

/// A statement that was asked to end.
pub(super) fn cancelled() -> SqlError {
    SqlError::new(3617, "The query was canceled.")
}
