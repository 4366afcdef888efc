//! The steps of the protocol, each as wide as one request to the store.

use super::{
    explorer::{Model, Set},
    world::{Done, Entry, Kind, Phase, Runner, World, bit},
};

/// How much may happen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Batches that the source has.
    pub(crate) batches: u8,
    /// Runners that start, two of them at a time.
    pub(crate) starts: u8,
    pub(crate) crashes: u8,
    /// Puts whose reply is lost: done, done later or never, or answered by their own twin.
    pub(crate) lost: u8,
    /// Commits of a writer that is no runner.
    pub(crate) foreign: u8,
    /// Checkpoints with a cleanup of everything below.
    pub(crate) cleanups: u8,
    /// Attempts of one commit.
    pub(crate) attempts: u8,
}

/// A protocol that is wrong in one point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    FenceNotLookedAt,
    RetryWithoutTheMark,
    FenceFromAnOldLook,
    MarkFromAnOldLook,
    MarkBeforeRows,
    RowsBeforeMark,
    DiscardInDoubt,
    TwinTakenForAnother,
    TakeOverWithoutFence,
    FenceBelievedByNumber,
    FactsBeforeMark,
    VerdictBeforeMark,
    BirthSeesTheNewest,
    GapNotLookedAt,
    GapSeenByVersionAlone,
    PutReplaces,
    LedgersReadAfterTheMark,
    RepairLeftOut,
}

/// How a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reply {
    Plain,
    /// It happens; the reply is lost.
    Lost,
    /// It is on its way when its sender gives up.
    Late,
    /// It happens, the client sends it again by itself, and hears of its twin.
    Twin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Found {
    /// The batch is there.
    Landed,
    /// It is not; try again.
    Again,
    Fenced,
    /// Too many attempts.
    Crowded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    Start,
    Look,
    PutFence(Reply, Done),
    Confirm { gap: bool },
    PutBatch(Reply, Done),
    Reload(Found),
    Repair,
    Facts,
    Owner { fenced: bool },
    Verdict,
    Crash,
    LatePut,
    ForeignCommit,
    Cleanup,
}

/// An action and the runner that takes it; none takes what happens around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Step {
    pub(crate) action: Action,
    pub(crate) runner: u8,
}

pub(crate) struct Protocol {
    pub(crate) bounds: Bounds,
    pub(crate) flaw: Option<Flaw>,
    /// Whether each state is asked for what a runner makes of it alone.
    pub(crate) looks_ahead: bool,
    /// States from which each runner alone gets everything done.
    pub(super) finishes: [Set<World>; 2],
}

impl Protocol {
    pub(crate) fn new(bounds: Bounds, flaw: Option<Flaw>) -> Self {
        Self { bounds, flaw, looks_ahead: true, finishes: [Set::new(), Set::new()] }
    }

    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    /// The next action of the runner at `index`, whose request ends as `reply` says.
    pub(super) fn act(&self, world: &mut World, index: usize, reply: Reply) -> Action {
        let mut runner = world.runners[index];
        let action = match runner.phase {
            Phase::Out => {
                world.starts += 1;
                runner.id = world.starts;
                runner.facts = world.facts;
                runner.known = world.facts.max(world.verdict);
                runner.phase = Phase::FirstLook;
                Action::Start
            }
            Phase::FirstLook => {
                runner.mark = world.mark(world.len);
                runner.fence = world.fence(world.len) + 1;
                world.alarm |= runner.mark < runner.known;
                runner.phase = Phase::Look;
                Action::Look
            }
            Phase::Look => {
                if self.is(Flaw::LedgersReadAfterTheMark) && runner.attempt == 0 {
                    runner.facts = world.facts;
                    world.alarm |= runner.mark < world.facts.max(world.verdict);
                }
                self.look(world, &mut runner)
            }
            Phase::Claim => self.claim(world, &mut runner, reply),
            Phase::Open => {
                runner.seen = world.len;
                self.begin(&mut runner);
                Action::Look
            }
            Phase::Repair => {
                world.facts = world.facts.max(runner.mark);
                self.begin(&mut runner);
                Action::Repair
            }
            Phase::Confirm => self.confirm(world, &mut runner),
            Phase::Put | Phase::Second => self.put(world, &mut runner, reply),
            Phase::Reload => self.reload(world, &mut runner),
            Phase::Facts => {
                world.facts = world.facts.max(runner.mark);
                runner.phase = Phase::Owner;
                Action::Facts
            }
            Phase::Owner => Self::owner(world, &mut runner),
            Phase::Verdict => {
                world.verdict = world.verdict.max(runner.mark);
                runner.phase = Phase::Confirm;
                if runner.mark == self.bounds.batches {
                    runner = Runner::default();
                }
                Action::Verdict
            }
        };
        world.runners[index] = runner;
        action
    }

