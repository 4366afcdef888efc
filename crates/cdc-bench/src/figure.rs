//! A measured figure beside its reference and its target, as a row of a table.

use std::fmt;

/// What a measured value must reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// This much or more.
    AtLeast(f64),
    /// This much or less.
    AtMost(f64),
    /// Nothing: the figure explains another one.
    None,
}

impl Target {
    /// Whether a value reaches the target; nothing where there is none.
    #[must_use]
    pub fn is_met(self, value: f64) -> Option<bool> {
        match self {
            Self::AtLeast(least) => Some(value >= least),
            Self::AtMost(most) => Some(value <= most),
            Self::None => None,
        }
    }
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What was measured.
    pub what: String,
    /// Our figure, with its unit.
    pub ours: String,
    /// The reference's figure of the same run, with its unit.
    pub reference: String,
    /// What is compared with the target.
    pub value: f64,
    /// The unit of the value and of the target; empty for a ratio.
    pub unit: &'static str,
    /// What the value must reach.
    pub target: Target,
}

impl Figure {
    /// A ratio of ours to a reference.
    #[must_use]
    pub fn ratio(what: impl Into<String>, ours: String, reference: String, value: f64) -> Self {
        Self { what: what.into(), ours, reference, value, unit: "", target: Target::None }
    }

    /// A value of its own, without a reference that it is divided by.
    #[must_use]
    pub fn value(what: impl Into<String>, ours: String, value: f64, unit: &'static str) -> Self {
        let reference = "–".to_owned();
        Self { what: what.into(), ours, reference, value, unit, target: Target::None }
    }

    /// The same figure beside a reference.
    #[must_use]
    pub fn beside(mut self, reference: String) -> Self {
        self.reference = reference;
        self
    }

    /// The same figure with a target.
    #[must_use]
    pub fn with_target(mut self, target: Target) -> Self {
        self.target = target;
        self
    }

    fn said(&self, value: f64) -> String {
        match self.unit {
            "" => format!("{value:.2}"),
            unit => format!("{} {unit}", short(value)),
        }
    }
}

impl fmt::Display for Figure {
    /// A row of a Markdown table, below [`heading`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = match self.target {
            Target::AtLeast(least) => format!("≥ {}", self.said(least)),
            Target::AtMost(most) => format!("≤ {}", self.said(most)),
            Target::None => "–".to_owned(),
        };
        let result = match self.target.is_met(self.value) {
            Some(true) => "met",
            Some(false) => "**missed**",
            None => "–",
        };
        write!(
            f,
            "| {} | {} | {} | {} | {target} | {result} |",
            self.what,
            self.ours,
            self.reference,
            self.said(self.value)
        )
    }
}

/// The two lines above the rows.
#[must_use]
pub fn heading() -> String {
    "| what | ours | reference | measured | target | |\n|---|---|---|---|---|---|".to_owned()
}

/// A number with three digits that count.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 0.1 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// Rows a second, in thousands.
#[allow(clippy::cast_precision_loss, reason = "a figure to report")]
pub(crate) fn rows_a_second(rows: usize, seconds: f64) -> String {
    format!("{:.0} krow/s", rows as f64 / seconds / 1_000.0)
}

/// Seconds as milliseconds.
pub(crate) fn millis(seconds: f64) -> String {
    format!("{} ms", short(seconds * 1_000.0))
}

/// The middle of the values; the upper one of two.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The value below which `share` of the values lie.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "an index of a few hundred values"
)]
pub(crate) fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let at = (values.len().saturating_sub(1) as f64 * share).round() as usize;
    values.get(at).copied().unwrap_or(f64::NAN)
}

/// Ours and the reference, measured in turns.
pub(crate) struct Turns {
    pub(crate) ours: f64,
    pub(crate) reference: f64,
    /// The median of the turns' own ratios, ours to the reference.
    pub(crate) ratio: f64,
}

impl Turns {
    /// Takes pairs of ours and the reference.
    pub(crate) fn of(pairs: Vec<(f64, f64)>) -> Self {
        Self {
            ours: median(pairs.iter().map(|pair| pair.0).collect()),
            reference: median(pairs.iter().map(|pair| pair.1).collect()),
            ratio: median(pairs.iter().map(|pair| pair.0 / pair.1).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_met_at_its_edge_and_missed_behind_it() {
        assert_eq!(Target::AtLeast(0.9).is_met(0.9), Some(true));
        assert_eq!(Target::AtLeast(0.9).is_met(0.899), Some(false));
        assert_eq!(Target::AtMost(5.0).is_met(5.0), Some(true));
        assert_eq!(Target::AtMost(5.0).is_met(5.1), Some(false));
        // What was not measured is not met.
        assert_eq!(Target::AtMost(5.0).is_met(f64::NAN), Some(false));
        assert_eq!(Target::None.is_met(1.0), None);
    }

    #[test]
    fn a_row_says_what_was_missed() {
        let figure = Figure::ratio("append", "1 krow/s".into(), "2 krow/s".into(), 0.5);
        let row = figure.with_target(Target::AtLeast(0.9)).to_string();
        assert_eq!(row, "| append | 1 krow/s | 2 krow/s | 0.50 | ≥ 0.90 | **missed** |");
        assert_eq!(
            row.matches('|').count(),
            heading().lines().next().unwrap().matches('|').count()
        );
    }

    #[test]
    fn a_ratio_is_the_median_of_the_turns_not_of_the_sides() {
        let turns = Turns::of(vec![(1.0, 1.0), (4.0, 2.0), (9.0, 3.0)]);
        assert_eq!((turns.ours, turns.reference), (4.0, 2.0));
        assert!((turns.ratio - 2.0).abs() < 1e-9);
        assert!(median(Vec::new()).is_nan());
        assert_eq!(quantile((0..=100).map(f64::from).collect(), 0.95), 95.0);
    }
}
