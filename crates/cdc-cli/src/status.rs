//! `cdc status`: how far each copy is, and what the source still has. Reads only.

mod continuity;

use std::time::Instant;

use cdc_core::{
    CaptureInstance, ErrorKind, Mark, Result, TableConfig, TableRef, TableSpec, Timestamp,
    port::{Bound, Source, TargetState},
    schema,
};
use serde::Serialize;

use crate::{
    args::StatusArgs,
    exit::Exit,
    parts::{NamedSink, Parts},
    report::{Failure, MarkLine, Moment, Report, write_grid},
    run,
};

/// The command's name in reports.
pub(crate) const NAME: &str = "status";

/// How far one table is.
#[derive(Debug, Serialize)]
struct StatusLine {
    table: String,
    source: String,
    /// `copied`, `no target yet`, or with an error `data_loss` or `lineage_broken` when the copy
    /// cannot go on from its mark, and `unknown`.
    state: &'static str,
    mark: Option<MarkLine>,
    finalized_until: Option<Moment>,
    /// Seconds since `finalized_until`, at least 0.
    verdict_age_seconds: Option<f64>,
    /// Seconds of source time from the mark to the source's newest entry, at least 0; none when
    /// the two are not of one log.
    lag_seconds: Option<f64>,
    /// Seconds of source time from what cleanup has removed up to the mark. Below 0 only with
    /// `data_loss`: so much is gone.
    headroom_seconds: Option<f64>,
    /// Something to look at that is no error.
    note: Option<&'static str>,
    error: Option<Failure>,
}

/// The newest entry of the source.
#[derive(Clone, Copy)]
struct High {
    at: Bound,
    time: Option<Timestamp>,
}

/// Runs the command.
pub(crate) fn status(args: &StatusArgs) -> Report {
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
        let parts = Parts::new(&config)?;
        let high = high(parts.source.as_ref()).await;
        let mut lines = Vec::new();
        for sink in &parts.sinks {
            for table in &config.tables {
                let high = high.as_ref().ok().copied();
                lines.push(look(&parts, sink, table, high).await);
            }
        }
        Ok((high, lines))
    });
    let (high, lines) = match looked {
        Ok(looked) => looked,
        Err(error) => return Report::failed(NAME, error.into()),
    };
    let exit = lines
        .iter()
        .filter_map(|line| line.error.as_ref().map(|error| error.exit))
        .fold(Exit::Done, Exit::worse);
    let mut report = Report::new(NAME, exit);
    report.seconds = begun.elapsed().as_secs_f64();
    report.finalized_until = least(&lines);
    tell(&mut report, &high, &lines);
    report.target = Some(run::places(&config));
    report
}

/// What holds for all tables together.
fn least(lines: &[StatusLine]) -> Option<Moment> {
    let all = lines.iter().map(|line| line.finalized_until.map(|moment| moment.0));
    cdc_core::verdict::group(all).map(Moment)
}

async fn high(source: &dyn Source) -> Result<High> {
    let at = source.high().await?;
    let time = match at {
        Bound::At(position) => source.commit_time(position).await?,
        Bound::Null | Bound::Zero => None,
    };
    Ok(High { at, time })
}

async fn look(
    parts: &Parts,
    sink: &NamedSink,
    table: &TableConfig,
    high: Option<High>,
) -> StatusLine {
    let mut line = nothing_known(sink.label(&table.target), table.source.to_string());
    if let Err(error) = fill(&mut line, parts, sink, table, high).await {
        line.error = Some(error.into());
    }
    line
}

fn nothing_known(table: impl Into<String>, source: impl Into<String>) -> StatusLine {
    StatusLine {
        table: table.into(),
        source: source.into(),
        state: "unknown",
        mark: None,
        finalized_until: None,
        verdict_age_seconds: None,
        lag_seconds: None,
        headroom_seconds: None,
        note: None,
        error: None,
    }
}

async fn fill(
    line: &mut StatusLine,
    parts: &Parts,
    sink: &NamedSink,
    table: &TableConfig,
    high: Option<High>,
) -> Result<()> {
    let found = parts.source.instances(&table.source).await;
    // A source that does not answer hides nothing of what the target holds.
    let (instances, failed) = match found {
        Ok(mut instances) => {
            instances.sort_by_key(|instance| instance.start);
            (instances, None)
        }
        Err(error) => (Vec::new(), Some(error)),
    };
    let Some(spec) = spec(table, &instances)? else {
        return failed.map_or(Ok(()), Err);
    };
    let state = sink.sink.inspect(&spec).await?;
    if let Some(TargetState { mark: Some(mark), verdict }) = state {
        line.state = "copied";
        line.mark = Some(MarkLine::from(&mark));
        let until = verdict.and_then(|verdict| verdict.finalized_until);
        line.finalized_until = until.map(Moment);
        tell_age(line, until.map(|until| seconds(parts.clock.now(), until)));
        let newest = high.and_then(|high| high.time).zip(mark.commit_time);
        line.lag_seconds = newest.map(|(new, old)| seconds(new, old).max(0.0));
        if failed.is_none() {
            go_on(line, parts.source.as_ref(), &mark, &instances).await?;
        }
    } else if failed.is_none() {
        line.state = "no target yet";
    }
    failed.map_or(Ok(()), Err)
}

