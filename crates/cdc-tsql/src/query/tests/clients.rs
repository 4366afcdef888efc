//! The constructs that CDC clients send, in statements of our own.

use super::*;

fn lsn(at: u8) -> Value {
    Value::bytes(&[0, 0, 0, 0x2A, 0, 0, 0, at, 0, 1])
}

/// A change table, its times, and the views of the catalogue that clients ask.
fn cdc() -> Toy {
    let mut toy = Toy::new();
    let binary = || SqlType::Binary(10);
    let seq = |at: u8| Value::bytes(&[0, 0, 0, 0, 0, 0, 0, 0, 0, at]);
    let change = |at: u8, order: u8, operation: i32, id: i32| {
        let mask = Value::bytes(&[3]);
        vec![
            lsn(at),
            Value::Null,
            seq(order),
            operation.into(),
            mask,
            id.into(),
            "x".into(),
            1.into(),
        ]
    };
    toy.add(
        "cdc",
        "dbo_t_CT",
        Table::new(
            &[
                ("__$start_lsn", binary(), false),
                ("__$end_lsn", binary(), true),
                ("__$seqval", binary(), false),
                ("__$operation", SqlType::Int, false),
                ("__$update_mask", SqlType::VarBinary(Length::Limited(128)), true),
                ("id", SqlType::Int, true),
                ("name", text(20), true),
                ("__$command_id", SqlType::Int, true),
            ],
            vec![
                change(1, 1, 2, 100),
                change(1, 2, 2, 101),
                change(2, 1, 3, 100),
                change(2, 1, 4, 100),
                change(3, 1, 1, 101),
            ],
        )
        .ordered(&[0, 7, 2, 3]),
    );
    let at = |hour: i64| Value::DateTime2(17_960_000_000_000_000 + hour * 36_000_000_000);
    let time = |number: u8, tran: u8| {
        vec![lsn(number), at(number.into()), at(i64::from(number) + 1), Value::bytes(&[tran])]
    };
    toy.add(
        "cdc",
        "lsn_time_mapping",
        Table::new(
            &[
                ("start_lsn", binary(), false),
                ("tran_begin_time", SqlType::DateTime2 { scale: 3 }, true),
                ("tran_end_time", SqlType::DateTime2 { scale: 3 }, true),
                ("tran_id", SqlType::VarBinary(Length::Limited(10)), true),
            ],
            vec![time(1, 7), time(2, 8), time(3, 9), time(4, 0)],
        )
        .ordered(&[0]),
    );
    let instance = |object: i32, source: i32, name: &str, at: u8, created: i32| {
        vec![object.into(), source.into(), name.into(), lsn(at), created.into()]
    };
    toy.add(
        "cdc",
        "change_tables",
        Table::new(
            &[
                ("object_id", SqlType::Int, false),
                ("source_object_id", SqlType::Int, true),
                ("capture_instance", text(128), false),
                ("start_lsn", binary(), true),
                ("create_date", SqlType::Int, true),
            ],
            vec![
                instance(11, 1, "dbo_t", 1, 1),
                instance(12, 1, "dbo_t_2", 1, 2),
                instance(13, 2, "dbo_u", 2, 3),
            ],
        ),
    );
    toy.set("@from", SqlType::VarBinary(Length::Limited(8000)), lsn(1));
    toy.set("@to", SqlType::VarBinary(Length::Limited(8000)), lsn(3));
    toy.set("@seq", SqlType::VarBinary(Length::Limited(8000)), seq(1));
    toy.set("@op", SqlType::Int, 2);
    toy.set("@n", SqlType::Int, 1);
    toy.set("@db", text(4000), "toy");
    toy
}

#[test]
fn the_last_transaction_of_the_next_few_is_found() {
    let toy = cdc();
    let rows = toy.rows(
        "SELECT MAX(start_lsn) FROM (SELECT TOP (@n + 1) start_lsn FROM [toy].cdc.lsn_time_mapping \
         WHERE start_lsn >= @from AND tran_id <> 0x00 ORDER BY start_lsn) AS few",
    );
    assert_eq!(rows, ["0x0000002A000000020001"]);
    let rows = toy.rows("SELECT MAX(start_lsn) FROM cdc.lsn_time_mapping WHERE tran_id <> 0x00");
    assert_eq!(rows, ["0x0000002A000000030001"]);
}

#[test]
fn the_newest_capture_instance_of_each_table_is_numbered_first() {
    let rows = cdc().rows(
        "WITH numbered AS (SELECT ROW_NUMBER() OVER (PARTITION BY i.source_object_id, i.start_lsn \
         ORDER BY i.create_date DESC) AS place, i.* FROM [toy].cdc.change_tables AS i WHERE \
         i.start_lsn <= @to) SELECT OBJECT_NAME(source_object_id, DB_ID(@db)), capture_instance, \
         object_id, start_lsn FROM numbered WHERE place = 1 ORDER BY 2",
    );
    assert_eq!(
        rows,
        ["object1 dbo_t_2 12 0x0000002A000000010001", "object2 dbo_u 13 0x0000002A000000020001"]
    );
}

