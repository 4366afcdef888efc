//! Positions of MariaDB: for each replication domain the last transaction, as
//! `domain-server-sequence`.
//!
//! Inside a domain sequence numbers grow, whichever server commits. So the last one stands for
//! everything before it in its domain, and the algebra of positions is that of these beginnings.
//! The server tells who committed last; it takes no part in comparisons.

use std::{collections::BTreeMap, fmt, str::FromStr};

/// The identifier of one transaction of MariaDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MariaDbGtid {
    /// The replication domain.
    pub domain: u32,
    /// The `server_id` of the server that committed first.
    pub server: u32,
    /// The number in the domain; 0 is none.
    pub sequence: u64,
}

/// What a server or a reader has: in each domain everything up to one transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MariaDbPosition(BTreeMap<u32, End>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct End {
    // The order of the fields: the later of two ends is the greater.
    sequence: u64,
    server: u32,
}

/// Transactions of one domain: after one number, up to and with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DomainSpan {
    /// The replication domain.
    pub domain: u32,
    /// The last number in front of the span; 0 before the first.
    pub after: u64,
    /// The last number of the span.
    pub to: u64,
}

/// Why a text is no identifier and no position of MariaDB.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MariaDbGtidError {
    /// The text is not three numbers between dashes.
    #[error("a GTID of MariaDB is domain-server-sequence, three whole numbers entry={0}")]
    Form(usize),
    /// A number is larger than its part holds.
    #[error("a part of a GTID of MariaDB is too large entry={0}")]
    TooLarge(usize),
}

impl MariaDbPosition {
    /// True when it holds no transaction.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The last transaction of each domain, in order of the domains.
    pub fn ends(&self) -> impl Iterator<Item = MariaDbGtid> + '_ {
        let gtid = |(domain, end): (&u32, &End)| MariaDbGtid {
            domain: *domain,
            server: end.server,
            sequence: end.sequence,
        };
        self.0.iter().map(gtid)
    }

    /// Moves a domain on to a transaction; one that the position holds already changes nothing.
    pub fn advance(&mut self, gtid: MariaDbGtid) {
        let new = End { sequence: gtid.sequence, server: gtid.server };
        if new.sequence > 0 {
            let own = self.0.entry(gtid.domain).or_insert(new);
            *own = new.max(*own);
        }
    }

    /// True when it holds this transaction.
    #[must_use]
    pub fn contains(&self, gtid: &MariaDbGtid) -> bool {
        gtid.sequence <= self.reached(gtid.domain)
    }

    /// What either holds.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut whole = self.clone();
        other.ends().for_each(|gtid| whole.advance(gtid));
        whole
    }

    /// What both hold.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let common = self.0.iter().filter_map(|(domain, own)| {
            let others = other.0.get(domain)?;
            Some((*domain, *own.min(others)))
        });
        Self(common.collect())
    }

    /// What this one holds and the other does not: a span for each domain where there is something.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Vec<DomainSpan> {
        let span = |gtid: MariaDbGtid| DomainSpan {
            domain: gtid.domain,
            after: other.reached(gtid.domain),
            to: gtid.sequence,
        };
        self.ends().map(span).filter(|span| span.after < span.to).collect()
    }

    /// True when the other holds everything that this one holds.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.ends().all(|gtid| other.contains(&gtid))
    }

    /// True when a server whose oldest binary log begins behind `purged` can still serve a reader
    /// that has seen this position: nothing was purged that the reader lacks.
    #[must_use]
    pub fn is_servable(&self, purged: &Self) -> bool {
        purged.is_subset(self)
    }

    fn reached(&self, domain: u32) -> u64 {
        self.0.get(&domain).map_or(0, |end| end.sequence)
    }
}

impl fmt::Display for MariaDbPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, gtid) in self.ends().enumerate() {
            f.write_str(if index > 0 { "," } else { "" })?;
            write!(f, "{gtid}")?;
        }
        Ok(())
    }
}

impl FromStr for MariaDbPosition {
    type Err = MariaDbGtidError;

    /// Reads what `gtid_current_pos`, `gtid_slave_pos` and `gtid_binlog_state` hold. A domain that
    /// comes more than once, as the state of a binary log has it for each server, is at its
    /// greatest number.
    fn from_str(text: &str) -> Result<Self, MariaDbGtidError> {
        let mut position = Self::default();
        if text.trim().is_empty() {
            return Ok(position);
        }
        for (index, entry) in text.split(',').enumerate() {
            position.advance(gtid(entry, index + 1)?);
        }
        Ok(position)
    }
}

