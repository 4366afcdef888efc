//! Change rows are read as they come. With `CDC_SPEED_ROWS` set to the number of rows, it also says
//! how fast, and means something with the crate optimised:
//! `CDC_SPEED_ROWS=500000 cargo test -p cdc-tsql --config
//! 'profile.dev.package.cdc-tsql.opt-level=3' speed -- --nocapture`.

use std::time::Duration;

use super::*;

/// How long this thread has worked: other work on the machine does not count.
fn worked() -> Duration {
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(spent.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

/// Change rows when nothing is measured.
const ROWS: u32 = 2_000;

fn changes(count: u32) -> Toy {
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
    let rows = (0..count)
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
    let times =
        (0..count / 5).map(|row| vec![lsn(row), Value::DateTime2(i64::from(row))]).collect();
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
fn change_rows_are_read_in_whatever_way_a_client_asks() {
    let measured = std::env::var("CDC_SPEED_ROWS").ok().and_then(|rows| rows.parse().ok());
    let count: u32 = measured.unwrap_or(ROWS);
    let toy = changes(count);
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
        let start = worked();
        let prepared = prepare(&query_of(&sql), &context).unwrap();
        let mut cells = 0_usize;
        let rows = prepared
            .run(&context, &mut |row| {
                cells += row.len();
                Ok(ControlFlow::Continue(()))
            })
            .unwrap();
        if measured.is_some() {
            let rate = f64::from(count) / (worked() - start).as_secs_f64();
            eprintln!("{name}: {rows} rows given, {:.2} M rows read a second", rate / 1e6);
        }
        assert_eq!(cells, usize::try_from(rows).unwrap() * prepared.columns().len(), "{name}");
        assert_eq!(
            rows,
            u64::from(if name == "counted" {
                1
            } else if name == "grouped" {
                count / 5
            } else {
                count
            }),
            "{name}"
        );
    }
}
