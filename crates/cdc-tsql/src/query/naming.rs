//! Names as they are written, and when two of them are the same.

use cdc_fake::{SqlError, SqlResult};
use sqlparser::ast;

use super::refusal::unsupported;
use crate::{kind::Collation, relation::ObjectName};

/// An object's name of up to three parts; a fourth (a linked server's) is refused.
///
/// # Errors
/// 117 for too many parts, 50000 for a name that is no name.
pub(crate) fn object_name(name: &ast::ObjectName) -> SqlResult<ObjectName> {
    let parts = parts(name)?;
    let part = |back: usize| -> Option<String> {
        let index = parts.len().checked_sub(back + 1)?;
        parts.get(index).filter(|part| !part.is_empty()).cloned()
    };
    if parts.len() > 4 {
        return Err(SqlError::new(
            117,
            format!("The object name '{name}' contains more than the maximum number of prefixes."),
        ));
    }
    if part(3).is_some() {
        return Err(unsupported("a name of four parts (a linked server)"));
    }
    Ok(ObjectName {
        database: part(2),
        schema: part(1),
        name: part(0).ok_or_else(|| unsupported(format!("the name '{name}'")))?,
    })
}

/// The parts of a name, without their quotes.
pub(super) fn parts(name: &ast::ObjectName) -> SqlResult<Vec<String>> {
    name.0
        .iter()
        .map(|part| match part {
            ast::ObjectNamePart::Identifier(ident) => Ok(ident.value.clone()),
            ast::ObjectNamePart::Function(_) => Err(unsupported(format!("the name '{name}'"))),
        })
        .collect()
}

/// True when two names are the same in a database of this collation.
pub(super) fn same(left: &str, right: &str, collation: &Collation) -> bool {
    left == right
        || (collation.ignores_case
            && (left.eq_ignore_ascii_case(right)
                || (!(left.is_ascii() && right.is_ascii())
                    && left.to_lowercase() == right.to_lowercase())))
}

/// True when `wanted`, the prefix of a column, names `object`: its parts from the last on.
pub(super) fn qualifies(wanted: &[String], object: &ObjectName, collation: &Collation) -> bool {
    let own = [Some(&object.name), object.schema.as_ref(), object.database.as_ref()];
    let defaults = [None, Some("dbo"), None];
    wanted.len() <= own.len()
        && wanted.iter().rev().zip(own).zip(defaults).all(|((wanted, own), default)| {
            wanted.is_empty()
                || match own.map(String::as_str).or(default) {
                    Some(own) => same(wanted, own, collation),
                    // The current database, which the statement need not name.
                    None => true,
                }
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::DEFAULT_COLLATION;

    fn named(text: &[&str]) -> ast::ObjectName {
        ast::ObjectName::from(text.iter().map(|part| ast::Ident::new(*part)).collect::<Vec<_>>())
    }

    #[test]
    fn an_object_has_up_to_three_parts_and_empty_ones_are_defaults() {
        let name = object_name(&named(&["db", "", "t"])).unwrap();
        assert_eq!((name.database.as_deref(), name.schema), (Some("db"), None));
        assert_eq!(object_name(&named(&["s", "t"])).unwrap().schema.as_deref(), Some("s"));
        assert_eq!(object_name(&named(&["l", "d", "s", "t"])).unwrap_err().number, 50_000);
        assert_eq!(object_name(&named(&["", "d", "s", "t"])).unwrap().name, "t");
        assert_eq!(object_name(&named(&["a", "b", "c", "d", "e"])).unwrap_err().number, 117);
    }

    #[test]
    fn names_are_the_same_as_the_collation_says() {
        let ignoring = DEFAULT_COLLATION;
        let exact = Collation { ignores_case: false, ..ignoring };
        for (left, right, alike) in
            [("Orders", "ORDERS", true), ("É", "é", true), ("a", "b", false)]
        {
            assert_eq!(same(left, right, &ignoring), alike, "{left} {right}");
            assert!(!same(left, right, &exact), "{left} {right}");
        }
        assert!(same("a", "a", &exact));
    }

    #[test]
    fn a_prefix_names_an_object_by_as_many_parts_as_it_has() {
        let object = ObjectName { database: None, schema: Some("cdc".into()), name: "t".into() };
        let prefix = |parts: &[&str]| parts.iter().map(ToString::to_string).collect::<Vec<_>>();
        for (wanted, alike) in [
            (prefix(&["t"]), true),
            (prefix(&["cdc", "t"]), true),
            (prefix(&["dbo", "t"]), false),
            (prefix(&["db", "cdc", "T"]), true),
            (prefix(&["u"]), false),
        ] {
            assert_eq!(qualifies(&wanted, &object, &DEFAULT_COLLATION), alike, "{wanted:?}");
        }
    }
}
