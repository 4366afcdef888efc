//! WAITFOR, on the server's clock.

use std::time::Duration;

use cdc_core::Timestamp;
use cdc_fake::{SqlError, Value};

use super::{failure::Run, frame::Frame, runner::Runner};
use crate::syntax::Wait;

/// How often a wait looks at the clock: it is another thread that moves it.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// Microseconds in a day.
const DAY: i64 = 86_400_000_000;

impl Runner<'_> {
    pub(super) fn wait(&mut self, wait: &Wait, frame: &Frame) -> Run<()> {
        let (Wait::Delay(expression) | Wait::Time(expression)) = wait;
        let value = self.value(expression, frame)?;
        let micros = match &value.value {
            Value::Text(text) => time_of_day(text),
            Value::DateTime(time) => {
                time.wall().map(|wall| wall.and_utc().timestamp_micros().rem_euclid(DAY))
            }
            Value::Time(ticks) => Some(ticks / 10),
            _ => None,
        };
        let Some(micros) = micros else {
            return Err(
                SqlError::new(148, "Incorrect time syntax in the WAITFOR statement.").into()
            );
        };
        let now = self.core.server.clock().time();
        let until = match wait {
            Wait::Delay(_) => now.plus_micros(micros),
            Wait::Time(_) => {
                let moment = self.core.moment();
                let local = moment.utc_ticks / 10 + i64::from(moment.offset_minutes) * 60_000_000;
                now.plus_micros((micros - local.rem_euclid(DAY)).rem_euclid(DAY))
            }
        };
        self.wait_until(until, frame)
    }

    /// Lets so much time pass on the server's clock.
    pub(super) fn pause(&mut self, pause: Duration, frame: &Frame) -> Run<()> {
        let micros = i64::try_from(pause.as_micros()).unwrap_or(i64::MAX);
        let until = self.core.server.clock().time().plus_micros(micros);
        self.wait_until(until, frame)
    }

    fn wait_until(&mut self, until: Timestamp, frame: &Frame) -> Run<()> {
        let clock = self.core.server.clock().clone();
        if self.core.waits_move_clock {
            clock.advance_to(until);
        }
        while clock.time() < until {
            self.check_alive(frame)?;
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }
}

/// Microseconds since midnight of `hh:mm`, `hh:mm:ss` or `hh:mm:ss.fff`.
fn time_of_day(text: &str) -> Option<i64> {
    let text = text.trim();
    // A date in front is read by the server and left out.
    let text = text.rsplit(' ').next().unwrap_or(text);
    let mut parts = text.split(':');
    let hours: i64 = parts.next()?.parse().ok()?;
    let minutes: i64 = parts.next()?.parse().ok()?;
    let (seconds, micros) = match parts.next() {
        None => (0, 0),
        Some(seconds) => {
            let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
            let digits = fraction.get(..fraction.len().min(6))?;
            let scale = 10_i64.pow(u32::try_from(6 - digits.len()).ok()?);
            (whole.parse::<i64>().ok()?, digits.parse::<i64>().ok()? * scale)
        }
    };
    let valid = parts.next().is_none()
        && (0..24).contains(&hours)
        && (0..60).contains(&minutes)
        && (0..60).contains(&seconds);
    valid.then_some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_read_as_hours_minutes_and_seconds() {
        assert_eq!(time_of_day("00:00:01"), Some(1_000_000));
        assert_eq!(time_of_day("0:00:01.5"), Some(1_500_000));
        assert_eq!(time_of_day("23:59"), Some(86_340_000_000));
        assert_eq!(time_of_day("24:00:00"), None);
        assert_eq!(time_of_day("soon"), None);
    }
}
