//! Binding calls: functions of values, functions that know the server, aggregates, and those that
//! look at an argument only when they need it.

use cdc_core::SqlType;
use cdc_fake::{SqlError, SqlResult, Value};
use sqlparser::ast::{
    self, CeilFloorKind, DuplicateTreatment, FunctionArg, FunctionArgExpr, FunctionArguments,
};

use super::Binder;
use crate::{
    kind::Kind,
    query::{
        expression::{Argument, Conversion, Expr, Node},
        level::{Level, Place},
        naming::parts,
        plan::AggregatePlan,
        refusal::{
            aggregate_of_query, argument_count, misplaced_aggregate, no_function,
            no_qualified_function, syntax, unsupported,
        },
        type_name::cast_kind,
    },
    relation::ObjectName,
    scalar::{self, ArgumentKind},
};

/// Functions of many rows.
const AGGREGATES: [&str; 13] = [
    "COUNT",
    "COUNT_BIG",
    "SUM",
    "AVG",
    "MIN",
    "MAX",
    "STDEV",
    "STDEVP",
    "VAR",
    "VARP",
    "STRING_AGG",
    "CHECKSUM_AGG",
    "APPROX_COUNT_DISTINCT",
];

/// Functions whose first argument is a date part.
const WITH_DATE_PART: [&str; 7] =
    ["DATEPART", "DATENAME", "DATEADD", "DATEDIFF", "DATEDIFF_BIG", "DATETRUNC", "DATE_BUCKET"];

/// Catalogue functions that see nothing but data.
const OF_DATA: [&str; 8] = [
    "fn_cdc_get_max_lsn",
    "fn_cdc_get_min_lsn",
    "fn_cdc_increment_lsn",
    "fn_cdc_decrement_lsn",
    "fn_cdc_map_lsn_to_time",
    "fn_cdc_map_time_to_lsn",
    "fn_cdc_is_bit_set",
    "fn_cdc_has_column_changed",
];

impl<'a> Binder<'a> {
    /// Binds a call.
    pub(super) fn function(
        &self,
        function: &'a ast::Function,
        level: &Level<'a>,
    ) -> SqlResult<Expr> {
        if function.filter.is_some() || !matches!(function.parameters, FunctionArguments::None) {
            return Err(unsupported("FILTER of an aggregate"));
        }
        let mut name = parts(&function.name)?;
        if function.uses_odbc_syntax {
            name = name.iter().map(|part| of_odbc(part)).collect();
        }
        let list: &[FunctionArg] = match &function.args {
            FunctionArguments::None => &[],
            FunctionArguments::List(list) => &list.args,
            FunctionArguments::Subquery(_) => return Err(syntax("SELECT")),
        };
        if let [own] = name.as_slice() {
            let upper = own.to_uppercase();
            if function.over.is_some() {
                return self.window(&upper, function, list, level);
            }
            if is_aggregate(&upper) {
                let aggregate = self.aggregate(&upper, function, list, level)?;
                return Ok(Self::noted(aggregate, level));
            }
            if let Some(bound) = self.lazy(&upper, list, level) {
                return bound;
            }
            if matches!(&*upper, "GROUPING" | "GROUPING_ID") {
                return self.grouping(&upper, list, level);
            }
            if matches!(&*upper, "PARSE" | "TRY_PARSE") && is_bare(&function.name) {
                return self.parse(&upper, list, level);
            }
        } else if function.over.is_some() {
            return Err(syntax("OVER"));
        }
        let arguments = self.arguments(&name, list, level)?;
        self.named_call(&name, arguments)
    }

    fn arguments(
        &self,
        name: &[String],
        list: &'a [FunctionArg],
        level: &Level<'a>,
    ) -> SqlResult<Vec<Argument>> {
        let takes_part = matches!(name, [own]
            if WITH_DATE_PART.iter().any(|known| own.eq_ignore_ascii_case(known)));
        list.iter()
            .enumerate()
            .map(|(place, argument)| {
                let expr = plain(argument)?;
                match expr {
                    ast::Expr::Identifier(word) if takes_part && place == 0 => {
                        Ok(Argument::Word(word.value.clone()))
                    }
                    // DEFAULT for a parameter of a function that has one.
                    ast::Expr::Identifier(word)
                        if word.quote_style.is_none()
                            && word.value.eq_ignore_ascii_case("DEFAULT") =>
                    {
                        Ok(Argument::Value(Expr::new(Node::Null, Kind::new(SqlType::Int, true))))
                    }
                    expr => self.value(expr, level).map(Argument::Value),
                }
            })
            .collect()
    }

