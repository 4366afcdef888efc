//! Transaction identifiers of MySQL, and the sets of them that say what a server or a reader has.
//!
//! A set is no position in an order: numbers of two sources do not compare. It names transactions,
//! and answers whether a reader's place is still served: everything that was purged must have been
//! seen.

use std::{collections::BTreeMap, fmt, str::FromStr};

use super::interval::{Interval, Intervals};

/// The `server_uuid` of the server that committed first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId([u8; 16]);

/// A name that MySQL 8.3 and later put between source and number: a letter or an underscore, then
/// letters, digits, underscores; at most 32; lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GtidTag(String);

/// The identifier of one transaction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gtid {
    /// The server that committed it first.
    pub source: SourceId,
    /// Its tag.
    pub tag: Option<GtidTag>,
    /// Its number, counted from 1 for each source and tag.
    pub number: u64,
}

/// A set of transactions.
///
/// Reads what `gtid_executed`, `gtid_purged` and Debezium's offsets hold: sources with intervals
/// and tags, in any case, with blanks and line breaks anywhere between the words, commas without
/// anything between them, sources and tags that come again. Prints the one canonical form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct GtidSet(BTreeMap<(SourceId, Option<GtidTag>), Intervals>);

/// Why a text is no identifier and no set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GtidError {
    /// There is no UUID where a source must be.
    #[error("a GTID begins with the UUID of its source at_byte={0}")]
    Source(usize),
    /// A source or a tag has no transaction behind it.
    #[error("a source or tag has no transaction numbers at_byte={0}")]
    Numbers(usize),
    /// There is neither a number nor a tag behind a colon.
    #[error("a colon is followed by a number, an interval or a tag at_byte={0}")]
    Part(usize),
    /// A number is 0 or above [`Gtid::NUMBER_MAX`].
    #[error("a transaction number is 1 to 2^63 - 2 at_byte={0}")]
    Range(usize),
    /// An interval ends before it begins.
    #[error("an interval ends before it begins at_byte={0}")]
    Inverted(usize),
    /// A tag has more than 32 characters.
    #[error("a tag has at most 32 characters at_byte={0}")]
    TagLength(usize),
    /// There is something behind a complete source.
    #[error("a source ends with a comma or the end of the text at_byte={0}")]
    Trailing(usize),
    /// The text is a set of another number of transactions than one.
    #[error("a GTID names one transaction")]
    NotOne,
}

impl GtidTag {
    /// Most characters of a tag.
    pub const LENGTH_MAX: usize = 32;

    /// The tag in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Gtid {
    /// The greatest number of a transaction.
    pub const NUMBER_MAX: u64 = 0x7fff_ffff_ffff_fffe;
}

impl GtidSet {
    /// True when it names no transaction.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many transactions it names.
    #[must_use]
    pub fn count(&self) -> u128 {
        self.0.values().map(Intervals::count).sum()
    }

    /// True when it names this transaction.
    #[must_use]
    pub fn contains(&self, gtid: &Gtid) -> bool {
        let key = (gtid.source, gtid.tag.clone());
        self.0.get(&key).is_some_and(|numbers| numbers.contains(gtid.number))
    }

    /// Adds one transaction. A number that no transaction has is left out.
    pub fn insert(&mut self, gtid: Gtid) {
        if (1..=Gtid::NUMBER_MAX).contains(&gtid.number) {
            let one = Interval { first: gtid.number, last: gtid.number };
            self.0.entry((gtid.source, gtid.tag)).or_default().insert(one);
        }
    }

