//! `cdc run`.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Child, Stdio},
};

use cdc_cli::bronze::Bronze;

use crate::support::{Ended, Place, cdc, command, files, table};

const KEY: [&str; 6] = ["year", "month", "day", "carrier", "flight", "origin"];

#[test]
fn a_second_run_finds_nothing_new_and_a_later_present_goes_on_from_the_mark() {
    let place = Place::new();
    let tables =
        table("dbo.flights", "flights", "earliest") + &table("dbo.planes", "planes", "earliest");
    let config = place.write("until = \"2013-10-26T04:00:00Z\"", &tables);
    let first = cdc(&["run", &config, "--once", "--json"]).expect(0);
    let flights = &first["tables"][0];
    let copied = flights["rows"].as_u64().expect("a count");
    assert!(copied > 500, "{first}");
    assert_eq!(flights["finalized_until"], "2013-10-26T03:00:00Z");

    let lake = files(&place.lake());
    let again = cdc(&["run", &config, "--once", "--json"]).expect(0);
    assert_eq!(again["tables"][0]["rows"], 0);
    assert_eq!(again["tables"][0]["mark"]["end"], flights["mark"]["end"]);
    let data = |list: &[(String, u64)]| {
        list.iter()
            .filter(|(name, _)| name.ends_with(".parquet") && name.contains("bronze"))
            .count()
    };
    assert_eq!(data(&files(&place.lake())), data(&lake), "no data file for nothing new");

    // The same server two days later, to which the mark's log is a begin.
    let config = place.write("until = \"2013-10-28T04:00:00Z\"", &tables);
    let later = cdc(&["run", &config, "--once", "--json"]).expect(0);
    let more = later["tables"][0]["rows"].as_u64().expect("a count");
    assert!(more > 500, "{later}");
    let bronze = Bronze::new(place.lake().join("bronze/flights"));
    assert_eq!(bronze.count().expect("is read"), copied + more);

    // One run over both days gives the same table.
    let whole = Place::new();
    let config = whole.write("until = \"2013-10-28T04:00:00Z\"", &tables);
    cdc(&["run", &config, "--once", "--json"]).expect(0);
    let at_once = Bronze::new(whole.lake().join("bronze/flights"));
    let columns = [&KEY[..], &["dep_delay", "tailnum", "time_hour", "_start_lsn"]].concat();
    let latest = |bronze: &Bronze| bronze.latest(&KEY, &columns).expect("is read");
    assert_eq!(at_once.count().expect("is read"), copied + more);
    assert_eq!(latest(&at_once), latest(&bronze));
}

/// Waits until the process has logged a text.
fn wait_for(child: &mut Child, text: &str) -> BufReader<std::process::ChildStderr> {
    let mut reader = BufReader::new(child.stderr.take().expect("is piped"));
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert!(reader.read_line(&mut line).expect("is text") > 0, "ended without {text:?}");
    }
    reader
}

#[cfg(unix)]
fn interrupt(child: &Child) {
    signal(child, "INT");
}

