//! Replies that were given once and hold still, in their encoded form.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;

/// What a reply answers. The bytes of a request hold its text or its procedure and arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    /// The login, whose rights decide what is seen.
    pub(crate) user: Arc<str>,
    /// The database that names are looked up in.
    pub(crate) database: Arc<str>,
    /// The request's packet type.
    pub(crate) kind: u8,
    /// True when texts are written in UTF-8.
    pub(crate) utf8: bool,
    /// What the session was told before that could have set something, see [`history`].
    pub(crate) history: u64,
    /// The request without its headers.
    pub(crate) body: Bytes,
}

/// The history of a session that was just told `request`. Sessions of the same history were told
/// the same in the same order, from their login or their last reset, and have set the same.
pub(crate) fn history(before: u64, request: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (before, request).hash(&mut hasher);
    hasher.finish()
}

/// The longest request whose reply is kept.
pub(crate) const QUESTION_BYTES_MAX: usize = 64 << 10;
/// What an entry takes beside its bytes, roughly.
const ENTRY_BYTES: usize = 512;

/// A reply's tokens, in pieces, without packet headers.
pub(crate) type Tokens = Arc<[Bytes]>;

struct Entry {
    version: u64,
    tokens: Tokens,
    bytes: usize,
    used: u64,
}

#[derive(Default)]
struct Entries {
    by_question: HashMap<Arc<Question>, Entry>,
    by_use: BTreeMap<u64, Arc<Question>>,
    bytes: usize,
    uses: u64,
}

/// Replies by their questions; the least recently used leave first.
pub(crate) struct ReplyCache {
    limit: usize,
    entries: Mutex<Entries>,
    /// Bytes of replies that are being kept while they are made.
    making: AtomicUsize,
}

impl ReplyCache {
    /// Keeps up to `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, entries: Mutex::default(), making: AtomicUsize::new(0) }
    }

    /// True when nothing is ever kept.
    pub(crate) const fn is_off(&self) -> bool {
        self.limit == 0
    }

    /// The reply to `question`, when the data still has the version it was made from.
    pub(crate) fn get(&self, question: &Question, version: u64) -> Option<Tokens> {
        let mut entries = self.lock();
        let entries = &mut *entries;
        let entry = entries.by_question.get_mut(question)?;
        if entry.version != version {
            entries.remove(question);
            return None;
        }
        entries.uses = entries.uses.saturating_add(1);
        if let Some(question) = entries.by_use.remove(&entry.used) {
            entries.by_use.insert(entries.uses, question);
        }
        entry.used = entries.uses;
        Some(Arc::clone(&entry.tokens))
    }

    /// Keeps a reply that was made from the data's `version`.
    fn put(&self, question: Question, version: u64, tokens: Tokens) {
        let length = tokens.iter().fold(0_usize, |sum, part| sum.saturating_add(part.len()));
        let bytes = length.saturating_add(question.body.len()).saturating_add(ENTRY_BYTES);
        let mut entries = self.lock();
        entries.remove(&question);
        if bytes > self.limit {
            return;
        }
        while entries.bytes.saturating_add(bytes) > self.limit {
            let Some((_, oldest)) = entries.by_use.pop_first() else { return };
            entries.remove(&oldest);
        }
        let question = Arc::new(question);
        entries.uses = entries.uses.saturating_add(1);
        let used = entries.uses;
        entries.bytes = entries.bytes.saturating_add(bytes);
        entries.by_use.insert(used, Arc::clone(&question));
        entries.by_question.insert(question, Entry { version, tokens, bytes, used });
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        // The entries are whole between any two statements that could fail.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn remove(&mut self, question: &Question) {
        if let Some(entry) = self.by_question.remove(question) {
            self.bytes = self.bytes.saturating_sub(entry.bytes);
            self.by_use.remove(&entry.used);
        }
    }
}

/// A reply that is being made and may be kept.
pub(crate) struct Keeping {
    cache: Arc<ReplyCache>,
    parts: Vec<Bytes>,
    bytes: usize,
}

