//! One Parquet file while it is encoded: rows in, bytes out, statistics beside.

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use bytes::Bytes;
use cdc_core::Result;
use parquet::{
    arrow::{ArrowWriter, arrow_writer::ArrowWriterOptions},
    basic::{Compression, ZstdLevel},
    file::properties::{EnabledStatistics, WriterProperties},
    schema::types::ColumnPath,
};

use crate::{config::DeltaConfig, fault, log::Layout, stats::FileStats};

/// Encodes the rows of one file. At most one row group is held in memory.
pub(crate) struct Encoder {
    writer: ArrowWriter<Vec<u8>>,
    stats: FileStats,
    row_group_bytes: usize,
    /// Bytes handed out so far.
    out: u64,
}

impl Encoder {
    pub(crate) fn new(layout: &Layout, config: &DeltaConfig) -> Result<Self> {
        // What each setting costs and saves is measured in adr/0008.
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_max_row_group_row_count(Some(config.row_group_rows))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_created_by(crate::log::ENGINE.to_owned());
        for (logical, physical) in layout.logical.fields().iter().zip(layout.physical.fields()) {
            if hardly_repeats(logical.name(), physical.data_type()) {
                let column = ColumnPath::new(vec![physical.name().clone()]);
                properties = properties.set_column_dictionary_enabled(column, false);
            }
        }
        let properties = properties.build();
        let options =
            ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let schema: SchemaRef = layout.physical.clone();
        let writer = ArrowWriter::try_new_with_options(Vec::new(), schema, options)
            .map_err(|error| fault::writer(&error, "new file"))?;
        Ok(Self {
            writer,
            stats: FileStats::new(&layout.physical, |name| layout.measured.contains(name)),
            row_group_bytes: config.row_group_bytes,
            out: 0,
        })
    }

    /// Takes rows, and gives the bytes that are ready.
    pub(crate) fn write(&mut self, rows: &RecordBatch) -> Result<Bytes> {
        self.stats.add(rows);
        self.writer.write(rows).map_err(|error| fault::writer(&error, "open file"))?;
        if self.writer.in_progress_size() >= self.row_group_bytes
            || self.writer.memory_size() >= self.row_group_bytes.saturating_mul(2)
        {
            self.writer.flush().map_err(|error| fault::writer(&error, "open file"))?;
        }
        Ok(self.take())
    }

    /// Bytes of the file so far, encoded or about to be.
    pub(crate) fn bytes(&self) -> u64 {
        self.out + self.writer.in_progress_size() as u64
    }

    /// Ends the file: its last bytes, all its bytes, its rows and its statistics.
    pub(crate) fn finish(mut self) -> Result<(Bytes, u64, FileStats)> {
        let ended = self.writer.finish().map_err(|error| fault::writer(&error, "open file"))?;
        self.stats.end(ended.row_groups());
        let rest = self.take();
        Ok((rest, self.out, self.stats))
    }

    fn take(&mut self) -> Bytes {
        // The writer counts what it wrote on its own and never looks back into its sink.
        let bytes = std::mem::take(self.writer.inner_mut());
        self.out += bytes.len() as u64;
        bytes.into()
    }
}

/// True for a column whose values a dictionary would hold nearly once each: it costs time, and the
/// file is larger with it.
fn hardly_repeats(name: &str, data_type: &DataType) -> bool {
    name == "_seqval"
        || matches!(
            data_type,
            DataType::Int64
                | DataType::Float32
                | DataType::Float64
                | DataType::Decimal128(..)
                | DataType::Timestamp(..)
        )
}
