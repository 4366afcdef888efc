//! Types over the wire that have no column, values that no server should send, and texts that are
//! none.

use std::time::Duration;

use arrow_array::{Array, RecordBatch, cast::AsArray, types::Int32Type};
use cdc_conformance::source::SourceHarness;
use cdc_core::{
    Column, Error, ErrorKind, InstanceName, Length, SqlType, TableName, TableRef,
    port::{Catalog, FindingLevel, KeyRange, RowRequest, TableReader},
};
use cdc_fake::Zone;
use cdc_mssql::{BulkReader, MssqlSource};
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::{
    forge::{self, Forged, columns, end, int, int_value, nvarchar, row, text_value},
    rig::{OverTds, READERS, block_on},
};

/// Longer than a busy machine takes for an answer.
const SILENCE: Duration = Duration::from_secs(3);

fn table() -> TableName {
    TableName::new("dbo", "odd")
}

/// A server with a table of one column besides its key, and a source in front of which the read of
/// its rows is forged.
async fn forged(own: SqlType, reader: BulkReader, tokens: Vec<u8>) -> (OverTds, MssqlSource) {
    let rig = OverTds::plain(Zone::UTC).await.read_by(reader);
    let columns = vec![Column::new("id", 1, SqlType::Int, false), Column::new("odd", 2, own, true)];
    rig.create_table(&table(), &columns, &["id"]).await.unwrap();
    let part = "FROM [dbo].[odd]".to_owned();
    let source = behind(&rig, vec![Forged { part, tokens }]).await;
    (rig, source)
}

async fn behind(rig: &OverTds, forged: Vec<Forged>) -> MssqlSource {
    let mut config = rig.config("sa");
    config.port = forge::before(rig.address, forged).await.port();
    config.retry.attempts_max = 1;
    // An answer without an end ends by this.
    config.silence_max = SILENCE;
    MssqlSource::new(config)
}

async fn rows(source: &MssqlSource, own: SqlType) -> Result<Vec<RecordBatch>, Error> {
    let request = RowRequest {
        table: table(),
        columns: vec![Column::new("odd", 2, own, true)],
        key: Vec::new(),
        range: KeyRange::default(),
        batch_rows: 10,
    };
    source.rows(request).await?.try_collect().await
}

fn read(own: &SqlType, reader: BulkReader, tokens: &[u8]) -> Result<Vec<RecordBatch>, Error> {
    block_on(async {
        let (_rig, source) = forged(own.clone(), reader, tokens.to_vec()).await;
        rows(&source, own.clone()).await
    })
}

/// A result of one column of a type with one value.
fn one(kind: &[u8], value: &[u8]) -> Vec<u8> {
    [columns(&[("odd", kind.to_vec())]), row(&[value.to_vec()]), end(1)].concat()
}

/// `sql_variant` with a value of a base type.
fn variant(base: u8, properties: &[u8], value: &[u8]) -> Vec<u8> {
    let length = u32::try_from(2 + properties.len() + value.len()).unwrap();
    let properties_length = u8::try_from(properties.len()).unwrap();
    [&length.to_le_bytes()[..], &[base, properties_length], properties, value].concat()
}

const VARIANT: [u8; 5] = [0x62, 0x49, 0x1F, 0, 0];

/// `geography`, as a server describes it.
fn clr() -> Vec<u8> {
    let text = |text: &str| {
        let mut bytes = vec![u8::try_from(text.len()).unwrap()];
        bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        bytes
    };
    let assembly = "Microsoft.SqlServer.Types.SqlGeography";
    let mut kind = vec![0xF0, 0xFF, 0xFF];
    kind.extend([text("suite"), text("sys"), text("geography")].concat());
    kind.extend(u16::try_from(assembly.len()).unwrap().to_le_bytes());
    kind.extend(assembly.encode_utf16().flat_map(u16::to_le_bytes));
    kind
}

/// A value in one piece of the chunked kind.
fn chunked(value: &[u8]) -> Vec<u8> {
    let length = u32::try_from(value.len()).unwrap();
    [&u64::from(length).to_le_bytes()[..], &length.to_le_bytes(), value, &[0; 4]].concat()
}

