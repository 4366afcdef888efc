//! Whose turn it is: threads that take turns at every request to the store, in an order that is
//! laid down beforehand.

use std::{
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard},
};

use async_trait::async_trait;
use futures_util::{FutureExt, StreamExt, stream::BoxStream};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    memory::InMemory, path::Path,
};

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It does not happen, nor does any later one of this runner.
    DeadBefore,
    /// It happens, then the runner is dead.
    DeadAfter,
    /// It happens; its reply is lost.
    ReplyLost,
    /// Its reply is lost. It happens when so many more requests of anybody have happened.
    Late(usize),
    /// It happens, the client sends it again by itself, and hears of its twin.
    Twin,
}

/// A request: which runner makes it, and what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) runner: usize,
    pub(crate) verb: Verb,
    pub(crate) path: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Put,
    Delete,
}

impl Request {
    /// True when the request changes something.
    pub(crate) fn writes(&self) -> bool {
        matches!(self.verb, Verb::Put | Verb::Delete)
    }

    /// True when the order of the two requests matters.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let covers = |list: &Self, one: &Self| match list.verb {
            Verb::List => one.path.starts_with(&list.path),
            _ => one.path == list.path,
        };
        (self.writes() && covers(other, self)) || (other.writes() && covers(self, other))
    }
}

/// An order of two threads, and the trouble of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Order {
    /// The turn passes to the other runner before these requests, counted over both. Without
    /// them the first runner runs to its end, then the second one.
    pub(crate) switches: Vec<usize>,
    /// The runner and its request, counted from its start.
    pub(crate) trouble: Option<(usize, usize, Trouble)>,
}

struct Sent {
    due: usize,
    path: Path,
    payload: PutPayload,
    options: PutOptions,
}

struct State {
    order: Order,
    running: usize,
    ended: [bool; 2],
    dead: [bool; 2],
    made: [usize; 2],
    trace: Vec<Request>,
    late: Option<Sent>,
}

/// The turns of two threads.
pub(crate) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
    store: InMemory,
}

/// A thread's part in the turns; it ends when this is dropped.
pub(crate) struct Seat {
    turns: Arc<Turns>,
    runner: usize,
}

impl Turns {
    /// Turns over a store, in an order.
    pub(crate) fn new(store: InMemory, order: Order) -> Arc<Self> {
        let state = State {
            order,
            running: 0,
            ended: [false; 2],
            dead: [false; 2],
            made: [0; 2],
            trace: Vec::new(),
            late: None,
        };
        Arc::new(Self { state: Mutex::new(state), changed: Condvar::new(), store })
    }

    /// Takes a runner's seat. Its thread waits until its first turn.
    pub(crate) fn sit(self: &Arc<Self>, runner: usize) -> Seat {
        drop(self.wait(self.state.lock().unwrap(), runner));
        Seat { turns: Arc::clone(self), runner }
    }

    /// What was requested, in order, once both threads are done. A put that is still on its way
    /// arrives now.
    pub(crate) fn end(&self) -> Vec<Request> {
        let mut state = self.state.lock().unwrap();
        self.arrive(&mut state, true);
        std::mem::take(&mut state.trace)
    }

    /// What is in the store now.
    pub(crate) fn store(&self) -> &InMemory {
        &self.store
    }

    /// Waits for a runner's turn.
    fn wait<'a>(&'a self, state: MutexGuard<'a, State>, runner: usize) -> MutexGuard<'a, State> {
        self.changed.wait_while(state, |state| state.running != runner).unwrap()
    }

    fn arrive(&self, state: &mut State, all: bool) {
        if state.late.as_ref().is_some_and(|late| all || late.due <= state.trace.len())
            && let Some(Sent { path, payload, options, .. }) = state.late.take()
        {
            // Whether it meets another commit does not matter to anybody any more.
            drop(self.store.put_opts(&path, payload, options).now_or_never().unwrap());
        }
    }

