//! Change data capture, its vocabulary and rules: log positions, change order, batches, retention,
//! time, completeness; the ports that sources and sinks implement; the engine between them.
//!
//! The crate does no I/O and knows no runtime, network, file, wall clock or randomness: whatever
//! touches the world comes in through a port.

pub mod batch;
pub mod change;
pub mod diagnosis;
pub mod engine;
pub mod error;
pub mod image;
pub mod lsn;
pub mod mark;
pub mod plan;
#[doc(hidden)]
pub mod planted;
pub mod port;
pub mod position;
pub mod retention;
pub mod schema;
mod secret;
pub mod sql_type;
pub mod table;
pub mod time;
pub mod verdict;

pub use batch::{
    BatchEvent, BatchEventKind, BatchFacts, Commit, Committed, Origin, RowCounts, Stamp, TableBatch,
};
pub use engine::{Engine, RetrySettings, RunReport, Settings, StartAt, TableConfig, TableReport};
pub use error::{Cause, Error, ErrorKind, Result, Retry};
pub use image::Images;
pub use lsn::{Lsn, LsnError};
pub use mark::Mark;
pub use position::{ClosedRange, Epoch, Position};
pub use secret::Secret;
pub use sql_type::{Length, SqlType};
pub use table::{CaptureInstance, Column, InstanceName, TableName, TableRef, TableSpec};
pub use time::{
    ClockDoubts, CommitClock, ORDER_SLACK_MICROS, ServerTime, ServerZone, Timestamp, lookback,
    lookup_argument,
};
pub use verdict::{Granularity, Verdict};
