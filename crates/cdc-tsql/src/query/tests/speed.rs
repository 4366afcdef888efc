//! How fast change rows are read; run by hand, with the crate optimised:
//! `cargo test -p cdc-tsql --config 'profile.dev.package.cdc-tsql.opt-level=3' speed -- --ignored
//! --nocapture`.

use std::time::Instant;

use super::*;

/// Change rows, as many as a large poll has.
const ROWS: u32 = 500_000;

fn changes() -> Toy {
    let mut toy = Toy::new();
    let lsn = |at: u32| {
        let [a, b, c, d] = at.to_be_bytes();
        Value::bytes(&[0, 0, 0, 1, a, b, c, d, 0, 1])
    };
    let columns = [
        ("__$start_lsn", SqlType::Binary(10), false),
        ("__$seqval", SqlType::Binary(10), false),
        ("__$operation", SqlType::Int, false),
        ("__$update_mask", SqlType::VarBinary(Length::Limited(128)), true),
        ("id", SqlType::Int, true),
        ("name", text(50), true),
        ("amount", SqlType::Decimal { precision: 18, scale: 2 }, true),
        ("at", SqlType::DateTime2 { scale: 7 }, true),
        ("__$command_id", SqlType::Int, true),
    ];
    let rows = (0..ROWS)
        .map(|row| {
            vec![
                lsn(row / 5),
                lsn(row),
                2.into(),
                Value::bytes(&[0xFF]),
                (row as i32).into(),
                Value::text(&format!("name {row}")),
                Value::decimal(row.into()),
                Value::DateTime2(i64::from(row)),
                1.into(),
            ]
        })
        .collect();
    toy.add("cdc", "t_CT", Table::new(&columns, rows).ordered(&[0, 8, 1, 2]));
    let times = (0..ROWS / 5).map(|row| vec![lsn(row), Value::DateTime2(i64::from(row))]).collect();
    let columns = [
        ("start_lsn", SqlType::Binary(10), false),
        ("tran_end_time", SqlType::DateTime2 { scale: 3 }, true),
    ];
    toy.add("cdc", "lsn_time_mapping", Table::new(&columns, times).ordered(&[0]));
    let bytes = SqlType::VarBinary(Length::Limited(8000));
    toy.set("@from", bytes.clone(), Value::bytes(&[0; 10]));
    toy.set("@to", bytes, Value::bytes(&[0xFF; 10]));
    toy
}

#[test]
#[ignore = "a measurement, not a rule"]
fn change_rows_are_read_at_a_million_a_second() {
    let toy = changes();
    let columns = "c.__$start_lsn, c.__$seqval, c.__$operation, c.__$update_mask, c.id, c.name, \
                   c.amount, c.at";
    let bounds = "c.__$start_lsn > @from AND c.__$start_lsn <= @to";
    let order = "c.__$start_lsn, c.__$command_id, c.__$seqval";
    let joined = "cdc.t_CT c JOIN cdc.lsn_time_mapping m ON m.start_lsn = c.__$start_lsn";
    for (name, sql) in [
        ("plain", format!("SELECT {columns} FROM cdc.t_CT c WHERE {bounds} ORDER BY {order}")),
        ("star", format!("SELECT * FROM cdc.t_CT c WHERE {bounds} ORDER BY {order}")),
        (
            "joined",
            format!(
                "SELECT {columns}, m.tran_end_time FROM {joined} WHERE {bounds} ORDER BY {order}"
            ),
        ),
        ("sorted", format!("SELECT {columns} FROM cdc.t_CT c WHERE {bounds} ORDER BY c.id DESC")),
        (
            "at the server",
            format!(
                "SELECT {columns}, TODATETIMEOFFSET(m.tran_end_time, DATEPART(TZOFFSET, \
                 SYSDATETIMEOFFSET())) FROM cdc.t_CT c LEFT JOIN cdc.lsn_time_mapping m ON \
                 m.start_lsn = c.__$start_lsn WHERE ((c.__$start_lsn = @from AND c.__$seqval = \
                 @from AND c.__$operation > 2) OR (c.__$start_lsn = @from AND c.__$seqval > @from) \
                 OR c.__$start_lsn > @from) AND c.__$start_lsn <= @to ORDER BY {order}, \
                 c.__$operation"
            ),
        ),
        ("counted", "SELECT COUNT(*), MAX(id) FROM cdc.t_CT".to_owned()),
        ("grouped", "SELECT __$start_lsn, COUNT(*) FROM cdc.t_CT GROUP BY __$start_lsn".to_owned()),
    ] {
        let cancel = Cancel::default();
        let context = Context { catalogue: &toy, cancel: &cancel };
        let start = Instant::now();
        let prepared = prepare(&query_of(&sql), &context).unwrap();
        let mut cells = 0_usize;
        let rows = prepared
            .run(&context, &mut |row| {
                cells += row.len();
                Ok(ControlFlow::Continue(()))
            })
            .unwrap();
        let rate = f64::from(ROWS) / start.elapsed().as_secs_f64();
        eprintln!("{name}: {rows} rows given, {:.2} M rows read a second", rate / 1e6);
        assert!(cells > 0);
    }
}