    /// A call by its name and bound arguments: a function of values, or one of the catalogue.
    pub(super) fn named_call(&self, name: &[String], arguments: Vec<Argument>) -> SqlResult<Expr> {
        let Some((own, prefix)) = name.split_last() else {
            return Err(syntax("("));
        };
        let is_system = matches!(prefix, [schema] if schema.eq_ignore_ascii_case("sys"));
        if prefix.is_empty() || is_system {
            let kinds: Vec<ArgumentKind> = arguments
                .iter()
                .map(|argument| match argument {
                    Argument::Value(value) => ArgumentKind::Value(value.kind.clone()),
                    Argument::Word(word) => ArgumentKind::Word(word.clone()),
                })
                .collect();
            if let Some(kind) = scalar::function_kind(own, &kinds) {
                if !scalar::is_deterministic(own) {
                    self.only_data.set(false);
                }
                let call = Node::Call { name: own.clone(), arguments };
                return Ok(self.settled(Expr::new(call, kind?)));
            }
        }
        self.catalogue_call(name, own, prefix, arguments)
    }

    fn catalogue_call(
        &self,
        name: &[String],
        own: &str,
        prefix: &[String],
        arguments: Vec<Argument>,
    ) -> SqlResult<Expr> {
        let part = |back: usize| {
            let index = name.len().checked_sub(back + 1)?;
            name.get(index).filter(|part| !part.is_empty()).cloned()
        };
        let object = ObjectName { database: part(2), schema: part(1), name: own.to_owned() };
        let missing = || match prefix.first() {
            None => no_function(own),
            Some(first) => no_qualified_function(first, &name.join(".")),
        };
        let values = arguments
            .into_iter()
            .map(|argument| match argument {
                Argument::Value(value) => Ok(value),
                Argument::Word(_) => Err(missing()),
            })
            .collect::<SqlResult<Vec<Expr>>>()?;
        let kinds: Vec<Kind> = values.iter().map(|value| value.kind.clone()).collect();
        let kind = self.context.catalogue.function_kind(&object, &kinds).ok_or_else(missing)??;
        if !OF_DATA.iter().any(|known| own.eq_ignore_ascii_case(known)) {
            self.only_data.set(false);
        }
        let call = Node::CatalogueCall { name: object, arguments: values };
        Ok(self.settled(Expr::new(call, kind)))
    }

