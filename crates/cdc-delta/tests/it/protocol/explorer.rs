//! Every state that a model can reach, breadth first, and the shortest way to a wrong one.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    hash::{Hash, Hasher},
};

/// A system as its states and the steps between them.
pub(crate) trait Model {
    type State: Copy + Eq + Hash + Debug;
    type Step: Copy + Ord + Debug;

    fn initial(&self) -> Self::State;

    /// Every state that one step leads to.
    fn steps(&self, from: &Self::State, to: &mut Vec<(Self::Step, Self::State)>);

    /// The rule that a state breaks.
    fn broken(&mut self, state: &Self::State) -> Option<&'static str>;
}

/// What an exploration saw.
#[derive(Debug)]
pub(crate) struct Explored<M: Model> {
    pub(crate) states: usize,
    /// Steps of the longest of the shortest ways to a state.
    pub(crate) depth: usize,
    /// How often each step was taken.
    pub(crate) steps: BTreeMap<M::Step, u64>,
    pub(crate) fault: Option<Fault<M>>,
}

/// A state that breaks a rule, and a shortest way to it.
#[derive(Debug)]
pub(crate) struct Fault<M: Model> {
    pub(crate) rule: &'static str,
    pub(crate) way: Vec<(M::Step, M::State)>,
}

/// Visits all states of a model, or those up to the first that breaks a rule.
pub(crate) fn explore<M: Model>(model: &mut M) -> Explored<M> {
    let mut known = Known::new();
    let mut from = Vec::new();
    let mut steps = BTreeMap::new();
    let mut next = Vec::new();
    let initial = model.initial();
    known.index(initial);
    from.push(0u32);
    let (mut at, mut depth, mut level_end) = (0, 0, 1);
    while at < known.states.len() {
        if at == level_end {
            depth += 1;
            level_end = known.states.len();
        }
        let state = known.states[at];
        if let Some(rule) = model.broken(&state) {
            let way = way(model, &known.states, &from, at);
            let fault = Some(Fault { rule, way });
            return Explored { states: known.states.len(), depth, steps, fault };
        }
        model.steps(&state, &mut next);
        for (step, reached) in next.drain(..) {
            *steps.entry(step).or_default() += 1;
            if known.index(reached) == from.len() {
                from.push(at as u32);
            }
        }
        at += 1;
    }
    Explored { states: known.states.len(), depth, steps, fault: None }
}

/// The steps from the initial state to state `at`.
fn way<M: Model>(
    model: &M,
    states: &[M::State],
    from: &[u32],
    mut at: usize,
) -> Vec<(M::Step, M::State)> {
    let mut way = Vec::new();
    let mut next = Vec::new();
    while at != 0 {
        let before = from[at] as usize;
        next.clear();
        model.steps(&states[before], &mut next);
        way.extend(next.iter().find(|(_, state)| *state == states[at]).copied());
        at = before;
    }
    way.reverse();
    way
}

/// States in the order they were found, and where each of them is.
struct Known<S> {
    states: Vec<S>,
    /// Open addressing: the number of a state plus one, or zero.
    slots: Vec<u32>,
}

impl<S: Copy + Eq + Hash> Known<S> {
    fn new() -> Self {
        Self { states: Vec::new(), slots: vec![0; 1 << 16] }
    }

    /// The number of a state, which is added when it is new.
    fn index(&mut self, state: S) -> usize {
        if self.states.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let slot = self.slot(&state);
        if self.slots[slot] == 0 {
            self.states.push(state);
            self.slots[slot] = self.states.len() as u32;
        }
        self.slots[slot] as usize - 1
    }

    /// The slot of a state, or the free one where it belongs.
    fn slot(&self, state: &S) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = mixed(state) as usize & mask;
        while self.slots[slot] != 0 && self.states[self.slots[slot] as usize - 1] != *state {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) {
        self.slots = vec![0; self.slots.len() * 4];
        for number in 0..self.states.len() {
            let slot = self.slot(&self.states[number]);
            self.slots[slot] = number as u32 + 1;
        }
    }
}

/// A set of states.
pub(crate) struct Set<S>(Known<S>);

impl<S: Copy + Eq + Hash> Set<S> {
    pub(crate) fn new() -> Self {
        Self(Known::new())
    }

    pub(crate) fn contains(&self, state: &S) -> bool {
        self.0.slots[self.0.slot(state)] != 0
    }

    pub(crate) fn insert(&mut self, state: S) {
        self.0.index(state);
    }
}

fn mixed(state: &impl Hash) -> u64 {
    let mut mixer = Mixer(0);
    state.hash(&mut mixer);
    mixer.0 ^ (mixer.0 >> 29)
}

/// Quick without optimisation; equality decides, so that a collision costs time alone.
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x517C_C1B7_2722_0A95);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