    /// What either names.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut whole = self.clone();
        for (key, numbers) in &other.0 {
            let own = whole.0.entry(key.clone()).or_default();
            *own = own.union(numbers);
        }
        whole
    }

    /// What both name.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.each(|key, own| match other.0.get(key) {
            Some(others) => own.intersection(others),
            None => Intervals::default(),
        })
    }

    /// What this one names and the other does not.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.each(|key, own| match other.0.get(key) {
            Some(others) => own.difference(others),
            None => own.clone(),
        })
    }

    /// True when the other names everything that this one names.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.iter().all(|(key, own)| match other.0.get(key) {
            Some(others) => own.is_subset(others),
            None => own.is_empty(),
        })
    }

    /// True when a server that has purged `purged` can still serve a reader that has seen this
    /// set: nothing was purged that the reader lacks. [`GtidSet::difference`] of the two the other
    /// way round names what is lost.
    #[must_use]
    pub fn is_servable(&self, purged: &Self) -> bool {
        purged.is_subset(self)
    }

    fn each(&self, of: impl Fn(&(SourceId, Option<GtidTag>), &Intervals) -> Intervals) -> Self {
        let parts = self.0.iter().map(|(key, own)| (key.clone(), of(key, own)));
        Self(parts.filter(|(_, numbers)| !numbers.is_empty()).collect())
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, comma: &str) -> fmt::Result {
        let mut before: Option<SourceId> = None;
        for ((source, tag), numbers) in &self.0 {
            if before != Some(*source) {
                f.write_str(if before.is_some() { comma } else { "" })?;
                write!(f, "{source}")?;
                before = Some(*source);
            }
            if let Some(tag) = tag {
                write!(f, ":{}", tag.0)?;
            }
            for interval in numbers.iter() {
                write!(f, ":{}", interval.first)?;
                if interval.last > interval.first {
                    write!(f, "-{}", interval.last)?;
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for GtidSet {
    /// Sources in order of their UUIDs, each with its numbers without a tag first and then its
    /// tags in order. `{:#}` breaks the line behind each comma, as the server does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, if f.alternate() { ",\n" } else { "," })
    }
}

impl FromStr for GtidSet {
    type Err = GtidError;

    fn from_str(text: &str) -> Result<Self, GtidError> {
        let mut words = Words { text, at: 0 };
        let mut set = Self::default();
        loop {
            words.skip_blanks();
            if words.take(',') {
                continue;
            }
            if words.rest().is_empty() {
                return Ok(set);
            }
            words.source_with_numbers(&mut set)?;
            words.skip_blanks();
            if !words.rest().is_empty() && !words.rest().starts_with(',') {
                return Err(GtidError::Trailing(words.at));
            }
        }
    }
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{}", tag.0)?;
        }
        write!(f, ":{}", self.number)
    }
}

impl FromStr for Gtid {
    type Err = GtidError;

    fn from_str(text: &str) -> Result<Self, GtidError> {
        let set: GtidSet = text.parse()?;
        let mut parts = set.0.into_iter();
        let (Some(((source, tag), numbers)), None) = (parts.next(), parts.next()) else {
            return Err(GtidError::NotOne);
        };
        match (numbers.count(), numbers.iter().next()) {
            (1, Some(one)) => Ok(Self { source, tag, number: one.first }),
            _ => Err(GtidError::NotOne),
        }
    }
}

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is read from front to back.
struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    fn take(&mut self, mark: char) -> bool {
        let found = self.rest().starts_with(mark);
        if found {
            self.at += mark.len_utf8();
        }
        found
    }

    fn word(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// `UUID:NUMBERS`, `UUID:TAG:NUMBERS`, or several of these parts behind one UUID.
    fn source_with_numbers(&mut self, set: &mut GtidSet) -> Result<(), GtidError> {
        let source = self.source()?;
        let mut tag = None;
        let mut numbered = false;
        loop {
            self.skip_blanks();
            if !self.take(':') {
                break;
            }
            self.skip_blanks();
            let start = self.at;
            if self.rest().starts_with(|c: char| c.is_ascii_digit()) {
                let interval = self.interval()?;
                set.0.entry((source, tag.clone())).or_default().insert(interval);
                numbered = true;
                continue;
            }
            if tag.is_some() && !numbered {
                return Err(GtidError::Numbers(start));
            }
            tag = Some(self.tag()?);
            numbered = false;
        }
        if numbered { Ok(()) } else { Err(GtidError::Numbers(self.at)) }
    }

    fn source(&mut self) -> Result<SourceId, GtidError> {
        const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
        let start = self.at;
        let word = self.word(|c| c.is_ascii_hexdigit() || c == '-');
        let groups: Vec<_> = word.split('-').collect();
        if !groups.iter().map(|group| group.len()).eq(GROUPS) {
            return Err(GtidError::Source(start));
        }
        let number = u128::from_str_radix(&groups.concat(), 16);
        let number = number.map_err(|_| GtidError::Source(start))?;
        Ok(SourceId(number.to_be_bytes()))
    }

    fn tag(&mut self) -> Result<GtidTag, GtidError> {
        let start = self.at;
        let word = self.word(|c| c.is_ascii_alphanumeric() || c == '_');
        if word.is_empty() || word.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(GtidError::Part(start));
        }
        if word.len() > GtidTag::LENGTH_MAX {
            return Err(GtidError::TagLength(start));
        }
        Ok(GtidTag(word.to_ascii_lowercase()))
    }

    fn interval(&mut self) -> Result<Interval, GtidError> {
        let start = self.at;
        let first = self.number()?;
        self.skip_blanks();
        let last = if self.take('-') {
            self.skip_blanks();
            self.number()?
        } else {
            first
        };
        Interval::new(first, last).ok_or(GtidError::Inverted(start))
    }

    fn number(&mut self) -> Result<u64, GtidError> {
        let start = self.at;
        let word = self.word(|c| c.is_ascii_digit());
        if word.is_empty() {
            return Err(GtidError::Part(start));
        }
        match word.parse() {
            Ok(number) if (1..=Gtid::NUMBER_MAX).contains(&number) => Ok(number),
            _ => Err(GtidError::Range(start)),
        }
    }
}

#[cfg(test)]
mod tests;
