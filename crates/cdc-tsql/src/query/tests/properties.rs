//! Whatever way rows are found, joined and ordered, they are the same rows.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn rows_of(pairs: &[(Option<i32>, i32)]) -> Vec<Vec<Value>> {
    pairs.iter().map(|(key, id)| vec![(*key).into(), (*id).into()]).collect()
}

const COLUMNS: [(&str, SqlType, bool); 2] =
    [("k", SqlType::Int, true), ("id", SqlType::Int, false)];

fn toy(left: &[(Option<i32>, i32)], right: &[(Option<i32>, i32)], ordered: bool) -> Toy {
    let mut toy = Toy::new();
    for (name, pairs) in [("l", left), ("r", right)] {
        let mut pairs = pairs.to_vec();
        if ordered {
            pairs.sort_by_key(|pair| pair.0);
        }
        let table = Table::new(&COLUMNS, rows_of(&pairs));
        // What comes ordered by a key can be sought by it.
        toy.add("dbo", name, if ordered { table.ordered(&[0]).seeking() } else { table });
    }
    toy
}

fn pairs() -> impl Strategy<Value = Vec<(Option<i32>, i32)>> {
    proptest::collection::vec((proptest::option::weighted(0.9, 0..5), 0..100), 0..12)
}

fn sorted(toy: &Toy, sql: &str) -> Vec<String> {
    let mut rows = toy.rows(sql);
    rows.sort();
    rows
}

/// What a join gives, by its definition.
fn joined(
    left: &[(Option<i32>, i32)],
    right: &[(Option<i32>, i32)],
    (keep_left, keep_right): (bool, bool),
) -> Vec<String> {
    let mut rows = Vec::new();
    let mut met = BTreeSet::new();
    for (key, id) in left {
        let mut found = false;
        for (place, (other, other_id)) in right.iter().enumerate() {
            if key.is_some() && key == other {
                found = true;
                met.insert(place);
                rows.push(format!("{id} {other_id}"));
            }
        }
        if !found && keep_left {
            rows.push(format!("{id} NULL"));
        }
    }
    for (place, (_, id)) in right.iter().enumerate() {
        if keep_right && !met.contains(&place) {
            rows.push(format!("NULL {id}"));
        }
    }
    rows.sort();
    rows
}

