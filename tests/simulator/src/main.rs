//! The command behind `cargo xtask sim`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a task's report is what it prints")]

use std::{fs, path::PathBuf, process::ExitCode};

use cdc_sim::{
    campaign::{Failure, Summary, explain, guarded, kept, read},
    draw::draw,
    script::Script,
    world::Outcome,
};
use clap::Parser;

/// Simulates the engine and the Delta sink against the fake server, under faults.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask sim", bin_name = "cargo xtask sim")]
struct Arguments {
    /// Fresh seeds to play.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first seed; with --seeds 1 this one alone.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Go on with fresh seeds for so many minutes instead of a number of seeds.
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<f64>,
    /// Play this script instead.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Write the trace of the script or the failing seed here.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Where the scripts of failing seeds are written.
    #[arg(long, value_name = "DIR", default_value = "target/sim")]
    failures: PathBuf,
    /// Leave out the kept scripts.
    #[arg(long)]
    fresh_only: bool,
    /// Go on after a failing seed, up to so many.
    #[arg(long, default_value_t = 1)]
    failures_max: u32,
    /// Print what was met and how often.
    #[arg(long)]
    coverage: bool,
    /// Fail unless everything that is wanted was met.
    #[arg(long)]
    require_coverage: bool,
    /// Do not shrink.
    #[arg(long)]
    no_shrink: bool,
    /// Plant this bug, or `all` one after the other, and tell how many seeds each takes.
    #[cfg(feature = "planted-bugs")]
    #[arg(long, value_name = "BUG")]
    planted: Option<String>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Campaign<'a> {
    arguments: &'a Arguments,
    summary: Summary,
    failed: u32,
}

fn run(arguments: &Arguments) -> std::io::Result<bool> {
    #[cfg(feature = "planted-bugs")]
    if let Some(bugs) = &arguments.planted {
        return bite(arguments, bugs);
    }
    let mut campaign = Campaign { arguments, summary: Summary::default(), failed: 0 };
    if let Some(path) = &arguments.script {
        let script = read(path)?;
        let outcome = guarded(&script);
        println!("events {} hash {:016x}", outcome.events, outcome.hash);
        write_trace(arguments, &outcome.lines)?;
        if outcome.violation.is_none() {
            return Ok(true);
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        campaign.told(&name, &script, outcome)?;
        return Ok(false);
    }
    if !arguments.fresh_only {
        let kept = kept()?;
        println!("{} kept scripts", kept.len());
        for (name, script) in kept {
            campaign.play(&name, &script)?;
        }
    }
    let elapsed = stopwatch();
    for seed in (arguments.seed..).take(seeds(arguments)) {
        let out = arguments.minutes.is_some_and(|minutes| elapsed() >= minutes * 60.0);
        if out || campaign.failed >= arguments.failures_max {
            break;
        }
        campaign.play(&format!("seed-{seed}"), &draw(seed))?;
    }
    campaign.report(elapsed());
    let missed = campaign.summary.never_met();
    let covered = !arguments.require_coverage || missed.is_empty();
    Ok(campaign.failed == 0 && covered)
}

/// Prints a line a planted bug. False when one is not caught.
#[cfg(feature = "planted-bugs")]
fn bite(arguments: &Arguments, bugs: &str) -> std::io::Result<bool> {
    use cdc_core::planted::Planted;
    let chosen: Vec<Planted> = match bugs {
        "all" => Planted::ALL.to_vec(),
        one => vec![one.parse().map_err(|_| std::io::Error::other("no bug has this name"))?],
    };
    println!("| bug | seeds until caught | invariant |\n| --- | ---: | --- |");
    let mut caught = 0;
    for bug in &chosen {
        let bite = cdc_sim::bite::bite(*bug, arguments.seed, arguments.seeds);
        match &bite.caught {
            Some((seed, violation)) => {
                caught += 1;
                let seeds = seed - arguments.seed + 1;
                println!("| {bug} | {seeds} | {} |", violation.invariant);
                eprintln!("{bug} seed {seed}: {violation}");
            }
            None => println!("| {bug} | not within {} | |", arguments.seeds),
        }
    }
    Ok(caught == chosen.len())
}

fn seeds(arguments: &Arguments) -> usize {
    match arguments.minutes {
        Some(_) => usize::MAX,
        None => usize::try_from(arguments.seeds).unwrap_or(usize::MAX),
    }
}

#[allow(clippy::disallowed_methods, reason = "the budget of a campaign, no part of a simulation")]
fn stopwatch() -> impl Fn() -> f64 {
    let begin = std::time::Instant::now();
    move || begin.elapsed().as_secs_f64()
}

fn write_trace(arguments: &Arguments, lines: &[String]) -> std::io::Result<()> {
    match &arguments.trace {
        Some(path) => fs::write(path, lines.join("\n")),
        None => Ok(()),
    }
}

impl Campaign<'_> {
    fn play(&mut self, name: &str, script: &Script) -> std::io::Result<()> {
        let outcome = guarded(script);
        self.summary.add(&outcome);
        self.told(name, script, outcome)
    }

    /// Prints what a script breaks, with the shortest script that breaks it too.
    fn told(&mut self, name: &str, script: &Script, outcome: Outcome) -> std::io::Result<()> {
        let Some(violation) = outcome.violation else { return Ok(()) };
        self.failed += 1;
        println!("{name} breaks {violation}");
        fs::create_dir_all(&self.arguments.failures)?;
        let path = self.arguments.failures.join(format!("{name}.json"));
        // Before it is shrunk, which may take minutes.
        fs::write(&path, serde_json::to_string_pretty(script)?)?;
        let failure = if self.arguments.no_shrink {
            Failure { violation, script: script.clone(), lines: outcome.lines }
        } else {
            explain(script, violation)
        };
        let text = serde_json::to_string_pretty(&failure.script)?;
        fs::write(&path, &text)?;
        write_trace(self.arguments, &failure.lines)?;
        let from = failure.lines.len().saturating_sub(40);
        failure.lines.iter().skip(from).for_each(|line| println!("  {line}"));
        println!("{name} breaks {}", failure.violation);
        println!("in {} steps: {text}", failure.script.steps.len());
        println!("again: cargo xtask sim --script {}", path.display());
        Ok(())
    }

    fn report(&self, seconds: f64) {
        let Summary { plays, steps, events, .. } = &self.summary;
        println!(
            "{plays} simulations, {steps} steps, {events} events in {seconds:.0} s; {} failed",
            self.failed
        );
        if self.arguments.coverage {
            for (what, times) in &self.summary.counts {
                println!("  {what} {times}");
            }
        }
        let missed = self.summary.never_met();
        if self.arguments.coverage || self.arguments.require_coverage {
            println!("never met: {}", missed.join(", "));
        }
    }
}
