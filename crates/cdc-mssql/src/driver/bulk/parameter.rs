//! Parameters of a statement as `mssql-tds` sends them.

use cdc_core::{Error, Result};
use mssql_tds::{
    datatypes::{decoder::DecimalParts, sql_string::SqlString, sqltypes::SqlType},
    message::parameters::rpc_parameters::{RpcParameter, StatusFlags},
};

use crate::driver::Parameter;

/// Most characters of `nvarchar` and most bytes of `varbinary` that are no `(max)`.
const NVARCHAR_MAX: usize = 4_000;
const VARBINARY_MAX: usize = 8_000;
/// Most digits of a `decimal`.
const PRECISION_MAX: u8 = 38;

/// `@P1`, `@P2`, ...
pub(super) fn all(parameters: &[Parameter]) -> Result<Vec<RpcParameter>> {
    (1..)
        .zip(parameters)
        .map(|(number, own): (usize, _)| {
            let name = Some(format!("@P{number}"));
            Ok(RpcParameter::new(name, StatusFlags::NONE, value(own)?))
        })
        .collect()
}

/// A value in a type that does not depend on its length, so that equal texts share a plan.
fn value(own: &Parameter) -> Result<SqlType> {
    Ok(match own {
        Parameter::Text(text) => {
            let units = text.encode_utf16().count();
            let text = Some(SqlString::from_utf8_string(text.clone()));
            if units <= NVARCHAR_MAX {
                SqlType::NVarchar(text, 4_000)
            } else {
                SqlType::NVarcharMax(text)
            }
        }
        Parameter::Int(number) => SqlType::BigInt(Some(*number)),
        Parameter::Bit(bit) => SqlType::Bit(Some(*bit)),
        Parameter::Real(number) => SqlType::Real(Some(*number)),
        Parameter::Float(number) => SqlType::Float(Some(*number)),
        Parameter::Decimal(digits, scale) => {
            if *scale > PRECISION_MAX || digits.unsigned_abs() >= 10_u128.pow(38) {
                return Err(Error::bug("no decimal has so many digits"));
            }
            let magnitude = digits.unsigned_abs();
            SqlType::Decimal(Some(DecimalParts::new(
                *digits >= 0,
                PRECISION_MAX,
                *scale,
                magnitude,
            )))
        }
        Parameter::Bytes(bytes) if bytes.len() <= VARBINARY_MAX => {
            SqlType::VarBinary(Some(bytes.clone()), 8_000)
        }
        Parameter::Bytes(bytes) => SqlType::VarBinaryMax(Some(bytes.clone())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_one_kind_share_a_type_until_it_ends() {
        let text = |units: usize| value(&Parameter::Text("x".repeat(units))).expect("fits");
        assert!(matches!(text(0), SqlType::NVarchar(Some(_), 4_000)));
        assert!(matches!(text(4_000), SqlType::NVarchar(Some(_), 4_000)));
        assert!(matches!(text(4_001), SqlType::NVarcharMax(Some(_))));
        let bytes = |count: usize| value(&Parameter::Bytes(vec![1; count])).expect("fits");
        assert!(matches!(bytes(8_000), SqlType::VarBinary(Some(_), 8_000)));
        assert!(matches!(bytes(8_001), SqlType::VarBinaryMax(Some(_))));
    }

    #[test]
    fn a_decimal_keeps_sign_digits_and_scale() {
        let most = 10_i128.pow(38) - 1;
        for (digits, scale) in [(0, 0), (-5, 2), (most, 38), (-most, 0)] {
            let SqlType::Decimal(Some(parts)) =
                value(&Parameter::Decimal(digits, scale)).expect("fits")
            else {
                panic!("a decimal")
            };
            assert_eq!((parts.is_positive, parts.scale), (digits >= 0, scale));
            assert_eq!(parts.magnitude(), digits.unsigned_abs());
        }
        assert!(value(&Parameter::Decimal(most + 1, 0)).is_err());
    }
}
