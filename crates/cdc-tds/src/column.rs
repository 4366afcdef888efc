//! A column as the protocol describes it, and its values' bytes.

use cdc_core::{Length, SqlType};
use cdc_fake::Value;
use cdc_tsql::kind::{Collation, Kind};

use crate::{
    cell::{
        self, Misfit, OTHER_TYPE, OUT_OF_RANGE, TOO_LONG, UNEXPECTED_NULL, chunked, long, utf16,
    },
    charset::Charset,
    fault::{Fault, Read},
    type_id as id,
};

/// What decides about bytes besides the type itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dialect {
    /// The collation of texts that name none.
    pub(crate) collation: Collation,
    /// True when the client reads UTF-8. For one that does not, texts in UTF-8 are sent as
    /// `nvarchar`, which every client reads.
    pub(crate) utf8: bool,
}

/// How values of a type are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Bit,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Real,
    Float,
    /// With so many bytes, the sign's among them, and digits below this power of ten.
    Decimal {
        bytes: u8,
        limit: u128,
    },
    Money,
    SmallMoney,
    Date,
    DateTime,
    SmallDateTime,
    Time {
        bytes: u8,
        step: i64,
    },
    DateTime2 {
        bytes: u8,
        step: i64,
    },
    DateTimeOffset {
        bytes: u8,
        step: i64,
    },
    Uuid,
    /// In a code page, at most so many bytes.
    Narrow(Charset, u16),
    NarrowChunks(Charset),
    NarrowLong(Charset),
    /// UTF-16, at most so many bytes.
    Wide(u16),
    WideChunks,
    WideLong,
    Bytes(u16),
    BytesChunks,
    BytesLong,
}

/// What stands for NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NullForm {
    /// Nothing: the column has no NULL and no length in front of its values.
    None,
    Byte,
    Short,
    Chunks,
}

/// How a column is described and written.
#[derive(Clone, Debug)]
pub(crate) struct ColumnFormat {
    form: Form,
    null: NullForm,
    /// False for a column that is declared never to be NULL.
    nullable: bool,
    kind: Kind,
    collation: [u8; 5],
}

impl ColumnFormat {
    /// The format of an expression or a column of `kind`.
    pub(crate) fn of(kind: &Kind, dialect: Dialect) -> Read<Self> {
        let collation = kind.collation.unwrap_or(dialect.collation);
        let (form, null) = form(&kind.sql_type, collation, dialect.utf8)?;
        let fixed = !kind.nullable && has_fixed_form(&form);
        Ok(Self {
            form,
            null: if fixed { NullForm::None } else { null },
            nullable: kind.nullable,
            kind: kind.clone(),
            collation: collation.wire(),
        })
    }

    /// Bytes that a NULL takes in a row without a null bitmap; 0 when there is no NULL.
    pub(crate) const fn null_bytes(&self) -> usize {
        match (self.nullable, self.null) {
            (false, _) | (_, NullForm::None) => 0,
            (_, NullForm::Byte) => 1,
            (_, NullForm::Short) => 2,
            (_, NullForm::Chunks) => 8,
        }
    }

    /// The protocol's number of a type that an application defined, or 0.
    pub(crate) const fn user_type(&self) -> u32 {
        match self.kind.sql_type {
            SqlType::RowVersion => 80,
            _ => 0,
        }
    }

    /// True for a text in which upper and lower case differ.
    pub(crate) fn is_case_sensitive(&self, dialect: Dialect) -> bool {
        self.is_text() && !self.kind.collation.unwrap_or(dialect.collation).ignores_case
    }

    const fn is_text(&self) -> bool {
        matches!(
            self.form,
            Form::Narrow(..)
                | Form::NarrowChunks(_)
                | Form::NarrowLong(_)
                | Form::Wide(_)
                | Form::WideChunks
                | Form::WideLong
        ) && !matches!(self.kind.sql_type, SqlType::Xml)
    }

    /// True for the types whose description names a table.
    pub(crate) const fn names_table(&self) -> bool {
        matches!(self.form, Form::NarrowLong(_) | Form::WideLong | Form::BytesLong)
    }

