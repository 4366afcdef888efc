//! A SQL Server with change data capture in memory, on a virtual clock: databases, typed tables,
//! transactions and their log, the capture and cleanup jobs, rights, planted faults; and the
//! [`source::FakeSource`] that reads it through the source port.
//!
//! Where the fake differs from what was observed on a real server, the fake is wrong.
//!
//! ```
//! use cdc_core::{SqlType, TableName, Timestamp};
//! use cdc_fake::{
//!     CaptureSchedule, EnableOptions, FakeServer, FakeSource, Login, TableDefinition,
//!     VirtualClock, Zone,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = VirtualClock::auto(Timestamp::from_micros(0));
//! let database = FakeServer::new(clock, Zone::UTC).database("shop");
//! database.set_capture(CaptureSchedule::AtCommit);
//! database.create_table(
//!     TableDefinition::new("orders")
//!         .column("id", SqlType::Int)
//!         .nullable("amount", SqlType::Money)
//!         .primary_key(&["id"]),
//! )?;
//! let orders = TableName::new("dbo", "orders");
//! let instance = database.enable_table(&orders, EnableOptions::default())?;
//! let commit = database.transact(|tx| {
//!     tx.insert(&orders, vec![1.into(), cdc_fake::Value::decimal(12_5000)])?;
//!     tx.update(&orders, &[1.into()], &[("id", 2.into())])?;
//!     Ok(())
//! })?;
//! // An insert; then the key update: a delete of the old key and an insert of the new one.
//! assert_eq!(database.change_rows(&instance)?.len(), 3);
//! assert_eq!(database.max_lsn(), Some(commit.lsn));
//! let source = FakeSource::new(&database, Login::Owner)?;
//! # let _ = source;
//! # Ok(())
//! # }
//! ```

mod agent;
pub mod archive;
pub mod capture;
pub mod catalogue;
mod change_entries;
pub mod change_scan;
pub mod change_table;
pub mod cleanup;
pub mod clock;
pub mod code_page;
pub mod collation;
mod columnar;
pub mod database;
pub mod ddl;
pub mod entropy;
pub mod faults;
pub mod index;
pub mod injection;
pub mod instance;
pub mod isolation;
pub mod jobs;
pub mod key;
pub mod locks;
pub mod log;
pub mod mapping;
pub mod memory_sink;
pub mod object;
pub mod options;
pub mod permissions;
mod row_history;
pub mod server;
pub mod sessions;
pub mod source;
pub mod sql_error;
mod statement;
pub mod statement_faults;
pub mod table;
pub mod table_scan;
mod text_form;
pub mod text_order;
pub mod transaction;
pub mod value;
pub mod workload;
pub mod zone;

pub use archive::{ArchivedChange, ArchivedCommit};
pub use capture::CaptureSchedule;
pub use catalogue::{ColumnInfo, IndexInfo, InstanceInfo, TableInfo};
pub use change_scan::ChangeTableRows;
pub use change_table::ChangeRow;
pub use cleanup::{Cleanup, CleanupSchedule, CleanupStep};
pub use clock::VirtualClock;
pub use collation::Collation;
pub use database::{Backup, FakeDatabase};
pub use ddl::SchemaChange;
pub use entropy::SeededEntropy;
pub use index::{IndexDefinition, IndexKind};
pub use injection::{Call, FaultPlan, Side};
pub use instance::EnableOptions;
pub use isolation::{Isolation, Waiting};
pub use jobs::{JobChange, JobKind, Jobs, ScanError};
pub use locks::TableLock;
pub use mapping::MappingEntry;
pub use memory_sink::{MemorySink, MemoryTarget};
pub use options::{DatabaseOptions, ReplicaRole};
pub use permissions::{GrantAction, Login, Permission, PrincipalKind, Securable};
pub use server::{FakeServer, ServerLogin};
pub use sessions::{SessionHandle, SessionInfo, SessionLink};
pub use source::FakeSource;
pub use sql_error::{SqlError, SqlResult};
pub use statement_faults::StatementEncounter;
pub use table::{
    CheckDefinition, ColumnDefinition, DefaultDefinition, RowEdit, RowView, TableDefinition,
};
pub use table_scan::{KeyBounds, ReadOptions, TableRows};
pub use transaction::{
    CommitInfo, InsertRequest, Inserted, RowId, Savepoint, Transaction, TransactionHandle,
    UpdateRequest,
};
pub use value::Value;
pub use workload::{Workload, WorkloadShape};
pub use zone::Zone;
