//! The program behind `cargo xtask bench`: a process for each line, a table of all.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the table is the result")]

use std::{
    env,
    process::{Command, ExitCode},
    time::Instant,
};

use cdc_bench::{Line, Outcome, Scale, heading};
use clap::Parser;

/// Measures lines and prints a table of the figures.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// The lines; all that have a target when none is named.
    #[arg(value_name = "LINE")]
    lines: Vec<Line>,
    /// Small sizes that test the measurement itself; the figures mean nothing.
    #[arg(long)]
    quick: bool,
    /// Measure in this process and print rows alone.
    #[arg(long, hide = true)]
    rows: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = if arguments.rows { measure(&arguments) } else { run(&arguments) };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Each line in a process of its own, so that no line finds another's memory and caches.
fn run(arguments: &Arguments) -> Outcome<()> {
    let lines = match arguments.lines.as_slice() {
        [] => &Line::TARGETS,
        named => named,
    };
    println!("{}", heading());
    for line in lines {
        let begun = Instant::now();
        let mut command = Command::new(env::current_exe()?);
        command.arg("--rows").arg(line.name());
        if arguments.quick {
            command.arg("--quick");
        }
        let status = command.status()?;
        if !status.success() {
            return Err(format!("line {} ended with {status}", line.name()).into());
        }
        eprintln!("{}: {:.0} s", line.name(), begun.elapsed().as_secs_f64());
    }
    Ok(())
}

fn measure(arguments: &Arguments) -> Outcome<()> {
    let scale = if arguments.quick { Scale::Quick } else { Scale::Full };
    for line in &arguments.lines {
        line.measure(scale, &mut |figure| println!("{figure}"))?;
    }
    Ok(())
}
