//! A script: batches parted by lines that say `GO`, run one after the other.

use std::ops::ControlFlow;

use cdc_fake::Value;

use super::server::Server;
use crate::{
    kind::Typed,
    talk::{Change, Conversation, Done, Message, Replies, ResultColumn},
};

/// Repetitions of a batch that one `GO n` may ask for.
const MAX_REPEATS: u32 = 1_000_000;

/// Runs a script as the owner of everything, beginning in `master`. A batch that fails ends it.
///
/// # Errors
/// The first error, with its line counted in the whole script.
pub fn run_script(server: &Server, text: &str) -> Result<(), Box<Message>> {
    let mut session = server.owner_session("master")?;
    for (first_line, batch, times) in batches(text) {
        for _ in 0..times {
            let mut replies = FirstError::default();
            session.batch(&batch, &mut replies);
            if let Some(mut message) = replies.0 {
                message.line = message.line.saturating_add(first_line);
                return Err(message);
            }
        }
    }
    Ok(())
}

/// The batches of a script: how many lines stand before each, its text, and how often it runs.
fn batches(text: &str) -> Vec<(u32, String, u32)> {
    let mut batches = Vec::new();
    let mut batch = String::new();
    let (mut first, mut line) = (0_u32, 0_u32);
    for text in text.lines() {
        line += 1;
        match separator(text) {
            None => {
                batch.push_str(text);
                batch.push('\n');
            }
            Some(times) => {
                batches.push((first, std::mem::take(&mut batch), times));
                first = line;
            }
        }
    }
    batches.push((first, batch, 1));
    batches.retain(|(_, text, _)| !text.trim().is_empty());
    batches
}

/// How often a line that parts batches lets the one before it run; none for any other line.
fn separator(line: &str) -> Option<u32> {
    let mut words = line.split_whitespace();
    if !words.next()?.eq_ignore_ascii_case("GO") {
        return None;
    }
    let times = match words.next() {
        None => 1,
        Some(comment) if comment.starts_with("--") => 1,
        Some(times) => times.trim_end_matches(';').parse().ok()?,
    };
    Some(times.min(MAX_REPEATS))
}

/// Keeps the first error.
#[derive(Default)]
struct FirstError(Option<Box<Message>>);

impl Replies for FirstError {
    fn columns(&mut self, _: &[ResultColumn]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn row(&mut self, _: &[Value]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn done(&mut self, _: Done) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn message(&mut self, message: &Message) -> ControlFlow<()> {
        if message.class > 10 && self.0.is_none() {
            self.0 = Some(Box::new(message.clone()));
        }
        ControlFlow::Continue(())
    }

    fn changed(&mut self, _: &Change) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn return_status(&mut self, _: i32) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn return_value(&mut self, _: u16, _: &str, _: &Typed) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_cut_at_its_separators() {
        let cut = batches("a\nb\nGO\n\ngo 3 \nc\nGO -- end\nGOAL\n");
        assert_eq!(
            cut,
            [(0, "a\nb\n".to_owned(), 1), (5, "c\n".to_owned(), 1), (7, "GOAL\n".to_owned(), 1)]
        );
    }
}
