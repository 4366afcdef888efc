//! Runs the program beside a client, says what it says, and ends it when it takes too long.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use super::{
    client::Client,
    verdict::{Line, Verdict},
};
use crate::{Failure, Result, workspace::last_line};

/// Lines that may wait to be printed.
const LINES_WAITING: usize = 1024;
/// How often a program whose output has ended is asked whether it has.
const POLL: Duration = Duration::from_millis(20);

/// A client's program and where its logs go.
pub(super) struct Program {
    name: &'static str,
    time_limit: Duration,
    directory: PathBuf,
}

impl Program {
    pub(super) fn new(client: Client, directory: &Path) -> Self {
        Self {
            name: client.name(),
            time_limit: client.time_limit(),
            directory: directory.to_owned(),
        }
    }

    /// Runs it to its end or to the limit of its time.
    pub(super) fn run(&self, mut command: Command) -> Result<Verdict> {
        let out = self.directory.join("out.log");
        let err = self.directory.join("err.log");
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |e| Failure::caused(path, e)
        };
        let mut log = File::create(&out).map_err(failed(&out))?;
        let errors = File::create(&err).map_err(failed(&err))?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
        let mut child = command.spawn().map_err(|e| Failure::caused(self.name, e))?;
        let lines = lines_of(&mut child);
        let deadline = Instant::now() + self.time_limit;
        let mut verdict = Verdict::default();
        let mut in_time = true;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match lines.recv_timeout(left) {
                Ok(text) => {
                    writeln!(log, "{text}").map_err(failed(&out))?;
                    self.take(&Line::read(&text), &mut verdict);
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    in_time = false;
                    break;
                }
            }
        }
        let status = end(&mut child, deadline).map_err(|e| Failure::caused(self.name, e))?;
        self.judge(in_time, status, &err, &mut verdict);
        Ok(verdict)
    }

    fn take(&self, line: &Line, verdict: &mut Verdict) {
        verdict.add(line);
        if let Some(report) = line.report(self.name) {
            println!("{report}");
        }
    }

    /// A program that did not get to its end is a failure, whatever it said before.
    fn judge(&self, in_time: bool, status: ExitStatus, err: &Path, verdict: &mut Verdict) {
        let reason = if !in_time {
            format!("not done after {} s", self.time_limit.as_secs())
        } else if !verdict.ended {
            let said = std::fs::read(err).map(|text| last_line(&text)).unwrap_or_default();
            format!("ended with {status} before its last check: {said}")
        } else if verdict.passed == 0 && verdict.failed == 0 {
            "not a single check was made".to_owned()
        } else {
            return;
        };
        let logs = self.directory.display();
        let line = Line::Failed("the program".to_owned(), format!("{reason}; logs in {logs}"));
        self.take(&line, verdict);
    }
}

/// The lines of a program's output, until it closes it.
fn lines_of(child: &mut Child) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::sync_channel(LINES_WAITING);
    if let Some(stdout) = child.stdout.take() {
        thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(std::result::Result::ok) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                if sender.send(text).is_err() {
                    return;
                }
            }
        });
    }
    receiver
}

/// Waits for the end of a program until the deadline, then ends it.
fn end(child: &mut Child, deadline: Instant) -> std::io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() >= deadline {
            child.kill()?;
            return child.wait();
        }
        thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn run(script: &str, time_limit: Duration) -> Verdict {
        let directory = tempfile::tempdir().unwrap();
        let program = Program { name: "sh", time_limit, directory: directory.path().to_owned() };
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        program.run(command).unwrap()
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_program_that_gets_to_its_end_is_judged_by_its_checks() {
        let verdict = run(r"printf 'passed\ta\nnoise\nend\n'", LONG);
        assert_eq!(verdict, Verdict { passed: 1, failed: 0, skipped: 0, ended: true });
    }

    #[test]
    fn a_program_that_stops_early_has_failed() {
        assert_eq!(run(r"printf 'passed\ta\n'", LONG).failed, 1);
        assert_eq!(run("exit 3", LONG).failed, 1);
    }

    #[test]
    fn a_program_without_a_check_has_failed() {
        assert_eq!(run(r"printf 'skipped\ta\tb\nend\n'", LONG).failed, 1);
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let verdict = run(r"printf 'passed\ta\n'; exec sleep 60", Duration::from_millis(200));
        assert_eq!((verdict.passed, verdict.failed), (1, 1));
    }
}