    /// A function of values that the parser knows by its own form.
    pub(super) fn keyword_function(
        &self,
        expr: &'a ast::Expr,
        level: &Level<'a>,
    ) -> SqlResult<Expr> {
        use ast::Expr as E;
        match expr {
            E::Substring {
                expr, substring_from: Some(from), substring_for: Some(length), ..
            } => self.call_values("SUBSTRING", &[&**expr, &**from, &**length], level),
            E::Substring { .. } => Err(argument_count("substring", 3)),
            E::Ceil { .. } => Err(no_function("CEIL")),
            E::Floor {
                expr,
                field: CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime),
            } => self.call_values("FLOOR", &[&**expr], level),
            E::Trim { trim_where, trim_what, expr, trim_characters: None } => {
                let mut arguments = Vec::new();
                if let Some(side) = trim_where {
                    arguments.push(Argument::Word(side.to_string()));
                }
                if let Some(what) = trim_what {
                    arguments.push(Argument::Value(self.value(what, level)?));
                }
                arguments.push(Argument::Value(self.value(expr, level)?));
                self.named_call(&["TRIM".to_owned()], arguments)
            }
            _ => Err(argument_count("floor", 1)),
        }
    }

    /// A function of values.
    pub(super) fn call_values(
        &self,
        name: &str,
        arguments: &[&'a ast::Expr],
        level: &Level<'a>,
    ) -> SqlResult<Expr> {
        let arguments = arguments
            .iter()
            .map(|argument| self.value(argument, level).map(Argument::Value))
            .collect::<SqlResult<Vec<_>>>()?;
        self.named_call(&[name.to_owned()], arguments)
    }

    /// A function that looks at an argument only when it needs it; none when it is another one.
    fn lazy(
        &self,
        name: &str,
        list: &'a [FunctionArg],
        level: &Level<'a>,
    ) -> Option<SqlResult<Expr>> {
        match name {
            "IIF" => Some(self.iif(list, level)),
            "COALESCE" => Some(self.coalesce(list, level)),
            "ISNULL" => Some(self.is_null_function(list, level)),
            "NULLIF" => Some(self.null_if(list, level)),
            "CHOOSE" => Some(self.choose(list, level)),
            _ => None,
        }
    }

    /// `PARSE(text AS type USING culture)`: the reader has made it a call of the text, a NULL of
    /// the type, and the culture.
    fn parse(&self, name: &str, list: &'a [FunctionArg], level: &Level<'a>) -> SqlResult<Expr> {
        let (of, data_type, culture) = match list {
            [of, data_type] => (plain(of)?, plain(data_type)?, None),
            [of, data_type, culture] => (plain(of)?, plain(data_type)?, Some(plain(culture)?)),
            _ => return Err(syntax(name)),
        };
        let ast::Expr::Cast { data_type, .. } = data_type else { return Err(syntax(name)) };
        if let Some(culture) = culture {
            let culture = self.value(culture, level)?;
            let american = matches!(&culture.node, Node::Constant(Value::Text(text))
                if text.eq_ignore_ascii_case("en-US"));
            if !american {
                return Err(unsupported(format!("{name} in another culture than en-US")));
            }
        }
        let of = self.value(of, level)?;
        if matches!(of.node, Node::Null) {
            return Err(SqlError::new(
                8116,
                format!(
                    "Argument data type NULL is invalid for argument 1 of {} function.",
                    name.to_lowercase()
                ),
            ));
        }
        let kind = cast_kind(data_type)?;
        scalar::check_parse(&of.kind, &kind, name)?;
        let lenient = name == "TRY_PARSE";
        let conversion = Conversion { parses: true, lenient, ..Conversion::new(of, true) };
        Ok(self.settled(Expr::new(Node::Convert(Box::new(conversion)), kind)))
    }

    fn iif(&self, list: &'a [FunctionArg], level: &Level<'a>) -> SqlResult<Expr> {
        let [condition, yes, no] = list else {
            return Err(argument_count("iif", 3));
        };
        let condition = self.condition(plain(condition)?, level)?;
        let yes = self.value(plain(yes)?, level)?;
        let no = self.value(plain(no)?, level)?;
        self.choice(vec![(condition, yes)], Some(no))
    }

    fn values_of(&self, list: &'a [FunctionArg], level: &Level<'a>) -> SqlResult<Vec<Expr>> {
        list.iter().map(|argument| self.value(plain(argument)?, level)).collect()
    }

    fn coalesce(&self, list: &'a [FunctionArg], level: &Level<'a>) -> SqlResult<Expr> {
        let values = self.values_of(list, level)?;
        if values.len() < 2 {
            return Err(argument_count("coalesce", 2));
        }
        if values.iter().all(|value| matches!(value.node, Node::Null)) {
            return Err(SqlError::new(
                4127,
                "At least one of the arguments to COALESCE must be an expression that is not the \
                 NULL constant.",
            ));
        }
        let kind = self.common(&values)?;
        let values = values
            .into_iter()
            .map(|value| self.converted(value, &kind))
            .collect::<SqlResult<Vec<_>>>()?;
        Ok(self.settled(Expr::new(Node::Coalesce(values), kind)))
    }

    fn is_null_function(&self, list: &'a [FunctionArg], level: &Level<'a>) -> SqlResult<Expr> {
        let values = self.values_of(list, level)?;
        let Ok([first, second]) = <[Expr; 2]>::try_from(values) else {
            return Err(argument_count("isnull", 2));
        };
        // The first decides the type, even the length: the second is cut to it.
        let own = if matches!(first.node, Node::Null) { &second.kind } else { &first.kind };
        let mut kind = own.clone();
        kind.nullable = first.kind.nullable && second.kind.nullable;
        let first = self.converted(first, &kind)?;
        let second = self.made(second, &kind, true)?;
        Ok(self.settled(Expr::new(Node::Coalesce(vec![first, second]), kind)))
    }

    fn null_if(&self, list: &'a [FunctionArg], level: &Level<'a>) -> SqlResult<Expr> {
        let values = self.values_of(list, level)?;
        let Ok([first, second]) = <[Expr; 2]>::try_from(values) else {
            return Err(argument_count("nullif", 2));
        };
        let kind = Kind { nullable: true, ..first.kind.clone() };
        let alike = self.equal(first.clone(), second)?;
        let nothing = Expr::new(Node::Null, kind.clone());
        let branches = vec![(alike, nothing)];
        let otherwise = Some(Box::new(first));
        Ok(self.settled(Expr::new(Node::Case { branches, otherwise }, kind)))
    }

    fn choose(&self, list: &'a [FunctionArg], level: &Level<'a>) -> SqlResult<Expr> {
        let mut values = self.values_of(list, level)?;
        if values.len() < 2 {
            return Err(argument_count("choose", 2));
        }
        let place = self.converted(values.remove(0), &Kind::new(SqlType::Int, true))?;
        let mut kind = self.common(&values)?;
        kind.nullable = true;
        let values = values
            .into_iter()
            .map(|value| self.converted(value, &kind))
            .collect::<SqlResult<Vec<_>>>()?;
        Ok(self.settled(Expr::new(Node::Choose(Box::new(place), values), kind)))
    }

    /// Binds an aggregate.
    pub(super) fn aggregate(
        &self,
        name: &str,
        function: &'a ast::Function,
        list: &'a [FunctionArg],
        level: &Level<'a>,
    ) -> SqlResult<AggregatePlan> {
        match level.place.get() {
            Place::Row => return Err(misplaced_aggregate()),
            Place::Aggregate => {
                return Err(aggregate_of_query());
            }
            Place::Group | Place::Output => {}
        }
        level.at(Place::Aggregate, || self.aggregate_here(name, function, list, level))
    }

    /// Binds an aggregate whose arguments may hold what the place allows.
    pub(super) fn aggregate_here(
        &self,
        name: &str,
        function: &'a ast::Function,
        list: &'a [FunctionArg],
        level: &Level<'a>,
    ) -> SqlResult<AggregatePlan> {
        let distinct = match &function.args {
            FunctionArguments::List(list) => {
                matches!(list.duplicate_treatment, Some(DuplicateTreatment::Distinct))
            }
            _ => false,
        };
        let is_count = matches!(name, "COUNT" | "COUNT_BIG");
        let arguments = match list {
            [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)] if is_count => Vec::new(),
            list => self.values_of(list, level)?,
        };
        let all_rows = matches!(list, [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]);
        if arguments.is_empty() && !all_rows {
            return Err(argument_count(name, 1));
        }
        let order = function
            .within_group
            .iter()
            .map(|key| {
                let descending = matches!(key.options.sort, Some(ast::OrderBySort::Desc));
                Ok((self.value(&key.expr, level)?, descending))
            })
            .collect::<SqlResult<Vec<_>>>()?;
        let kinds: Vec<Kind> = arguments.iter().map(|value| value.kind.clone()).collect();
        let made = scalar::aggregate(name, &kinds, distinct)
            .ok_or_else(|| unsupported(format!("the aggregate {name}")))??;
        let mut kind = made.kind();
        // A count of no rows is 0, anything else of no rows is NULL.
        kind.nullable = !is_count;
        Ok(AggregatePlan { name: name.to_owned(), arguments, distinct, order, kind })
    }

    /// The column of the group's row that holds an aggregate.
    pub(super) fn noted(aggregate: AggregatePlan, level: &Level<'a>) -> Expr {
        let mut known = level.aggregates.borrow_mut();
        let place = known.iter().position(|other| *other == aggregate);
        let kind = aggregate.kind.clone();
        let place = place.unwrap_or_else(|| {
            known.push(aggregate);
            known.len() - 1
        });
        Expr::column(level.group_slot(), place, kind)
    }
}

