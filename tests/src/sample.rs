//! Tables for readers and round trips: every type with its extremes, names that Delta refuses
//! without column mapping, an empty table, and a busy one.

use cdc_core::{Length, ServerTime, SqlType, TableName};
use cdc_fake::{
    ColumnDefinition, EnableOptions, FakeDatabase, SqlResult, TableDefinition, Value, Workload,
    WorkloadShape,
};

/// The names of the sample's tables, all in schema `dbo`.
pub const TABLES: [&str; 4] = ["types", "names", "empty", "work1"];

/// 38 nines.
const DECIMAL_MAX: i128 = 99_999_999_999_999_999_999_999_999_999_999_999_999;

/// 100 ns from 1970-01-01 to 0001-01-01T00:00 and to 9999-12-31T23:59:59.9999999.
const DATETIME2: (i64, i64) = (-621_355_968_000_000_000, 2_534_023_007_999_999_999 / 10);

/// A column, and two values at the ends of what its type holds.
fn extremes() -> Vec<(&'static str, SqlType, Value, Value)> {
    use SqlType as T;
    let decimal = |precision, scale| T::Decimal { precision, scale };
    let limited = Length::Limited;
    let (first, last) = DATETIME2;
    let second = Value::DateTime(ServerTime::from_ticks(1));
    // 9999-12-31T23:59:59.997 and 1753-01-01T00:00:00, in ticks from 1900-01-01.
    let newest = Value::DateTime(ServerTime::from_ticks(2_958_464 * 300 * 86_400 - 1));
    let long: String = "Ωμέγα ".repeat(40);
    vec![
        ("bit", T::Bit, Value::Bit(false), Value::Bit(true)),
        ("tinyint", T::TinyInt, Value::Int(0), Value::Int(255)),
        ("smallint", T::SmallInt, Value::Int(-32_768), Value::Int(32_767)),
        ("int", T::Int, Value::Int(-2_147_483_648), Value::Int(2_147_483_647)),
        ("bigint", T::BigInt, Value::Int(i64::MIN), Value::Int(i64::MAX)),
        ("real", T::Real, Value::Real(f32::MIN), Value::Real(1.5e-38)),
        ("float", T::Float, Value::Float(f64::MIN), Value::Float(0.1)),
        ("money", T::Money, Value::decimal(-9_223_372_036_854_775_808), Value::decimal(1)),
        ("smallmoney", T::SmallMoney, Value::decimal(-2_147_483_648), Value::decimal(7)),
        ("d38_0", decimal(38, 0), Value::decimal(-DECIMAL_MAX), Value::decimal(DECIMAL_MAX)),
        ("d38_38", decimal(38, 38), Value::decimal(-DECIMAL_MAX), Value::decimal(1)),
        (
            "d29_10",
            decimal(29, 10),
            Value::decimal(12_345_678_901_234_567_890_123_456_789),
            Value::decimal(12_345_678_901_234_567_890_123_456_790),
        ),
        ("d18_4", decimal(18, 4), Value::decimal(-1), Value::decimal(999_999_999_999_999_999)),
        ("date", T::Date, Value::Date(-719_162), Value::Date(2_932_896)),
        ("datetime", T::DateTime, second, newest),
        ("smalldatetime", T::SmallDateTime, Value::DateTime2(0), Value::DateTime2(600_000_000)),
        ("datetime2", T::DateTime2 { scale: 7 }, Value::DateTime2(first), Value::DateTime2(last)),
        (
            "datetimeoffset",
            T::DateTimeOffset { scale: 7 },
            Value::DateTimeOffset { utc: 10, offset_minutes: -840 },
            Value::DateTimeOffset { utc: last - 864_000_000_000, offset_minutes: 840 },
        ),
        ("time", T::Time { scale: 7 }, Value::Time(0), Value::Time(863_999_999_999)),
        ("char", T::Char(4), Value::text("a"), Value::text("zzzz")),
        ("varchar", T::VarChar(limited(50)), Value::text(""), Value::text("\u{ff}ab'c\"")),
        ("nchar", T::NChar(3), Value::text("Ж"), Value::text("日本語")),
        ("nvarchar", T::NVarChar(limited(400)), Value::text(""), Value::text(&long)),
        ("nvarchar_max", T::NVarChar(Length::Max), Value::text("\u{10ffff}"), Value::text("b")),
        ("xml", T::Xml, Value::text("<a/>"), Value::text("<b>&lt;</b>")),
        ("uniqueidentifier", T::UniqueIdentifier, Value::Uuid([0; 16]), Value::Uuid([255; 16])),
        ("binary", T::Binary(3), Value::bytes(&[0, 0, 0]), Value::bytes(&[255, 254, 253])),
        ("varbinary", T::VarBinary(limited(9)), Value::bytes(&[]), Value::bytes(&[0, 127])),
        ("varbinary_max", T::VarBinary(Length::Max), Value::bytes(&[1]), Value::bytes(&[2; 400])),
    ]
}

