//! What names mean at a place in a statement: the sources of the query at hand, those of the
//! queries around it, and the common table expressions in sight.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use cdc_fake::{SqlError, SqlResult};
use sqlparser::ast;

use super::{
    expression::{Column, Expr},
    naming::{qualifies, same},
    plan::{AggregatePlan, WindowPlan},
    refusal::{ambiguous, no_column, no_prefix, unbound},
};
use crate::{
    kind::{Collation, Kind},
    relation::{ObjectName, RelationColumn},
};

/// A source of FROM as names see it.
#[derive(Clone)]
pub(super) struct Visible {
    /// What qualifies its columns: an alias, or the object's own name.
    pub exposed: Exposed,
    /// The object's own name, when it is one.
    pub object: Option<ObjectName>,
    /// The slot of its row.
    pub slot: usize,
    /// Its columns.
    pub columns: Vec<RelationColumn>,
}

/// What qualifies a source's columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Exposed {
    /// An alias.
    Alias(String),
    /// The object's own name.
    Object(ObjectName),
}

impl Exposed {
    /// True when the prefix of a column means this source.
    pub(super) fn is_meant_by(&self, prefix: &[String], collation: &Collation) -> bool {
        match self {
            Self::Alias(alias) => {
                matches!(prefix, [name] if same(name, alias, collation))
            }
            Self::Object(object) => qualifies(prefix, object, collation),
        }
    }

    /// The name alone.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Alias(alias) => alias,
            Self::Object(object) => &object.name,
        }
    }
}

/// What may stand at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Columns alone: FROM, WHERE, GROUP BY.
    Row,
    /// Inside an aggregate.
    Aggregate,
    /// Aggregates too: HAVING, inside a window function.
    Group,
    /// Window functions too: the select list and ORDER BY.
    Output,
}

/// One query while it is bound.
pub(super) struct Level<'a> {
    /// The sources, in the order of FROM.
    pub sources: Vec<Visible>,
    /// The query around it.
    pub outer: Option<&'a Level<'a>>,
    /// The common table expressions in sight.
    pub tables: Tables<'a>,
    /// Windows by name.
    pub named_windows: &'a [ast::NamedWindowDefinition],
    /// How many rows the sources have.
    pub slots: usize,
    /// What may stand at the place that is being bound.
    pub place: Cell<Place>,
    /// The keys of GROUP BY, once they are bound.
    pub group_keys: RefCell<Vec<Expr>>,
    /// True when they are grouped by in several sets.
    pub has_sets: Cell<bool>,
    /// The aggregates so far.
    pub aggregates: RefCell<Vec<AggregatePlan>>,
    /// The window functions so far.
    pub windows: RefCell<Vec<WindowPlan>>,
    /// Columns of queries around this one that were read.
    pub outward: RefCell<Vec<Column>>,
    /// True when a recursive expression's rows were read.
    pub recursive: Cell<bool>,
}

impl<'a> Level<'a> {
    /// A query without sources yet.
    pub(super) fn new(outer: Option<&'a Level<'a>>, tables: Tables<'a>) -> Self {
        Self {
            sources: Vec::new(),
            outer,
            tables,
            named_windows: &[],
            slots: 0,
            place: Cell::new(Place::Row),
            group_keys: RefCell::default(),
            has_sets: Cell::new(false),
            aggregates: RefCell::default(),
            windows: RefCell::default(),
            outward: RefCell::default(),
            recursive: Cell::new(false),
        }
    }

    /// Runs `bind` with another place.
    pub(super) fn at<T>(&self, place: Place, bind: impl FnOnce() -> T) -> T {
        let before = self.place.replace(place);
        let bound = bind();
        self.place.set(before);
        bound
    }

    /// The slot of the group's row, and of the windows' row behind it.
    pub(super) const fn group_slot(&self) -> usize {
        self.slots
    }

    /// The slot of the row with the values of window functions.
    pub(super) const fn window_slot(&self) -> usize {
        self.slots + 1
    }

    /// The slot of the row with a group's keys, and which of them its set leaves out.
    pub(super) const fn key_slot(&self) -> usize {
        self.slots + 2
    }

    /// The column that a name means, here or in a query further out.
    ///
    /// # Errors
    /// 207, 209, 4104.
    pub(super) fn resolve(&self, parts: &[String], collation: &Collation) -> SqlResult<Expr> {
        let Some((name, prefix)) = parts.split_last() else {
            return Err(no_column(""));
        };
        let mut level = Some(self);
        let mut depth = 0;
        while let Some(here) = level {
            if let Some((slot, column, kind)) = here.own(prefix, name, collation)? {
                self.note_outward(depth, slot, column);
                let mut found = Expr::column(slot, column, kind);
                if let super::expression::Node::Column(place) = &mut found.node {
                    place.depth = depth;
                }
                return Ok(found);
            }
            level = here.outer;
            depth += 1;
        }
        Err(if prefix.is_empty() { no_column(name) } else { unbound(&parts.join(".")) })
    }

