//! The physical reference: the plain Parquet writer, with the sink's settings, into a local file.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema};
use parquet::{
    arrow::{
        ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder,
        arrow_writer::ArrowWriterOptions,
    },
    basic::{Compression, ZstdLevel},
    file::{
        metadata::ParquetMetaData,
        properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder},
        reader::{FileReader, SerializedFileReader},
    },
    schema::types::ColumnPath,
};

use crate::Outcome;

/// Rows of a row group: the sink's default.
pub(crate) const ROW_GROUP_ROWS: usize = 256 << 10;

/// The sink's settings. [`same_form`] checks that they still are.
pub(crate) fn settings(schema: &Schema) -> WriterPropertiesBuilder {
    let own = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Chunk);
    let spread = schema.fields().iter().filter(|field| {
        let wide = matches!(
            field.data_type(),
            DataType::Int64
                | DataType::Float64
                | DataType::Decimal128(..)
                | DataType::Timestamp(..)
        );
        wide || field.name() == "_seqval"
    });
    spread.fold(own, |own, field| {
        own.set_column_dictionary_enabled(ColumnPath::from(field.name().as_str()), false)
    })
}

/// The sink's settings for the rows of a batch.
pub(crate) fn of(batches: &[RecordBatch]) -> Outcome<WriterProperties> {
    Ok(settings(&batches.first().ok_or("nothing to write")?.schema()).build())
}

/// Writes batches into one file. Returns its bytes.
pub(crate) fn write<'a>(
    path: &Path,
    properties: WriterProperties,
    batches: impl IntoIterator<Item = &'a RecordBatch>,
) -> Outcome<u64> {
    let options =
        ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let mut batches = batches.into_iter().peekable();
    let schema = batches.peek().ok_or("nothing to write")?.schema();
    let mut writer = ArrowWriter::try_new_with_options(File::create(path)?, schema, options)?;
    for batch in batches {
        writer.write(batch)?;
    }
    writer.close()?;
    Ok(fs::metadata(path)?.len())
}

/// The data files of a table, in the order of their making.
pub(crate) fn data_files(table: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(table)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "parquet") {
            files.push((fs::metadata(&path)?.modified()?, path));
        }
    }
    files.sort();
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

/// The rows of a file as it was written, in batches of `rows`.
pub(crate) fn read(path: &Path, rows: usize) -> Outcome<Vec<RecordBatch>> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?
        .with_batch_size(rows)
        .build()?;
    Ok(reader.collect::<Result<_, _>>()?)
}

fn metadata(path: &Path) -> Outcome<ParquetMetaData> {
    Ok(SerializedFileReader::new(File::open(path)?)?.metadata().clone())
}

/// Fails unless two files of the same rows have the same form: compression, encodings, statistics
/// and row groups, and nearly the same size. Otherwise the reference would not be one.
pub(crate) fn same_form(ours: &Path, reference: &Path) -> Outcome<()> {
    let (ours, reference) = (metadata(ours)?, metadata(reference)?);
    let form = |file: &ParquetMetaData| {
        file.row_groups()
            .iter()
            .map(|group| {
                let columns = group.columns().iter().map(|column| {
                    let encodings: Vec<_> = column.encodings().collect();
                    let statistics =
                        column.statistics().is_some_and(|s| s.min_bytes_opt().is_some());
                    (
                        column.compression(),
                        encodings,
                        statistics,
                        column.offset_index_offset().is_some(),
                    )
                });
                (group.num_rows(), columns.collect::<Vec<_>>())
            })
            .collect::<Vec<_>>()
    };
    if form(&ours) != form(&reference) {
        return Err(
            "the plain writer has other settings than the sink: correct the reference".into()
        );
    }
    Ok(())
}
