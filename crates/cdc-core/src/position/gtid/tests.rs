//! Sets of GTIDs: every spelling, the algebra, and what is still served.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
const B: &str = "ea7d5b5c-1f55-4e7e-9f0a-cc2f5b1ad44c";

fn set(text: &str) -> GtidSet {
    text.replace("A:", &format!("{A}:")).replace("B:", &format!("{B}:")).parse().expect(text)
}

fn one(text: &str) -> Gtid {
    text.replace("A:", &format!("{A}:")).parse().expect(text)
}

#[test]
fn every_spelling_of_a_set_prints_as_the_canonical_one() {
    let upper = A.to_uppercase();
    for (text, canonical) in [
        (String::new(), String::new()),
        (" ,\n, ".to_owned(), String::new()),
        (format!("{upper}:1-3"), format!("{A}:1-3")),
        (format!("{A}:1-3:5:7-9,\n{B}:1"), format!("{A}:1-3:5:7-9,{B}:1")),
        (format!("{B}:1,{A}:2"), format!("{A}:2,{B}:1")),
        (format!("{A}:3:1:2"), format!("{A}:1-3")),
        (format!("{A}:5-5"), format!("{A}:5")),
        (format!("{A}:1-3:2-8:9"), format!("{A}:1-9")),
        (format!("{A}:1,{A}:2"), format!("{A}:1-2")),
        (format!(" {A} : 1 - 3 : 5 ,\r\n\t{B} : 1 "), format!("{A}:1-3:5,{B}:1")),
        (format!("{A}:1-3,"), format!("{A}:1-3")),
        (format!("{A}:007"), format!("{A}:7")),
        (format!("{A}:tag1:1-5"), format!("{A}:tag1:1-5")),
        (format!("{A}:TAG_1:1-5"), format!("{A}:tag_1:1-5")),
        (format!("{A}:1-50:domain_1:1-3:15-21"), format!("{A}:1-50:domain_1:1-3:15-21")),
        (format!("{A}:b:2:a:1,{A}:9"), format!("{A}:9:a:1:b:2")),
        (format!("{A}:x:1:x:2"), format!("{A}:x:1-2")),
        (format!("{A}:9223372036854775806"), format!("{A}:9223372036854775806")),
    ] {
        let read: GtidSet = text.parse().expect(&text);
        assert_eq!(read.to_string(), canonical, "{text:?}");
        assert_eq!(canonical.parse(), Ok(read), "{text:?}");
    }
    assert_eq!(format!("{:#}", set("A:1,B:1")), format!("{A}:1,\n{B}:1"));
}

#[test]
fn what_is_no_set_is_refused_with_its_place() {
    let long = "t".repeat(33);
    for (text, error) in [
        ("no uuid".to_owned(), GtidError::Source(0)),
        ("3e11fa4771ca11e19e33c80aa9429562:1".to_owned(), GtidError::Source(0)),
        (format!("{A}:1,0-1-42"), GtidError::Source(39)),
        (A.to_owned(), GtidError::Numbers(36)),
        (format!("{A}:tag"), GtidError::Numbers(40)),
        (format!("{A}:tag:other:1"), GtidError::Numbers(41)),
        (format!("{A}:"), GtidError::Part(37)),
        (format!("{A}:1-"), GtidError::Part(39)),
        (format!("{A}:-5"), GtidError::Part(37)),
        (format!("{A}:0"), GtidError::Range(37)),
        (format!("{A}:9223372036854775807"), GtidError::Range(37)),
        (format!("{A}:99999999999999999999999"), GtidError::Range(37)),
        (format!("{A}:3-1"), GtidError::Inverted(37)),
        (format!("{A}:{long}:1"), GtidError::TagLength(37)),
        (format!("{A}:1 {B}:1"), GtidError::Trailing(39)),
        (format!("{A}:1tag:1"), GtidError::Trailing(38)),
    ] {
        assert_eq!(text.parse::<GtidSet>(), Err(error), "{text:?}");
    }
}

