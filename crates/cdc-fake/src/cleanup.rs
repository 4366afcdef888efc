//! The cleanup job: moves the low watermark first, removes change rows in batches afterwards, and
//! mapping rows below every instance's watermark last. A test may stand between any two steps.

use std::{collections::VecDeque, time::Duration};

use cdc_core::{InstanceName, Lsn, Timestamp};

use crate::{
    database::{DatabaseState, FakeDatabase, unknown_instance},
    sql_error::{SqlError, SqlResult, number},
};

/// `last_run_outcome` of a job that ended well.
const SUCCEEDED: u8 = 1;
/// Rows that one delete of the cleanup job removes, unless told otherwise.
pub const DEFAULT_CLEANUP_THRESHOLD: usize = 5000;

/// What a step of cleanup did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CleanupStep {
    /// The instance's low watermark is now here; no row is gone yet.
    Watermark(InstanceName, Lsn),
    /// So many change rows of the instance went.
    Rows(InstanceName, usize),
    /// So many rows of the mapping went.
    Mapping(usize),
}

#[derive(Clone, Debug)]
enum Stage {
    Watermark(InstanceName, Lsn),
    Rows(InstanceName, Lsn),
    Mapping,
}

/// A cleanup on its way. Dropped before its end, it leaves the rest for the next one.
#[derive(Debug)]
pub struct Cleanup {
    database: FakeDatabase,
    threshold: usize,
    stages: VecDeque<Stage>,
}

impl FakeDatabase {
    /// Prepares the cleanup job's run: every instance's rows older than the retention, measured
    /// from the last captured commit. Nothing has happened yet.
    #[must_use]
    pub fn begin_cleanup(&self, threshold: usize) -> Cleanup {
        let stages = self.state().retention_stages();
        self.cleanup_of(threshold, stages)
    }

    /// Prepares the cleanup of one instance up to a mark of the mapping, as
    /// `sys.sp_cdc_cleanup_change_table` does. Nothing has happened yet.
    ///
    /// # Errors
    /// 22960 for an unknown instance, 22964 for a mark that is no entry of the mapping.
    pub fn begin_cleanup_of(
        &self,
        instance: &InstanceName,
        mark: Lsn,
        threshold: usize,
    ) -> SqlResult<Cleanup> {
        let state = self.state();
        if state.instance(instance).is_none() {
            return Err(unknown_instance(instance));
        }
        if state.mapping.get(mark).is_none() {
            return Err(SqlError::new(
                number::LOW_ENDPOINT,
                format!("lsn {mark} is not in cdc.lsn_time_mapping"),
            ));
        }
        let stages = state.stages(instance, mark).into();
        drop(state);
        Ok(self.cleanup_of(threshold, stages))
    }

    /// Runs the cleanup job to its end. Returns how many change rows went.
    pub fn cleanup(&self) -> usize {
        self.edit_jobs(|jobs| jobs.cleanup_outcome = SUCCEEDED);
        self.begin_cleanup(DEFAULT_CLEANUP_THRESHOLD).finish()
    }

    /// Lets the cleanup job run by itself from now on, or no more. A new database has no job.
    pub fn set_cleanup(&self, schedule: Option<CleanupSchedule>) {
        let now = self.now();
        self.state().cleanup = schedule.map(|schedule| schedule.after(now));
    }

    /// Cleans one instance up to a mark, to the end. Returns how many change rows went.
    ///
    /// # Errors
    /// As for [`FakeDatabase::begin_cleanup_of`].
    pub fn cleanup_instance(&self, instance: &InstanceName, mark: Lsn) -> SqlResult<usize> {
        let cleanup = self.begin_cleanup_of(instance, mark, DEFAULT_CLEANUP_THRESHOLD)?;
        Ok(cleanup.finish())
    }

    fn cleanup_of(&self, threshold: usize, stages: VecDeque<Stage>) -> Cleanup {
        Cleanup { database: self.clone(), threshold: threshold.max(1), stages }
    }
}

/// When the cleanup job runs by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanupSchedule {
    /// The time between two runs; at least a second.
    pub every: Duration,
    /// Most rows that one delete removes.
    pub threshold: usize,
}

