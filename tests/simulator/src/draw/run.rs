//! Runs of the engine, and what goes wrong in them.

use super::Draw;
use crate::{
    script::{Aim, Mishap, PortCall, Run, Shape, Start, Target, Trouble},
    store::Request,
};

/// What every commit rests on.
const HEART: [Target; 6] = [
    Target::Store(Request::Create),
    Target::Port(PortCall::Commit),
    Target::Port(PortCall::Attach),
    Target::Port(PortCall::Publish),
    Target::Store(Request::List),
    Target::Store(Request::Put),
];

impl Draw<'_> {
    /// A run that nothing disturbs.
    pub(super) fn plain(&mut self) -> Run {
        Run {
            seconds: self.one_in(3).then(|| 1 + self.below(2_400)),
            rows_max: 1 + u64::from(self.below(30)),
            commits_max: self.one_in(2).then(|| 1 + u64::from(self.below(6))),
            batch_rows: 1 + self.below(9),
            tables_at_once: 1 + self.below(3),
            two: self.one_in(5),
            trouble: Trouble::NONE,
        }
    }

    pub(super) fn run(&mut self, world: &Shape) -> Run {
        let mut run = Run { trouble: self.trouble(world), ..self.plain() };
        match run.trouble.aim.map(|aim| aim.at) {
            // Asked for by no other run.
            Some(Target::Port(PortCall::NthCommitAfter)) => {
                run.commits_max.get_or_insert(2);
            }
            // What was staged is given up where a read fails in the middle.
            Some(
                Target::Port(PortCall::Discard)
                | Target::Store(Request::AbortUpload | Request::Delete),
            ) => {
                run.trouble.break_stream = 3_000;
                run.batch_rows = 1 + self.below(4);
                run.rows_max = 30;
            }
            _ => {}
        }
        run
    }

    pub(super) fn trouble(&mut self, world: &Shape) -> Trouble {
        let mut trouble = Trouble::NONE;
        trouble.yields = if self.one_in(2) { 1_000 } else { 0 };
        match self.below(8) {
            0..3 => return trouble,
            3..6 => trouble.aim = Some(self.aim(world)),
            _ => {}
        }
        if trouble.aim.is_some() && self.one_in(2) {
            return trouble;
        }
        // Few kinds at a time, so that each is met where it matters and runs still get on.
        for _ in 0..=self.below(4) {
            let chance = self.any(&[5, 20, 60, 200, 500], 20);
            let field = match self.below(15) {
                0 => &mut trouble.refuse,
                1 => &mut trouble.lose,
                2 => &mut trouble.slow,
                3 => &mut trouble.hold,
                4 => &mut trouble.break_stream,
                5 => &mut trouble.crash,
                6 => &mut trouble.second,
                7 => &mut trouble.store_refuse,
                8 => &mut trouble.store_lose,
                9 => &mut trouble.store_slow,
                10 => &mut trouble.store_hold,
                11 => &mut trouble.store_crash,
                12 => &mut trouble.store_late,
                13 => &mut trouble.store_second,
                _ => &mut trouble.refuse,
            };
            *field = chance;
        }
        trouble
    }

    /// Trouble at one kind of call or request.
    fn aim(&mut self, world: &Shape) -> Aim {
        let at = match self.below(4) {
            0 => self.any(&HEART, Target::Store(Request::Create)),
            1 => self.rare(world),
            _ => self.target(),
        };
        let what = match (at, self.below(8)) {
            (Target::Port(PortCall::Changes), 0) => Mishap::Break,
            (Target::Store(request), 0) if request.writes() => Mishap::Late,
            _ => self.any(&Mishap::ANYWHERE, Mishap::Refuse),
        };
        let chance = self.any(&[200, 1_000, 3_000, 6_000, 10_000], 1_000);
        let outage = match at {
            Target::Store(_) if self.one_in(3) => 1 + self.small(4),
            _ => 0,
        };
        Aim { at, what, chance, outage }
    }

    fn target(&mut self) -> Target {
        let calls = PortCall::ALL.map(Target::Port);
        let requests = Request::ALL.map(Target::Store);
        let all: Vec<Target> = calls.into_iter().chain(requests).collect();
        self.any(&all, Target::Store(Request::Get))
    }

    /// A kind of call or request that few runs make.
    fn rare(&mut self, world: &Shape) -> Target {
        let mut rare = vec![
            Target::Port(PortCall::Discard),
            Target::Port(PortCall::NthCommitAfter),
            Target::Store(Request::Delete),
        ];
        if matches!(world.start, Start::Since(_)) {
            rare.push(Target::Port(PortCall::PositionAt));
        }
        if world.parts {
            let uploads =
                [Request::BeginUpload, Request::Part, Request::EndUpload, Request::AbortUpload];
            rare.extend(uploads.map(Target::Store));
            rare.push(Target::Store(Request::AbortUpload));
        }
        self.any(&rare, Target::Port(PortCall::Discard))
    }
}
