//! The parts of the binary `cdc`: arguments, configuration, signals, logs, metrics, progress, the
//! demonstration, and one report at the end. What copies tables lives in the libraries below it.

mod args;
pub mod bronze;
pub mod clock;
mod config;
mod demo;
mod doctor;
pub mod exit;
mod fake;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod logging;
mod metrics;
mod parts;
mod progress;
mod report;
mod run;
mod sample;
mod signals;
mod status;

use std::{
    ffi::OsString,
    io::{self, Write},
    process::ExitCode,
};

use clap::Parser;

use self::{
    args::{Args, Command, FakeCommand},
    exit::Exit,
    progress::Progress,
    report::{Failure, Report},
};

/// The whole process: reads the command line, does what it says, writes one report.
pub fn process(line: impl IntoIterator<Item = OsString>) -> ExitCode {
    let line: Vec<OsString> = line.into_iter().collect();
    let args = match Args::try_parse_from(&line) {
        Ok(args) => args,
        Err(error) => return usage(&error, line.iter().any(|word| word == "--json")),
    };
    let progress = Progress::new(!args.output.no_progress);
    logging::start(&args.output, args.log_level(), &progress);
    let json = args.output.json;
    let report = match &args.command {
        Command::Demo(demo) => demo::demo(demo, json, &progress),
        Command::Run(run) => run::run(run, json, &progress),
        Command::Status(status) => status::status(status),
        Command::Doctor(doctor) => doctor::doctor(doctor),
        Command::Fake(fake) => match &fake.command {
            FakeCommand::Serve(serve) => fake::serve(serve, json),
        },
    };
    finish(&report, json)
}

/// Help and version go to standard output; a wrong command line is a report like any other.
fn usage(error: &clap::Error, json: bool) -> ExitCode {
    if json && error.use_stderr() {
        return finish(&Report::failed("cdc", Failure::usage(told(&error.to_string()))), true);
    }
    match error.print() {
        Ok(()) if !error.use_stderr() => ExitCode::SUCCESS,
        _ => ExitCode::from(Exit::BadConfiguration.code()),
    }
}

/// What is wrong with a command line, without the form that people read it in.
fn told(text: &str) -> String {
    let ends = ["\nUsage:", "\nFor more information"];
    let end = ends.iter().filter_map(|end| text.find(end)).min();
    let told = end.and_then(|end| text.get(..end)).unwrap_or(text);
    let told = told.strip_prefix("error: ").unwrap_or(told);
    let lines = told.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("; ").replace(":; ", ": ")
}

fn finish(report: &Report, json: bool) -> ExitCode {
    let mut out = io::stdout().lock();
    match report.write(json, &mut out).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::from(report.exit_code),
        // A reader that went away must not turn a finished run into a success or hide a failure.
        Err(_) => ExitCode::from(report.exit_code.max(Exit::Failed.code())),
    }
}
