//! Rows that UPDATE, DELETE and MERGE change, and expressions over given rows.

use super::*;

fn located() -> Toy {
    let mut toy = Toy::new();
    let mut table = Table::new(
        &[
            ("id", SqlType::Int, false),
            ("v", SqlType::Int, true),
            ("%%physloc%%", SqlType::VarBinary(Length::Limited(8)), false),
        ],
        (1..=3_u8)
            .map(|id| vec![i32::from(id).into(), (i32::from(id) * 10).into(), Value::bytes(&[id])])
            .collect(),
    );
    table.columns[2].hidden = true;
    toy.add("dbo", "t", table);
    toy.add(
        "dbo",
        "s",
        Table::new(
            &[("id", SqlType::Int, false), ("w", SqlType::Int, false)],
            [(2, 5), (2, 6), (4, 7)].map(|(id, w)| vec![id.into(), w.into()]).to_vec(),
        ),
    );
    toy
}

fn changed(toy: &Toy, sql: &str) -> SqlResult<Vec<String>> {
    let cancel = Cancel::default();
    let context = Context { catalogue: toy, cancel: &cancel };
    let found = match statement(sql) {
        Statement::Update(update) => {
            let from = match &update.from {
                Some(
                    ast::UpdateTableFromKind::AfterSet(from)
                    | ast::UpdateTableFromKind::BeforeSet(from),
                ) => from.as_slice(),
                None => &[],
            };
            let changing = Changing {
                with: None,
                target: &update.table.relation,
                from,
                selection: update.selection.as_ref(),
                values: update.assignments.iter().map(|set| &set.value).collect(),
                top: None,
            };
            changed_rows(&changing, &context)?
        }
        Statement::Delete(delete) => {
            let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) =
                &delete.from;
            let changing = Changing {
                with: None,
                target: &from[0].relation,
                from: &[],
                selection: delete.selection.as_ref(),
                values: Vec::new(),
                top: None,
            };
            changed_rows(&changing, &context)?
        }
        other => panic!("{other}"),
    };
    assert_eq!(found.table.name, "t");
    Ok(found
        .rows
        .iter()
        .map(|(row, values)| row.iter().chain(values).map(shown).collect::<Vec<_>>().join(" "))
        .collect())
}

#[test]
fn an_update_finds_each_row_once_with_its_new_values() {
    let toy = located();
    for (sql, rows) in [
        ("UPDATE t SET v = v + 1 WHERE id > 1", vec!["2 20 0x02 21", "3 30 0x03 31"]),
        ("UPDATE t SET v = s.w FROM t JOIN s ON s.id = t.id", vec!["2 20 0x02 5"]),
        ("UPDATE x SET v = s.w FROM t AS x JOIN s ON s.id = x.id", vec!["2 20 0x02 5"]),
        ("UPDATE dbo.t SET v = s.w FROM s WHERE s.id = t.id AND s.w > 5", vec!["2 20 0x02 6"]),
        (
            "UPDATE t SET v = (SELECT MAX(w) FROM s WHERE s.id = t.id) WHERE id = 2",
            vec!["2 20 0x02 6"],
        ),
        ("UPDATE t SET v = 1 WHERE id > 9", vec![]),
        ("DELETE FROM t WHERE id IN (SELECT id FROM s)", vec!["2 20 0x02"]),
    ] {
        assert_eq!(changed(&toy, sql).unwrap(), rows, "{sql}");
    }
    for (sql, number) in [
        ("UPDATE nothing SET v = 1", 208),
        ("UPDATE t SET v = w", 207),
        ("UPDATE t SET v = COUNT(*)", 147),
        ("UPDATE t SET v = 1 FROM t a JOIN t b ON a.id = b.id", 8154),
    ] {
        assert_eq!(changed(&toy, sql).unwrap_err().number, number, "{sql}");
    }
}

