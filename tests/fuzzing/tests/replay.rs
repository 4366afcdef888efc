//! Replays every kept input under the ordinary test run: the corpus, and whatever a target once
//! found.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, reason = "names the input at which a test failed")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use cdc_fuzzing::TARGETS;

/// Inputs that a target may keep.
const FILES_MAX: usize = 50;
/// Bytes of all of them.
const BYTES_MAX: u64 = 200 << 10;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn names(directory: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return BTreeSet::new();
    };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn replay(target: &str, directory: &str) -> usize {
    let (_, run) = TARGETS.iter().find(|(name, _)| *name == target).unwrap();
    let directory = fuzz().join(directory).join(target);
    let inputs = names(&directory);
    for input in &inputs {
        println!("{target} {input}");
        run(&fs::read(directory.join(input)).unwrap());
    }
    inputs.len()
}

macro_rules! replayed {
    ($($target:ident),*) => {
        $(
            mod $target {
                #[test]
                fn every_kept_input_holds() {
                    assert!(super::replay(stringify!($target), "corpus") > 0);
                }

                #[test]
                fn every_past_finding_holds() {
                    super::replay(stringify!($target), "findings");
                }

                #[test]
                fn no_short_input_and_no_noise_breaks_it() {
                    super::noise(stringify!($target));
                }
            }
        )*
        const REPLAYED: &[&str] = &[$(stringify!($target)),*];
    };
}

replayed!(
    lsn,
    clock,
    words,
    config,
    schema,
    batch,
    mark,
    facts,
    align,
    stats,
    log,
    tds_login,
    tds_rpc,
    tds_packets
);

/// Inputs that nobody chose: a few hundred, or a dozen where each makes a lake.
fn noise(target: &str) {
    let (_, run) = TARGETS.iter().find(|(name, _)| *name == target).unwrap();
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let step = if target == "log" { 25 } else { 1 };
    for length in (0..300usize).step_by(step) {
        let input: Vec<u8> = (0..length)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_be_bytes()[0]
            })
            .collect();
        run(&input);
    }
}

#[test]
fn every_target_is_built_kept_small_and_replayed() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let replayed = REPLAYED.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(targets, replayed);
    let files = targets.iter().map(|name| format!("{name}.rs")).collect();
    assert_eq!(names(&fuzz().join("fuzz_targets")), files);
    let manifest: toml::Table =
        fs::read_to_string(fuzz().join("Cargo.toml")).unwrap().parse().unwrap();
    let binaries = manifest["bin"].as_array().unwrap().iter();
    let binaries = binaries.map(|bin| bin["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(targets, binaries);
    assert_eq!(names(&fuzz().join("corpus")), targets);
    assert!(names(&fuzz().join("findings")).is_subset(&targets));
    let mut bytes = 0;
    for target in &targets {
        let directory = fuzz().join("corpus").join(target);
        let inputs = names(&directory);
        assert!(inputs.len() <= FILES_MAX, "{target} keeps {}", inputs.len());
        bytes += inputs
            .iter()
            .map(|input| fs::metadata(directory.join(input)).unwrap().len())
            .sum::<u64>();
    }
    assert!(bytes <= BYTES_MAX, "the corpus has {bytes} bytes");
}