    /// Appends the type's description.
    pub(crate) fn describe(&self, out: &mut Vec<u8>) {
        let fixed = self.null == NullForm::None;
        let one = |out: &mut Vec<u8>, fixed_id: u8, nullable_id: u8, bytes: u8| {
            if fixed {
                out.push(fixed_id);
            } else {
                out.extend_from_slice(&[nullable_id, bytes]);
            }
        };
        match (self.form, &self.kind.sql_type) {
            (Form::Bit, _) => one(out, id::BIT, id::BIT_N, 1),
            (Form::TinyInt, _) => one(out, id::TINYINT, id::INT_N, 1),
            (Form::SmallInt, _) => one(out, id::SMALLINT, id::INT_N, 2),
            (Form::Int, _) => one(out, id::INT, id::INT_N, 4),
            (Form::BigInt, _) => one(out, id::BIGINT, id::INT_N, 8),
            (Form::Real, _) => one(out, id::REAL, id::FLOAT_N, 4),
            (Form::Float, _) => one(out, id::FLOAT, id::FLOAT_N, 8),
            (Form::Money, _) => one(out, id::MONEY, id::MONEY_N, 8),
            (Form::SmallMoney, _) => one(out, id::SMALLMONEY, id::MONEY_N, 4),
            (Form::DateTime, _) => one(out, id::DATETIME, id::DATETIME_N, 8),
            (Form::SmallDateTime, _) => one(out, id::SMALLDATETIME, id::DATETIME_N, 4),
            (Form::Decimal { bytes, .. }, SqlType::Decimal { precision, scale }) => {
                out.extend_from_slice(&[id::DECIMAL_N, bytes, *precision, *scale]);
            }
            (Form::Time { .. }, SqlType::Time { scale }) => {
                out.extend_from_slice(&[id::TIME_N, *scale]);
            }
            (Form::DateTime2 { .. }, SqlType::DateTime2 { scale }) => {
                out.extend_from_slice(&[id::DATETIME2_N, *scale]);
            }
            (Form::DateTimeOffset { .. }, SqlType::DateTimeOffset { scale }) => {
                out.extend_from_slice(&[id::DATETIMEOFFSET_N, *scale]);
            }
            (Form::Uuid, _) => out.extend_from_slice(&[id::UNIQUEIDENTIFIER, 16]),
            (_, SqlType::Xml) => out.extend_from_slice(&[id::XML, 0]),
            (Form::Bytes(limit), SqlType::Binary(_) | SqlType::RowVersion) => {
                sized(out, id::BINARY, limit);
            }
            (Form::Bytes(limit), _) => sized(out, id::VARBINARY, limit),
            (Form::BytesChunks, _) => sized(out, id::VARBINARY, id::MAX),
            (Form::Narrow(_, limit), SqlType::Char(_)) => self.text(out, id::CHAR, limit),
            (Form::Narrow(_, limit), _) => self.text(out, id::VARCHAR, limit),
            (Form::NarrowChunks(_), _) => self.text(out, id::VARCHAR, id::MAX),
            (Form::Wide(limit), SqlType::Char(_) | SqlType::NChar(_)) => {
                self.text(out, id::NCHAR, limit);
            }
            (Form::Wide(limit), _) => self.text(out, id::NVARCHAR, limit),
            (Form::WideChunks, _) => self.text(out, id::NVARCHAR, id::MAX),
            (Form::NarrowLong(_), _) => self.long(out, id::TEXT, 0x7FFF_FFFF),
            (Form::WideLong, _) => self.long(out, id::NTEXT, 0x7FFF_FFFE),
            (Form::BytesLong, _) => self.long(out, id::IMAGE, 0x7FFF_FFFF),
            // A date; the scaled types above have no other type.
            _ => out.push(id::DATE_N),
        }
    }

    fn text(&self, out: &mut Vec<u8>, number: u8, bytes: u16) {
        sized(out, number, bytes);
        out.extend_from_slice(&self.collation);
    }

    fn long(&self, out: &mut Vec<u8>, number: u8, bytes: u32) {
        out.push(number);
        out.extend_from_slice(&bytes.to_le_bytes());
        if number != id::IMAGE {
            out.extend_from_slice(&self.collation);
        }
    }

    /// Appends NULL, for a row without a null bitmap.
    pub(crate) fn write_null(&self, out: &mut Vec<u8>) -> Result<(), Misfit> {
        match self.null {
            _ if !self.nullable => return Err(UNEXPECTED_NULL),
            NullForm::None => return Err(UNEXPECTED_NULL),
            NullForm::Byte => out.push(0),
            NullForm::Short => out.extend_from_slice(&id::MAX.to_le_bytes()),
            NullForm::Chunks => out.extend_from_slice(&id::CHUNKED_NULL.to_le_bytes()),
        }
        Ok(())
    }

