//! The simulator: the real engine and the real Delta sink against the fake server, on one thread,
//! one virtual clock and one seed, under faults at every call of a port and every request of the
//! object store.
//!
//! A [`script::Script`] is drawn from a seed ([`draw`]), played ([`world`]), and when it breaks an
//! [`invariant::Invariant`] shrunk to a short one ([`shrink`]) that is kept and played first from
//! then on.

pub mod audit;
#[cfg(feature = "planted-bugs")]
pub mod bite;
pub mod book;
pub mod bronze;
pub mod campaign;
mod compare;
pub mod coverage;
pub mod draw;
pub mod hub;
pub mod invariant;
mod judge;
pub mod ledger;
pub mod oracle;
pub mod record;
pub mod script;
pub mod shrink;
pub mod stage;
pub mod store;
pub mod target;
pub mod watch;
pub mod witness;
pub mod world;
pub mod yard;
