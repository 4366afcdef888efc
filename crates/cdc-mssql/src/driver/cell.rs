//! From tiberius' values to columns, without loss and without a detour over texts.

use tiberius::{
    ColumnData,
    time::{DateTime2, Time},
};

use super::{
    column::{ColumnBuilder, Misfit},
    moment,
};

/// Adds a value of the wire to its column.
pub(crate) fn append(value: &ColumnData<'_>, column: &mut ColumnBuilder) -> Result<(), Misfit> {
    match value {
        ColumnData::Bit(Some(bit)) => column.bit(*bit),
        ColumnData::U8(Some(number)) => column.int((*number).into()),
        ColumnData::I16(Some(number)) => column.int((*number).into()),
        ColumnData::I32(Some(number)) => column.int((*number).into()),
        ColumnData::I64(Some(number)) => column.int(*number),
        ColumnData::F32(Some(number)) => column.real(*number),
        ColumnData::F64(Some(number)) => column.float(*number),
        ColumnData::Numeric(Some(number)) => column.decimal(number.value(), number.scale()),
        ColumnData::String(Some(text)) => column.text(text),
        ColumnData::Xml(Some(xml)) => column.text(xml.as_ref().as_ref()),
        ColumnData::Guid(Some(uuid)) => column.uuid(uuid.into_bytes()),
        ColumnData::Binary(Some(bytes)) => column.bytes(bytes),
        ColumnData::Date(Some(date)) => column.date(moment::date(date.days())?),
        ColumnData::Time(Some(time)) => column.time(ticks(*time)?),
        ColumnData::DateTime(Some(own)) => {
            column.wall(moment::datetime(own.days(), own.seconds_fragments()))
        }
        ColumnData::SmallDateTime(Some(own)) => {
            column.wall(moment::smalldatetime(own.days(), own.seconds_fragments()))
        }
        ColumnData::DateTime2(Some(own)) => column.wall(micros(*own)?),
        // On the wire the moment is in UTC; the offset that it was written with stands beside it.
        ColumnData::DateTimeOffset(Some(own)) => column.instant(micros(own.datetime2())?),
        _ => {
            column.null();
            Ok(())
        }
    }
}

fn ticks(time: Time) -> Result<i64, Misfit> {
    moment::time(time.increments(), time.scale())
}

fn micros(own: DateTime2) -> Result<i64, Misfit> {
    Ok(moment::datetime2(own.date().days(), ticks(own.time())?))
}
