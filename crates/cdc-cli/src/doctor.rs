//! `cdc doctor`: how the source is, check by check, and what would mend it. Reads only.

use std::time::Instant;

use cdc_core::{
    Result,
    diagnosis::{Diagnosis, Outcome},
};
use serde_json::{Map, Value, json};

use crate::{args::DoctorArgs, exit::Exit, parts, report::Report, run};

/// The command's name in reports.
pub(crate) const NAME: &str = "doctor";

/// Runs the command.
pub(crate) fn doctor(args: &DoctorArgs) -> Report {
    let config = match run::load(&args.config) {
        Ok(config) => config,
        Err(failure) => return Report::failed(NAME, failure),
    };
    let begun = Instant::now();
    let runtime = match crate::parts::runtime() {
        Ok(runtime) => runtime,
        Err(error) => return Report::failed(NAME, error.into()),
    };
    let looked: Result<_> = runtime.block_on(async {
        let patient = parts::patient(&config.source)?;
        let tables: Vec<_> = config.tables.iter().map(|table| table.source.clone()).collect();
        let found = patient.source.diagnose(&tables, patient.clock.now()).await?;
        Ok((patient.name, found))
    });
    let (source, found) = match looked {
        Ok(looked) => looked,
        Err(error) => return Report::failed(NAME, error.into()),
    };
    let mut report = Report::new(NAME, exit(&found, args.strict));
    report.seconds = begun.elapsed().as_secs_f64();
    report.tell("source", source.clone(), format!("source: {source}"));
    tell(&mut report, found);
    report
}

/// How the process ends: a failure fails it, and when told to be strict, a warning and what could
/// not be looked at too.
fn exit(found: &[Diagnosis], strict: bool) -> Exit {
    let least = if strict { Outcome::Unknown } else { Outcome::Failure };
    if found.iter().any(|one| one.outcome >= least) { Exit::Failed } else { Exit::Done }
}

fn tell(report: &mut Report, mut found: Vec<Diagnosis>) {
    // The worst first; among equals in the order in which they were looked at.
    found.sort_by_key(|one| std::cmp::Reverse(one.outcome));
    report.lines.extend(found.iter().flat_map(lines));
    let count = |outcome| found.iter().filter(|one| one.outcome == outcome).count();
    let counts: Vec<_> =
        Outcome::ALL.into_iter().rev().map(|outcome| (outcome.name(), count(outcome))).collect();
    let words: Vec<_> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    let counts: Map<String, Value> =
        counts.into_iter().map(|(name, count)| (name.to_owned(), json!(count))).collect();
    report.tell("counts", counts, words.join(", "));
    let values: Vec<_> = found.iter().map(value).collect();
    report.more.insert("findings".into(), values.into());
}

/// A diagnosis for people.
fn lines(one: &Diagnosis) -> Vec<String> {
    let table = one.table.as_ref().map(|table| format!("{table}: ")).unwrap_or_default();
    let mut lines = vec![format!("{:<8} {}: {table}{}", one.outcome, one.check, one.meaning)];
    let mut add = |what: &str, text: &str| lines.push(format!("         {what}: {text}"));
    let seen: Vec<_> =
        one.evidence.iter().map(|(name, value)| format!("{name}={}", shown(value))).collect();
    if !seen.is_empty() {
        add("seen", &seen.join(" "));
    }
    if let Some(statement) = &one.statement {
        add("run", statement);
    }
    if let Some(advice) = &one.advice {
        add("what to do", advice);
    }
    lines
}

/// A value in a list of them.
fn shown(value: &str) -> String {
    if value.contains(' ') { format!("\"{value}\"") } else { value.to_owned() }
}

/// A diagnosis for programs.
fn value(one: &Diagnosis) -> Value {
    let evidence: Map<String, Value> = one
        .evidence
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Value::from(value.clone())))
        .collect();
    json!({
        "check": one.check.name(),
        "outcome": one.outcome.name(),
        "table": one.table.as_ref().map(ToString::to_string),
        "evidence": evidence,
        "meaning": one.meaning,
        "statement": one.statement,
        "advice": one.advice,
    })
}

#[cfg(test)]
mod tests {
    use cdc_core::{TableName, diagnosis::Check};

    use super::*;

    fn found(outcomes: &[Outcome]) -> Vec<Diagnosis> {
        outcomes.iter().map(|outcome| Diagnosis::new(Check::Agent, *outcome, "it is so")).collect()
    }

    #[test]
    fn only_what_stops_the_copy_or_loses_data_fails_unless_strict() {
        use Outcome::{Fine, Note, Unknown, Warning};
        let mild = found(&[Fine, Note]);
        assert_eq!((exit(&mild, false), exit(&mild, true)), (Exit::Done, Exit::Done));
        for outcome in [Unknown, Warning] {
            let found = found(&[Fine, outcome]);
            assert_eq!((exit(&found, false), exit(&found, true)), (Exit::Done, Exit::Failed));
        }
        let bad = found(&[Outcome::Failure]);
        assert_eq!((exit(&bad, false), exit(&bad, true)), (Exit::Failed, Exit::Failed));
    }

    #[test]
    fn the_guide_tells_of_every_check_and_outcome() {
        let guide = include_str!("../../../docs/guide/doctor.md");
        let checks = Check::ALL.iter().map(|check| check.name());
        let outcomes = Outcome::ALL.iter().map(|outcome| outcome.name());
        for name in checks.chain(outcomes) {
            assert!(guide.contains(&format!("| `{name}` |")), "{name}");
        }
    }

    #[test]
    fn people_read_the_worst_first_with_evidence_and_statement() {
        let table = TableName::new("dbo", "t");
        let right = Diagnosis::new(Check::TableRight, Outcome::Failure, "it may not be read")
            .on(&table)
            .with("select", "not found")
            .run("GRANT x")
            .advise("ask");
        let mut report = Report::new(NAME, Exit::Failed);
        tell(&mut report, vec![Diagnosis::new(Check::Agent, Outcome::Fine, "it runs"), right]);
        assert_eq!(
            report.lines,
            [
                "failure  table_right: dbo.t: it may not be read",
                "         seen: select=\"not found\"",
                "         run: GRANT x",
                "         what to do: ask",
                "fine     agent: it runs",
                "failure 1, warning 0, unknown 0, note 0, fine 1",
            ]
        );
        assert_eq!(report.more["counts"]["failure"], 1);
        assert_eq!(report.more["findings"][0]["evidence"]["select"], "not found");
        assert_eq!(report.more["findings"][0]["table"], "dbo.t");
        assert!(report.more["findings"][1]["table"].is_null());
    }
}