impl fmt::Display for MariaDbGtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.domain, self.server, self.sequence)
    }
}

impl FromStr for MariaDbGtid {
    type Err = MariaDbGtidError;

    fn from_str(text: &str) -> Result<Self, MariaDbGtidError> {
        gtid(text, 1)
    }
}

fn gtid(text: &str, entry: usize) -> Result<MariaDbGtid, MariaDbGtidError> {
    let parts: Vec<_> = text.trim().split('-').collect();
    let digits = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !parts.iter().all(digits) {
        return Err(MariaDbGtidError::Form(entry));
    }
    let [domain, server, sequence] = parts.as_slice() else {
        return Err(MariaDbGtidError::Form(entry));
    };
    let large = |_| MariaDbGtidError::TooLarge(entry);
    Ok(MariaDbGtid {
        domain: domain.parse().map_err(large)?,
        server: server.parse().map_err(large)?,
        sequence: sequence.parse().map_err(large)?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> MariaDbPosition {
        text.parse().expect(text)
    }

    #[test]
    fn positions_parse_and_print() {
        for (text, canonical) in [
            ("", ""),
            ("0-1-42", "0-1-42"),
            (" 1-1-7 ,\n0-1-42", "0-1-42,1-1-7"),
            ("0-1-10,0-2-12", "0-2-12"),
            ("0-2-12,0-1-10", "0-2-12"),
            ("0-1-0", ""),
            (
                "4294967295-4294967295-18446744073709551615",
                "4294967295-4294967295-18446744073709551615",
            ),
        ] {
            assert_eq!(at(text).to_string(), canonical, "{text:?}");
            assert_eq!(at(canonical), at(text));
        }
        for (text, error) in [
            ("0-1", MariaDbGtidError::Form(1)),
            ("0-1-2-3", MariaDbGtidError::Form(1)),
            ("0-1-2,", MariaDbGtidError::Form(2)),
            ("0--2", MariaDbGtidError::Form(1)),
            ("0-1-+2", MariaDbGtidError::Form(1)),
            ("3e11fa47-71ca-11e1-9e33-c80aa9429562:1", MariaDbGtidError::Form(1)),
            ("0-1-2,4294967296-1-1", MariaDbGtidError::TooLarge(2)),
        ] {
            assert_eq!(text.parse::<MariaDbPosition>(), Err(error), "{text:?}");
        }
        let gtid: MariaDbGtid = "0-1-42".parse().expect("a GTID");
        assert_eq!((gtid.domain, gtid.server, gtid.sequence), (0, 1, 42));
        assert_eq!(gtid.to_string(), "0-1-42");
    }

    #[test]
    fn who_committed_last_does_not_matter() {
        let (old, new) = (at("0-1-10"), at("0-2-12"));
        assert!(old.is_subset(&new) && !new.is_subset(&old));
        assert_eq!(new.difference(&old), [DomainSpan { domain: 0, after: 10, to: 12 }]);
        assert_eq!(new.intersection(&old), old);
        assert_eq!(old.union(&new), new);
        assert!(new.is_servable(&old) && !old.is_servable(&new));
        assert!(!old.is_servable(&at("1-1-1")));
    }

    fn drawn() -> impl Strategy<Value = MariaDbPosition> {
        proptest::collection::vec((0u32..3, 1u32..3, 0u64..5), 0..6).prop_map(|list| {
            let mut position = MariaDbPosition::default();
            for (domain, server, sequence) in list {
                position.advance(MariaDbGtid { domain, server, sequence });
            }
            position
        })
    }

    proptest! {
        #[test]
        fn the_algebra_is_that_of_the_transactions(a in drawn(), b in drawn()) {
            prop_assert_eq!(at(&a.to_string()), a.clone());
            for domain in 0..4 {
                for sequence in 1..6 {
                    let gtid = MariaDbGtid { domain, server: 9, sequence };
                    let (x, y) = (a.contains(&gtid), b.contains(&gtid));
                    prop_assert_eq!(a.union(&b).contains(&gtid), x || y);
                    prop_assert_eq!(a.intersection(&b).contains(&gtid), x && y);
                    let left = a.difference(&b);
                    let in_span = |s: &DomainSpan| s.domain == domain && s.after < sequence && sequence <= s.to;
                    prop_assert_eq!(left.iter().any(in_span), x && !y);
                }
            }
            prop_assert_eq!(a.is_subset(&b), a.difference(&b).is_empty());
            prop_assert!(a.is_servable(&a) && a.union(&b).is_servable(&a));
        }
    }
}
