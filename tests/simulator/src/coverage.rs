//! What a long campaign must meet at least once: every act, every fault at every call and request
//! that the engine makes, every state of the engine.

use crate::store::{Request, StoreFault};

/// The calls of the ports that the engine makes.
const CALLS: [&str; 18] = [
    "Instances",
    "SchemaChanges",
    "High",
    "Low",
    "CommitTime",
    "PositionAt",
    "NthCommitAfter",
    "HasChanges",
    "Changes",
    "ChangeBatch",
    "Attach",
    "Inspect",
    "Evolve",
    "Stage",
    "Commit",
    "Discard",
    "Publish",
    "Close",
];
const FAULTS: [&str; 7] = ["Refuse", "LoseReply", "Hold", "Slow", "Crash", "CrashAfter", "Second"];
const STATES: [&str; 25] = [
    "runner-started",
    "attached-new",
    "attached",
    "cycle",
    "idle",
    "waiting",
    "staged",
    "committed",
    "committed-cut",
    "committed-progress",
    "discarded",
    "verdict",
    "retrying",
    "retrying-unavailable",
    "retrying-conflict",
    "stopped",
    "stopped-unavailable",
    "stopped-conflict",
    "stopped-fenced",
    "stopped-data_loss",
    "stopped-lineage_broken",
    "stopped-schema_changed",
    "stopped-config",
    "warning",
    "checkpoint",
];
const EVENTS: [&str; 2] = ["schema_change", "capture_instance_switched"];
const ACTS: [&str; 31] = [
    "put",
    "put-all-tables",
    "set",
    "set-last",
    "merge",
    "swap-keys",
    "move-keys",
    "remove",
    "busy",
    "empty",
    "rollback",
    "pass",
    "set-clock-back",
    "idle-entry",
    "cleanup",
    "cleanup-steps",
    "cleanup-newest",
    "revoke",
    "lockout",
    "grant",
    "stop-capture",
    "start-capture",
    "lag",
    "add-column",
    "drop-column",
    "alter-column",
    "second-instance",
    "drop-old-instance",
    "recapture",
    "backup",
    "restore",
];

/// The names of everything that a long campaign must meet.
#[must_use]
pub fn wanted() -> Vec<String> {
    let mut wanted: Vec<String> = ACTS.iter().map(|act| format!("act:{act}")).collect();
    for call in CALLS {
        wanted.extend(FAULTS.iter().map(|fault| format!("port:{call}:{fault}")));
    }
    wanted.push("port:Changes:BreakStream".into());
    for request in Request::ALL {
        for fault in StoreFault::ALL {
            let late = fault == StoreFault::Late;
            if !late || request.writes() {
                wanted.push(format!("store:{request:?}:{fault:?}"));
            }
        }
    }
    wanted.extend(["store:late-landed".into(), "store:late-too-late".into()]);
    wanted.extend(STATES.iter().map(|state| format!("engine:{state}")));
    wanted.extend(["ATTACH", "WRITE", "ALTER TABLE"].map(|what| format!("log:{what}")));
    wanted.extend(
        ["ended-cancelled", "ended-fenced", "restarted"].map(|what| format!("engine:{what}")),
    );
    wanted.extend(EVENTS.iter().map(|event| format!("event:{event}")));
    wanted
}
