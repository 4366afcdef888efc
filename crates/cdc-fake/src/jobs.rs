//! The settings of the capture and the cleanup job, as `sys.sp_cdc_help_jobs` lists them.

use std::time::Duration;

use cdc_core::ServerTime;

use crate::{
    capture::CaptureSchedule,
    database::FakeDatabase,
    sql_error::{SqlError, SqlResult},
};

/// A kind of job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// Reads the log.
    Capture,
    /// Removes old changes.
    Cleanup,
}

/// The settings of the jobs. Jobs exist from the first table that is enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jobs {
    /// True while there is a capture job.
    pub capture: bool,
    /// True while there is a cleanup job.
    pub cleanup: bool,
    /// `maxtrans`: transactions of a scan.
    pub max_transactions: i32,
    /// `maxscans`: scans of a cycle.
    pub max_scans: i32,
    /// `continuous`: true for a job that runs on.
    pub continuous: bool,
    /// `pollinginterval`, seconds.
    pub polling_interval: i64,
    /// `retention`, minutes.
    pub retention: i64,
    /// `threshold`: rows of one delete of the cleanup.
    pub threshold: i64,
    /// False for a capture job that was disabled in SQL Server Agent.
    pub capture_enabled: bool,
    /// How the last run of the cleanup job ended, as SQL Server Agent numbers it: 0 failed, 1
    /// succeeded, 5 never ran.
    pub cleanup_outcome: u8,
    /// What the latest scans met, oldest first.
    pub scan_errors: Vec<ScanError>,
}

/// An error that a scan of the log met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanError {
    /// When, on the server's clock.
    pub at: ServerTime,
    /// The number.
    pub number: i32,
    /// The text.
    pub message: String,
}

impl Default for Jobs {
    fn default() -> Self {
        Self {
            capture: false,
            cleanup: false,
            max_transactions: 500,
            max_scans: 10,
            continuous: true,
            polling_interval: 5,
            retention: 4320,
            threshold: 5000,
            capture_enabled: true,
            cleanup_outcome: 5,
            scan_errors: Vec::new(),
        }
    }
}

/// New settings of a job; none leaves one as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobChange {
    /// `maxtrans`.
    pub max_transactions: Option<i32>,
    /// `maxscans`.
    pub max_scans: Option<i32>,
    /// `continuous`.
    pub continuous: Option<bool>,
    /// `pollinginterval`, seconds.
    pub polling_interval: Option<i64>,
    /// `retention`, minutes.
    pub retention: Option<i64>,
    /// `threshold`.
    pub threshold: Option<i64>,
}

/// The longest retention: 100 years, in minutes.
const LONGEST_RETENTION: i64 = 52_494_800;

impl FakeDatabase {
    /// The jobs.
    #[must_use]
    pub fn jobs(&self) -> Jobs {
        let state = self.look();
        Jobs { retention: i64::from(state.retention_minutes), ..state.jobs.clone() }
    }

    /// Plants what SQL Server Agent and the scans tell of themselves.
    pub fn edit_jobs(&self, change: impl FnOnce(&mut Jobs)) {
        change(&mut self.state().jobs);
    }

    /// Lets a scan meet an error now.
    pub fn fail_scan(&self, number: i32, message: &str) {
        let at = self.shared.settings.zone.reading(self.now());
        let error = ScanError { at, number, message: message.into() };
        self.edit_jobs(|jobs| jobs.scan_errors.push(error));
    }

    /// Changes the settings of the jobs. The polling interval and the retention hold at once.
    ///
    /// # Errors
    /// 22994 for a retention that is out of range, 22992 for another setting that is.
    pub fn change_jobs(&self, change: JobChange) -> SqlResult<()> {
        let retention = change.retention.map(|minutes| {
            let fits = (1..=LONGEST_RETENTION).contains(&minutes);
            u32::try_from(minutes).ok().filter(|_| fits).ok_or_else(|| {
                SqlError::new(
                    22994,
                    "The retention value specified for the Change Data Capture cleanup process \
                     must be greater than 0 and less than or equal to 52594800.",
                )
            })
        });
        let retention = retention.transpose()?;
        let positive = |number: Option<i64>| number.is_none_or(|number| number > 0);
        let fits = positive(change.max_transactions.map(i64::from))
            && positive(change.max_scans.map(i64::from))
            && positive(change.threshold)
            && change.polling_interval.is_none_or(|seconds| (0..86_400).contains(&seconds));
        if !fits {
            return Err(SqlError::new(
                22992,
                "The specified job parameter is out of range: maxtrans, maxscans and threshold \
                 must be greater than 0, pollinginterval from 0 to 86399 seconds.",
            ));
        }
        let mut state = self.state();
        let jobs = &mut state.jobs;
        jobs.max_transactions = change.max_transactions.unwrap_or(jobs.max_transactions);
        jobs.max_scans = change.max_scans.unwrap_or(jobs.max_scans);
        jobs.continuous = change.continuous.unwrap_or(jobs.continuous);
        jobs.polling_interval = change.polling_interval.unwrap_or(jobs.polling_interval);
        jobs.threshold = change.threshold.unwrap_or(jobs.threshold);
        if let Some(minutes) = retention {
            state.retention_minutes = minutes;
        }
        drop(state);
        if let Some(seconds) = change.polling_interval {
            self.set_polling(Duration::from_secs(u64::try_from(seconds).unwrap_or(0).max(1)));
        }
        Ok(())
    }

    /// Creates a job, or drops it: a database without a capture job captures nothing.
    pub fn set_job(&self, kind: JobKind, exists: bool) {
        {
            let mut state = self.state();
            match kind {
                JobKind::Capture => state.jobs.capture = exists,
                JobKind::Cleanup => state.jobs.cleanup = exists,
            }
        }
        match (kind, exists) {
            (JobKind::Capture, true) => self.start_capture(),
            (JobKind::Capture, false) => self.stop_capture(),
            (JobKind::Cleanup, _) => {}
        }
    }

    fn set_polling(&self, interval: Duration) {
        if let CaptureSchedule::Every { lag, .. } = self.capture_schedule() {
            self.set_capture(CaptureSchedule::Every { interval, lag });
        }
    }
}
