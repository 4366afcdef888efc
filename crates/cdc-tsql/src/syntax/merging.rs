//! MERGE.

use cdc_fake::SqlError;
use sqlparser::{ast, parser::Parser, tokenizer::Token};

use super::{
    Body, Merge, MergeAction, MergeClause, MergeWhen, extent,
    reader::{Read, Reader},
};

impl Reader {
    pub(super) fn merge(&mut self, with: Option<ast::With>) -> Read<Body> {
        let top = self.top()?;
        self.take("INTO");
        let target = self.target(true)?;
        self.must("USING")?;
        let end = self.end_before(&["ON"]);
        let source = self.parsed_until(end, Parser::parse_table_factor)?;
        self.must("ON")?;
        let end = self.end_before_when();
        let on = self.parsed_until(end, Parser::parse_expr)?;
        let mut clauses = Vec::new();
        while self.take("WHEN") {
            let clause = self.merge_clause()?;
            refuse_after(&clauses, &clause).map_err(|error| self.error(error))?;
            clauses.push(clause);
        }
        if clauses.is_empty() {
            return Err(self.unexpected());
        }
        let output = self.output()?;
        if self.peek() != Some(&Token::SemiColon) {
            return Err(self.error(SqlError::new(
                10_713,
                "A MERGE statement must be terminated by a semi-colon (;).",
            )));
        }
        let merge = Merge { with, top, target, source, on, clauses, output };
        Ok(Body::Merge(Box::new(merge)))
    }

    /// The place of the first WHEN of a MERGE: those of CASE expressions are not its own.
    fn end_before_when(&self) -> usize {
        let mut cases = 0_usize;
        let end = self.statement_end();
        for (at, token) in self.tokens_until(end).iter().enumerate() {
            match extent::word(&token.token).as_deref() {
                Some("CASE") => cases += 1,
                Some("END") => cases = cases.saturating_sub(1),
                Some("WHEN") if cases == 0 => return self.at + at,
                _ => {}
            }
        }
        end
    }

    fn merge_clause(&mut self) -> Read<MergeClause> {
        let when = if self.take("MATCHED") {
            MergeWhen::Matched
        } else if self.take_all(&["NOT", "MATCHED", "BY", "SOURCE"]) {
            MergeWhen::NotMatchedBySource
        } else if self.take_all(&["NOT", "MATCHED", "BY", "TARGET"])
            || self.take_all(&["NOT", "MATCHED"])
        {
            MergeWhen::NotMatchedByTarget
        } else {
            return Err(self.unexpected());
        };
        let condition = if self.take("AND") { Some(self.merge_condition()?) } else { None };
        self.must("THEN")?;
        let action = self.merge_action(when)?;
        Ok(MergeClause { when, condition, action })
    }

    fn merge_condition(&mut self) -> Read<ast::Expr> {
        let mut cases = 0_usize;
        let end = self.statement_end();
        let mut stop = end;
        for (at, token) in self.tokens_until(end).iter().enumerate() {
            match extent::word(&token.token).as_deref() {
                Some("CASE") => cases += 1,
                Some("END") => cases = cases.saturating_sub(1),
                Some("THEN") if cases == 0 => {
                    stop = self.at + at;
                    break;
                }
                _ => {}
            }
        }
        self.parsed_until(stop, Parser::parse_expr)
    }

    fn merge_action(&mut self, when: MergeWhen) -> Read<MergeAction> {
        let inserts = when == MergeWhen::NotMatchedByTarget;
        if !inserts && self.take("DELETE") {
            return Ok(MergeAction::Delete);
        }
        if !inserts && self.take("UPDATE") {
            self.must("SET")?;
            return self.list(Self::assignment).map(MergeAction::Update);
        }
        if !inserts || !self.take("INSERT") {
            return Err(self.unexpected());
        }
        if self.take_all(&["DEFAULT", "VALUES"]) {
            return Ok(MergeAction::InsertDefaults);
        }
        let mut columns = Vec::new();
        if self.peek() == Some(&Token::LParen) {
            columns = self.parenthesised(Self::column)?;
        }
        self.must("VALUES")?;
        let values = self.parenthesised(|reader| {
            if reader.take("DEFAULT") { Ok(None) } else { reader.expression().map(Some) }
        })?;
        Ok(MergeAction::Insert { columns, values })
    }
}

/// Refuses a clause that those of the same kind before it leave nothing to do.
fn refuse_after(before: &[MergeClause], clause: &MergeClause) -> Result<(), SqlError> {
    let words = match clause.when {
        MergeWhen::Matched => "MATCHED",
        MergeWhen::NotMatchedByTarget => "NOT MATCHED",
        MergeWhen::NotMatchedBySource => "NOT MATCHED BY SOURCE",
    };
    let mut alike = before.iter().filter(|other| other.when == clause.when);
    let kind = std::mem::discriminant(&clause.action);
    if alike.clone().any(|other| other.condition.is_none()) {
        return Err(SqlError::new(
            5324,
            format!(
                "In a MERGE statement, a 'WHEN {words}' clause with a search condition cannot \
                 appear after a 'WHEN {words}' clause with no search condition."
            ),
        ));
    }
    let inserts = clause.when == MergeWhen::NotMatchedByTarget;
    if alike.any(|other| inserts || std::mem::discriminant(&other.action) == kind) {
        let action = match clause.action {
            MergeAction::Update(_) => "UPDATE",
            MergeAction::Delete => "DELETE",
            MergeAction::Insert { .. } | MergeAction::InsertDefaults => "INSERT",
        };
        return Err(SqlError::new(
            10_714,
            format!(
                "An action of type 'WHEN {words}' cannot appear more than once in a '{action}' \
                 clause of a MERGE statement."
            ),
        ));
    }
    Ok(())
}
