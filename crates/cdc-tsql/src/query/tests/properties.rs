//! Whatever way rows are found, joined and ordered, they are the same rows.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::relation::{Bound, Comparison};

/// A table that gives no row outside its bounds.
struct Seeking(Table);

impl Relation for Seeking {
    fn columns(&self) -> &[RelationColumn] {
        self.0.columns()
    }

    fn scan<'a>(&'a self, scan: &Scan) -> SqlResult<Rows<'a>> {
        let bounds = scan.bounds.clone();
        let within = move |row: &Row| bounds.iter().all(|bound| holds(bound, row));
        Ok(Box::new(self.0.scan(scan)?.filter(move |row| row.as_ref().is_ok_and(&within))))
    }

    fn order(&self) -> &[usize] {
        self.0.order()
    }
}

fn holds(bound: &Bound, row: &Row) -> bool {
    let (Value::Int(own), Value::Int(value)) = (&row[bound.column], &bound.value) else {
        return false;
    };
    match bound.comparison {
        Comparison::Equal => own == value,
        Comparison::Less => own < value,
        Comparison::LessOrEqual => own <= value,
        Comparison::Greater => own > value,
        Comparison::GreaterOrEqual => own >= value,
    }
}

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
        toy.add("dbo", name, if ordered { table.ordered(&[0]) } else { table });
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
        let seeking = Sought {
            toy: toy(&[], &[], false),
            table: Arc::new(Seeking(Table::new(&COLUMNS, rows_of(&rows)))),
        };
        let cancel = Cancel::default();
        let context = Context { catalogue: &seeking, cancel: &cancel };
        let mut given = Vec::new();
        prepare(&query_of(&sql), &context)
            .unwrap()
            .run(&context, &mut |row| {
                given.push(row.iter().map(shown).collect::<Vec<_>>().join(" "));
                Ok(ControlFlow::Continue(()))
            })
            .unwrap();
        prop_assert_eq!(given, plain.rows(&sql), "{}", sql);
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

/// A toy whose table `l` seeks.
struct Sought {
    toy: Toy,
    table: Arc<Seeking>,
}

impl Catalogue for Sought {
    fn relation(&self, _: &ObjectName) -> SqlResult<Arc<dyn Relation>> {
        Ok(self.table.clone())
    }

    fn table_function(&self, name: &ObjectName, of: &[Typed]) -> SqlResult<Arc<dyn Relation>> {
        self.toy.table_function(name, of)
    }

    fn table_function_columns(&self, name: &ObjectName) -> SqlResult<Vec<RelationColumn>> {
        self.toy.table_function_columns(name)
    }

    fn function_kind(&self, name: &ObjectName, of: &[Kind]) -> Option<SqlResult<Kind>> {
        self.toy.function_kind(name, of)
    }

    fn function(&self, name: &ObjectName, of: &[Typed]) -> SqlResult<Value> {
        self.toy.function(name, of)
    }

    fn variable(&self, name: &str) -> Option<Typed> {
        self.toy.variable(name)
    }

    fn now(&self) -> Moment {
        self.toy.now()
    }

    fn collation(&self) -> Collation {
        self.toy.collation()
    }

    fn settings(&self) -> Settings {
        self.toy.settings()
    }
}