/// True for a name that is not quoted.
fn is_bare(name: &ast::ObjectName) -> bool {
    name.0.iter().all(|part| part.as_ident().is_some_and(|part| part.quote_style.is_none()))
}

/// The argument as an expression.
pub(super) fn plain(argument: &FunctionArg) -> SqlResult<&ast::Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(expr),
        FunctionArg::Unnamed(_) => Err(syntax("*")),
        FunctionArg::Named { .. } | FunctionArg::ExprNamed { .. } => {
            Err(unsupported("an argument by name"))
        }
    }
}

/// The function that a client means by a name of ODBC's (`{fn UCASE(x)}`).
fn of_odbc(name: &str) -> String {
    const NAMES: [(&str, &str); 8] = [
        ("UCASE", "UPPER"),
        ("LCASE", "LOWER"),
        ("LENGTH", "LEN"),
        ("IFNULL", "ISNULL"),
        ("NOW", "GETDATE"),
        ("DATABASE", "DB_NAME"),
        ("USER", "USER_NAME"),
        ("DAYOFMONTH", "DAY"),
    ];
    let found = NAMES.iter().find(|(own, _)| name.eq_ignore_ascii_case(own));
    found.map_or(name, |(_, meant)| meant).to_owned()
}

/// True when a name (in capitals) is that of an aggregate.
pub(super) fn is_aggregate(name: &str) -> bool {
    AGGREGATES.contains(&name)
}
