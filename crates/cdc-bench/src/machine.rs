//! What is read of the machine: time, CPU time, memory; and the ports over it.

use std::{
    fs,
    sync::LazyLock,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use cdc_core::{Timestamp, port::Clock};
use futures_util::{FutureExt, future::BoxFuture};

use crate::Outcome;

/// The wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    fn elapsed(&self) -> Duration {
        static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
        BEGUN.elapsed()
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        async move { tokio::time::sleep(pause).await }.boxed()
    }
}

/// What a piece of work took, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) wall: f64,
    /// CPU time of all threads of this process.
    pub(crate) cpu: f64,
}

impl Cost {
    pub(crate) fn wall_time(&self) -> f64 {
        self.wall
    }

    pub(crate) fn cpu_time(&self) -> f64 {
        self.cpu
    }
}

/// Measures from its making on.
pub(crate) struct Watch {
    begun: Instant,
    cpu: f64,
}

impl Watch {
    pub(crate) fn start() -> Self {
        Self { begun: Instant::now(), cpu: cpu_seconds() }
    }

    pub(crate) fn stop(&self) -> Cost {
        Cost { wall: self.begun.elapsed().as_secs_f64(), cpu: cpu_seconds() - self.cpu }
    }
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu_seconds() -> f64 {
    seconds_of(rustix::time::ClockId::ThreadCPUTime)
}

fn cpu_seconds() -> f64 {
    seconds_of(rustix::time::ClockId::ProcessCPUTime)
}

fn seconds_of(clock: rustix::time::ClockId) -> f64 {
    let time = rustix::time::clock_gettime(clock);
    #[allow(clippy::cast_precision_loss, reason = "below 2^53")]
    let (seconds, nanos) = (time.tv_sec as f64, time.tv_nsec as f64);
    seconds + nanos / 1e9
}

/// Forgets the peak of this process's memory.
pub(crate) fn forget_peak() -> Outcome<()> {
    Ok(fs::write("/proc/self/clear_refs", "5")?)
}

/// The most memory that was resident since the peak was forgotten, in MiB.
pub(crate) fn peak_mib() -> Outcome<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"))
        .ok_or("the system does not tell the peak of memory")?;
    Ok(kib.trim().parse::<f64>()? / 1_024.0)
}

/// A runtime as the binary makes it.
pub(crate) fn two_threads() -> Outcome<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// A runtime on the calling thread.
pub(crate) fn one_thread() -> Outcome<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set in the process of a test that measures its own process.
    const ALONE: &str = "CDC_BENCH_TEST_ALONE";

    /// True in a process that runs this test alone. Elsewhere such a process runs to its end: the
    /// tests beside one cost CPU time of the same process.
    fn is_alone(test: &str) -> bool {
        if std::env::var_os(ALONE).is_some() {
            return true;
        }
        let program = std::env::current_exe().expect("the tests are a program");
        let mut alone = std::process::Command::new(program);
        let ran = alone.args(["--exact", test]).env(ALONE, "1").output().expect("starts");
        let told = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && told.contains("1 passed"), "{told}");
        false
    }

    #[test]
    fn work_costs_cpu_time_and_sleep_does_not() {
        if !is_alone("machine::tests::work_costs_cpu_time_and_sleep_does_not") {
            return;
        }
        let watch = Watch::start();
        std::thread::sleep(Duration::from_millis(50));
        assert!(watch.stop().wall >= 0.05);
        let watch = Watch::start();
        let mut number = 1_u64;
        while watch.stop().cpu < 0.01 {
            number = std::hint::black_box(number.wrapping_mul(7));
        }
        assert!(watch.stop().wall >= 0.005);
    }

    #[test]
    fn the_peak_of_memory_sees_a_block_that_is_gone() {
        // Tests beside this one forget the peak too, but not every time.
        let is_seen = (0..50).any(|_| {
            forget_peak().expect("this system has /proc");
            let before = peak_mib().expect("this system has /proc");
            drop(std::hint::black_box(vec![1_u8; 64 << 20]));
            peak_mib().expect("as above") >= before + 60.0
        });
        assert!(is_seen);
    }
}
