//! A SQL Server with change data capture in memory, on a virtual clock: databases, typed tables,
//! transactions and their log, the capture and cleanup jobs, rights, planted faults; and the
//! [`source::FakeSource`] that reads it through the source port.
//!
//! Where the fake differs from what was observed on a real server, the fake is wrong.

pub mod capture;
pub mod change_table;
pub mod cleanup;
pub mod clock;
mod columnar;
pub mod database;
pub mod ddl;
pub mod faults;
pub mod injection;
pub mod instance;
mod key;
pub mod log;
pub mod mapping;
pub mod memory_sink;
pub mod permissions;
pub mod server;
pub mod source;
pub mod sql_error;
pub mod table;
pub mod transaction;
pub mod value;
pub mod workload;
pub mod zone;

pub use capture::CaptureSchedule;
pub use change_table::ChangeRow;
pub use cleanup::{Cleanup, CleanupStep};
pub use clock::VirtualClock;
pub use database::{Backup, FakeDatabase};
pub use injection::{Call, FaultPlan, Side};
pub use instance::EnableOptions;
pub use key::Collation;
pub use memory_sink::{MemorySink, MemoryTarget};
pub use permissions::Login;
pub use server::FakeServer;
pub use source::FakeSource;
pub use sql_error::{SqlError, SqlResult};
pub use table::{ColumnDefinition, RowEdit, RowView, TableDefinition};
pub use transaction::{CommitInfo, Transaction};
pub use value::Value;
pub use workload::{Workload, WorkloadShape};
pub use zone::Zone;
