//! Binding window functions.

use cdc_core::SqlType;
use cdc_fake::{SqlError, SqlResult};
use sqlparser::ast::{
    self, FunctionArg, FunctionArgumentClause, FunctionArguments, NamedWindowExpr, NullTreatment,
    WindowFrameBound, WindowFrameUnits, WindowType,
};

use super::{
    Binder,
    call::{is_aggregate, plain},
};
use crate::{
    kind::Kind,
    query::{
        expression::Expr,
        level::{Level, Place},
        plan::{FrameEdge, FrameRange, WindowFunction, WindowPlan},
        refusal::{argument_count, misplaced_window, no_function, syntax, unsupported},
    },
};

/// The frame of a window without ORDER BY: the whole partition.
const WHOLE: FrameRange = FrameRange { rows: false, start: FrameEdge::First, end: FrameEdge::Last };
/// The frame of a window with ORDER BY that names none.
const RUNNING: FrameRange =
    FrameRange { rows: false, start: FrameEdge::First, end: FrameEdge::Current };

impl<'a> Binder<'a> {
    /// Binds a call with OVER.
    pub(super) fn window(
        &self,
        name: &str,
        function: &'a ast::Function,
        list: &'a [FunctionArg],
        level: &Level<'a>,
    ) -> SqlResult<Expr> {
        if level.place.get() != Place::Output {
            return Err(misplaced_window());
        }
        let Some(over) = &function.over else {
            return Err(syntax(name));
        };
        let spec = Self::spec(over, level)?;
        let (plan, kind) = level.at(Place::Group, || {
            let partition = spec
                .partition_by
                .iter()
                .map(|key| self.value(key, level))
                .collect::<SqlResult<Vec<_>>>()?;
            let order = spec
                .order_by
                .iter()
                .map(|key| self.window_key(key, level))
                .collect::<SqlResult<Vec<_>>>()?;
            let frame = frame(spec.window_frame.as_ref(), !order.is_empty())?;
            let (called, kind) = self.window_function(name, function, list, level)?;
            ordered_if_needed(name, &called, order.is_empty())?;
            Ok::<_, SqlError>((WindowPlan { function: called, partition, order, frame }, kind))
        })?;
        let mut known = level.windows.borrow_mut();
        let place = known.iter().position(|other| *other == plan);
        let place = place.unwrap_or_else(|| {
            known.push(plan);
            known.len() - 1
        });
        Ok(Expr::column(level.window_slot(), place, kind))
    }

    fn window_key(&self, key: &'a ast::OrderByExpr, level: &Level<'a>) -> SqlResult<(Expr, bool)> {
        if matches!(&key.expr, ast::Expr::Value(value)
            if matches!(value.value, ast::Value::Number(..)))
        {
            return Err(SqlError::new(
                5308,
                "Windowed functions, aggregates and NEXT VALUE FOR functions do not support \
                 integer indices as ORDER BY clause expressions.",
            ));
        }
        let descending = matches!(key.options.sort, Some(ast::OrderBySort::Desc));
        Ok((self.value(&key.expr, level)?, descending))
    }