/// Conditions over the columns of `l` and `r`, as text.
fn conditions() -> impl Strategy<Value = String> {
    let column = || prop_oneof![Just("l.k"), Just("l.id"), Just("r.k"), Just("r.id")];
    let test = || prop_oneof![Just("="), Just("<>"), Just("<"), Just("<="), Just(">"), Just(">=")];
    let leaf = prop_oneof![
        (column(), test(), 0..6_i32).prop_map(|(column, test, n)| format!("{column} {test} {n}")),
        (0..6_i32, test(), column()).prop_map(|(n, test, column)| format!("{n} {test} {column}")),
        (column(), test(), column()).prop_map(|(one, test, other)| format!("{one} {test} {other}")),
        column().prop_map(|column| format!("{column} IS NULL")),
        column().prop_map(|column| format!("{column} IN (1, 3, NULL)")),
        column().prop_map(|column| format!("{column} BETWEEN 1 AND 4")),
        Just("EXISTS (SELECT 1 FROM r x WHERE x.k = l.k)".to_owned()),
        Just("l.k IN (SELECT k FROM r)".to_owned()),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("({one} AND {other})")),
            (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("({one} OR {other})")),
            inner.prop_map(|one| format!("NOT ({one})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_join_gives_what_it_is_defined_to_give_by_hash_by_merge_and_by_pairs(
        left in pairs(),
        right in pairs(),
        ordered: bool,
    ) {
        let toy = toy(&left, &right, ordered);
        for (join, kept) in [
            ("JOIN", (false, false)),
            ("LEFT JOIN", (true, false)),
            ("RIGHT JOIN", (false, true)),
            ("FULL JOIN", (true, true)),
        ] {
            let wanted = joined(&left, &right, kept);
            for on in ["l.k = r.k", "l.k <= r.k AND l.k >= r.k", "l.k + 1 = r.k + 1"] {
                let sql = format!("SELECT l.id, r.id FROM l {join} r ON {on}");
                prop_assert_eq!(sorted(&toy, &sql), wanted.clone(), "{}", sql);
            }
        }
    }

    #[test]
    fn where_gives_the_rows_for_which_its_condition_is_true_wherever_it_is_placed(
        left in pairs(),
        right in pairs(),
        ordered: bool,
        condition in conditions(),
    ) {
        let toy = toy(&left, &right, ordered);
        for from in [
            "l JOIN r ON l.k = r.k",
            "l LEFT JOIN r ON l.k = r.k AND r.id > 20",
            "l RIGHT JOIN r ON l.k = r.k AND l.id > 20",
            "l FULL JOIN r ON l.k = r.k",
            "l, r",
            "l CROSS APPLY (SELECT k, id FROM r x WHERE x.k >= l.k) r",
            "l OUTER APPLY (SELECT TOP 1 k, id FROM r x WHERE x.k = l.k ORDER BY id) r",
        ] {
            let whole = format!(
                "SELECT l.id, r.id, CASE WHEN {condition} THEN 'yes' ELSE 'no' END FROM {from}"
            );
            let wanted: Vec<String> = sorted(&toy, &whole)
                .iter()
                .filter_map(|row| row.strip_suffix(" yes").map(str::to_owned))
                .collect();
            let sql = format!("SELECT l.id, r.id FROM {from} WHERE {condition}");
            prop_assert_eq!(sorted(&toy, &sql), wanted, "{}", sql);
        }
    }

    #[test]
    fn order_by_gives_the_same_whether_rows_come_ordered_or_not(
        rows in pairs(),
        descending: bool,
        top in 0..14_usize,
    ) {
        let way = if descending { "DESC" } else { "" };
        for order in [format!("k, id {way}"), format!("k {way}, id"), format!("id {way}, k")] {
            let sql = format!("SELECT TOP ({top}) k, id FROM l ORDER BY {order}");
            let whole = format!("SELECT k, id FROM l ORDER BY {order}");
            let (plain, ordered) = (toy(&rows, &[], false), toy(&rows, &[], true));
            prop_assert_eq!(plain.rows(&whole), ordered.rows(&whole));
            let cut: Vec<String> = plain.rows(&whole).into_iter().take(top).collect();
            prop_assert_eq!(plain.rows(&sql), cut.clone());
            prop_assert_eq!(ordered.rows(&sql), cut);
        }
    }

    #[test]
    fn a_scan_within_its_bounds_gives_every_row_that_is_wanted(
        rows in pairs(),
        (a, b, c) in (0..5_i32, 0..5_i32, 0..100_i32),
        shape in 0..7_usize,
    ) {
        let condition = [
            format!("k > {a} AND k <= {b}"),
            format!("k BETWEEN {a} AND {b} OR k = {b} AND id > {c}"),
            format!("(k = {a} AND id > {c}) OR (k > {a} AND id < {c}) OR k >= {b}"),
            format!("NOT (k < {a}) AND {b} >= k"),
            format!("k = {a}.0 OR id = {c}"),
            format!("k < {a}.5 AND id >= {c}"),
            format!("(k = {a} OR k = {b}) AND (id < {c} OR k > {a})"),
        ][shape].clone();
        let sql = format!("SELECT k, id FROM l WHERE {condition}");
        let plain = toy(&rows, &[], false);
        let mut seeking = Toy::new();
        seeking.add("dbo", "l", Table::new(&COLUMNS, rows_of(&rows)).seeking());
        prop_assert_eq!(seeking.rows(&sql), plain.rows(&sql), "{}", sql);
    }

    #[test]
    fn a_frame_that_slides_gives_what_a_sum_over_it_gives(
        rows in proptest::collection::vec(0..50_i32, 1..15),
        (before, after) in (0..4_usize, 0..4_usize),
    ) {
        let pairs: Vec<(Option<i32>, i32)> =
            rows.iter().enumerate().map(|(place, value)| (Some(place as i32), *value)).collect();
        let toy = toy(&pairs, &[], false);
        let sql = format!(
            "SELECT SUM(id) OVER (ORDER BY k ROWS BETWEEN {before} PRECEDING AND {after} FOLLOWING) \
             FROM l ORDER BY k"
        );
        let wanted: Vec<String> = (0..rows.len())
            .map(|row| {
                let seen = row.saturating_sub(before)..(row + after + 1).min(rows.len());
                rows[seen].iter().sum::<i32>().to_string()
            })
            .collect();
        prop_assert_eq!(toy.rows(&sql), wanted);
    }
}
