//! Scripts from seeds.

mod run;
mod theme;

use rand::{Rng, SeedableRng, seq::IndexedRandom};
use rand_chacha::ChaCha8Rng;

use crate::script::{Act, CallName, Key, Keys, Place, Script, Shape, Start, Step};

/// The script of a seed.
#[must_use]
pub fn draw(seed: u64) -> Script {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = Draw { random: &mut random };
    let world = draw.shape();
    let count = draw.below(36) + 4;
    let restores = draw.one_in(4);
    let schemas = draw.one_in(2);
    let mood = Mood { restores, schemas };
    let mut steps = Vec::new();
    draw.theme(&world, &mut steps);
    steps.extend((0..count).map(|_| draw.step(mood, &world)));
    Script { seed, world, steps }
}

/// What a history has at all: otherwise every one would end with the same few stops.
#[derive(Clone, Copy)]
struct Mood {
    restores: bool,
    schemas: bool,
}

struct Draw<'a> {
    random: &'a mut ChaCha8Rng,
}

impl Draw<'_> {
    fn below(&mut self, limit: u32) -> u32 {
        self.random.random_range(0..limit.max(1))
    }

    fn one_in(&mut self, limit: u32) -> bool {
        self.below(limit) == 0
    }

    fn any<T: Copy>(&mut self, of: &[T], or: T) -> T {
        of.choose(self.random).copied().unwrap_or(or)
    }

    fn small(&mut self, limit: u8) -> u8 {
        u8::try_from(self.below(limit.into())).unwrap_or_default()
    }

    fn table(&mut self) -> u8 {
        self.small(3)
    }

    fn keys(&mut self) -> Keys {
        let count = match self.below(12) {
            0 => 60,
            1 => 12,
            _ => 1 + i64::from(self.below(5)),
        };
        Keys { first: self.below(30).into(), count }
    }

    fn value(&mut self) -> i64 {
        self.below(1_000).into()
    }

    fn shape(&mut self) -> Shape {
        let keys = [Key::Number, Key::Number, Key::Text, Key::Both, Key::Heap];
        let tables = (0..=self.below(3)).map(|_| self.any(&keys, Key::Number)).collect();
        Shape {
            place: self.any(&Place::ALL, Place::UtcYearEnd),
            tables,
            start: match self.below(16) {
                0..3 => Start::Earliest,
                3..5 => Start::Latest,
                5..8 => Start::Since(self.below(900)),
                _ => Start::Before,
            },
            lag: if self.one_in(4) { self.below(120) } else { 0 },
            retention: 4 + self.below(20),
            checkpoints: if self.one_in(2) { 3 } else { 50 },
            parts: self.one_in(3),
        }
    }

    fn put(&mut self, table: u8) -> Step {
        Step::Now(Act::Put { table: Some(table), keys: self.keys(), value: self.value() })
    }

    fn step(&mut self, mood: Mood, world: &Shape) -> Step {
        match self.below(20) {
            0..8 => Step::Now(self.act(mood)),
            8..12 => Step::At {
                call: self.any(&CallName::ALL, CallName::High),
                skip: self.small(8),
                act: self.act(mood),
            },
            12..14 => Step::After { millis: self.below(600_000), act: self.act(mood) },
            14 => Step::Kill(self.below(20)),
            _ => Step::Run(self.run(world)),
        }
    }

    fn act(&mut self, mood: Mood) -> Act {
        let table = self.table();
        match self.below(68) {
            0..9 => Act::Put { table: Some(table), keys: self.keys(), value: self.value() },
            9..12 => Act::Put { table: None, keys: self.keys(), value: self.value() },
            12..16 => Act::Set { table, keys: self.keys(), value: self.value() },
            16..19 if mood.schemas => {
                Act::SetLast { table, keys: self.keys(), value: self.value() }
            }
            19..22 => Act::Merge { table, keys: self.keys(), value: self.value() },
            22..24 => Act::Swap { table, one: self.below(30).into(), other: self.below(30).into() },
            24..26 => Act::Move { table, keys: self.keys() },
            26..29 => Act::Remove { table, keys: self.keys() },
            29 => Act::Busy { table, statements: self.small(40) },
            30 => Act::Empty,
            31 => Act::Rollback { table },
            32..38 => Act::Pass(self.below(900_000)),
            38 => Act::Pass(self.below(4_000_000)),
            39 => Act::SetBack(self.below(1_200_000)),
            40..42 => Act::Idle,
            42..45 => Act::Cleanup,
            45..47 => Act::CleanupSteps(self.small(6)),
            47 => Act::StopCapture,
            48..50 => Act::StartCapture,
            50 => Act::Lag(self.below(200)),
            51..60 if mood.schemas => self.schema(table),
            60..62 if mood.restores => Act::Backup,
            62..64 if mood.restores => Act::Restore,
            64 => Act::CleanupNewest(table),
            65 => Act::Lockout(table),
            66 => Act::Revoke(table),
            67 => Act::Grant(table),
            16..19 => Act::Set { table, keys: self.keys(), value: self.value() },
            _ => Act::Put { table: Some(table), keys: self.keys(), value: self.value() },
        }
    }

    fn schema(&mut self, table: u8) -> Act {
        match self.below(12) {
            0..3 => Act::AddColumn(table),
            3 => Act::DropColumn(table),
            4 if self.one_in(3) => Act::AlterColumn(table),
            5 if self.one_in(3) => Act::Recapture(table),
            4..9 => Act::SecondInstance(table),
            _ => Act::DropOldInstance(table),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_draws_the_same_script_and_scripts_survive_their_file() {
        for seed in 0..200 {
            let script = draw(seed);
            assert_eq!(script, draw(seed));
            let text = serde_json::to_string(&script).expect("plain data");
            assert_eq!(serde_json::from_str::<Script>(&text).expect("as written"), script);
        }
        assert_ne!(draw(1).steps, draw(2).steps);
    }
}
