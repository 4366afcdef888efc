//! The names of all metrics. `docs/reference/metrics.md` says how to read each.

/// Every metric: its name as it is scraped (counters with `_total`), and its help text.
pub(crate) const ALL: [(&str, &str); 16] = [
    (HEADROOM, "Seconds between a table's mark and what cleanup has removed up to"),
    (CAPTURE_LAG, "Seconds from the source's newest commit or idle entry to now"),
    (INGESTION_LAG, "Seconds of source time from a table's mark to the source's newest entry"),
    (VERDICT_AGE, "Seconds since the moment up to which a table is complete"),
    (FINALIZED_UNTIL, "The moment up to which a table is complete, in Unix seconds"),
    (MARK_SEQUENCE, "Sequence number of a table's mark"),
    (ROWS, "Change rows made durable, by operation"),
    (BYTES, "Bytes of change rows made durable, as they were in memory"),
    (BATCHES, "Batches made durable, with and without rows"),
    (BATCH_SECONDS, "Seconds from the begin of a batch to its commit"),
    (READ_SECONDS, "Seconds of a batch spent waiting for the source's rows"),
    (STAGED_ROWS, "Change rows staged and not yet visible"),
    (DISCARDED, "Staged batches that were given up"),
    (RETRIES, "Steps that failed and were repeated, by kind of error"),
    (WARNINGS, "Warnings that did not stop the run"),
    (STOPPED, "1 for a table that stopped, by kind of error"),
];

pub(crate) const HEADROOM: &str = "cdc_retention_headroom_seconds";
pub(crate) const CAPTURE_LAG: &str = "cdc_capture_lag_seconds";
pub(crate) const INGESTION_LAG: &str = "cdc_ingestion_lag_seconds";
pub(crate) const VERDICT_AGE: &str = "cdc_verdict_age_seconds";
pub(crate) const FINALIZED_UNTIL: &str = "cdc_finalized_until_timestamp_seconds";
pub(crate) const MARK_SEQUENCE: &str = "cdc_mark_sequence";
pub(crate) const ROWS: &str = "cdc_rows_total";
pub(crate) const BYTES: &str = "cdc_bytes_total";
pub(crate) const BATCHES: &str = "cdc_batches_total";
pub(crate) const BATCH_SECONDS: &str = "cdc_batch_seconds";
pub(crate) const READ_SECONDS: &str = "cdc_read_seconds";
pub(crate) const STAGED_ROWS: &str = "cdc_staged_rows";
pub(crate) const DISCARDED: &str = "cdc_discarded_batches_total";
pub(crate) const RETRIES: &str = "cdc_retries_total";
pub(crate) const WARNINGS: &str = "cdc_warnings_total";
pub(crate) const STOPPED: &str = "cdc_table_stopped";

/// The help text of a metric.
pub(crate) fn help(name: &str) -> &'static str {
    ALL.iter().find(|(known, _)| *known == name).map_or("", |(_, help)| help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_described_in_the_reference() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
        let reference = std::fs::read_to_string(path).expect("the reference is in the repository");
        for (name, help) in ALL {
            assert!(reference.contains(&format!("`{name}`")), "{name} is not in metrics.md");
            assert!(!help.is_empty());
        }
    }
}