#[test]
fn a_type_without_a_column_is_an_error_and_never_a_panic_or_a_wrong_value() {
    let latin = [9, 4, 0xD0, 0, 0x34];
    let mut text_of_variant = latin.to_vec();
    text_of_variant.extend([0x40, 0x1F]);
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("a variant with a text", one(&VARIANT, &variant(0xE7, &text_of_variant, &[b'a', 0]))),
        ("a variant with a moment", one(&VARIANT, &variant(0x2A, &[7], &[0; 8]))),
        ("a variant of no base type", one(&VARIANT, &variant(0x99, &[], &[1]))),
        ("a variant with too much", one(&VARIANT, &variant(0x38, &[1, 2, 3], &[1, 0, 0, 0]))),
        ("a variant without its type", one(&VARIANT, &[1, 0, 0, 0, 0x38])),
        ("a CLR type", one(&clr(), &chunked(&[1, 2, 3]))),
        ("json", one(&[0xF4], &chunked(b"{}"))),
        ("a vector", one(&[0xF5, 12, 0, 0], &[12, 0, 0xA9, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
        ("a type that nobody knows", one(&[0x99, 4], &[4, 1, 0, 0, 0])),
        ("an integer of three bytes", one(&[0x26, 4], &[3, 1, 0, 0])),
        ("a text of half a unit", one(&nvarchar(), &[3, 0, b'a', 0, b'b'])),
        ("a text where a number belongs", one(&nvarchar(), &text_value("planted"))),
        ("a row that ends too soon", [columns(&[("odd", int())]), vec![0xD1, 4, 1]].concat()),
        ("a token that nobody knows", [columns(&[("odd", int())]), vec![0x01, 0x02]].concat()),
        ("a row before its columns", [row(&[int_value(1)]), end(1)].concat()),
    ];
    let mut wrong = Vec::new();
    for reader in READERS {
        for (what, tokens) in &cases {
            match read(&SqlType::Int, *reader, tokens) {
                Ok(batches) => wrong.push(format!("{what} by {reader:?} gives {batches:?}")),
                Err(error) => {
                    let told = error.report();
                    if error.kind() == ErrorKind::Bug || told.contains("planted") {
                        wrong.push(format!("{what} by {reader:?}: {told}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The last packet of an answer without the token that ends it. tiberius takes it for the end: it
/// believes that servers mark no other packet as the last one.
#[cfg(feature = "mssql-tds")]
#[test]
fn an_answer_without_its_last_token_is_no_whole_answer() {
    let tokens = [columns(&[("odd", int())]), row(&[int_value(1)])].concat();
    let error = read(&SqlType::Int, BulkReader::MssqlTds, &tokens).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", error.report());
}

#[test]
fn a_variant_is_read_by_its_value_where_that_fits_and_refused_where_not() {
    for reader in READERS {
        let number =
            read(&SqlType::Int, *reader, &one(&VARIANT, &variant(0x38, &[], &[7, 0, 0, 0])));
        let number = number.unwrap();
        assert_eq!(number[0].column(0).as_primitive::<Int32Type>().value(0), 7, "{reader:?}");
        let none = read(&SqlType::Int, *reader, &one(&VARIANT, &[0; 4])).unwrap();
        assert!(none[0].column(0).is_null(0), "{reader:?}");
        // The type of no value at all is not one that every driver knows.
        match read(&SqlType::Int, *reader, &one(&[0x1F], &[])) {
            Ok(none) => assert!(none[0].column(0).is_null(0), "{reader:?}"),
            Err(error) => assert_ne!(error.kind(), ErrorKind::Bug, "{reader:?}"),
        }
        let large = one(&VARIANT, &variant(0x7F, &[], &i64::MAX.to_le_bytes()));
        let error = read(&SqlType::Int, *reader, &large).unwrap_err();
        assert_eq!((error.kind(), error.context("column")), (ErrorKind::InvalidData, Some("odd")));
    }
}

#[test]
fn half_a_surrogate_pair_stops_no_table() {
    let halves: [&[u16]; 5] = [
        &[0xD800],
        &[0x61, 0xDC00, 0x62],
        &[0xD83D, 0xDE00, 0xD83D],
        &[0xDE00, 0xD83D],
        &[0xFEFF, 0x61, 0xFFFE],
    ];
    let own = SqlType::NVarChar(Length::Limited(40));
    let rows: Vec<u8> =
        halves.iter().flat_map(|units| row(&[forge::nvarchar_value(units)])).collect();
    let tokens = [columns(&[("odd", nvarchar())]), rows, end(5)].concat();
    for reader in READERS {
        let batches = read(&own, *reader, &tokens).unwrap();
        let texts = batches[0].column(0).as_string::<i32>();
        for (at, units) in halves.iter().enumerate() {
            assert_eq!(texts.value(at), String::from_utf16_lossy(units), "{reader:?}");
        }
    }
}

#[test]
fn bytes_that_were_damaged_on_the_way_end_in_rows_or_in_an_error() {
    let kinds = vec![
        ("n", int()),
        ("t", nvarchar()),
        ("d", vec![0x6A, 17, 38, 10]),
        ("m", vec![0x2A, 7]),
        ("b", vec![0xA5, 0x40, 0x1F]),
        ("x", vec![0xA5, 0xFF, 0xFF]),
    ];
    let values = vec![
        int_value(1),
        text_value("caf\u{e9}"),
        [&[17, 1][..], &[7; 16]].concat(),
        vec![8, 1, 2, 3, 4, 5, 0x10, 0x20, 0x0B],
        vec![3, 0, 1, 2, 3],
        chunked(&[9; 40]),
    ];
    let whole = [columns(&kinds), row(&values), row(&values), end(2)].concat();
    for reader in READERS {
        block_on(async {
            let (rig, _) = forged(SqlType::Int, *reader, Vec::new()).await;
            let damaged = (0..whole.len()).map(|at| {
                let mut tokens = whole.clone();
                tokens[at] ^= if at % 2 == 0 { 0xFF } else { 0x01 };
                (at, tokens)
            });
            let reads = damaged.map(|(at, tokens)| {
                let (rig, part) = (&rig, "FROM [dbo].[odd]".to_owned());
                async move {
                    let source = behind(rig, vec![Forged { part, tokens }]).await;
                    (at, rows(&source, SqlType::Int).await)
                }
            });
            let mut reads = stream::iter(reads).buffer_unordered(32);
            while let Some((at, read)) = reads.next().await {
                if let Err(error) = read {
                    let told = error.report();
                    assert!(!told.contains("broke down"), "byte {at} by {reader:?}: {told}");
                }
            }
        });
    }
}

#[test]
fn the_preflight_refuses_what_has_no_column_and_names_the_choices() {
    let kinds = ["sql_variant", "hierarchyid", "geography", "geometry", "vector", "json"];
    let described: Vec<(&str, Vec<u8>)> = vec![
        ("column_name", nvarchar()),
        ("column_id", int()),
        ("column_ordinal", int()),
        ("data_type", nvarchar()),
        ("character_maximum_length", int()),
        ("numeric_precision", int()),
        ("numeric_scale", int()),
        ("datetime_precision", int()),
    ];
    let mut tokens = columns(&described);
    for (number, kind) in (1..).zip(kinds) {
        let id = int_value(number);
        let (none, name) = (vec![0], text_value(&format!("c_{kind}")));
        let kind = text_value(kind);
        let all = [name, id.clone(), id, kind, none.clone(), none.clone(), none.clone(), none];
        tokens.extend(row(&all));
    }
    tokens.extend(end(6));
    block_on(async {
        let rig = OverTds::plain(Zone::UTC).await;
        let columns = vec![Column::new("id", 1, SqlType::Int, false)];
        rig.create_table(&table(), &columns, &["id"]).await.unwrap();
        rig.enable(&table(), &InstanceName::new("dbo_odd"), None).await.unwrap();
        rig.capture().await.unwrap();
        let part = "sp_cdc_get_captured_columns".to_owned();
        let source = behind(&rig, vec![Forged { part, tokens }]).await;
        let findings = source.preflight(&[TableRef::Table(table())]).await.unwrap();
        for kind in kinds {
            let found = findings.iter().find(|finding| {
                let told = format!("{} {}", finding.message, finding.remedy);
                finding.level == FindingLevel::Failure && told.contains(kind)
            });
            let found = found.unwrap_or_else(|| panic!("{kind} in {findings:?}"));
            assert!(found.message.contains(&format!("c_{kind}")), "{found:?}");
            assert!(found.remedy.contains("@captured_column_list"), "{found:?}");
        }
    });
}