    /// Appends a value that is not NULL.
    #[inline]
    pub(crate) fn write(&self, value: &Value, out: &mut Vec<u8>) -> Result<(), Misfit> {
        match (self.form, value) {
            (Form::Int, Value::Int(number)) => {
                let number = i32::try_from(*number).map_err(|_| OUT_OF_RANGE)?;
                self.fixed(out, number.to_le_bytes());
            }
            (Form::BigInt, Value::Int(number)) => self.fixed(out, number.to_le_bytes()),
            (Form::SmallInt, Value::Int(number)) => {
                let number = i16::try_from(*number).map_err(|_| OUT_OF_RANGE)?;
                self.fixed(out, number.to_le_bytes());
            }
            (Form::TinyInt, Value::Int(number)) => {
                self.fixed(out, [u8::try_from(*number).map_err(|_| OUT_OF_RANGE)?]);
            }
            (Form::Bit, Value::Bit(bit)) => self.fixed(out, [u8::from(*bit)]),
            (Form::Real, Value::Real(number)) => self.fixed(out, number.to_le_bytes()),
            (Form::Float, Value::Float(number)) => self.fixed(out, number.to_le_bytes()),
            (Form::Decimal { bytes, limit }, Value::Decimal(digits)) => {
                cell::decimal((*digits).into(), bytes, limit, out)?;
            }
            (Form::Money, Value::Decimal(digits)) => {
                let digits = i64::try_from(i128::from(*digits)).map_err(|_| OUT_OF_RANGE)?;
                // The upper half stands in front of the lower.
                self.fixed(out, digits.rotate_left(32).to_le_bytes());
            }
            (Form::SmallMoney, Value::Decimal(digits)) => {
                let digits = i32::try_from(i128::from(*digits)).map_err(|_| OUT_OF_RANGE)?;
                self.fixed(out, digits.to_le_bytes());
            }
            (Form::DateTime, Value::DateTime(time)) => {
                self.fixed(out, cell::datetime(time.as_ticks())?);
            }
            (Form::SmallDateTime, Value::DateTime2(ticks)) => {
                self.fixed(out, cell::small_datetime(*ticks)?);
            }
            (Form::Wide(limit), Value::Text(text)) => cell::wide(text, limit, out)?,
            (Form::Narrow(charset, limit), Value::Text(text)) => {
                cell::narrow(text, charset, limit, out)?;
            }
            (Form::Bytes(limit), Value::Bytes(bytes)) => {
                let length = u16::try_from(bytes.len()).map_err(|_| TOO_LONG)?;
                if length > limit {
                    return Err(TOO_LONG);
                }
                out.extend_from_slice(&length.to_le_bytes());
                out.extend_from_slice(bytes);
            }
            (form, value) => scaled_or_large(form, value, out)?,
        }
        Ok(())
    }

    #[inline]
    fn fixed<const N: usize>(&self, out: &mut Vec<u8>, bytes: [u8; N]) {
        if self.null != NullForm::None {
            out.push(u8::try_from(N).unwrap_or(u8::MAX));
        }
        out.extend_from_slice(&bytes);
    }
}

fn form(sql_type: &SqlType, collation: Collation, utf8: bool) -> Read<(Form, NullForm)> {
    use SqlType as T;
    let charset = || {
        Charset::of_page(collation.code_page).ok_or_else(|| {
            Fault::Unsupported(format!(
                "code page {} of collation {}",
                collation.code_page, collation.name
            ))
        })
    };
    let byte = |form| Ok((form, NullForm::Byte));
    let (short, chunks) = (NullForm::Short, NullForm::Chunks);
    match sql_type {
        T::Bit => byte(Form::Bit),
        T::TinyInt => byte(Form::TinyInt),
        T::SmallInt => byte(Form::SmallInt),
        T::Int => byte(Form::Int),
        T::BigInt => byte(Form::BigInt),
        T::Real => byte(Form::Real),
        T::Float => byte(Form::Float),
        T::Decimal { precision, .. } => byte(Form::Decimal {
            bytes: id::decimal_bytes(*precision),
            limit: 10_u128.checked_pow(u32::from(*precision)).unwrap_or(u128::MAX),
        }),
        T::Money => byte(Form::Money),
        T::SmallMoney => byte(Form::SmallMoney),
        T::Date => byte(Form::Date),
        T::DateTime => byte(Form::DateTime),
        T::SmallDateTime => byte(Form::SmallDateTime),
        T::Time { scale } => {
            byte(Form::Time { bytes: id::time_bytes(*scale), step: id::ticks_a_step(*scale) })
        }
        T::DateTime2 { scale } => {
            byte(Form::DateTime2 { bytes: id::time_bytes(*scale), step: id::ticks_a_step(*scale) })
        }
        T::DateTimeOffset { scale } => byte(Form::DateTimeOffset {
            bytes: id::time_bytes(*scale),
            step: id::ticks_a_step(*scale),
        }),
        T::UniqueIdentifier => byte(Form::Uuid),
        T::Char(length) | T::VarChar(Length::Limited(length)) => Ok(match charset()? {
            Charset::Utf8 if !utf8 => wide_form(*length),
            _ if *length > 8000 => (Form::NarrowChunks(charset()?), chunks),
            charset => (Form::Narrow(charset, (*length).max(1)), short),
        }),
        T::VarChar(Length::Max) => Ok(match charset()? {
            Charset::Utf8 if !utf8 => (Form::WideChunks, chunks),
            charset => (Form::NarrowChunks(charset), chunks),
        }),
        T::Text => Ok(match charset()? {
            Charset::Utf8 if !utf8 => (Form::WideLong, NullForm::Byte),
            charset => (Form::NarrowLong(charset), NullForm::Byte),
        }),
        T::NChar(length) | T::NVarChar(Length::Limited(length)) => Ok(wide_form(*length)),
        T::NVarChar(Length::Max) | T::Xml => Ok((Form::WideChunks, chunks)),
        T::NText => byte(Form::WideLong),
        T::Binary(length) | T::VarBinary(Length::Limited(length)) if *length <= 8000 => {
            Ok((Form::Bytes((*length).max(1)), short))
        }
        T::Binary(_) | T::VarBinary(_) => Ok((Form::BytesChunks, chunks)),
        T::RowVersion => Ok((Form::Bytes(8), short)),
        T::Image => byte(Form::BytesLong),
        other => Err(Fault::Unsupported(format!("a result of type {other}"))),
    }
}