/// Creates the sample's tables, enables each for capture and fills them.
///
/// # Errors
/// What the server refuses.
pub fn fill(database: &FakeDatabase, steps: usize) -> SqlResult<()> {
    types(database)?;
    names(database)?;
    let empty = TableDefinition::new("empty").column("id", SqlType::Int).primary_key(&["id"]);
    create(database, empty)?;
    let shape = WorkloadShape { tables: 1, keys: 40, ..WorkloadShape::default() };
    let mut workload = Workload::new(2013, shape);
    workload.create(database)?;
    workload.run(database, steps, std::time::Duration::from_secs(30))?;
    Ok(())
}

fn create(database: &FakeDatabase, definition: TableDefinition) -> SqlResult<TableName> {
    let name = definition.name.clone();
    database.create_table(definition)?;
    database.enable_table(&name, EnableOptions::default())?;
    Ok(name)
}

fn types(database: &FakeDatabase) -> SqlResult<()> {
    let columns = extremes();
    let mut definition = TableDefinition::new("types").column("id", SqlType::Int);
    for (name, sql_type, _, _) in &columns {
        definition = definition.nullable(name, sql_type.clone());
    }
    definition = definition.nullable("never", SqlType::Decimal { precision: 38, scale: 10 });
    let computed =
        ColumnDefinition::computed("computed", SqlType::Int, |row| row.get("id").clone());
    let name = create(database, definition.with(computed).primary_key(&["id"]))?;
    let mut rows: Vec<Vec<Value>> = vec![vec![Value::Int(1)], vec![Value::Int(2)]];
    rows.push(vec![Value::Int(3)]);
    for (_, _, low, high) in columns {
        for (row, value) in rows.iter_mut().zip([low, high, Value::Null]) {
            row.push(value);
        }
    }
    rows.iter_mut().for_each(|row| row.push(Value::Null));
    database.transact(|open| open.insert_many(&name, rows).map(|_| ()))?;
    database.transact(|open| {
        open.update(&name, &[Value::Int(3)], &[("int", Value::Int(-1))])?;
        open.delete(&name, &[Value::Int(2)]).map(|_| ())
    })?;
    Ok(())
}

fn names(database: &FakeDatabase) -> SqlResult<()> {
    // Without a dot: DuckDB's extension takes one in a predicate for a path into a struct.
    let odd = ["a b", "a_b", "x;y", "p(q)", "t=1", "n{m}", "k,l", "Größe", "quo\"te"];
    let mut definition = TableDefinition::new("names").column("id", SqlType::Int);
    for name in odd {
        definition = definition.nullable(name, SqlType::BigInt);
    }
    let name = create(database, definition.primary_key(&["id"]))?;
    let row = |id: i64| (0..=odd.len()).map(|_| Value::Int(id)).collect();
    database.transact(|open| open.insert_many(&name, (0..20).map(row).collect()).map(|_| ()))?;
    Ok(())
}