    /// The table is this runner's.
    fn own(&self, runner: &mut Runner) {
        if runner.facts < runner.mark && !self.is(Flaw::RepairLeftOut) {
            runner.phase = Phase::Repair;
        } else {
            self.begin(runner);
        }
    }

    /// The first step with a table that was attached: the next batch, or the last verdict.
    fn begin(&self, runner: &mut Runner) {
        let all = runner.mark == self.bounds.batches;
        runner.phase = if all { Phase::Owner } else { Phase::Confirm };
        (runner.facts, runner.known, runner.attempt, runner.named) = (0, 0, 0, false);
    }

    fn look(&self, world: &mut World, runner: &mut Runner) -> Action {
        let newest = world.fence(world.len);
        let tried = runner.attempt > 0 && newest == runner.fence;
        runner.seen = world.len;
        if !self.is(Flaw::MarkFromAnOldLook) && !self.is(Flaw::FenceFromAnOldLook) {
            runner.mark = world.mark(world.len);
        }
        if !self.is(Flaw::FenceFromAnOldLook) {
            runner.fence = newest + 1;
        }
        runner.phase = Phase::Claim;
        let exists = world.len > 0;
        if exists && self.is(Flaw::TakeOverWithoutFence)
            || tried && self.is(Flaw::FenceBelievedByNumber)
        {
            runner.fence = newest;
            self.own(runner);
        }
        Action::Look
    }

    fn claim(&self, world: &mut World, runner: &mut Runner, reply: Reply) -> Action {
        let (id, fence) = (runner.id, runner.fence);
        let entry = Entry { kind: Kind::Fence, runner: id, fence, sequence: 0 };
        let done = self.request(world, runner.seen, entry, reply);
        if reply == Reply::Plain && done != Done::Taken {
            let birth = runner.seen == 0;
            runner.seen += 1;
            self.own(runner);
            // The snapshot of a birth is the birth's: whenever it is read, it is the same.
            if birth && self.is(Flaw::BirthSeesTheNewest) {
                runner.phase = Phase::Open;
            }
        } else {
            runner.attempt += 1;
            runner.phase = Phase::Look;
            if runner.attempt == self.bounds.attempts {
                *runner = Runner::default();
            }
        }
        Action::PutFence(reply, done)
    }

    /// A put, as the store sees it.
    fn request(&self, world: &mut World, version: u8, entry: Entry, reply: Reply) -> Done {
        match reply {
            // What is too late already has met the commit that took its version.
            Reply::Late if version < world.len || !world.delay(entry) => Done::Taken,
            Reply::Late => Done::Made,
            _ if self.is(Flaw::PutReplaces) => world.replace(version, entry),
            _ => world.put(version, entry),
        }
    }

    fn confirm(&self, world: &mut World, runner: &mut Runner) -> Action {
        if self.is(Flaw::FactsBeforeMark) {
            world.facts = world.facts.max(runner.mark + 1);
        }
        if self.is(Flaw::VerdictBeforeMark) {
            world.verdict = world.verdict.max(runner.mark + 1);
        }
        let gap = !world.has(runner.seen - 1) && !self.is(Flaw::GapNotLookedAt);
        runner.phase = Phase::Put;
        if gap && !self.is(Flaw::GapSeenByVersionAlone) {
            let durable = world.mark(world.len);
            match world.fence(world.len).cmp(&runner.fence) {
                std::cmp::Ordering::Greater => self.refuse(world, runner),
                std::cmp::Ordering::Less => world.alarm = true,
                std::cmp::Ordering::Equal => {
                    world.alarm |= durable != runner.mark;
                    runner.seen = world.len;
                }
            }
        }
        Action::Confirm { gap }
    }

    fn put(&self, world: &mut World, runner: &mut Runner, reply: Reply) -> Action {
        let kind = match (runner.phase, self.flaw) {
            (Phase::Put, Some(Flaw::MarkBeforeRows)) => Kind::Mark,
            (Phase::Put, Some(Flaw::RowsBeforeMark)) => Kind::Rows,
            (Phase::Second, Some(Flaw::MarkBeforeRows)) => Kind::Rows,
            (Phase::Second, _) => Kind::Mark,
            _ => Kind::Batch,
        };
        let (fence, sequence) = (runner.fence, runner.mark + 1);
        let entry = Entry { kind, runner: runner.id, fence, sequence };
        let done = self.request(world, runner.seen, entry, reply);
        if reply == Reply::Plain && done != Done::Taken {
            runner.seen += 1;
            let half = matches!(kind, Kind::Rows | Kind::Mark) && runner.phase == Phase::Put;
            if half {
                runner.phase = Phase::Second;
            } else {
                Self::landed(world, runner);
            }
        } else {
            runner.attempt += 1;
            let unknown = matches!(reply, Reply::Lost | Reply::Late);
            runner.named |= unknown && !self.is(Flaw::DiscardInDoubt);
            runner.phase = Phase::Reload;
        }
        Action::PutBatch(reply, done)
    }

