//! The metrics of a run that was told to them, scraped over a real socket.

use std::net::{Ipv4Addr, SocketAddr};

use cdc_core::{Error, ErrorKind, Lsn};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::clock::ShiftedClock;

const HOUR: i64 = 3_600_000_000;
/// 2013-11-03T06:00:00Z.
const SIX: i64 = 1_383_458_400_000_000;

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

fn stamp(time: i64) -> Stamp {
    Stamp { position: Lsn::MAX.into(), commit_time: Some(at(time)) }
}

/// Metrics of a run that stands at 08:00, with a source that stands at 07:30.
fn told() -> Metrics {
    let metrics = Metrics::new(Arc::new(ShiftedClock::showing(at(SIX + 2 * HOUR))));
    let mark = Mark {
        sequence: 3,
        end: Lsn::MAX.into(),
        commit_time: Some(at(SIX + HOUR)),
        entry_time: None,
        generation: 0,
    };
    let mut facts = BatchFacts::begun(at(SIX));
    facts.counts.rows = 12;
    facts.counts.inserts = 7;
    facts.counts.updates = 2;
    facts.counts.deletes = 1;
    facts.read_bytes = 4_096;
    facts.duration_ms = 400;
    facts.retention_watermark = Some(at(SIX - 23 * HOUR));
    let verdict = Verdict { finalized_until: Some(at(SIX + HOUR)), end: stamp(SIX + HOUR) };
    let gone = Error::new(ErrorKind::Unavailable, "no answer");
    let lost = Error::new(ErrorKind::DataLoss, "purged");
    for event in [
        Event::CycleStarted { high: &stamp(SIX + HOUR + HOUR / 2), now: at(SIX + 2 * HOUR) },
        Event::Staged { table: "flights", rows: 12, bytes: 4_096 },
        Event::Committed { table: "flights", mark: &mark, facts: &facts },
        Event::VerdictPublished { table: "flights", verdict: &verdict },
        Event::Staged { table: "planes", rows: 5, bytes: 1 },
        Event::Discarded { table: "airlines" },
        Event::Retrying { table: None, error: &gone, attempt: 1, pause_ms: 5 },
        Event::TableStopped { table: "planes", error: &lost },
        Event::Warning { table: None, message: "look" },
    ] {
        metrics.on(&event);
    }
    metrics
}

fn value(text: &str, series: &str) -> f64 {
    let line =
        text.lines().find(|line| line.strip_prefix(series).is_some_and(|r| r.starts_with(' ')));
    let line = line.unwrap_or_else(|| panic!("no {series} in\n{text}"));
    line.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

async fn get(address: SocketAddr, head: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("listens");
    stream.write_all(head.as_bytes()).await.expect("is read");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("is answered");
    answer
}

#[tokio::test]
async fn a_scrape_over_a_socket_tells_what_the_run_told() {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = serve(any, Arc::new(told())).await.expect("a free port");
    let text = get(server.address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    for (series, expected) in [
        ("cdc_retention_headroom_seconds{table=\"flights\"}", 86_400.0),
        ("cdc_ingestion_lag_seconds{table=\"flights\"}", 1_800.0),
        ("cdc_mark_sequence{table=\"flights\"}", 3.0),
        ("cdc_rows_total{table=\"flights\",operation=\"insert\"}", 7.0),
        ("cdc_rows_total{table=\"flights\",operation=\"delete\"}", 1.0),
        ("cdc_bytes_total{table=\"flights\"}", 4_096.0),
        ("cdc_batch_seconds_count{table=\"flights\"}", 1.0),
        ("cdc_batch_seconds_bucket{le=\"0.5\",table=\"flights\"}", 1.0),
        ("cdc_batch_seconds_bucket{le=\"0.25\",table=\"flights\"}", 0.0),
        ("cdc_staged_rows{table=\"flights\"}", 0.0),
        ("cdc_staged_rows{table=\"planes\"}", 5.0),
        ("cdc_retries_total{table=\"\",kind=\"unavailable\"}", 1.0),
        ("cdc_table_stopped{table=\"planes\",kind=\"data_loss\"}", 1.0),
        ("cdc_warnings_total", 1.0),
    ] {
        assert!((value(&text, series) - expected).abs() < 1e-6, "{series}\n{text}");
    }
    // Ages move with the clock, which shows 08:00 plus the time of this test.
    for (series, least) in [
        ("cdc_capture_lag_seconds", 1_800.0),
        ("cdc_verdict_age_seconds{table=\"flights\"}", 3_600.0),
    ] {
        let age = value(&text, series);
        assert!((least..least + 60.0).contains(&age), "{series} {age}");
    }
}

#[tokio::test]
async fn every_metric_that_is_named_is_registered() {
    let text = told().text().expect("formats");
    for (name, help) in name::ALL {
        let stem = name.strip_suffix("_total").unwrap_or(name);
        assert!(text.contains(&format!("# HELP {stem} {help}.\n")), "{name}\n{text}");
    }
}

#[tokio::test]
async fn anything_else_than_the_two_pages_is_refused() {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = serve(any, Arc::new(told())).await.expect("a free port");
    for (head, status) in [
        ("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), "200"),
        ("GET /etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n".into(), "404"),
        ("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".into(), "405"),
        (format!("GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(9_000)), "431"),
    ] {
        let answer = get(server.address, &head).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
    let taken = serve(server.address, Arc::new(told())).await.expect_err("the port is taken");
    assert_eq!(taken.kind(), ErrorKind::Config);
    let address = server.address;
    drop(server);
    // The listener goes with its task, at the runtime's next turn.
    for _ in 0..100 {
        if tokio::net::TcpStream::connect(address).await.is_err() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the server still listens");
}
