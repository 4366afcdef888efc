//! A store that counts its requests and fails some of them.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use futures_util::{StreamExt, stream::BoxStream};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
    memory::InMemory, path::Path,
};

/// What happens to the request at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does not happen.
    Lost,
    /// It happens, but the answer is lost.
    ReplyLost,
    /// It does not happen, nor does any later one of this process.
    DeadBefore,
    /// It happens, then the process is dead.
    DeadAfter,
    /// It happens, the answer is lost on its way to the store's client, and the client sends it
    /// once more by itself: what comes back is the answer to the second one.
    Twice,
}

#[derive(Debug, Default)]
struct State {
    requests: u64,
    /// Bytes that went to or came from the store.
    bytes: u64,
    /// The numbers of the requests that change something.
    effects: Vec<u64>,
    /// The numbers of the requests of uploads in parts.
    parts: Vec<u64>,
    faults: Vec<(u64, Fault)>,
    dead: bool,
    /// Each request, as what and where.
    said: Vec<String>,
    /// The log whose next commit meets its twin, of which nothing is seen.
    twin_unseen: Option<String>,
    /// The first file of a log that listings leave out.
    hidden: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Watched {
    inner: Arc<InMemory>,
    state: Arc<Mutex<State>>,
}

enum Turn {
    Answer,
    Fail,
    DoAndFail,
}

impl Watched {
    /// Another process on the same objects.
    pub(crate) fn process(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), state: Arc::default() }
    }

    pub(crate) fn fail_at(&self, request: u64, fault: Fault) {
        self.state.lock().unwrap().faults.push((request, fault));
    }

    pub(crate) fn requests(&self) -> u64 {
        self.state.lock().unwrap().requests
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.state.lock().unwrap().bytes
    }

    /// The requests since the last time.
    pub(crate) fn said(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().said)
    }

    fn say(&self, what: &str, at: Option<&Path>) {
        let at = at.map(ToString::to_string).unwrap_or_default();
        self.state.lock().unwrap().said.push(format!("{what} {at}"));
    }

    /// The next commit to the table in `dir` happens, is sent again by the store's client, and is
    /// then refused; listings do not have it for as long as they are stale.
    pub(crate) fn hide_twin_in(&self, dir: &str) {
        self.state.lock().unwrap().twin_unseen = Some(format!("lake/{dir}/_delta_log/"));
    }

    /// Ends stale listings.
    pub(crate) fn reveal(&self) {
        let mut state = self.state.lock().unwrap();
        assert!(state.hidden.is_some(), "nothing was hidden");
        state.hidden = None;
    }

    /// True for the put of the commit that nobody is to see.
    fn hides(&self, at: &Path) -> bool {
        let mut state = self.state.lock().unwrap();
        let at = at.as_ref();
        let of = |log: &String| at.starts_with(log.as_str()) && at.ends_with(".json");
        if !state.twin_unseen.as_ref().is_some_and(of) {
            return false;
        }
        state.twin_unseen = None;
        state.hidden = Some(at.to_owned());
        true
    }

    /// A listing without what is hidden.
    fn shown(
        &self,
        all: BoxStream<'static, Result<ObjectMeta>>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let hidden = self.state.lock().unwrap().hidden.clone();
        let is_shown = move |meta: &Result<ObjectMeta>| {
            let (Some(hidden), Ok(meta)) = (&hidden, meta) else {
                return true;
            };
            let at = meta.location.as_ref();
            let same_log = hidden.rsplit_once('/').zip(at.rsplit_once('/'));
            let in_log = same_log.is_some_and(|(hidden, at)| hidden.0 == at.0);
            !(in_log && at.ends_with(".json") && at >= hidden.as_str())
        };
        all.filter(move |meta| std::future::ready(is_shown(meta))).boxed()
    }

    /// True when the process can make no more requests.
    pub(crate) fn is_dead(&self) -> bool {
        self.state.lock().unwrap().dead
    }

    pub(crate) fn dynamic(&self) -> Arc<dyn ObjectStore> {
        Arc::new(self.clone())
    }

    pub(crate) fn effects(&self) -> Vec<u64> {
        self.state.lock().unwrap().effects.clone()
    }

    /// The numbers of the requests that begin, feed or end an upload in parts.
    pub(crate) fn parts(&self) -> Vec<u64> {
        self.state.lock().unwrap().parts.clone()
    }

    fn part(&self) {
        let mut state = self.state.lock().unwrap();
        let next = state.requests + 1;
        state.parts.push(next);
    }

    /// The next request changes something.
    fn effect(&self) {
        let mut state = self.state.lock().unwrap();
        let next = state.requests + 1;
        state.effects.push(next);
    }

    /// The next request is sent twice.
    fn comes_twice(&self) -> bool {
        let state = self.state.lock().unwrap();
        !state.dead && state.faults.contains(&(state.requests + 1, Fault::Twice))
    }

    fn turn(&self) -> Turn {
        let mut state = self.state.lock().unwrap();
        if state.dead {
            return Turn::Fail;
        }
        state.requests += 1;
        let now = state.requests;
        match state.faults.iter().copied().find(|(at, _)| *at == now) {
            Some((_, fault)) => {
                state.dead = matches!(fault, Fault::DeadBefore | Fault::DeadAfter);
                match fault {
                    Fault::Lost | Fault::DeadBefore => Turn::Fail,
                    Fault::ReplyLost | Fault::DeadAfter => Turn::DoAndFail,
                    Fault::Twice => Turn::Answer,
                }
            }
            None => Turn::Answer,
        }
    }

    async fn watch<T>(&self, request: impl Future<Output = Result<T>>) -> Result<T> {
        match self.turn() {
            Turn::Answer => request.await,
            Turn::Fail => Err(lost()),
            Turn::DoAndFail => {
                let _ = request.await;
                Err(lost())
            }
        }
    }

    fn count(&self, bytes: usize) {
        self.state.lock().unwrap().bytes += bytes as u64;
    }
}

