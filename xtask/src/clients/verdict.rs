//! What a client's program says: a line for each check, and one at its end.

use std::fmt;

/// The word that begins the last line; without it the program did not get to its end.
const END: &str = "end";

/// A line of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Passed(String),
    Failed(String, String),
    Skipped(String, String),
    End,
    /// Anything else; it goes to the log alone.
    Other,
}

impl Line {
    /// Reads `passed<TAB>check`, `failed<TAB>check<TAB>reason`, `skipped<TAB>check<TAB>reason`, or
    /// `end`.
    pub(super) fn read(text: &str) -> Self {
        let mut parts = text.split('\t');
        let word = parts.next().unwrap_or_default();
        let check = parts.next().unwrap_or_default().trim().to_owned();
        let reason = parts.next().unwrap_or_default().trim().to_owned();
        match word {
            "passed" if !check.is_empty() => Self::Passed(check),
            "failed" if !check.is_empty() => Self::Failed(check, reason),
            "skipped" if !check.is_empty() => Self::Skipped(check, reason),
            END => Self::End,
            _ => Self::Other,
        }
    }

    /// The line for the report; none for what is not a check.
    pub(super) fn report(&self, client: &str) -> Option<String> {
        match self {
            Self::Passed(check) => Some(format!("ok       {client}: {check}")),
            Self::Failed(check, reason) => Some(format!("FAILED   {client}: {check}: {reason}")),
            Self::Skipped(check, reason) => Some(format!("SKIPPED  {client}: {check} ({reason})")),
            Self::End | Self::Other => None,
        }
    }
}

/// How the checks of a client came out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
    /// Whether the program got to its end.
    pub(super) ended: bool,
}

impl Verdict {
    pub(super) const fn add(&mut self, line: &Line) {
        match line {
            Line::Passed(_) => self.passed += 1,
            Line::Failed(..) => self.failed += 1,
            Line::Skipped(..) => self.skipped += 1,
            Line::End => self.ended = true,
            Line::Other => {}
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.failed == 0 { "ok    " } else { "FAILED" };
        let Self { passed, failed, skipped, .. } = self;
        write!(f, "{word} {passed:>3} passed {failed:>3} failed {skipped:>3} skipped")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_check_or_goes_to_the_log() {
        assert_eq!(Line::read("passed\tlogs in"), Line::Passed("logs in".into()));
        let failed = Line::Failed("reads".into(), "row 1".into());
        assert_eq!(Line::read("failed\treads\trow 1"), failed);
        assert_eq!(
            Line::read("skipped\tstrict\tno TLS"),
            Line::Skipped("strict".into(), "no TLS".into())
        );
        assert_eq!(Line::read("end"), Line::End);
        for other in ["", "passed", "passed\t", "passed logs in", "warning: x"] {
            assert_eq!(Line::read(other), Line::Other, "{other:?}");
        }
    }

    #[test]
    fn checks_are_counted_by_their_outcome() {
        let mut verdict = Verdict::default();
        for line in ["passed\ta", "passed\tb", "failed\tc\td", "skipped\te\tf", "noise"] {
            verdict.add(&Line::read(line));
        }
        let counted = Verdict { passed: 2, failed: 1, skipped: 1, ended: false };
        assert_eq!(verdict, counted);
    }
}