/// The state of the cleanup job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CleanupJob {
    schedule: CleanupSchedule,
    next: Timestamp,
}

impl CleanupSchedule {
    fn after(self, moment: Timestamp) -> CleanupJob {
        let every = i64::try_from(self.every.as_micros()).unwrap_or(i64::MAX);
        CleanupJob { schedule: self, next: moment.plus_micros(every.max(1_000_000)) }
    }
}

impl Cleanup {
    /// Does the next step; nothing when there is none.
    pub fn step(&mut self) -> Option<CleanupStep> {
        let mut state = self.database.state();
        state.clean(&mut self.stages, self.threshold)
    }

    /// Does the remaining steps. Returns how many change rows they removed.
    pub fn finish(mut self) -> usize {
        let mut rows = 0;
        while let Some(step) = self.step() {
            if let CleanupStep::Rows(_, removed) = step {
                rows += removed;
            }
        }
        rows
    }
}

impl DatabaseState {
    /// Does what the jobs were due to do by `now`.
    pub(crate) fn catch_up(&mut self, now: Timestamp) {
        while let Some(job) = self.cleanup.filter(|job| job.next <= now) {
            self.capture_until(job.next);
            let mut stages = self.retention_stages();
            while self.clean(&mut stages, job.schedule.threshold).is_some() {}
            self.cleanup = Some(job.schedule.after(job.next));
            self.jobs.cleanup_outcome = SUCCEEDED;
        }
        self.capture_until(now);
    }

    /// Does the next step of a cleanup.
    fn clean(&mut self, stages: &mut VecDeque<Stage>, threshold: usize) -> Option<CleanupStep> {
        loop {
            let stage = stages.pop_front()?;
            let done = match &stage {
                Stage::Watermark(name, mark) => {
                    // Disabled meanwhile: nothing to clean.
                    let Ok(instance) = self.instance_mut(name) else {
                        continue;
                    };
                    let low = instance.low.map_or(*mark, |low| low.max(*mark));
                    instance.low = Some(low);
                    return Some(CleanupStep::Watermark(name.clone(), low));
                }
                Stage::Rows(name, mark) => self
                    .instance_mut(name)
                    .map_or(0, |instance| instance.remove_below(*mark, threshold)),
                Stage::Mapping => self.clean_mapping(threshold),
            };
            if done == 0 {
                continue;
            }
            let step = match &stage {
                Stage::Rows(name, _) => CleanupStep::Rows(name.clone(), done),
                _ => CleanupStep::Mapping(done),
            };
            stages.push_front(stage);
            return Some(step);
        }
    }

    /// The stages of a run of the cleanup job.
    fn retention_stages(&self) -> VecDeque<Stage> {
        let mut stages = VecDeque::new();
        if let Some(mark) = self.retention_mark() {
            for instance in self.instances.values() {
                if instance.low.is_some_and(|low| low < mark) {
                    stages.extend(self.stages(&instance.name, mark));
                }
            }
        }
        stages
    }

    /// The first entry of the mapping that the retention keeps.
    fn retention_mark(&self) -> Option<Lsn> {
        let last = self.mapping.last()?.time;
        let ticks = i64::from(self.retention_minutes) * 60 * cdc_core::ServerTime::TICKS_A_SECOND;
        let oldest = cdc_core::ServerTime::from_ticks(last.as_ticks().saturating_sub(ticks));
        self.mapping.first_since(oldest)
    }

    /// The stages of one instance's cleanup. The mark is lowered to the first entry of the
    /// mapping that shares its time.
    fn stages(&self, instance: &InstanceName, mark: Lsn) -> Vec<Stage> {
        let mark = self.mapping.first_sharing_time(mark).unwrap_or(mark);
        vec![
            Stage::Watermark(instance.clone(), mark),
            Stage::Rows(instance.clone(), mark),
            Stage::Mapping,
        ]
    }

    /// Removes rows of the mapping below the lowest watermark of all instances.
    fn clean_mapping(&mut self, limit: usize) -> usize {
        let lowest =
            self.instances.values().map(|instance| instance.low.unwrap_or(instance.start)).min();
        match lowest {
            Some(low) => self.mapping.remove_below(low, limit),
            None => 0,
        }
    }
}
