//! The ports: what the engine asks of a source, a sink, a clock, a source of randomness and an
//! observer.

mod clock;
mod diagnose;
mod observer;
mod shutdown;
mod sink;
mod source;

pub use clock::{Clock, Entropy};
pub use diagnose::Diagnose;
pub use observer::{Event, Observer, Silent};
pub use shutdown::{Shutdown, ShutdownHandle};
pub use sink::{Attached, Sink, SinkCapabilities, TableSink, TargetState};
pub use source::{
    BatchStream, Bound, Catalog, ChangeReader, ChangeRequest, Finding, FindingLevel, KeyRange,
    KeyTuple, PositionLog, RowRequest, SchemaChange, Source, SourceCapabilities, TableReader,
};

#[cfg(test)]
pub(crate) use clock::MockEntropy;