    /// Waits for the turn of a runner's next request, and tells what happens to it.
    fn next(&self, runner: usize, verb: Verb, path: &Path) -> Option<Trouble> {
        let mut state = self.state.lock().unwrap();
        if state.dead[runner] {
            return Some(Trouble::DeadBefore);
        }
        let now = state.trace.len();
        if state.order.switches.first() == Some(&now) && !state.ended[1 - runner] {
            state.order.switches.remove(0);
            state.running = 1 - runner;
            self.changed.notify_all();
            state = self.wait(state, runner);
        }
        self.arrive(&mut state, false);
        let own = state.made[runner];
        state.made[runner] += 1;
        let request = Request { runner, verb, path: path.to_string() };
        state.trace.push(request);
        let (_, _, trouble) =
            state.order.trouble.filter(|(who, at, _)| (*who, *at) == (runner, own))?;
        state.dead[runner] = matches!(trouble, Trouble::DeadBefore | Trouble::DeadAfter);
        Some(trouble)
    }

    fn send(&self, delay: usize, path: &Path, payload: PutPayload, options: PutOptions) {
        let mut state = self.state.lock().unwrap();
        let due = state.trace.len() + delay;
        state.late = Some(Sent { due, path: path.clone(), payload, options });
    }
}

impl Seat {
    /// The store as this runner's thread sees it.
    pub(crate) fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::new(Turned { turns: Arc::clone(&self.turns), runner: self.runner })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut state = self.turns.state.lock().unwrap();
        state.ended[self.runner] = true;
        state.running = 1 - self.runner;
        self.turns.changed.notify_all();
    }
}

struct Turned {
    turns: Arc<Turns>,
    runner: usize,
}

impl Turned {
    fn next(&self, verb: Verb, path: &Path) -> Option<Trouble> {
        self.turns.next(self.runner, verb, path)
    }

    /// A request that changes nothing.
    async fn read<T>(
        &self,
        verb: Verb,
        path: &Path,
        request: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match self.next(verb, path) {
            // A read whose reply is lost is a read that fails.
            Some(Trouble::Twin) | None => request.await,
            Some(_) => Err(lost()),
        }
    }
}

fn lost() -> Error {
    Error::Generic { store: "turns", source: "connection reset".into() }
}

impl fmt::Debug for Turned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("turns")
    }
}

impl fmt::Display for Turned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("turns")
    }
}

#[async_trait]
impl ObjectStore for Turned {
    async fn put_opts(&self, at: &Path, data: PutPayload, how: PutOptions) -> Result<PutResult> {
        let store = &self.turns.store;
        match self.next(Verb::Put, at) {
            None => store.put_opts(at, data, how).await,
            Some(Trouble::DeadBefore) => Err(lost()),
            Some(Trouble::DeadAfter | Trouble::ReplyLost) => {
                drop(store.put_opts(at, data, how).await);
                Err(lost())
            }
            Some(Trouble::Late(delay)) => {
                self.turns.send(delay, at, data, how);
                Err(lost())
            }
            Some(Trouble::Twin) => {
                drop(store.put_opts(at, data.clone(), how.clone()).await);
                store.put_opts(at, data, how).await
            }
        }
    }

    async fn put_multipart_opts(
        &self,
        _at: &Path,
        _how: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        panic!("a small file goes up in one piece");
    }

    async fn get_opts(&self, at: &Path, how: GetOptions) -> Result<GetResult> {
        self.read(Verb::Get, at, self.turns.store.get_opts(at, how)).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let this = Self { turns: Arc::clone(&self.turns), runner: self.runner };
        paths
            .then(move |path| {
                let path = path.unwrap();
                let trouble = this.next(Verb::Delete, &path);
                let gone = match trouble {
                    Some(Trouble::DeadBefore) => None,
                    _ => Some(this.turns.store.delete(&path).now_or_never().unwrap()),
                };
                std::future::ready(match (trouble, gone) {
                    (None, Some(gone)) => gone.map(|()| path),
                    _ => Err(lost()),
                })
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let all = Path::default();
        match self.next(Verb::List, prefix.unwrap_or(&all)) {
            None => self.turns.store.list(prefix),
            Some(_) => futures_util::stream::once(async { Err(lost()) }).boxed(),
        }
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let all = Path::default();
        match self.next(Verb::List, prefix.unwrap_or(&all)) {
            None => self.turns.store.list_with_offset(prefix, offset),
            Some(_) => futures_util::stream::once(async { Err(lost()) }).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let at = prefix.cloned().unwrap_or_default();
        self.read(Verb::List, &at, self.turns.store.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, _from: &Path, _to: &Path, _how: CopyOptions) -> Result<()> {
        panic!("the sink copies nothing");
    }
}
