//! Binding GROUP BY: its keys, the sets of keys that ROLLUP, CUBE and GROUPING SETS stand for, and
//! GROUPING, which tells in the result which keys a row was grouped by.

use cdc_core::SqlType;
use cdc_fake::{SqlError, SqlResult, Value};
use sqlparser::ast::{self, FunctionArg, FunctionArguments, GroupByExpr, GroupByWithModifier};

use super::{Binder, call::plain};
use crate::{
    kind::Kind,
    query::{
        expression::Expr,
        level::{Level, Place},
        naming::parts,
        refusal::{argument_count, syntax, unsupported},
    },
    scalar::Operator,
};

/// Sets of keys that one GROUP BY may stand for, as the server limits them.
const MAX_SETS: usize = 4096;
/// Keys of one CUBE: more stand for more sets than there may be.
const MAX_CUBE: usize = 12;

/// What a query is grouped by.
#[derive(Default)]
pub(super) struct Keys {
    /// Each key once.
    pub(super) keys: Vec<Expr>,
    /// The places of the keys of each set; none when all keys are the only set.
    pub(super) sets: Vec<Vec<usize>>,
}

/// The sets of an item of GROUP BY.
type Sets = Vec<Vec<usize>>;

impl<'a> Binder<'a> {
    /// Binds GROUP BY.
    pub(super) fn group_keys(
        &self,
        group_by: &'a GroupByExpr,
        level: &Level<'a>,
    ) -> SqlResult<Keys> {
        let GroupByExpr::Expressions(items, modifiers) = group_by else {
            return Err(unsupported("GROUP BY ALL"));
        };
        let mut keys = Vec::new();
        let mut sets: Sets = vec![Vec::new()];
        let mut several = false;
        for item in items {
            let own = self.item_sets(item, level, &mut keys)?;
            several |= own.len() != 1 || is_operator(item);
            sets = product(&sets, &own)?;
        }
        match modifiers.as_slice() {
            [] => {}
            [modifier] if !several => {
                let all: Sets = (0..keys.len()).map(|at| vec![at]).collect();
                sets = match modifier {
                    GroupByWithModifier::Rollup => rollup(&all),
                    GroupByWithModifier::Cube => cube(&all)?,
                    other => return Err(syntax(other)),
                };
                several = true;
            }
            [modifier, ..] => return Err(syntax(modifier)),
        }
        if !several {
            sets.clear();
        }
        Ok(Keys { keys, sets })
    }

