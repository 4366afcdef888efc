//! The server's clock: its zone, and whether it agrees with this machine's.

use super::{Check, Diagnosis, Observations};

/// A difference that no clock of a server that is kept in time has.
const SKEW_SECONDS: i64 = 60;

pub(super) fn zone(seen: &Observations) -> Diagnosis {
    let check = Check::ClockZone;
    let shown = |diagnosis: Diagnosis| {
        diagnosis.with("server_shows", seen.server.reading).with("server_utc", seen.server.utc)
    };
    let Some(zone) = seen.reader.zone else {
        let version = seen.server.version.map_or_else(|| "unknown".into(), |v| v.to_string());
        return shown(Diagnosis::failure(
            check,
            "nobody tells the zone of the server's clock, so no commit time is known. SQL \
             Server 2022 (version 16) and later tell it",
        ))
        .with("version", version)
        .advise(
            "give source.time_zone: the zone that is set in the server's operating system, like \
             \"America/Sao_Paulo\" or \"E. South America Standard Time\"",
        );
    };
    let expected = zone.reading(seen.server.utc);
    let wrong = expected.map(|expected| seen.server.reading.seconds_since(expected));
    let shown = |diagnosis: Diagnosis| shown(diagnosis).with("zone", zone);
    if wrong.is_none_or(|seconds| seconds.abs() > SKEW_SECONDS) {
        let found = shown(Diagnosis::failure(
            check,
            "the server's clock does not show this zone: every commit time of the copy would be \
             wrong by the difference",
        ))
        .advise("give the zone that is set in the server's operating system in source.time_zone");
        return match wrong {
            Some(seconds) => found.with("difference_seconds", seconds),
            None => found,
        };
    }
    if zone.is_fixed() {
        return shown(Diagnosis::note(
            check,
            "a fixed offset follows no change of the clock: right only without summer time",
        ));
    }
    shown(Diagnosis::fine(check, "the server's clock shows this zone"))
}

pub(super) fn skew(seen: &Observations) -> Diagnosis {
    let check = Check::ClockSkew;
    let seconds = seen.server.utc.micros_since(seen.now).div_euclid(1_000_000);
    let found = if seconds.abs() > SKEW_SECONDS {
        Diagnosis::warning(
            check,
            "the server's clock and this machine's differ: ages and lags are wrong by so much",
        )
        .advise("keep both clocks in time")
    } else {
        Diagnosis::fine(check, "the server's clock agrees with this machine's")
    };
    found.with("difference_seconds", seconds)
}
