//! Change data capture, its vocabulary and rules: log positions, change order, batches, retention,
//! time, completeness; the ports that sources and sinks implement; the engine between them.
//!
//! The crate does no I/O and knows no runtime, network, file, wall clock or randomness: whatever
//! touches the world comes in through a port.

pub mod error;
pub mod lsn;
pub mod position;
pub mod time;

pub use error::{Cause, Error, ErrorKind, Result, Retry};
pub use lsn::{Lsn, LsnError};
pub use position::{ClosedRange, Epoch, Position};
pub use time::{
    ClockDoubts, CommitClock, ORDER_SLACK_MICROS, ServerTime, ServerZone, Timestamp, lookback,
    lookup_argument,
};