impl Keeping {
    /// Begins to keep a reply.
    pub(crate) fn new(cache: &Arc<ReplyCache>) -> Self {
        Self { cache: Arc::clone(cache), parts: Vec::new(), bytes: 0 }
    }

    /// Takes the next tokens; false when there are more than may be kept, and then it is over.
    pub(crate) fn add(&mut self, tokens: Bytes) -> bool {
        let length = tokens.len();
        let making = self.cache.making.fetch_add(length, Ordering::Relaxed);
        self.bytes = self.bytes.saturating_add(length);
        self.parts.push(tokens);
        making.saturating_add(length) <= self.cache.limit
    }

    /// Keeps the whole reply.
    pub(crate) fn keep(mut self, question: Question, version: u64) {
        let parts = std::mem::take(&mut self.parts);
        self.cache.put(question, version, parts.into());
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        self.cache.making.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(text: &'static str) -> Question {
        Question {
            user: "sa".into(),
            database: "shop".into(),
            kind: 1,
            utf8: false,
            history: 0,
            body: Bytes::from_static(text.as_bytes()),
        }
    }

    fn keep(cache: &Arc<ReplyCache>, text: &'static str, version: u64, bytes: usize) -> bool {
        let mut keeping = Keeping::new(cache);
        let fits = keeping.add(Bytes::from(vec![7; bytes]));
        if fits {
            keeping.keep(question(text), version);
        }
        fits
    }

    #[test]
    fn a_reply_is_given_again_while_the_data_has_its_version() {
        let cache = Arc::new(ReplyCache::new(10_000));
        assert!(keep(&cache, "a", 3, 100));
        assert_eq!(cache.get(&question("a"), 3).expect("kept").len(), 1);
        assert!(cache.get(&question("b"), 3).is_none());
        assert!(cache.get(&question("a"), 4).is_none());
        assert!(cache.get(&question("a"), 3).is_none(), "an outdated reply leaves");
        assert_eq!(cache.lock().bytes, 0);
    }

    #[test]
    fn the_order_of_what_was_told_makes_a_history() {
        let told = |texts: &[&str]| texts.iter().fold(0, |h, text| history(h, text.as_bytes()));
        assert_eq!(told(&["a", "b"]), told(&["a", "b"]));
        assert_ne!(told(&["a", "b"]), told(&["b", "a"]));
        assert_ne!(told(&["a"]), told(&["a", "a"]));
    }

    #[test]
    fn another_login_and_another_database_get_no_reply_of_this_one() {
        let cache = Arc::new(ReplyCache::new(10_000));
        assert!(keep(&cache, "a", 3, 100));
        let other = Question { user: "reader".into(), ..question("a") };
        assert!(cache.get(&other, 3).is_none());
        let other = Question { database: "stock".into(), ..question("a") };
        assert!(cache.get(&other, 3).is_none());
        assert!(cache.get(&Question { utf8: true, ..question("a") }, 3).is_none());
        assert!(cache.get(&Question { history: 1, ..question("a") }, 3).is_none());
    }

    #[test]
    fn the_least_recently_used_leaves_first() {
        let cache = Arc::new(ReplyCache::new(3_000));
        assert!(keep(&cache, "a", 1, 700) && keep(&cache, "b", 1, 700));
        assert!(cache.get(&question("a"), 1).is_some());
        assert!(keep(&cache, "c", 1, 700));
        assert!(cache.get(&question("b"), 1).is_none());
        assert!(cache.get(&question("a"), 1).is_some() && cache.get(&question("c"), 1).is_some());
        assert!(cache.lock().bytes <= 3_000);
    }

    #[test]
    fn a_reply_larger_than_all_that_is_kept_is_not_kept() {
        let cache = Arc::new(ReplyCache::new(1_000));
        assert!(!keep(&cache, "a", 1, 1_001));
        assert!(keep(&cache, "b", 1, 600), "it fits while it is made, not with its entry");
        assert!(cache.get(&question("b"), 1).is_none());
        assert_eq!(cache.making.load(Ordering::Relaxed), 0);
    }
}
