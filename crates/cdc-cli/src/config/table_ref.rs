//! Names of tables as a configuration spells them: `dbo.flights`, `[my schema].[my.table]`.

use cdc_core::TableName;

/// The two parts of a table's name; what is wrong in words otherwise.
pub(crate) fn table_name(text: &str) -> Result<TableName, String> {
    let wrong = || {
        format!(
            "\"{text}\" is no table; write schema.table, with a part that holds a dot or a blank \
             in brackets: [my schema].[my.table]"
        )
    };
    let (schema, rest) = part(text.trim()).ok_or_else(wrong)?;
    let (name, rest) = rest.strip_prefix('.').and_then(part).ok_or_else(wrong)?;
    if !rest.is_empty() {
        return Err(wrong());
    }
    Ok(TableName::new(schema, name))
}

/// The first part of a name, and what follows it.
fn part(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('[') else {
        let end = text.find('.').unwrap_or(text.len());
        let (plain, rest) = text.split_at(end);
        let fits = !plain.is_empty() && !plain.contains(['[', ']', ' ']);
        return fits.then(|| (plain.to_owned(), rest));
    };
    let mut name = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        let behind = quoted.get(at + character.len_utf8()..)?;
        if character != ']' {
            name.push(character);
        } else if behind.starts_with(']') {
            // A closing bracket inside is written twice.
            name.push(']');
            characters.next();
        } else {
            return (!name.is_empty()).then_some((name, behind));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_two_parts_and_brackets_hold_what_would_part_it() {
        for (text, schema, name) in [
            ("dbo.flights", "dbo", "flights"),
            ("[dbo].[flights]", "dbo", "flights"),
            ("[my schema].[my.table]", "my schema", "my.table"),
            ("dbo.[a]]b]", "dbo", "a]b"),
        ] {
            assert_eq!(table_name(text), Ok(TableName::new(schema, name)), "{text}");
        }
        for text in ["", "flights", "dbo.", ".flights", "a.b.c", "[dbo.flights", "[].x", "db o.x"] {
            assert!(table_name(text).is_err(), "{text}");
        }
    }
}