    fn item_sets(
        &self,
        item: &'a ast::Expr,
        level: &Level<'a>,
        keys: &mut Vec<Expr>,
    ) -> SqlResult<Sets> {
        let mut each = |lists: &'a [Vec<ast::Expr>]| -> SqlResult<Vec<Sets>> {
            lists.iter().map(|list| self.element_sets(list, level, keys)).collect()
        };
        match item {
            ast::Expr::GroupingSets(lists) => Ok(each(lists)?.into_iter().flatten().collect()),
            ast::Expr::Rollup(lists) => Ok(rollup(&composites(each(lists)?)?)),
            ast::Expr::Cube(lists) => cube(&composites(each(lists)?)?),
            ast::Expr::Tuple(items) if !items.is_empty() => Err(syntax(",")),
            other => self.element_sets(std::slice::from_ref(other), level, keys),
        }
    }

    /// The sets of an element: keys that go together, or ROLLUP or CUBE inside GROUPING SETS.
    fn element_sets(
        &self,
        list: &'a [ast::Expr],
        level: &Level<'a>,
        keys: &mut Vec<Expr>,
    ) -> SqlResult<Sets> {
        if let [ast::Expr::Function(function)] = list
            && let Some(inner) = self.inner_operator(function, level, keys)?
        {
            return Ok(inner);
        }
        let mut own = Vec::new();
        let flat = list.iter().flat_map(|item| match item {
            ast::Expr::Tuple(items) => items.as_slice(),
            item => std::slice::from_ref(item),
        });
        for item in flat {
            let at = self.group_key(item, level, keys)?;
            if !own.contains(&at) {
                own.push(at);
            }
        }
        Ok(vec![own])
    }

    fn inner_operator(
        &self,
        function: &'a ast::Function,
        level: &Level<'a>,
        keys: &mut Vec<Expr>,
    ) -> SqlResult<Option<Sets>> {
        let name = match parts(&function.name)?.as_slice() {
            [name] => name.to_uppercase(),
            _ => return Ok(None),
        };
        if !matches!(&*name, "ROLLUP" | "CUBE") {
            return Ok(None);
        }
        let FunctionArguments::List(list) = &function.args else { return Err(syntax(name)) };
        let mut elements = Vec::with_capacity(list.args.len());
        for argument in &list.args {
            let element = plain(argument)?;
            elements.push(self.element_sets(std::slice::from_ref(element), level, keys)?);
        }
        let elements = composites(elements)?;
        if name == "ROLLUP" { Ok(Some(rollup(&elements))) } else { cube(&elements).map(Some) }
    }

    /// The place of a key among the keys.
    fn group_key(
        &self,
        item: &'a ast::Expr,
        level: &Level<'a>,
        keys: &mut Vec<Expr>,
    ) -> SqlResult<usize> {
        let key = self.value(item, level)?;
        let mut own = false;
        key.columns(&mut |column| own |= column.depth == 0);
        if !own {
            return Err(SqlError::new(
                164,
                "Each GROUP BY expression must contain at least one column that is not an outer \
                 reference.",
            ));
        }
        if let Some(at) = keys.iter().position(|other| other.node == key.node) {
            return Ok(at);
        }
        keys.push(key);
        Ok(keys.len() - 1)
    }

    /// `GROUPING(key)`, and `GROUPING_ID(key, ...)`, whose bits are those of each.
    pub(super) fn grouping(
        &self,
        name: &str,
        list: &'a [FunctionArg],
        level: &Level<'a>,
    ) -> SqlResult<Expr> {
        let is_id = name == "GROUPING_ID";
        if list.is_empty() || (!is_id && list.len() != 1) {
            return Err(argument_count(name, 1));
        }
        if !matches!(level.place.get(), Place::Group | Place::Output) {
            return Err(unsupported(format!(
                "{name} outside of a select list, HAVING or ORDER BY"
            )));
        }
        let sql_type = if is_id { SqlType::Int } else { SqlType::TinyInt };
        let mut bits: Option<Expr> = None;
        for (at, argument) in list.iter().enumerate() {
            let key = level.at(Place::Row, || self.value(plain(argument)?, level))?;
            let keys = level.group_keys.borrow();
            let Some(place) = keys.iter().position(|other| other.node == key.node) else {
                return Err(SqlError::new(
                    8161,
                    format!(
                        "Argument {} of the {name} function does not match any of the expressions \
                         in the GROUP BY clause.",
                        at + 1
                    ),
                ));
            };
            let bit = if level.has_sets.get() {
                let kind = Kind::new(sql_type.clone(), false);
                Expr::column(level.key_slot(), keys.len() + place, kind)
            } else {
                Self::constant(Value::Int(0), sql_type.clone())
            };
            bits = Some(match bits {
                None => bit,
                Some(before) => {
                    let two = Self::constant(Value::Int(2), SqlType::Int);
                    let shifted = self.operation(Operator::Multiply, before, two)?;
                    self.operation(Operator::Add, shifted, bit)?
                }
            });
        }
        bits.ok_or_else(|| argument_count(name, 1))
    }
}

const fn is_operator(item: &ast::Expr) -> bool {
    matches!(item, ast::Expr::GroupingSets(_) | ast::Expr::Rollup(_) | ast::Expr::Cube(_))
}

/// Every set of one side with every set of the other.
fn product(left: &Sets, right: &Sets) -> SqlResult<Sets> {
    if left.len().saturating_mul(right.len()) > MAX_SETS {
        return Err(too_many_sets());
    }
    let mut sets = Vec::with_capacity(left.len() * right.len());
    for one in left {
        for other in right {
            let mut both = one.clone();
            both.extend(other.iter().filter(|at| !one.contains(at)));
            sets.push(both);
        }
    }
    Ok(sets)
}

/// The keys that go together in each element of ROLLUP or CUBE.
fn composites(elements: Vec<Sets>) -> SqlResult<Sets> {
    elements
        .into_iter()
        .map(|mut sets| match (sets.pop(), sets.is_empty()) {
            (Some(only), true) => Ok(only),
            _ => Err(unsupported("ROLLUP or CUBE inside of ROLLUP or CUBE")),
        })
        .collect()
}

/// All elements, all but the last, and so on to none.
fn rollup(elements: &Sets) -> Sets {
    let first = |count: usize| united(elements.iter().take(count));
    (0..=elements.len()).rev().map(first).collect()
}

/// Every choice of elements.
fn cube(elements: &Sets) -> SqlResult<Sets> {
    if elements.len() > MAX_CUBE {
        return Err(too_many_sets());
    }
    let chosen = |choice: usize| {
        let all = elements.iter().enumerate();
        united(all.filter(|(at, _)| choice & (1 << at) != 0).map(|(_, element)| element))
    };
    Ok((0..1_usize << elements.len()).rev().map(chosen).collect())
}

fn united<'s>(elements: impl Iterator<Item = &'s Vec<usize>>) -> Vec<usize> {
    let mut keys = Vec::new();
    for at in elements.flatten() {
        if !keys.contains(at) {
            keys.push(*at);
        }
    }
    keys
}

fn too_many_sets() -> SqlError {
    SqlError::new(10_703, format!("Too many grouping sets. The maximum number is {MAX_SETS}."))
}
