//! An object store whose every request may be refused, lose its reply, be slow, wait while others
//! run, happen late, end its process, or see another runner start.

mod upload;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use cdc_fake::VirtualClock;
use futures_util::{FutureExt, StreamExt, stream::BoxStream};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result, memory::InMemory, path::Path,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use upload::Upload;

use crate::{
    hub::{Hub, ProcessId},
    record::Record,
    script::{Mishap, Target, Trouble},
};

/// Steps that others make while a request is held.
const HOLD_STEPS: u32 = 300;
/// Requests of anybody after which a late write has happened, at most.
const LATE_MAX: u32 = 12;

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names are those of stores")]
pub enum Request {
    Put,
    Create,
    BeginUpload,
    Part,
    EndUpload,
    AbortUpload,
    Get,
    Head,
    List,
    Delete,
}

impl Request {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::Put,
        Self::Create,
        Self::BeginUpload,
        Self::Part,
        Self::EndUpload,
        Self::AbortUpload,
        Self::Get,
        Self::Head,
        Self::List,
        Self::Delete,
    ];

    /// True for a request that makes an object in one go.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, Self::Put | Self::Create)
    }
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the module says what they are")]
pub enum StoreFault {
    Refuse,
    Lose,
    Slow,
    Hold,
    Crash,
    CrashAfter,
    Late,
    Second,
}

impl StoreFault {
    /// Every fault.
    pub const ALL: [Self; 8] = [
        Self::Refuse,
        Self::Lose,
        Self::Slow,
        Self::Hold,
        Self::Crash,
        Self::CrashAfter,
        Self::Late,
        Self::Second,
    ];
}

impl StoreFault {
    /// The fault of a request that a mishap is aimed at.
    fn of(what: Mishap, request: Request) -> Option<Self> {
        match what {
            Mishap::Refuse => Some(Self::Refuse),
            Mishap::Lose => Some(Self::Lose),
            Mishap::Slow => Some(Self::Slow),
            Mishap::Hold => Some(Self::Hold),
            Mishap::Crash => Some(Self::Crash),
            Mishap::CrashAfter => Some(Self::CrashAfter),
            Mishap::Second => Some(Self::Second),
            Mishap::Late if request.writes() => Some(Self::Late),
            Mishap::Late | Mishap::Break => None,
        }
    }
}

/// A write that was answered with an error and happens all the same.
struct Late {
    due: u32,
    process: ProcessId,
    path: Path,
    payload: PutPayload,
    options: PutOptions,
}

struct Inner {
    random: ChaCha8Rng,
    trouble: Trouble,
    late: Vec<Late>,
    parts_max: u32,
    /// Requests that are refused before the store is there again.
    outage: u8,
}

/// Told of every object that a put made visible: by whom, where, and what.
pub type Audit = Arc<dyn Fn(ProcessId, &Path, Bytes) + Send + Sync>;
/// Starts another runner. False when there are enough.
pub type Starter = Arc<dyn Fn() -> bool + Send + Sync>;

/// The objects that all processes share.
#[derive(Clone)]
pub struct Bucket {
    objects: Arc<InMemory>,
    hub: Hub,
    clock: VirtualClock,
    record: Record,
    audit: Audit,
    inner: Arc<Mutex<Inner>>,
    starter: Starter,
}

