//! Metrics of a running process, scraped over loopback.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::Stdio,
};

use crate::support::{Place, command, table};

#[cfg(unix)]
#[test]
fn a_running_copy_answers_a_scrape_and_stops_on_request() {
    let place = Place::new();
    let more = "[metrics]\nport = 0\n".to_owned() + &table("dbo.flights", "flights", "earliest");
    let config = place.write("until = \"2013-10-26T04:00:00Z\"", &more);
    let mut child = command(&["run", &config, "--log-format", "json", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut log = BufReader::new(child.stderr.take().expect("is piped")).lines();
    let mut line = |text: &str| loop {
        let line = log.next().expect("goes on").expect("is text");
        if line.contains(text) {
            break line;
        }
    };
    let served: serde_json::Value =
        serde_json::from_str(&line("metrics are served")).expect("a JSON line");
    let address = served["fields"]["address"].as_str().expect("an address").to_owned();
    // The metrics hear of an event before it is logged.
    line("\"committed\"");
    line("\"complete\"");

    let mut stream = TcpStream::connect(&address).expect("listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("is read");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("answers");
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    for series in [
        "cdc_rows_total{table=\"flights\",operation=\"insert\"}",
        "cdc_verdict_age_seconds{table=\"flights\"}",
        "cdc_retention_headroom_seconds{table=\"flights\"}",
        "cdc_capture_lag_seconds",
    ] {
        assert!(text.contains(series), "{series}\n{text}");
    }

    let kill = format!("kill -TERM {}", child.id());
    std::process::Command::new("sh").args(["-c", &kill]).status().expect("sh is there");
    let drain = std::thread::spawn(move || log.for_each(drop));
    let ended = crate::support::Ended::of(&child.wait_with_output().expect("ends"));
    drop(drain.join());
    assert_eq!(ended.expect(0)["metrics_address"], address.as_str());
    assert!(TcpStream::connect(&address).is_err());
}