    fn spec(over: &'a WindowType, level: &Level<'a>) -> SqlResult<&'a ast::WindowSpec> {
        let name = match over {
            WindowType::WindowSpec(spec) if spec.window_name.is_none() => return Ok(spec),
            WindowType::WindowSpec(_) => return Err(unsupported("a window that extends another")),
            WindowType::NamedWindow(name) => name,
        };
        level
            .named_windows
            .iter()
            .find(|named| named.0.value.eq_ignore_ascii_case(&name.value))
            .and_then(|named| match &named.1 {
                NamedWindowExpr::WindowSpec(spec) => Some(spec),
                NamedWindowExpr::NamedWindow(_) => None,
            })
            .ok_or_else(|| SqlError::new(5362, format!("Window '{}' is undefined.", name.value)))
    }

    fn window_function(
        &self,
        name: &str,
        function: &'a ast::Function,
        list: &'a [FunctionArg],
        level: &Level<'a>,
    ) -> SqlResult<(WindowFunction, Kind)> {
        let big = Kind::new(SqlType::BigInt, true);
        let float = Kind::new(SqlType::Float, true);
        let ranked =
            |called| if list.is_empty() { Ok(called) } else { Err(argument_count(name, 0)) };
        Ok(match name {
            "ROW_NUMBER" => (ranked(WindowFunction::RowNumber)?, big),
            "RANK" => (ranked(WindowFunction::Rank)?, big),
            "DENSE_RANK" => (ranked(WindowFunction::DenseRank)?, big),
            "PERCENT_RANK" => (ranked(WindowFunction::PercentRank)?, float),
            "CUME_DIST" => (ranked(WindowFunction::CumulativeDistribution)?, float),
            "NTILE" => {
                let [tiles] = list else { return Err(argument_count(name, 1)) };
                let tiles = self.value(plain(tiles)?, level)?;
                (WindowFunction::Tiles(self.converted(tiles, &big)?), big)
            }
            "LAG" | "LEAD" => self.neighbour(name == "LAG", function, list, level)?,
            "FIRST_VALUE" | "LAST_VALUE" => {
                let [value] = list else { return Err(argument_count(name, 1)) };
                let value = self.value(plain(value)?, level)?;
                let kind = Kind { nullable: true, ..value.kind.clone() };
                let ignore_nulls = ignores_nulls(function);
                (WindowFunction::Edge { first: name == "FIRST_VALUE", value, ignore_nulls }, kind)
            }
            _ => {
                if !is_aggregate(name) {
                    return Err(no_function(name));
                }
                let aggregate = self.aggregate_here(name, function, list, level)?;
                if aggregate.distinct {
                    return Err(SqlError::new(
                        10_759,
                        "Use of DISTINCT is not allowed with the OVER clause.",
                    ));
                }
                let kind = aggregate.kind.clone();
                (WindowFunction::Aggregate(Box::new(aggregate)), kind)
            }
        })
    }

    fn neighbour(
        &self,
        before: bool,
        function: &'a ast::Function,
        list: &'a [FunctionArg],
        level: &Level<'a>,
    ) -> SqlResult<(WindowFunction, Kind)> {
        let mut arguments = list.iter();
        let (Some(value), offset, default, None) =
            (arguments.next(), arguments.next(), arguments.next(), arguments.next())
        else {
            return Err(argument_count(if before { "lag" } else { "lead" }, 3));
        };
        let value = self.value(plain(value)?, level)?;
        let kind = Kind { nullable: true, ..value.kind.clone() };
        let offset = offset
            .map(|offset| {
                let offset = self.value(plain(offset)?, level)?;
                self.converted(offset, &Kind::new(SqlType::BigInt, true))
            })
            .transpose()?;
        let default = default
            .map(|default| {
                let default = self.value(plain(default)?, level)?;
                self.converted(default, &kind)
            })
            .transpose()?;
        let ignore_nulls = ignores_nulls(function);
        Ok((WindowFunction::Neighbour { before, value, offset, default, ignore_nulls }, kind))
    }
}

fn ignores_nulls(function: &ast::Function) -> bool {
    let inside = match &function.args {
        FunctionArguments::List(list) => list.clauses.iter().any(|clause| {
            matches!(
                clause,
                FunctionArgumentClause::IgnoreOrRespectNulls(NullTreatment::IgnoreNulls)
            )
        }),
        _ => false,
    };
    inside || matches!(function.null_treatment, Some(NullTreatment::IgnoreNulls))
}

/// Ranks and neighbours mean nothing without an order.
fn ordered_if_needed(name: &str, called: &WindowFunction, unordered: bool) -> SqlResult<()> {
    if unordered && !matches!(called, WindowFunction::Aggregate(_)) {
        return Err(SqlError::new(
            4112,
            format!("The function '{name}' must have an OVER clause with ORDER BY."),
        ));
    }
    Ok(())
}

fn frame(written: Option<&ast::WindowFrame>, ordered: bool) -> SqlResult<FrameRange> {
    let Some(written) = written else {
        return Ok(if ordered { RUNNING } else { WHOLE });
    };
    if !ordered {
        return Err(SqlError::new(
            10_756,
            "Window frame with ROWS or RANGE must have an ORDER BY clause.",
        ));
    }
    let rows = match written.units {
        WindowFrameUnits::Rows => true,
        WindowFrameUnits::Range => false,
        WindowFrameUnits::Groups => return Err(syntax("GROUPS")),
    };
    let start = edge(&written.start_bound)?;
    let end = written.end_bound.as_ref().map_or(Ok(FrameEdge::Current), edge)?;
    let counted = |edge| matches!(edge, FrameEdge::Before(_) | FrameEdge::After(_));
    if !rows && (counted(start) || counted(end)) {
        return Err(SqlError::new(
            4194,
            "RANGE is only supported with UNBOUNDED and CURRENT ROW window frame delimiters.",
        ));
    }
    if matches!(start, FrameEdge::Last) || matches!(end, FrameEdge::First) {
        return Err(SqlError::new(4193, "Invalid use of a window frame delimiter."));
    }
    Ok(FrameRange { rows, start, end })
}

fn edge(bound: &WindowFrameBound) -> SqlResult<FrameEdge> {
    let count = |expr: &ast::Expr| match expr {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Number(text, _) => text.parse::<u64>().map_err(|_| syntax(text)),
            other => Err(syntax(other)),
        },
        other => Err(syntax(other)),
    };
    Ok(match bound {
        WindowFrameBound::CurrentRow => FrameEdge::Current,
        WindowFrameBound::Preceding(None) => FrameEdge::First,
        WindowFrameBound::Following(None) => FrameEdge::Last,
        WindowFrameBound::Preceding(Some(expr)) => FrameEdge::Before(count(expr)?),
        WindowFrameBound::Following(Some(expr)) => FrameEdge::After(count(expr)?),
    })
}