impl Bucket {
    /// An empty bucket.
    #[must_use]
    pub fn new(
        objects: Arc<InMemory>,
        hub: &Hub,
        clock: &VirtualClock,
        record: &Record,
        audit: Audit,
        starter: Starter,
    ) -> Self {
        let inner = Inner {
            random: ChaCha8Rng::seed_from_u64(0),
            trouble: Trouble::NONE,
            late: Vec::new(),
            parts_max: u32::MAX,
            outage: 0,
        };
        Self {
            objects,
            hub: hub.clone(),
            clock: clock.clone(),
            record: record.clone(),
            audit,
            inner: Arc::new(Mutex::new(inner)),
            starter,
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What goes wrong from now on.
    pub fn set_trouble(&self, seed: u64, trouble: Trouble) {
        let mut inner = self.inner();
        inner.random = ChaCha8Rng::seed_from_u64(seed);
        inner.trouble = trouble;
        inner.outage = 0;
    }

    /// Parts of one upload that may be on their way at the same time.
    pub fn set_parts_max(&self, parts: u32) {
        self.inner().parts_max = parts;
    }

    /// The store as one process sees it.
    #[must_use]
    pub fn of(&self, process: ProcessId) -> Arc<dyn ObjectStore> {
        Arc::new(Store { bucket: self.clone(), process })
    }

    /// True while a late write may still happen.
    #[must_use]
    pub fn has_late(&self) -> bool {
        !self.inner().late.is_empty()
    }

    /// Lets every late write happen now.
    pub fn land_all(&self) {
        let late = std::mem::take(&mut self.inner().late);
        late.into_iter().for_each(|late| self.land(late));
    }

    /// Counts a request, and lets the late writes happen whose time has come.
    fn tick(&self) {
        let due: Vec<Late> = {
            let mut inner = self.inner();
            inner.late.iter_mut().for_each(|late| late.due = late.due.saturating_sub(1));
            let (due, rest) = std::mem::take(&mut inner.late).into_iter().partition(|l| l.due == 0);
            inner.late = rest;
            due
        };
        due.into_iter().for_each(|late| self.land(late));
    }

    fn land(&self, late: Late) {
        let bytes = Bytes::from(late.payload.clone());
        let put = self.objects.put_opts(&late.path, late.payload, late.options).now_or_never();
        let landed = matches!(put, Some(Ok(_)));
        self.record.note(format!("store late put of {}: landed {landed}", late.path));
        self.record.count(if landed { "store:late-landed" } else { "store:late-too-late" });
        if landed {
            (self.audit)(late.process, &late.path, bytes);
        }
    }

    fn draw(&self, request: Request) -> Option<StoreFault> {
        let mut inner = self.inner();
        if let Some(rest) = inner.outage.checked_sub(1) {
            inner.outage = rest;
            return Some(StoreFault::Refuse);
        }
        let trouble = inner.trouble;
        if let Some(aim) = trouble.aim.filter(|aim| aim.at == Target::Store(request))
            && inner.random.random_range(0..10_000) < aim.chance
            && let Some(fault) = StoreFault::of(aim.what, request)
        {
            inner.outage = aim.outage;
            return Some(fault);
        }
        let mut chance: u32 = inner.random.random_range(0..10_000);
        let after: bool = inner.random.random();
        let mut hit = |odds: u16| {
            let odds = u32::from(odds);
            let hit = chance < odds;
            chance = chance.wrapping_sub(odds);
            hit
        };
        let writes = request.writes();
        if hit(trouble.store_refuse) {
            Some(StoreFault::Refuse)
        } else if hit(trouble.store_lose) {
            Some(StoreFault::Lose)
        } else if hit(trouble.store_slow) {
            Some(StoreFault::Slow)
        } else if hit(trouble.store_hold) {
            Some(StoreFault::Hold)
        } else if hit(trouble.store_crash) {
            Some(if after { StoreFault::CrashAfter } else { StoreFault::Crash })
        } else if hit(trouble.store_second) {
            Some(StoreFault::Second)
        } else if writes && hit(trouble.store_late) {
            Some(StoreFault::Late)
        } else {
            None
        }
    }

    fn number(&self, limit: u32) -> u32 {
        self.inner().random.random_range(0..limit.max(1))
    }

    fn yields(&self) -> bool {
        let mut inner = self.inner();
        let odds = u32::from(inner.trouble.yields);
        odds > 0 && inner.random.random_range(0..10_000) < odds
    }
}

/// One process's view of a [`Bucket`].
#[derive(Clone)]
struct Store {
    bucket: Bucket,
    process: ProcessId,
}

fn lost() -> Error {
    Error::Generic { store: "simulated", source: "connection reset".into() }
}

/// Whether a request goes on to the objects, and whether its reply comes back.
enum Turn {
    Go { reply: bool },
    Late,
}

impl Store {
    fn dead(&self) -> bool {
        self.bucket.hub.is_crashed(self.process)
    }

    /// Decides what becomes of a request; what it meets besides happens here.
    fn turn(&self, request: Request, path: &str) -> Result<Turn> {
        let bucket = &self.bucket;
        if self.dead() {
            return Err(lost());
        }
        bucket.tick();
        if bucket.yields() {
            bucket.hub.others(2);
        }
        let fault = bucket.draw(request);
        bucket.record.count(format!("request:{request:?}"));
        bucket.record.mix(&(self.process, request as u8, path));
        if let Some(fault) = fault {
            bucket.record.note(format!("store p{} {request:?} {path}: {fault:?}", self.process));
            if fault != StoreFault::Second {
                bucket.record.count(format!("store:{request:?}:{fault:?}"));
            }
        }
        let go = Ok(Turn::Go { reply: true });
        match fault {
            None => go,
            Some(StoreFault::Refuse) => Err(lost()),
            Some(StoreFault::Lose) => Ok(Turn::Go { reply: false }),
            Some(StoreFault::Slow) => {
                let millis = 1 + u64::from(bucket.number(30_000));
                bucket.clock.advance(Duration::from_millis(millis));
                go
            }
            Some(StoreFault::Hold) => {
                bucket.hub.others(HOLD_STEPS);
                if self.dead() { Err(lost()) } else { go }
            }
            Some(StoreFault::Crash) => {
                bucket.hub.crash(self.process);
                Err(lost())
            }
            Some(StoreFault::CrashAfter) => {
                bucket.hub.crash(self.process);
                Ok(Turn::Go { reply: false })
            }
            Some(StoreFault::Second) => {
                if (bucket.starter)() {
                    bucket.record.count(format!("store:{request:?}:Second"));
                }
                go
            }
            Some(StoreFault::Late) => Ok(Turn::Late),
        }
    }

    async fn request<T>(
        &self,
        request: Request,
        path: &str,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match self.turn(request, path)? {
            Turn::Go { reply } => {
                let result = work.await;
                if reply { result } else { Err(lost()) }
            }
            Turn::Late => Err(lost()),
        }
    }

    fn stream<T: Send + 'static>(
        &self,
        path: &str,
        list: impl FnOnce() -> BoxStream<'static, Result<T>>,
    ) -> BoxStream<'static, Result<T>> {
        match self.turn(Request::List, path) {
            Ok(Turn::Go { reply: true }) => list(),
            _ => futures_util::stream::once(async { Err(lost()) }).boxed(),
        }
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("simulated")
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({})", self.process)
    }
}

