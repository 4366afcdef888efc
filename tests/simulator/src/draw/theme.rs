//! Scenarios that a history may begin with: things that have to happen in one order to mean
//! anything. What they leave open is drawn.

use super::Draw;
use crate::{
    script::{
        Act, Aim, CallName, Keys, Mishap, PortCall, Run, Shape, Start, Step, Target, Trouble,
    },
    store::Request,
};

/// Rows of a file before its upload in parts begins: its writer keeps back 8 KiB.
const UPLOAD_ROWS: u32 = 28;

/// Calls of a read, with those of the log's times twice: there are most of them.
const READ: [CallName; 8] = [
    CallName::CommitTime,
    CallName::CommitTime,
    CallName::Low,
    CallName::Low,
    CallName::SchemaChanges,
    CallName::HasChanges,
    CallName::Changes,
    CallName::ChangeBatch,
];

impl Draw<'_> {
    /// One scenario or none, after what the start of the copies asks for.
    pub(super) fn theme(&mut self, world: &Shape, steps: &mut Vec<Step>) {
        match world.start {
            Start::Earliest => self.past(world, steps),
            Start::Since(_) if self.one_in(2) => self.first_look(steps),
            _ => {}
        }
        match self.below(12) {
            // Only here may an upload be given up.
            9..12 if world.parts => self.given_up(world, steps),
            0 => self.instances(steps),
            1 => self.lockout(steps),
            2 => self.rewind(steps),
            3 => self.widened(steps),
            4 => self.overtaken(world, steps),
            5 => self.doubt(steps),
            6 => self.given_up(world, steps),
            7 | 8 => self.entry_taken(world, steps),
            _ => {}
        }
    }

    /// A change and some time.
    fn moment(&mut self, table: Option<u8>, millis: u32, steps: &mut Vec<Step>) {
        let put = Act::Put { table, keys: self.keys(), value: self.value() };
        steps.push(Step::Now(put));
        steps.push(Step::Now(Act::Pass(1 + self.below(millis))));
    }

    /// A source with a past that cleanup has begun to take, right before the copies begin.
    fn past(&mut self, world: &Shape, steps: &mut Vec<Step>) {
        let entries = 4 + self.below(8);
        // Half as long again as the retention, so that cleanup takes some of it.
        let apart = world.retention.saturating_mul(3 * 60_000) / entries;
        for _ in 0..entries {
            let table = (!self.one_in(3)).then(|| self.table());
            self.moment(table, apart, steps);
        }
        steps.push(Step::Now(Act::Cleanup));
        match self.below(4) {
            0 => steps.push(Step::Run(self.run(world))),
            1 => steps.push(Step::Run(self.plain())),
            _ => {}
        }
    }

    /// The copies begin at a moment, and the question for it meets trouble.
    fn first_look(&mut self, steps: &mut Vec<Step>) {
        steps.push(Step::Now(Act::Pass(self.below(900_000))));
        let table = self.table();
        self.moment(Some(table), 60_000, steps);
        steps.push(Step::Now(Act::Pass(120_000)));
        let at = Target::Port(PortCall::PositionAt);
        let what = self.any(&Mishap::ANYWHERE, Mishap::Refuse);
        let aim = Aim { at, what, chance: self.any(&[3_000, 6_000, 10_000], 6_000), outage: 0 };
        let trouble = Trouble { aim: Some(aim), ..Trouble::NONE };
        steps.push(Step::Run(Run { trouble, ..self.plain() }));
    }

    /// A batch over two instances, of which the newer one is cleaned meanwhile.
    fn instances(&mut self, steps: &mut Vec<Step>) {
        let table = self.table();
        let call =
            self.any(&[CallName::Low, CallName::Changes, CallName::ChangeBatch], CallName::Low);
        let skip = self.small(3);
        steps.push(self.put(table));
        steps.push(Step::Now(Act::SecondInstance(table)));
        for _ in 0..3 {
            self.moment(Some(table), 310_000, steps);
        }
        steps.push(Step::At { call, skip, act: Act::CleanupNewest(table) });
        steps.push(Step::Run(self.plain()));
    }

    /// The login loses its rights, and what it was about to read goes.
    fn lockout(&mut self, steps: &mut Vec<Step>) {
        let table = self.table();
        let call =
            self.any(&[CallName::Low, CallName::Changes, CallName::ChangeBatch], CallName::Low);
        let skip = self.small(2);
        steps.push(self.put(table));
        steps.push(Step::Now(Act::Pass(1_500_000)));
        steps.push(self.put(table));
        steps.push(Step::Now(Act::Pass(120_000)));
        steps.push(Step::At { call, skip, act: Act::Lockout(table) });
        steps.push(Step::Run(self.plain()));
    }

    /// The source goes back to a backup after more was copied than the backup has, and then
    /// grows again, perhaps past where the copies are.
    fn rewind(&mut self, steps: &mut Vec<Step>) {
        for _ in 0..self.below(3) {
            let table = self.table();
            self.moment(Some(table), 120_000, steps);
        }
        steps.push(Step::Now(Act::Backup));
        for _ in 0..1 + self.below(4) {
            let table = self.table();
            self.moment(Some(table), 240_000, steps);
        }
        steps.push(Step::Run(self.plain()));
        match self.below(3) {
            0 => {
                let call = self.any(&CallName::ALL, CallName::High);
                steps.push(Step::At { call, skip: self.small(6), act: Act::Restore });
                steps.push(Step::Run(self.plain()));
            }
            1 => self.rewound(steps),
            _ => steps.push(Step::Now(Act::Restore)),
        }
        for _ in 0..self.below(8) {
            let table = self.table();
            self.moment(Some(table), 240_000, steps);
        }
        steps.push(Step::Run(self.plain()));
    }

    /// Within one run a table is quiet while others change, the source goes back, and the table is
    /// changed where it was quiet before.
    fn rewound(&mut self, steps: &mut Vec<Step>) {
        let quiet = self.table();
        let busy = (quiet + 1) % 3;
        let mut put = |draw: &mut Self, table, millis| {
            let act = Act::Put { table: Some(table), keys: draw.keys(), value: draw.value() };
            steps.push(Step::After { millis, act });
        };
        for _ in 0..2 + self.below(3) {
            let millis = 1_000 + self.below(20_000);
            put(self, busy, millis);
        }
        let back = 30_000 + self.below(120_000);
        // What a restore takes is part of the run's time.
        let after = back + 62_000 + self.below(60_000);
        put(self, quiet, after);
        for _ in 0..1 + self.below(5) {
            let millis = after + 1_000 + self.below(60_000);
            put(self, busy, millis);
        }
        steps.push(Step::Now(Act::Backup));
        steps.push(Step::After { millis: back, act: Act::Restore });
        let seconds = Some(after / 1_000 + 90 + self.below(400));
        steps.push(Step::Run(Run { seconds, ..self.plain() }));
    }

    /// Within one run a column is added, a newer instance takes it up, and rows are changed.
    fn widened(&mut self, steps: &mut Vec<Step>) {
        let table = self.table();
        let keys = Keys { first: self.below(10).into(), count: 1 + i64::from(self.below(8)) };
        steps.push(Step::Now(Act::Put { table: Some(table), keys, value: self.value() }));
        let mut acts = vec![Act::AddColumn(table), Act::SecondInstance(table)];
        for _ in 0..1 + self.below(3) {
            let (some, value) = (self.keys(), self.value());
            acts.push(match self.below(4) {
                0 => Act::Put { table: Some(table), keys: some, value },
                1 => Act::Set { table, keys, value },
                2 => Act::DropOldInstance(table),
                _ => Act::SetLast { table, keys, value },
            });
        }
        let mut millis = 0;
        for act in acts {
            millis += 5_000 + self.below(150_000);
            steps.push(Step::After { millis, act });
        }
        let seconds = Some(millis / 1_000 + 30 + self.below(300));
        steps.push(Step::Run(Run { seconds, ..self.plain() }));
    }

    /// Old commits, of which cleanup would take some.
    fn old_commits(&mut self, world: &Shape, steps: &mut Vec<Step>) {
        let table = self.table();
        for _ in 0..2 + self.below(5) {
            self.moment(Some(table), 60_000, steps);
        }
        let retention = world.retention.saturating_mul(60_000);
        steps.push(Step::Now(Act::Pass(retention + 60_000 + self.below(600_000))));
        for _ in 0..1 + self.below(3) {
            self.moment(Some(table), 60_000, steps);
        }
    }

    /// Old commits that are copied late and in small batches, while cleanup takes them.
    fn overtaken(&mut self, world: &Shape, steps: &mut Vec<Step>) {
        self.old_commits(world, steps);
        let call = self.any(&READ, CallName::Low);
        let (skip, some) = (self.small(24), self.small(6));
        let act = if self.one_in(3) { Act::CleanupSteps(some) } else { Act::Cleanup };
        steps.push(Step::At { call, skip, act });
        let commits_max = Some(1 + u64::from(self.below(2)));
        steps.push(Step::Run(Run { commits_max, ..self.plain() }));
    }

    /// The same, and cleanup runs right before one of the questions for a position's time: there are
    /// several a batch, and their order matters.
    fn entry_taken(&mut self, world: &Shape, steps: &mut Vec<Step>) {
        self.old_commits(world, steps);
        let skip = 3 + self.small(20);
        steps.push(Step::At { call: CallName::CommitTime, skip, act: Act::Cleanup });
        let commits_max = Some(1 + u64::from(self.below(2)));
        steps.push(Step::Run(Run { commits_max, ..self.plain() }));
    }

    /// The store goes away in the middle of commits, whose replies are lost.
    fn doubt(&mut self, steps: &mut Vec<Step>) {
        for _ in 0..2 {
            for _ in 0..2 + self.below(5) {
                let table = self.table();
                self.moment(Some(table), 60_000, steps);
            }
            let at = Target::Store(Request::Create);
            let what = self.any(&[Mishap::Lose, Mishap::Lose, Mishap::Late], Mishap::Lose);
            let chance = self.any(&[500, 1_500, 3_000], 1_500);
            let outage = self.any(&[1, 2, 2, 2, 3, 5], 2);
            let aim = Some(Aim { at, what, chance, outage });
            let trouble = Trouble { aim, ..Trouble::NONE };
            let commits_max = Some(1 + u64::from(self.below(2)));
            steps.push(Step::Run(Run { commits_max, trouble, ..self.plain() }));
        }
    }

    /// Many rows in small record batches, and connections that are killed in the middle: what was
    /// staged is given up, which may meet trouble too. An upload begins only when its file holds
    /// more than its writer keeps back, and has to be open when the connection goes.
    fn given_up(&mut self, world: &Shape, steps: &mut Vec<Step>) {
        let (more, of_one) = (if world.parts { UPLOAD_ROWS } else { 0 }, self.table());
        for _ in 0..2 + self.below(4) {
            let table = if world.parts { of_one } else { self.table() };
            let count = i64::from(4 + more / 2 + self.below(16));
            let keys = Keys { first: self.below(20).into(), count };
            steps.push(Step::Now(Act::Put { table: Some(table), keys, value: self.value() }));
        }
        steps.push(Step::Now(Act::Pass(60_000 + self.below(120_000))));
        for _ in 0..1 + self.below(3) {
            steps.push(Step::Kill(2 + more + self.below(24)));
        }
        let given_up = [
            Target::Port(PortCall::Discard),
            Target::Store(Request::AbortUpload),
            Target::Store(Request::Delete),
        ];
        let at = match self.any(&given_up, Target::Store(Request::Delete)) {
            Target::Port(_) if world.parts => Target::Store(Request::AbortUpload),
            at => at,
        };
        let what = self.any(&Mishap::ANYWHERE, Mishap::Refuse);
        let aim = Aim { at, what, chance: self.any(&[3_000, 10_000], 3_000), outage: 0 };
        let trouble = Trouble { aim: (!self.one_in(4)).then_some(aim), ..Trouble::NONE };
        let (rows_max, batch_rows) = (20 + u64::from(more + self.below(40)), 1 + self.below(4));
        steps.push(Step::Run(Run { rows_max, batch_rows, trouble, ..self.plain() }));
    }
}