fn wide_form(length: u16) -> (Form, NullForm) {
    match length {
        0..=4000 => (Form::Wide(length.max(1).saturating_mul(2)), NullForm::Short),
        _ => (Form::WideChunks, NullForm::Chunks),
    }
}

/// The types that have a number of their own for columns that are never NULL.
const fn has_fixed_form(form: &Form) -> bool {
    matches!(
        form,
        Form::Bit
            | Form::TinyInt
            | Form::SmallInt
            | Form::Int
            | Form::BigInt
            | Form::Real
            | Form::Float
            | Form::Money
            | Form::SmallMoney
            | Form::DateTime
            | Form::SmallDateTime
    )
}

fn sized(out: &mut Vec<u8>, number: u8, bytes: u16) {
    out.push(number);
    out.extend_from_slice(&bytes.to_le_bytes());
}

fn scaled_or_large(form: Form, value: &Value, out: &mut Vec<u8>) -> Result<(), Misfit> {
    match (form, value) {
        (Form::Date, Value::Date(days)) => {
            out.push(3);
            cell::date(i64::from(*days), out)
        }
        (Form::Time { bytes, step }, Value::Time(ticks)) => {
            out.push(bytes);
            cell::time(*ticks, bytes, step, out)
        }
        (Form::DateTime2 { bytes, step }, Value::DateTime2(ticks)) => {
            out.push(bytes.saturating_add(3));
            cell::moment(*ticks, bytes, step, out)
        }
        (Form::DateTimeOffset { bytes, step }, Value::DateTimeOffset { utc, offset_minutes }) => {
            out.push(bytes.saturating_add(5));
            cell::moment(*utc, bytes, step, out)?;
            out.extend_from_slice(&offset_minutes.to_le_bytes());
            Ok(())
        }
        (Form::Uuid, Value::Uuid([a, b, c, d, e, f, g, h, rest @ ..])) => {
            out.extend_from_slice(&[16, *d, *c, *b, *a, *f, *e, *h, *g]);
            out.extend_from_slice(rest);
            Ok(())
        }
        (Form::WideChunks, Value::Text(text)) => chunked(out, |out| {
            utf16(text, out);
        }),
        (Form::NarrowChunks(charset), Value::Text(text)) => {
            chunked(out, |out| charset.encode(text, out))
        }
        (Form::BytesChunks, Value::Bytes(bytes)) => {
            chunked(out, |out| out.extend_from_slice(bytes))
        }
        (Form::WideLong, Value::Text(text)) => long(out, |out| {
            utf16(text, out);
        }),
        (Form::NarrowLong(charset), Value::Text(text)) => {
            long(out, |out| charset.encode(text, out))
        }
        (Form::BytesLong, Value::Bytes(bytes)) => long(out, |out| out.extend_from_slice(bytes)),
        _ => Err(OTHER_TYPE),
    }
}

#[cfg(test)]
mod tests;