#[async_trait]
impl ObjectStore for Store {
    async fn put_opts(
        &self,
        at: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let create = matches!(options.mode, PutMode::Create);
        let request = if create { Request::Create } else { Request::Put };
        let bytes = Bytes::from(payload.clone());
        self.bucket.record.mix(&bytes.len());
        let reply = match self.turn(request, at.as_ref())? {
            Turn::Go { reply } => reply,
            Turn::Late => {
                let due = 1 + self.bucket.number(LATE_MAX);
                let late = Late { due, process: self.process, path: at.clone(), payload, options };
                self.bucket.inner().late.push(late);
                return Err(lost());
            }
        };
        let result = self.bucket.objects.put_opts(at, payload, options).await;
        if result.is_ok() {
            (self.bucket.audit)(self.process, at, bytes);
        }
        if reply { result } else { Err(lost()) }
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let begun = self.bucket.objects.put_multipart_opts(at, options);
        let upload = self.request(Request::BeginUpload, at.as_ref(), begun).await?;
        Ok(Box::new(Upload::new(upload, self, at)))
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        let request = if options.head { Request::Head } else { Request::Get };
        self.request(request, at.as_ref(), self.bucket.objects.get_opts(at, options)).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let this = self.clone();
        paths
            .then(move |path| {
                let this = this.clone();
                async move {
                    let path = path?;
                    let gone = this.bucket.objects.delete(&path);
                    this.request(Request::Delete, path.as_ref(), gone).await?;
                    Ok(path)
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let path = prefix.map_or("", Path::as_ref);
        self.stream(path, || self.bucket.objects.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let path = prefix.map_or("", Path::as_ref);
        self.stream(path, || self.bucket.objects.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let path = prefix.map_or("", Path::as_ref);
        self.request(Request::List, path, self.bucket.objects.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.request(Request::Put, to.as_ref(), self.bucket.objects.copy_opts(from, to, options))
            .await
    }
}