/// An age below zero is none: the moment lies ahead of this clock.
fn tell_age(line: &mut StatusLine, age: Option<f64>) {
    line.verdict_age_seconds = age.filter(|age| *age >= 0.0);
    if line.verdict_age_seconds != age {
        line.note = Some("complete until a moment that has not come yet: compare the clocks");
    }
}

/// Whether the copy can go on from its mark, and how far ahead of cleanup it is.
async fn go_on(
    line: &mut StatusLine,
    source: &dyn Source,
    mark: &Mark,
    instances: &[CaptureInstance],
) -> Result<()> {
    let found = continuity::check(source, mark, instances).await?;
    let kind = found.broken.as_ref().map(cdc_core::Error::kind);
    if let Some(error) = found.broken {
        line.error = Some(error.into());
    }
    match kind {
        Some(kind @ ErrorKind::LineageBroken) => {
            line.state = kind.name();
            // Distances within a log that is not the mark's say nothing.
            line.lag_seconds = None;
            // The error says more than the clocks would.
            line.note = None;
            return Ok(());
        }
        Some(kind @ ErrorKind::DataLoss) => line.state = kind.name(),
        _ => {}
    }
    let (Some(low), Some(end)) = (found.low, mark.commit_time) else {
        return Ok(());
    };
    let headroom = source.commit_time(low).await?.map(|removed| seconds(end, removed));
    line.headroom_seconds = match kind {
        Some(ErrorKind::DataLoss) => headroom,
        // A mark right before the low position: nothing is gone, and nothing is left either.
        _ => headroom.map(|headroom| headroom.max(0.0)),
    };
    Ok(())
}

/// The spec under which a table is looked at; none when only the source could name the table.
fn spec(table: &TableConfig, instances: &[CaptureInstance]) -> Result<Option<TableSpec>> {
    let name = match (instances.first(), &table.source) {
        (Some(oldest), _) => oldest.table.clone(),
        (None, TableRef::Table(name)) => name.clone(),
        (None, TableRef::Instance(_)) => return Ok(None),
    };
    let key = instances.last().map(|newest| newest.key.clone()).unwrap_or_default();
    TableSpec::new(&table.target, name, schema::union(instances)?, key).map(Some)
}

fn seconds(later: Timestamp, earlier: Timestamp) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "a figure to look at")]
    let micros = later.micros_since(earlier) as f64;
    micros / 1_000_000.0
}

fn tell(report: &mut Report, high: &Result<High>, lines: &[StatusLine]) {
    let (position, time, answer) = match high {
        Ok(High { at: Bound::At(at), time }) => (Some(at.to_string()), *time, at.to_string()),
        Ok(_) => (None, None, "nothing captured yet".into()),
        Err(error) => (None, None, format!("no answer: {}", error.report())),
    };
    let time_text = time.map(|time| time.to_string());
    let line = format!("source stands at: {answer} {}", time_text.clone().unwrap_or_default());
    report.lines.push(grid(lines));
    for line in lines {
        if let Some(error) = &line.error {
            report.lines.push(format!("{}: {}: {}", line.table, error.kind, error.message));
            report.lines.push(format!("  what to do: {}", error.advice));
        }
        if let Some(note) = line.note {
            report.lines.push(format!("{}: {note}", line.table));
        }
    }
    report.tell("source_high", position, line.trim_end().to_owned());
    report.more.insert("source_high_time".into(), time_text.into());
    // The command's own lines take the place of a run's.
    let value = serde_json::to_value(lines).unwrap_or_default();
    report.more.insert("status".into(), value);
}

fn grid(lines: &[StatusLine]) -> String {
    let head = ["table", "state", "seq", "end", "complete until", "age", "lag", "headroom"];
    let mut grid = vec![head.map(String::from)];
    let span =
        |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.0} s"));
    for line in lines {
        let mark = line.mark.as_ref();
        grid.push([
            line.table.clone(),
            line.state.to_owned(),
            mark.map_or_else(|| "-".into(), |mark| mark.sequence.to_string()),
            mark.map_or_else(|| "-".into(), |mark| mark.end.clone()),
            line.finalized_until.map_or_else(|| "-".into(), |moment| moment.0.to_string()),
            span(line.verdict_age_seconds),
            span(line.lag_seconds),
            span(line.headroom_seconds),
        ]);
    }
    let mut out = Vec::new();
    // Memory takes every line.
    drop(write_grid(&mut out, &grid));
    String::from_utf8_lossy(&out).trim_end().to_owned()
}

#[cfg(test)]
mod tests;
