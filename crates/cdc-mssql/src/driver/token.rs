//! An access token from a command that prints one.

use std::{future::poll_fn, pin::Pin, process::Stdio, time::Duration};

use cdc_core::{Error, ErrorKind};
use tokio::{
    io::{AsyncRead, ReadBuf},
    process::{ChildStdout, Command},
    time::timeout,
};

use crate::fault::Fault;

/// Most bytes of a token. Those of Entra ID have a few thousand.
const TOKEN_BYTES_MAX: usize = 64 << 10;

/// What a command prints, without blanks around it. Its words, its output and what it says of an
/// error are never shown: each may hold a secret.
pub(crate) async fn printed(words: &[String], limit: Duration) -> Result<String, Fault> {
    match timeout(limit, run(words)).await {
        Ok(printed) => printed.map_err(|reason| failed(&reason)),
        // The command is killed with the future that watched it.
        Err(_) => Err(failed("it does not end in time")),
    }
}

fn failed(reason: &str) -> Fault {
    let error = Error::new(ErrorKind::Unauthorized, "the command gives no access token")
        .with("setting", "source.login_command")
        .with("reason", reason)
        .remedy(
            "run the command by hand: it has to print an access token and end with 0 within \
             source.login_command_timeout",
        );
    Fault::permanent(error)
}

async fn run(words: &[String]) -> Result<String, String> {
    let (program, arguments) = words.split_first().ok_or("it is empty")?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.kill_on_drop(true).spawn().map_err(|error| error.kind().to_string())?;
    let mut output = child.stdout.take().ok_or("its output cannot be read")?;
    let mut token = Vec::new();
    loop {
        let mut part = [0; 4_096];
        let read = read(&mut output, &mut part).await.map_err(|error| error.kind().to_string())?;
        token.extend_from_slice(part.get(..read).unwrap_or_default());
        if token.len() > TOKEN_BYTES_MAX {
            return Err("it prints more than a token".into());
        }
        if read == 0 {
            break;
        }
    }
    let status = child.wait().await.map_err(|error| error.kind().to_string())?;
    if !status.success() {
        return Err("it failed".into());
    }
    let token = String::from_utf8(token).map_err(|_| "it prints no text")?;
    let token = token.trim();
    if token.is_empty() || token.contains(char::is_whitespace) {
        return Err("it prints no token".into());
    }
    Ok(token.to_owned())
}

async fn read(output: &mut ChildStdout, part: &mut [u8]) -> std::io::Result<usize> {
    let mut buffer = ReadBuf::new(part);
    poll_fn(|context| Pin::new(&mut *output).poll_read(context, &mut buffer)).await?;
    Ok(buffer.filled().len())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(text: &str) -> Vec<String> {
        ["sh", "-c", text].map(str::to_owned).to_vec()
    }

    async fn of(words: &[String], limit: Duration) -> Result<String, String> {
        printed(words, limit).await.map_err(|fault| {
            assert!(!fault.transient && fault.error.kind() == ErrorKind::Unauthorized);
            let told = format!("{fault:?} {} {}", fault.error.report(), fault.error.advice());
            assert!(!told.contains("planted"), "{told}");
            fault.error.context("reason").unwrap_or_default().to_owned()
        })
    }

    #[tokio::test]
    async fn a_token_is_what_the_command_prints_without_blanks_around_it() {
        let long = Duration::from_secs(30);
        assert_eq!(of(&shell("printf ' ab.c-d \\n'"), long).await, Ok("ab.c-d".into()));
    }

    #[tokio::test]
    async fn a_command_that_gives_no_token_says_why_and_shows_nothing_of_it() {
        let long = Duration::from_secs(30);
        for (text, reason) in [
            ("echo planted; exit 3", "it failed"),
            ("echo planted >&2; exit 1", "it failed"),
            ("true # planted", "it prints no token"),
            ("echo planted and more", "it prints no token"),
            ("printf '\\377planted'", "it prints no text"),
            ("head -c 70000 /dev/zero | tr '\\0' p # planted", "it prints more than a token"),
        ] {
            assert_eq!(of(&shell(text), long).await, Err(reason.into()), "{text}");
        }
        assert_eq!(of(&[], long).await, Err("it is empty".into()));
        let missing = vec!["/no/such/planted".to_owned()];
        assert_eq!(of(&missing, long).await, Err("entity not found".into()));
    }

    #[tokio::test]
    async fn a_command_that_does_not_end_is_killed() {
        let directory = std::env::temp_dir().join(format!("cdc-token-{}", std::process::id()));
        let file = directory.to_string_lossy().into_owned();
        let words = shell(&format!("echo $$ > {file}; exec sleep 600"));
        let found = of(&words, Duration::from_millis(300)).await;
        assert_eq!(found, Err("it does not end in time".into()));
        let id = std::fs::read_to_string(&directory).expect("it began");
        std::fs::remove_file(&directory).expect("is there");
        let alive = || std::process::Command::new("kill").args(["-0", id.trim()]).output();
        for _ in 0..200 {
            if !alive().expect("runs").status.success() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it lives on");
    }
}
