//! The settings of the sink, each with its limit's reason.

use std::collections::BTreeMap;

use cdc_core::{Error, ErrorKind, Result};

/// Where the Delta kernel's blocking calls run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KernelCalls {
    /// On the runtime's pool for blocking work, under any flavour of runtime.
    #[default]
    Pool,
    /// On the calling task itself, which stands still meanwhile: for a simulation on one thread,
    /// whose store answers without waiting, so that a seed replays the run.
    InPlace,
}

/// The settings of a [`crate::DeltaSink`].
#[derive(Clone, Debug)]
pub struct DeltaConfig {
    /// The directory that holds all tables: a local path or a URL of an object store.
    pub root: String,
    /// Options of the object store, by its own names. May hold secrets; never logged.
    pub storage_options: BTreeMap<String, String>,
    /// The directory under the root that holds a directory a table.
    pub bronze_dir: String,
    /// The directory of the facts table under the root.
    pub facts_dir: String,
    /// The directory of the control table under the root.
    pub control_dir: String,
    /// Commits between two checkpoints of a table's log: what a reader replays at most.
    pub checkpoint_interval: u64,
    /// Bytes after which a data file is closed and the next begun.
    pub file_bytes_max: u64,
    /// Rows of a row group: what a reader decodes at once.
    pub row_group_rows: usize,
    /// Encoded bytes of a row group: what is held in memory before it goes to the store.
    pub row_group_bytes: usize,
    /// Bytes of one part of an upload.
    pub upload_part_bytes: usize,
    /// Parts of an upload on their way at the same time; one more at its end, for the rest.
    pub upload_parts: usize,
    /// Attempts of one commit while others commit to the same table.
    pub commit_attempts_max: u32,
    /// The first pause between two attempts, in milliseconds; doubled each time, with jitter.
    pub commit_pause_ms: u64,
    /// The longest pause between two attempts, in milliseconds.
    pub commit_pause_ms_max: u64,
    /// Where the kernel's blocking calls run.
    pub kernel_calls: KernelCalls,
}

impl DeltaConfig {
    /// The default settings for tables under `root`.
    #[must_use]
    pub fn new(root: impl Into<String>) -> Self {
        Self {
            root: root.into(),
            storage_options: BTreeMap::new(),
            bronze_dir: "bronze".into(),
            facts_dir: "facts".into(),
            control_dir: "control".into(),
            checkpoint_interval: 50,
            file_bytes_max: 256 << 20,
            row_group_rows: 256 << 10,
            row_group_bytes: 32 << 20,
            upload_part_bytes: 8 << 20,
            upload_parts: 2,
            commit_attempts_max: 12,
            commit_pause_ms: 50,
            commit_pause_ms_max: 5_000,
            kernel_calls: KernelCalls::Pool,
        }
    }

    /// Checks what does not need the store.
    pub(crate) fn check(&self) -> Result<()> {
        let least = [
            ("checkpoint_interval", self.checkpoint_interval, 1),
            ("file_bytes_max", self.file_bytes_max, 1),
            ("row_group_rows", self.row_group_rows as u64, 1),
            ("row_group_bytes", self.row_group_bytes as u64, 1),
            // S3 refuses parts below 5 MiB; smaller ones are for tests on other stores.
            ("upload_part_bytes", self.upload_part_bytes as u64, 1),
            ("upload_parts", self.upload_parts as u64, 1),
            ("commit_attempts_max", u64::from(self.commit_attempts_max), 1),
        ];
        if let Some((setting, _, least)) = least.iter().find(|(_, value, least)| value < least) {
            return Err(Error::new(ErrorKind::Config, "setting is too small")
                .with("setting", setting)
                .with("least", least));
        }
        let dirs = [&self.bronze_dir, &self.facts_dir, &self.control_dir];
        let plain = |dir: &str| {
            !dir.is_empty()
                && dir.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        };
        if dirs.iter().any(|dir| !plain(dir))
            || self.bronze_dir == self.facts_dir
            || self.bronze_dir == self.control_dir
            || self.facts_dir == self.control_dir
        {
            return Err(Error::new(
                ErrorKind::Config,
                "directories under the root need three different names of letters, digits, _ and -",
            )
            .with("setting", "bronze_dir, facts_dir, control_dir"));
        }
        Ok(())
    }
}
