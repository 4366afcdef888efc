//! The Delta Lake sink: bronze, facts and control as Delta tables under one root.
//!
//! ```text
//! <root>/bronze/<table>   the change log of one table; its Delta log also holds the mark
//! <root>/facts            one row a batch and one a batch event, of all tables
//! <root>/control          one row a table: its verdict
//! ```
//!
//! # Why a stale runner cannot commit
//! A runner takes a table by raising the fence number in the bronze log, and remembers it. Every
//! commit is written by put-if-absent at the version after a snapshot in which the runner saw its
//! own fence number as the newest. A newer runner's fence is a commit too. If it came first, the
//! version is taken, the put fails, the snapshot is read again and shows the newer number: fenced.
//! If it comes later, the newer runner's put fails, it reads again and sees this runner's commit.
//! So the versions order all commits, and none of an older runner stands above a newer fence.
//!
//! A cleanup behind a checkpoint makes taken versions free again. So the file of the version
//! below is looked for before a put, and the newest snapshot is read when it is gone.
//!
//! # Why a lost reply is safe
//! Rows and mark are one file of the log. After a put whose reply was lost the snapshot is read
//! again under the same fence: the mark is either there, then the commit happened, or it is not,
//! and the same version is tried again; a put that is still on its way then meets its own twin and
//! one of the two fails. A store's client that sends a put again by itself makes such a twin too,
//! so a version that is taken may be taken by the own commit. Files are deleted only when the log
//! shows that none of their puts happened and none can happen any more.
//!
//! `docs/reference/protocol.md` has the steps, and how they are checked.

mod align;
mod bronze;
mod checkpoint;
mod commit;
mod config;
mod control;
mod encode;
mod facts;
mod fault;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod kernel;
mod ledger;
mod local;
mod log;
mod mark;
mod migration;
mod pipeline;
#[cfg(feature = "planted-bugs")]
mod planted;
mod recall;
mod schema;
mod sink;
mod staging;
mod stats;
mod store;
mod table;

pub use config::{DeltaConfig, KernelCalls};
pub use sink::DeltaSink;
