//! Speed and memory of `cdc`, each line against a physical reference in the same run.
//!
//! A line is one question with a target: how fast rows are appended, what an idle cycle costs, how
//! much memory a huge commit takes. Ours and the reference take turns, so that whatever else the
//! machine does hits both; the figures are medians, and a ratio is the median of the turns' ratios.
//!
//! Times that are said to be CPU time are those of the whole process, all its threads. They are
//! what one core is busy with, and other work on the machine does not count.

mod changes;
mod columns;
mod counting;
mod feeder;
mod figure;
mod gate;
mod generator;
mod line;
mod lines;
mod machine;
mod passage;
mod plain;

pub use figure::{Figure, Target, heading};
pub use line::{Line, Scale};

/// What a measurement fails with.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The outcome of a measurement.
pub type Outcome<T> = std::result::Result<T, Failure>;
