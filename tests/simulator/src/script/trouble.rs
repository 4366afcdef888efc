//! What goes wrong in a run: by chance at every call and request, or at one kind of them.

use cdc_fake::faults::Operation;
use serde::{Deserialize, Serialize};

use crate::store::Request;

/// Chances in ten thousand at every call of a port and every request of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trouble {
    /// A call of a port fails and does nothing.
    pub refuse: u16,
    /// A call of a port does its work, and the reply is lost.
    pub lose: u16,
    /// A call of a port takes seconds.
    pub slow: u16,
    /// A call of a port waits until nothing else moves.
    pub hold: u16,
    /// A stream breaks.
    pub break_stream: u16,
    /// The process dies at a call of a port.
    pub crash: u16,
    /// Another runner starts at a call of a port.
    pub second: u16,
    /// Others run first.
    pub yields: u16,
    /// A request of the store fails and does nothing.
    pub store_refuse: u16,
    /// A request of the store does its work, and the reply is lost.
    pub store_lose: u16,
    /// A request of the store takes seconds.
    pub store_slow: u16,
    /// A request of the store waits while others run.
    pub store_hold: u16,
    /// The process dies at a request of the store.
    pub store_crash: u16,
    /// A write fails and happens later, while others go on.
    pub store_late: u16,
    /// Another runner starts at a request of the store.
    pub store_second: u16,
    /// What goes wrong at one kind of call or request besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aim: Option<Aim>,
}

impl Trouble {
    /// No trouble, and no shuffling.
    pub const NONE: Self = Self {
        refuse: 0,
        lose: 0,
        slow: 0,
        hold: 0,
        break_stream: 0,
        crash: 0,
        second: 0,
        yields: 0,
        store_refuse: 0,
        store_lose: 0,
        store_slow: 0,
        store_hold: 0,
        store_crash: 0,
        store_late: 0,
        store_second: 0,
        aim: None,
    };

    /// True when calls may fail.
    #[must_use]
    pub const fn fails(&self) -> bool {
        let aimed = match self.aim {
            Some(aim) => aim.fails(),
            None => false,
        };
        self.refuse > 0
            || self.lose > 0
            || self.break_stream > 0
            || self.store_refuse > 0
            || self.store_lose > 0
            || self.store_late > 0
            || aimed
    }

    /// True when a write may happen after it was answered with an error.
    #[must_use]
    pub const fn lates(&self) -> bool {
        self.store_late > 0 || matches!(self.aim, Some(Aim { what: Mishap::Late, .. }))
    }
}

/// Trouble at one kind of call or request, so that rare ones meet it as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aim {
    /// Where.
    pub at: Target,
    /// What.
    pub what: Mishap,
    /// Chance in ten thousand at every such call or request.
    pub chance: u16,
    /// How many requests of the store, whoever makes them, are refused right after one that met
    /// it.
    pub outage: u8,
}

impl Aim {
    const fn fails(&self) -> bool {
        matches!(self.what, Mishap::Refuse | Mishap::Lose | Mishap::Break | Mishap::Late)
            || self.outage > 0
    }
}

/// A kind of call or request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// A call of a port.
    Port(PortCall),
    /// A request of the store.
    Store(Request),
}

/// What goes wrong at a [`Target`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mishap {
    /// It fails and does nothing.
    Refuse,
    /// It does its work, and the reply is lost.
    Lose,
    /// It takes seconds.
    Slow,
    /// It waits while others run.
    Hold,
    /// The process dies before the work.
    Crash,
    /// The process dies after the work.
    CrashAfter,
    /// Another runner starts.
    Second,
    /// The stream that it opens breaks; means something for streams alone.
    Break,
    /// It fails and happens later; means something for writes of the store alone.
    Late,
}

impl Mishap {
    /// What may happen at every target.
    pub const ANYWHERE: [Self; 7] = [
        Self::Refuse,
        Self::Lose,
        Self::Slow,
        Self::Hold,
        Self::Crash,
        Self::CrashAfter,
        Self::Second,
    ];
}

/// A call of a port that the engine makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names are those of the ports' methods")]
pub enum PortCall {
    Instances,
    SchemaChanges,
    High,
    Low,
    CommitTime,
    PositionAt,
    NthCommitAfter,
    HasChanges,
    Changes,
    ChangeBatch,
    Attach,
    Inspect,
    Evolve,
    Stage,
    Commit,
    Discard,
    Publish,
    Close,
}

impl PortCall {
    /// Every call.
    pub const ALL: [Self; 18] = [
        Self::Instances,
        Self::SchemaChanges,
        Self::High,
        Self::Low,
        Self::CommitTime,
        Self::PositionAt,
        Self::NthCommitAfter,
        Self::HasChanges,
        Self::Changes,
        Self::ChangeBatch,
        Self::Attach,
        Self::Inspect,
        Self::Evolve,
        Self::Stage,
        Self::Commit,
        Self::Discard,
        Self::Publish,
        Self::Close,
    ];
}

impl From<PortCall> for Operation {
    fn from(call: PortCall) -> Self {
        match call {
            PortCall::Instances => Self::Instances,
            PortCall::SchemaChanges => Self::SchemaChanges,
            PortCall::High => Self::High,
            PortCall::Low => Self::Low,
            PortCall::CommitTime => Self::CommitTime,
            PortCall::PositionAt => Self::PositionAt,
            PortCall::NthCommitAfter => Self::NthCommitAfter,
            PortCall::HasChanges => Self::HasChanges,
            PortCall::Changes => Self::Changes,
            PortCall::ChangeBatch => Self::ChangeBatch,
            PortCall::Attach => Self::Attach,
            PortCall::Inspect => Self::Inspect,
            PortCall::Evolve => Self::Evolve,
            PortCall::Stage => Self::Stage,
            PortCall::Commit => Self::Commit,
            PortCall::Discard => Self::Discard,
            PortCall::Publish => Self::Publish,
            PortCall::Close => Self::Close,
        }
    }
}