#[test]
fn the_target_may_be_an_expression_that_gives_rows_of_one_table() {
    let toy = located();
    let cancel = Cancel::default();
    let context = Context { catalogue: &toy, cancel: &cancel };
    let run = |with: &str, target: &str, from: &str| {
        let query = query_of(&format!("{with} SELECT 1 FROM {target}"));
        let SetExpr::Select(select) = &*query.body else { panic!("a select") };
        let joined = query_of(&format!("SELECT 1 FROM {from}"));
        let SetExpr::Select(joined) = &*joined.body else { panic!("a select") };
        let changing = Changing {
            with: query.with.as_ref(),
            target: &select.from[0].relation,
            from: if from == target { &[] } else { &joined.from },
            selection: select.selection.as_ref(),
            values: Vec::new(),
            top: None,
        };
        changed_rows(&changing, &context).map(|changed| {
            assert_eq!(changed.table.name, "t");
            let row = |row: &Row| row.iter().map(shown).collect::<Vec<_>>().join(" ");
            changed.rows.iter().map(|(of, _)| row(of)).collect::<Vec<_>>()
        })
    };
    let last =
        "WITH c AS (SELECT id, ROW_NUMBER() OVER (ORDER BY id DESC) AS n FROM t WHERE id < 3)";
    assert_eq!(run(last, "c", "c").unwrap(), ["2 20 0x02", "1 10 0x01"]);
    let top = "WITH c AS (SELECT TOP 1 v AS w FROM t ORDER BY v DESC)";
    assert_eq!(run(top, "c", "c").unwrap(), ["3 30 0x03"]);
    let source = "WITH x AS (SELECT MAX(id) AS id FROM s WHERE id < 4)";
    assert_eq!(run(source, "t", "t JOIN x ON x.id = t.id").unwrap(), ["2 20 0x02"]);
    let groups = "WITH c AS (SELECT id FROM t GROUP BY id)";
    assert_eq!(run(groups, "c", "c").unwrap_err().number, 50_000);
}

#[test]
fn a_merge_sees_matches_and_what_has_none_on_either_side() {
    let toy = located();
    let cancel = Cancel::default();
    let context = Context { catalogue: &toy, cancel: &cancel };
    let Statement::Merge(merge) = statement(
        "MERGE INTO dbo.t AS target USING (SELECT id, MAX(w) AS w FROM s GROUP BY id) AS source ON \
         target.id = source.id WHEN MATCHED AND source.w > 5 THEN UPDATE SET v = source.w WHEN NOT \
         MATCHED THEN INSERT (id, v) VALUES (source.id, source.w);",
    ) else {
        panic!("a merge");
    };
    let matched = matched_rows(None, &merge.table, &merge.source, &merge.on, &context).unwrap();
    assert_eq!((matched.target_name.as_str(), matched.source_name.as_str()), ("target", "source"));
    let mut pairs: Vec<String> = matched
        .rows
        .iter()
        .map(|(target, source)| {
            let id = |row: &Option<Row>| row.as_ref().map_or("-".into(), |row| shown(&row[0]));
            format!("{} {}", id(target), id(source))
        })
        .collect();
    pairs.sort();
    assert_eq!(pairs, ["- 4", "1 -", "2 2", "3 -"]);

    let sources = [
        RowSource { name: &matched.target_name, columns: &matched.target_columns },
        RowSource { name: &matched.source_name, columns: &matched.source_columns },
    ];
    let predicate = merge.clauses[0].predicate.as_ref().unwrap();
    let condition = condition_over_rows(None, predicate, &sources, &context).unwrap();
    let truths: Vec<_> = matched
        .rows
        .iter()
        .map(|(target, source)| condition.holds(&[target.clone(), source.clone()], &context))
        .collect::<SqlResult<_>>()
        .unwrap();
    assert_eq!(truths.iter().filter(|truth| **truth == Some(true)).count(), 2);
    assert_eq!(truths.iter().filter(|truth| truth.is_none()).count(), 2);
}

#[test]
fn output_names_columns_of_the_rows_before_and_after() {
    let toy = located();
    let cancel = Cancel::default();
    let context = Context { catalogue: &toy, cancel: &cancel };
    let query = query_of("SELECT inserted.*, deleted.v AS old, inserted.v - deleted.v");
    let SetExpr::Select(select) = &*query.body else { panic!("a select") };
    let table = toy.tables[&("dbo".to_owned(), "t".to_owned())].clone();
    let sources = ["inserted", "deleted"].map(|name| RowSource { name, columns: &table.columns });
    let output = items_over_rows(&select.projection, &sources, &context).unwrap();
    let names: Vec<_> = output.columns().iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["id", "v", "old", ""]);
    let row = |v: i32| -> Option<Row> { Some(vec![1.into(), v.into(), Value::bytes(&[1])].into()) };
    let values = output.values(&[row(7), row(5)], &context).unwrap();
    assert_eq!(values, [1, 7, 5, 2].map(Value::from));
    let values = output.values(&[row(7), None], &context).unwrap();
    assert_eq!(values[2..], [Value::Null, Value::Null]);
    let expr = Parser::new(&MsSqlDialect {}).try_with_sql("v * 2").unwrap().parse_expr().unwrap();
    let doubled = values_over_rows(None, &[&expr], &sources[..1], &context).unwrap();
    assert_eq!(doubled.values(&[row(4)], &context).unwrap(), [Value::Int(8)]);
}