#[cfg(unix)]
fn signal(child: &Child, name: &str) {
    let kill = format!("kill -{name} {}", child.id());
    let sent = std::process::Command::new("sh").args(["-c", &kill]).status().expect("sh is there");
    assert!(sent.success());
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_cleanly_and_the_next_run_goes_on() {
    let place = Place::new();
    let tables = table("dbo.flights", "flights", "earliest");
    // Small batches, so that the signal comes between two of many.
    let limits = "[run]\nrows_max = 200\nbatch_rows = 50\n";
    let config = place.write("until = \"2013-11-02T04:00:00Z\"", &(limits.to_owned() + &tables));
    let mut child = command(&["run", &config, "--json", "--log-level", "info"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut rest = wait_for(&mut child, "committed");
    interrupt(&child);
    let drain = std::thread::spawn(move || std::io::copy(&mut rest, &mut std::io::sink()));
    let ended = Ended::of(&child.wait_with_output().expect("ends"));
    drop(drain.join());
    let report = ended.expect(0);
    assert_eq!(report["stopped"], true);
    let before = report["tables"][0]["rows"].as_u64().expect("a count");

    let resumed = cdc(&["run", &config, "--once", "--json"]).expect(0);
    let after = resumed["tables"][0]["rows"].as_u64().expect("a count");
    assert!(before > 0 && after > 0, "stopped in the middle: {before} before, {after} after");

    let whole = Place::new();
    let config = whole.write("until = \"2013-11-02T04:00:00Z\"", &(limits.to_owned() + &tables));
    let at_once = cdc(&["run", &config, "--once", "--json"]).expect(0);
    assert_eq!(at_once["tables"][0]["rows"], before + after, "nothing lost, nothing twice");
}

#[test]
fn a_root_beside_the_configurations_directory_is_written_as_a_path_and_as_a_url() {
    let place = Place::new();
    fs::create_dir(place.path("etc")).expect("is made");
    let url = format!("file://{}/etc/../by-url", place.directory.path().display());
    for (root, directory) in [("../by-path", "by-path"), (&url, "by-url")] {
        let text = format!(
            "[source]\nkind = \"fake\"\n[target]\nroot = \"{root}\"\n{}",
            table("dbo.airlines", "airlines", "earliest")
        );
        let file = place.path("etc/cdc.toml");
        fs::write(&file, text).expect("is written");
        cdc(&["run", file.to_str().expect("text"), "--once", "--json"]).expect(0);
        let copy = Bronze::new(place.path(directory).join("bronze/airlines"));
        assert!(copy.count().expect("is read") > 0, "{root}");
    }
}

#[cfg(unix)]
#[test]
fn a_second_signal_ends_at_once_with_json_on_both_outputs() {
    let place = Place::new();
    let tables = table("dbo.flights", "flights", "earliest");
    let limits = "[run]\nrows_max = 200\nbatch_rows = 50\n".to_owned() + &tables;
    let config = place.write("until = \"2013-11-02T04:00:00Z\"", &limits);
    let mut child = command(&["run", &config, "--json", "--log-format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut rest = wait_for(&mut child, "committed");
    // Both signals wait for the process when it goes on, so it cannot end between them.
    for name in ["STOP", "INT", "TERM", "CONT"] {
        signal(&child, name);
    }
    let drain = std::thread::spawn(move || {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut rest, &mut text).expect("is text");
        text
    });
    let ended = Ended::of(&child.wait_with_output().expect("ends"));
    let log = drain.join().expect("is read");
    let report = ended.expect(1);
    assert_eq!((&report["command"], &report["outcome"]), (&"run".into(), &"failed".into()));
    assert_eq!((&report["stopped"], &report["error"]["kind"]), (&true.into(), &"cancelled".into()));
    for line in log.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("every line is an object");
        assert!(line["level"].is_string(), "{line}");
        if line["fields"]["message"] == "committed" {
            assert!(line["fields"]["end"].as_str().expect("a position").starts_with("0x"));
        }
    }
    for words in ["stopping: ", "ended at once; "] {
        assert!(log.contains(words), "{log}");
    }
}

#[test]
fn a_newer_runner_fences_the_older_one_which_ends_with_its_own_code() {
    let place = Place::new();
    let tables = table("dbo.flights", "flights", "earliest");
    let pace = "[run]\npoll_interval = \"200ms\"\n".to_owned() + &tables;
    // A quarter of a minute before the morning's first flights are inserted.
    let config = place.write("until = \"2013-10-26T09:59:45Z\"", &pace);
    let mut older = command(&["run", &config, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut rest = wait_for(&mut older, "committed");
    let drain = std::thread::spawn(move || std::io::copy(&mut rest, &mut std::io::sink()));
    cdc(&["run", &config, "--once", "--json"]).expect(0);
    let ended = Ended::of(&older.wait_with_output().expect("ends"));
    drop(drain.join());
    let report = ended.expect(4);
    assert_eq!(report["outcome"], "fenced");
    assert_eq!(report["tables"][0]["error"]["kind"], "fenced");
}

/// Writes four small tables, with a text in cells that no log may show.
fn planted(place: &Place) {
    let directory = place.path("data");
    fs::create_dir(&directory).expect("is made");
    let write = |name: &str, text: String| fs::write(directory.join(name), text).expect("writes");
    write("airlines.csv", "carrier,name\nAA,PLANTED-NAME\n".into());
    write(
        "airports.csv",
        "faa,name,lat,lon,alt,tz,dst,tzone\nJFK,PLANTED-PORT,1.5,2.5,3,-5,A,NA\n".into(),
    );
    write(
        "planes.csv",
        "tailnum,year,type,manufacturer,model,engines,seats,speed,engine\n\
         N1,NA,PLANTED-TYPE,x,y,2,100,NA,z\n"
            .into(),
    );
    write(
        "flights.csv",
        "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,\
         carrier,flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour\n\
         2013,1,1,517,515,2,830,819,11,AA,1545,PLANTD,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z\n"
            .into(),
    );
}

#[test]
fn no_log_line_and_no_report_shows_a_cell() {
    let place = Place::new();
    planted(&place);
    let tables = ["airlines", "airports", "planes", "flights"]
        .map(|name| table(&format!("dbo.{name}"), name, "earliest"))
        .concat();
    let config = place.write("data = \"data\"", &tables);
    for format in ["text", "json"] {
        let arguments = ["run", &config, "--once", "--log-level", "trace", "--log-format", format];
        let ended = cdc(&arguments);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert!(ended.stderr.contains("attached"), "the log is there: {}", ended.stderr);
        for planted in ["PLANTED", "PLANTD"] {
            assert!(!ended.stderr.contains(planted) && !ended.stdout.contains(planted));
        }
    }
    let copy = Bronze::new(place.lake().join("bronze/airlines"));
    let copy = copy.latest(&["carrier"], &["name"]).expect("is read");
    let cell = |text: &str| Some(text.to_owned());
    assert_eq!(copy[&vec![cell("AA")]], [cell("PLANTED-NAME")]);
}

#[test]
fn a_wrong_command_line_is_one_report_too() {
    let refused = cdc(&["run", "--json", "--onec"]).expect(2);
    assert_eq!(refused["outcome"], "bad_configuration");
    let message = refused["error"]["message"].as_str().expect("a message");
    assert!(message.starts_with("unexpected argument '--onec' found"), "{message}");
    assert!(message.contains("'--once'"), "what was meant is kept: {message}");
    assert!(!message.contains("Usage") && !message.contains("--help"), "{message}");
    let missing = cdc(&["run", "--json"]).expect(2);
    let message = missing["error"]["message"].as_str().expect("a message");
    assert!(message.ends_with("provided: <CONFIG>") && !message.contains('\n'), "{message}");
    assert_eq!(cdc(&["run"]).code, 2);
    assert_eq!(cdc(&["--version"]).code, 0);
}
