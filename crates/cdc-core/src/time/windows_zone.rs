//! Windows zone names: what SQL Server answers when asked for its zone, and the IANA zone each
//! name stands for.

use chrono_tz::Tz;

/// The table of Unicode CLDR; its header says where it comes from and how to refresh it.
const TABLE: &str = include_str!("../../data/windows-zones.csv");

/// Every Windows name of a zone with the name of its IANA zone, as Unicode CLDR maps them.
pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(','))
}

/// The Windows zone of a name, in the table's spelling. Case does not matter, as on the server.
pub(super) fn find(name: &str) -> Option<(&'static str, Tz)> {
    let (windows, iana) = names().find(|(windows, _)| windows.eq_ignore_ascii_case(name))?;
    Some((windows, iana.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_windows_name_has_a_zone() {
        let mut count = 0;
        for (windows, iana) in names() {
            let zone: Tz = iana.parse().expect(iana);
            assert_eq!(find(windows), Some((windows, zone)));
            count += 1;
        }
        assert_eq!(
            count,
            TABLE.lines().filter(|l| !l.starts_with('#')).count(),
            "a line of the table was skipped"
        );
        assert!(count > 130, "the table is cut short: {count}");
    }

    #[test]
    fn no_windows_name_stands_twice_or_is_an_iana_name_of_another_zone() {
        let mut seen = std::collections::BTreeSet::new();
        for (windows, iana) in names() {
            assert!(seen.insert(windows.to_ascii_lowercase()), "{windows}");
            if let Ok(zone) = windows.parse::<Tz>() {
                assert!(iana.ends_with(zone.name()), "{windows}");
            }
        }
    }
}