    /// The runner knows that its batch is in the log.
    fn landed(world: &mut World, runner: &mut Runner) {
        runner.mark += 1;
        world.believed |= bit(runner.id, runner.mark);
        runner.phase = Phase::Facts;
        (runner.attempt, runner.named) = (0, false);
    }

    /// The runner ends with an error that says that its batch is not in the log. It deletes the
    /// files unless the log may name them.
    fn refuse(&self, world: &mut World, runner: &mut Runner) {
        if !runner.named {
            world.discarded |= bit(runner.id, runner.mark + 1);
        }
        *runner = Runner::default();
    }

    fn reload(&self, world: &mut World, runner: &mut Runner) -> Action {
        let durable = world.mark(world.len);
        let newest = world.fence(world.len);
        if newest > runner.fence && !self.is(Flaw::FenceNotLookedAt) {
            let reached = durable > runner.mark;
            runner.named |= reached && !self.is(Flaw::TwinTakenForAnother);
            self.refuse(world, runner);
            return Action::Reload(Found::Fenced);
        }
        world.alarm |= newest < runner.fence;
        runner.seen = world.len;
        if !self.is(Flaw::RetryWithoutTheMark) {
            if durable == runner.mark + 1 {
                Self::landed(world, runner);
                return Action::Reload(Found::Landed);
            }
            world.alarm |= durable != runner.mark;
        }
        if runner.attempt == self.bounds.attempts {
            self.refuse(world, runner);
            return Action::Reload(Found::Crowded);
        }
        runner.phase = Phase::Put;
        Action::Reload(Found::Again)
    }

    fn owner(world: &mut World, runner: &mut Runner) -> Action {
        let fenced = world.fence(world.len) > runner.fence;
        if fenced {
            *runner = Runner::default();
        } else {
            runner.seen = world.len;
            runner.phase = Phase::Verdict;
        }
        Action::Owner { fenced }
    }

    fn run(&self, from: &World, index: usize, to: &mut Vec<(Step, World)>) {
        let runner = from.runners[index];
        let mut add = |reply| {
            let mut world = *from;
            world.lost += u8::from(reply != Reply::Plain);
            let action = self.act(&mut world, index, reply);
            let id = if action == Action::Start { world.starts } else { runner.id };
            to.push((Step { action, runner: id }, world.settled(from.len)));
        };
        if runner.phase == Phase::Out && from.starts == self.bounds.starts {
            return;
        }
        add(Reply::Plain);
        if matches!(runner.phase, Phase::Claim | Phase::Put | Phase::Second)
            && from.lost < self.bounds.lost
        {
            add(Reply::Lost);
            // A put whose version is taken has no effect, whenever it comes and however often.
            if runner.seen == from.len || !from.has(runner.seen) {
                add(Reply::Late);
                add(Reply::Twin);
            }
        }
        if runner.phase != Phase::Out && from.crashes < self.bounds.crashes {
            let mut world = *from;
            world.crashes += 1;
            world.runners[index] = Runner::default();
            let step = Step { action: Action::Crash, runner: runner.id };
            to.push((step, world.settled(from.len)));
        }
    }
}

impl Model for Protocol {
    type State = World;
    type Step = Step;

    fn initial(&self) -> World {
        World::default()
    }

    fn steps(&self, from: &World, to: &mut Vec<(Step, World)>) {
        self.run(from, 0, to);
        if from.runners[0] != from.runners[1] {
            self.run(from, 1, to);
        }
        let mut around = |action, world: World| {
            to.push((Step { action, runner: 0 }, world.settled(from.len)));
        };
        for entry in from.late {
            if entry != Entry::default() {
                let mut world = *from;
                world.put(from.len, entry);
                around(Action::LatePut, world);
            }
        }
        if from.len > 0 && from.foreign < self.bounds.foreign {
            let mut world = *from;
            world.foreign += 1;
            world.put(from.len, Entry::default());
            around(Action::ForeignCommit, world);
        }
        let mut world = *from;
        if from.cleanups < self.bounds.cleanups && world.clean() {
            world.cleanups += 1;
            around(Action::Cleanup, world);
        }
    }

    fn broken(&mut self, world: &World) -> Option<&'static str> {
        self.rule_broken(world)
    }
}