#[test]
fn changes_behind_a_position_are_read_with_their_time_at_the_server() {
    let sql = "SELECT c.[__$start_lsn], c.[__$seqval], [c].[__$operation], [c].[id], \
               TODATETIMEOFFSET(m.tran_end_time, DATEPART(TZOFFSET, SYSDATETIMEOFFSET())) FROM \
               [toy].cdc.[dbo_t_CT] AS c LEFT JOIN [toy].cdc.lsn_time_mapping m ON m.start_lsn = \
               c.[__$start_lsn] WHERE ((c.[__$start_lsn] = @from AND c.[__$seqval] = @seq AND \
               c.[__$operation] > @op) OR (c.[__$start_lsn] = @from AND c.[__$seqval] > @seq) OR \
               (c.[__$start_lsn] > @from)) AND c.[__$start_lsn] <= @to ORDER BY \
               c.[__$start_lsn] ASC, c.[__$command_id] ASC, c.[__$seqval] ASC, \
               c.[__$operation] ASC";
    let toy = cdc();
    let rows = toy.values(sql).unwrap();
    let ids: Vec<_> = rows.iter().map(|row| (shown(&row[2]), shown(&row[3]))).collect();
    let wanted = [("2", "101"), ("3", "100"), ("4", "100"), ("1", "101")];
    assert_eq!(ids, wanted.map(|(op, id)| (op.to_owned(), id.to_owned())));
    for row in &rows {
        assert!(
            matches!(row[4], Value::DateTimeOffset { offset_minutes: 120, .. }),
            "{:?}",
            row[4]
        );
    }
}

#[test]
fn lsns_go_to_text_and_back() {
    let toy = cdc();
    toy.set("@text", SqlType::VarChar(Length::Limited(22)), "0x0000002A000000020001");
    assert_eq!(
        toy.rows(
            "SELECT CONVERT(varchar(22), c.[__$start_lsn], 1) AS at, c.[__$operation] AS operation, \
             c.id FROM cdc.[dbo_t_CT] c JOIN cdc.lsn_time_mapping m ON m.start_lsn = \
             c.[__$start_lsn] WHERE c.[__$start_lsn] BETWEEN CONVERT(binary(10), @text, 1) AND \
             CONVERT(binary(10), @text, 1) ORDER BY c.[__$start_lsn], c.[__$command_id], \
             c.[__$seqval], c.[__$operation]"
        ),
        ["0x0000002A000000020001 3 100", "0x0000002A000000020001 4 100"]
    );
}

#[test]
fn a_range_is_cut_into_parts_of_about_equal_size() {
    assert_eq!(
        cdc().rows(
            "SELECT part, MIN(at), MAX(at), COUNT(*) FROM (SELECT [__$start_lsn] AS at, NTILE(2) \
             OVER (ORDER BY [__$start_lsn]) AS part FROM cdc.dbo_t_CT) x GROUP BY part ORDER BY part"
        ),
        [
            "1 0x0000002A000000010001 0x0000002A000000020001 3",
            "2 0x0000002A000000020001 0x0000002A000000030001 2"
        ]
    );
}

#[test]
fn counts_of_groups_and_of_all_are_compared_in_one_text() {
    assert_eq!(
        cdc().rows(
            "SELECT i.capture_instance + ':' + CAST(COUNT(c.id) AS varchar(12)) + '/' + CAST((SELECT \
             COUNT(*) FROM cdc.dbo_t_CT x WHERE x.id > i.object_id) AS varchar(12)) FROM \
             cdc.change_tables i JOIN cdc.dbo_t_CT c ON c.[__$operation] = i.source_object_id WHERE \
             i.capture_instance = 'dbo_t' GROUP BY i.capture_instance, i.object_id"
        ),
        ["dbo_t:1/5"]
    );
}

#[test]
fn a_probe_for_columns_reads_nothing() {
    let toy = cdc();
    assert!(toy.rows("SELECT TOP(0) * FROM [toy].[dbo].[orders] WITH (TABLOCKX)").is_empty());
    let orders = toy.tables[&("dbo".to_owned(), "orders".to_owned())].clone();
    assert!(orders.asked().is_empty());
    assert!(toy.rows("SELECT * FROM (SELECT * FROM dbo.orders) AS q WHERE 1 = 0").is_empty());
    assert!(orders.asked().is_empty());
}

#[test]
fn the_result_of_a_procedure_is_renamed_with_constants_and_case() {
    let toy = cdc();
    assert_eq!(
        toy.rows(
            "SELECT name AS COLUMN_NAME, NULL AS SCOPE_TABLE, CASE id WHEN 1 THEN 'YES' ELSE 'NO' \
             END AS IS_AUTOINCREMENT FROM orders WHERE id < 3 ORDER BY COLUMN_NAME"
        ),
        ["apple NULL YES", "Pear NULL NO"]
    );
}