/// An upload in parts, each of them a request. Nothing is there before it is complete.
#[derive(Debug)]
struct Parts {
    upload: Box<dyn MultipartUpload>,
    store: Watched,
}

#[async_trait]
impl MultipartUpload for Parts {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.store.count(data.content_length());
        self.store.part();
        match self.store.turn() {
            Turn::Answer => self.upload.put_part(data),
            Turn::Fail => Box::pin(std::future::ready(Err(lost()))),
            Turn::DoAndFail => {
                let part = self.upload.put_part(data);
                Box::pin(async {
                    let _ = part.await;
                    Err(lost())
                })
            }
        }
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.store.part();
        self.store.watch(self.upload.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        self.store.watch(self.upload.abort()).await
    }
}

fn lost() -> Error {
    Error::Generic { store: "watched", source: "connection reset".into() }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("watched")
    }
}

#[async_trait]
impl ObjectStore for Watched {
    async fn put_opts(
        &self,
        at: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        self.count(payload.content_length());
        self.say("put", Some(at));
        self.effect();
        if self.hides(at) {
            self.inner.put_opts(at, payload, opts).await?;
            let source = "there is one".into();
            return Err(Error::AlreadyExists { path: at.to_string(), source });
        }
        if self.comes_twice() {
            let first = self.inner.put_opts(at, payload.clone(), opts.clone()).await;
            drop(first);
        }
        self.watch(self.inner.put_opts(at, payload, opts)).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.part();
        let upload = self.watch(self.inner.put_multipart_opts(at, opts)).await?;
        Ok(Box::new(Parts { upload, store: self.clone() }))
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        let head = options.head;
        self.say(if head { "head" } else { "get" }, Some(at));
        let result = self.watch(self.inner.get_opts(at, options)).await?;
        if !head {
            self.count((result.range.end - result.range.start) as usize);
        }
        Ok(result)
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
                    this.effect();
                    let gone = object_store::ObjectStoreExt::delete(this.inner.as_ref(), &path);
                    this.watch(gone).await?;
                    Ok(path)
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.say("list", prefix);
        match self.turn() {
            Turn::Answer => self.shown(self.inner.list(prefix)),
            _ => futures_util::stream::once(async { Err(lost()) }).boxed(),
        }
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.say("list", prefix);
        match self.turn() {
            Turn::Answer => self.shown(self.inner.list_with_offset(prefix, offset)),
            _ => futures_util::stream::once(async { Err(lost()) }).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.watch(self.inner.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.effect();
        self.watch(self.inner.copy_opts(from, to, options)).await
    }
}
