//! The settings that are compared: the sink's own, and others with one thing changed.

use arrow_schema::Schema;
use parquet::{
    basic::{Compression, Encoding, ZstdLevel},
    file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder},
    schema::types::ColumnPath,
};

use crate::plain;

type Builder = WriterPropertiesBuilder;

/// A setting to compare.
pub(super) struct Variant {
    pub(super) name: String,
    pub(super) properties: WriterProperties,
}

fn zstd(level: i32) -> Compression {
    Compression::ZSTD(ZstdLevel::try_new(level).unwrap_or_default())
}

fn column(name: &str) -> ColumnPath {
    ColumnPath::from(name)
}

/// The variants; the first is the sink's own.
pub(super) fn variants(schema: &Schema) -> Vec<Variant> {
    let variant = |name: &str, change: &dyn Fn(Builder) -> Builder| Variant {
        name: name.to_owned(),
        properties: change(plain::settings(schema)).build(),
    };
    let mut variants = vec![variant("the sink's settings", &|own: Builder| own)];
    for (name, codec) in [
        ("uncompressed", Compression::UNCOMPRESSED),
        ("snappy", Compression::SNAPPY),
        ("lz4_raw", Compression::LZ4_RAW),
        ("zstd 1", zstd(1)),
        ("zstd 3", zstd(3)),
        ("zstd 6", zstd(6)),
    ] {
        variants.push(variant(name, &|own: Builder| own.set_compression(codec)));
    }
    for (name, enabled) in [("dictionary everywhere", true), ("dictionary nowhere", false)] {
        variants.push(variant(name, &|own: Builder| {
            schema.fields().iter().fold(own, |own, field| {
                own.set_column_dictionary_enabled(column(field.name()), enabled)
            })
        }));
    }
    variants.push(variant("dictionary for texts that repeat alone", &|own: Builder| {
        ["title", "note", "_start_lsn"]
            .iter()
            .fold(own, |own, name| own.set_column_dictionary_enabled(column(name), false))
    }));
    variants.push(variant("delta encoding of _start_lsn and _seqval", &|own: Builder| {
        ["_start_lsn", "_seqval"].iter().fold(own, |own, name| {
            own.set_column_dictionary_enabled(column(name), false)
                .set_column_encoding(column(name), Encoding::DELTA_BYTE_ARRAY)
        })
    }));
    variants.push(variant("delta encoding of _seqval", &|own: Builder| {
        own.set_column_dictionary_enabled(column("_seqval"), false)
            .set_column_encoding(column("_seqval"), Encoding::DELTA_BYTE_ARRAY)
    }));
    for rows in [64 << 10, 256 << 10, 1 << 20] {
        variants.push(variant(&format!("row groups of {rows} rows"), &|own: Builder| {
            own.set_max_row_group_row_count(Some(rows))
        }));
    }
    for (name, level) in [
        ("no statistics in the file", EnabledStatistics::None),
        ("statistics of row groups", EnabledStatistics::Chunk),
        ("statistics of pages", EnabledStatistics::Page),
    ] {
        variants.push(variant(name, &|own: Builder| own.set_statistics_enabled(level)));
    }
    variants.push(variant(
        "statistics of pages for _start_lsn, _commit_ts and the key",
        &|own: Builder| {
            ["_start_lsn", "_commit_ts", "id"].iter().fold(own, |own, name| {
                own.set_column_statistics_enabled(column(name), EnabledStatistics::Page)
            })
        },
    ));
    variants
}