    fn own(
        &self,
        prefix: &[String],
        name: &str,
        collation: &Collation,
    ) -> SqlResult<Option<(usize, usize, Kind)>> {
        let mut found = None;
        let mut prefix_known = false;
        for source in &self.sources {
            if !prefix.is_empty() && !source.exposed.is_meant_by(prefix, collation) {
                continue;
            }
            prefix_known = !prefix.is_empty();
            for (index, column) in source.columns.iter().enumerate() {
                if column.name.is_empty() || !same(&column.name, name, collation) {
                    continue;
                }
                if found.is_some() {
                    return Err(ambiguous(name));
                }
                found = Some((source.slot, index, column.kind.clone()));
            }
        }
        if found.is_none() && prefix_known {
            return Err(no_column(name));
        }
        Ok(found)
    }

    fn note_outward(&self, depth: usize, slot: usize, column: usize) {
        let mut level = Some(self);
        for passed in 0..depth {
            let Some(here) = level else { return };
            here.outward.borrow_mut().push(Column { depth: depth - passed, slot, column });
            level = here.outer;
        }
    }

    /// The sources that `prefix.*` means.
    ///
    /// # Errors
    /// 107.
    pub(super) fn prefixed(&self, prefix: &[String], collation: &Collation) -> SqlResult<&Visible> {
        self.sources
            .iter()
            .find(|source| source.exposed.is_meant_by(prefix, collation))
            .ok_or_else(|| no_prefix(&prefix.join(".")))
    }

    /// The name of a column as an error shows it.
    pub(super) fn shown(&self, column: Column) -> String {
        let source = self.sources.iter().find(|source| source.slot == column.slot);
        source.map_or_else(String::new, |source| {
            let name = source.columns.get(column.column).map_or("", |column| &column.name);
            match &source.exposed {
                Exposed::Alias(alias) => format!("{alias}.{name}"),
                Exposed::Object(ObjectName { schema: Some(schema), name: object, .. }) => {
                    format!("{schema}.{object}.{name}")
                }
                Exposed::Object(object) => format!("{}.{name}", object.name),
            }
        })
    }
}

/// The common table expressions in sight, the nearest first.
#[derive(Clone, Default)]
pub(super) struct Tables<'a>(Option<Rc<Named<'a>>>);

struct Named<'a> {
    name: String,
    meaning: TableMeaning<'a>,
    before: Tables<'a>,
}

/// What a common table expression's name means.
#[derive(Clone)]
pub(super) enum TableMeaning<'a> {
    /// A query, bound anew wherever it is named.
    Query(&'a ast::Cte),
    /// The rows of the last round, inside the expression itself.
    Working {
        /// Which recursive expression.
        id: usize,
        /// Its columns.
        columns: Vec<RelationColumn>,
    },
}

impl<'a> Tables<'a> {
    /// These and one more.
    #[must_use]
    pub(super) fn with(&self, name: String, meaning: TableMeaning<'a>) -> Self {
        Self(Some(Rc::new(Named { name, meaning, before: self.clone() })))
    }

    /// These and those of a WITH.
    ///
    /// # Errors
    /// 239 for a name that is there twice.
    pub(super) fn and(&self, with: Option<&'a ast::With>) -> SqlResult<Self> {
        let mut tables = self.clone();
        let own = with.map_or(&[][..], |with| &with.cte_tables);
        for (at, table) in own.iter().enumerate() {
            let name = &table.alias.name.value;
            let twin = |other: &ast::Cte| other.alias.name.value.eq_ignore_ascii_case(name);
            if own.iter().take(at).any(twin) {
                return Err(SqlError::new(
                    239,
                    format!("Duplicate common table expression name '{name}' was specified."),
                ));
            }
            tables = tables.with(table.alias.name.value.clone(), TableMeaning::Query(table));
        }
        Ok(tables)
    }

    /// What a name means, and what was in sight when it was defined.
    pub(super) fn find(
        &self,
        name: &str,
        collation: &Collation,
    ) -> Option<(TableMeaning<'a>, Self)> {
        let mut next = self.0.as_ref();
        while let Some(named) = next {
            if same(&named.name, name, collation) {
                return Some((named.meaning.clone(), named.before.clone()));
            }
            next = named.before.0.as_ref();
        }
        None
    }
}