#[test]
fn an_identifier_names_one_transaction() {
    for text in ["A:23", "A:tag1:23"] {
        let gtid = one(text);
        assert_eq!(gtid.to_string(), text.replace('A', A));
        assert!(set("A:1-50:tag1:23").contains(&gtid));
    }
    assert!(!set("A:1-50").contains(&one("A:tag1:23")));
    for text in ["", &format!("{A}:1-2"), &format!("{A}:1,{B}:1")] {
        assert_eq!(text.parse::<Gtid>(), Err(GtidError::NotOne), "{text:?}");
    }
}

#[test]
fn a_place_is_served_while_nothing_was_purged_that_it_lacks() {
    for (seen, purged, served) in [
        // Started at A:1-1000 with A:1-700 purged, and one event further.
        ("A:1-1001", "A:1-700", true),
        ("A:702-900", "A:1-700", false),
        ("A:1-699", "A:1-700", false),
        ("A:1-700", "A:1-700", true),
        ("", "", true),
        ("", "A:1", false),
        ("A:1-9", "B:1", false),
        ("A:1-9:tag:1-2", "A:1-9:tag:1-3", false),
        ("A:1-9:tag:1-3", "A:tag:1", true),
    ] {
        let (seen, purged) = (set(seen), set(purged));
        assert_eq!(seen.is_servable(&purged), served, "{seen} {purged}");
        assert_eq!(purged.difference(&seen).is_empty(), served);
    }
    assert_eq!(set("A:1-700").difference(&set("A:702-900")), set("A:1-700"));
    assert_eq!(set("A:1-9,B:1-9").difference(&set("B:1-9")), set("A:1-9"));
}

type Drawn = Vec<(u8, u8, u64, u64)>;

fn drawn() -> impl Strategy<Value = Drawn> {
    proptest::collection::vec((0u8..3, 0u8..3, 1u64..12, 0u64..4), 0..8)
}

/// The set, a text that spells it as drawn, and its members.
fn made(drawn: &Drawn) -> (GtidSet, String, BTreeSet<Gtid>) {
    let mut members = BTreeSet::new();
    let mut words = Vec::new();
    for (source, tag, first, more) in drawn {
        let source = SourceId([*source; 16]);
        let tag = (*tag > 0).then(|| GtidTag(format!("t{tag}")));
        let middle = tag.as_ref().map(|tag| format!("{}:", tag.as_str().to_uppercase()));
        words.push(format!("{source}:{}{first}-{}", middle.unwrap_or_default(), first + more));
        let own = (*first..=first + more).map(|number| Gtid { source, tag: tag.clone(), number });
        members.extend(own);
    }
    let mut set = GtidSet::default();
    for gtid in &members {
        set.insert(gtid.clone());
    }
    (set, words.join(",\n"), members)
}

proptest! {
    #[test]
    fn a_set_round_trips(drawn in drawn()) {
        let (set, spelt, members) = made(&drawn);
        prop_assert_eq!(spelt.parse::<GtidSet>(), Ok(set.clone()));
        prop_assert_eq!(set.to_string().parse::<GtidSet>(), Ok(set.clone()));
        prop_assert_eq!(format!("{set:#}").parse::<GtidSet>(), Ok(set.clone()));
        prop_assert_eq!(set.count(), members.len() as u128);
        prop_assert!(members.iter().all(|gtid| gtid.to_string().parse().as_ref() == Ok(gtid)));
    }

    #[test]
    fn the_algebra_is_that_of_sets(a in drawn(), b in drawn()) {
        let ((a, _, x), (b, _, y)) = (made(&a), made(&b));
        let of = |members: &BTreeSet<Gtid>| {
            let mut set = GtidSet::default();
            members.iter().for_each(|gtid| set.insert(gtid.clone()));
            set
        };
        prop_assert_eq!(a.union(&b), of(&(&x | &y)));
        prop_assert_eq!(a.intersection(&b), of(&(&x & &y)));
        prop_assert_eq!(a.difference(&b), of(&(&x - &y)));
        prop_assert_eq!(a.is_subset(&b), x.is_subset(&y));
        prop_assert_eq!(a == b, x == y);
        prop_assert!(a.is_servable(&a) && a.union(&b).is_servable(&b));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[0-9a-fg:,\\-_ \n]{0,60}") {
        if let Ok(set) = text.parse::<GtidSet>() {
            prop_assert_eq!(set.to_string().parse::<GtidSet>(), Ok(set));
        }
    }
}
