"""The Delta types whose values are compared: their text form and their exact value in memory."""

import datetime
import decimal
import math
import re
import struct

# Exact for any decimal of 38 digits with its scale.
EXACT = decimal.Context(prec=100, traps=[decimal.InvalidOperation, decimal.Inexact])
EPOCH = datetime.datetime(1970, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)
INTEGERS = ("byte", "short", "integer", "long")
TIMESTAMPS = ("timestamp", "timestamp_ntz")
FLOATS = ("float", "double")
KINDS = (*INTEGERS, *TIMESTAMPS, *FLOATS, "boolean", "decimal", "date", "string", "binary")


class Type:
    """A Delta type, its text form in the expected rows, and its exact value in memory.

    In memory every value is an int, bool, float, str or bytes: a decimal is its digits without the
    point, a date its days and a timestamp its microseconds since 1970.

    >>> Type("decimal(10,2)").parse("-1.50")
    -150
    >>> Type("decimal(10,2)").text(-150)
    '-1.50'
    >>> Type("decimal(38,38)").parse("-0." + "9" * 38) == 1 - 10**38
    True
    >>> Type("decimal(38,0)").text(10**38 - 1) == "9" * 38
    True
    >>> Type("decimal(10,2)").parse("1.5")
    Traceback (most recent call last):
    ValueError: not 2 digits behind the point: '1.5'
    >>> Type("date").parse("1969-12-31")
    -1
    >>> Type("timestamp_ntz").parse("1970-01-01T00:00:00.000001")
    1
    >>> Type("timestamp").text(-1)
    '1969-12-31T23:59:59.999999'
    >>> Type("timestamp").parse("0001-01-01T00:00:00.000000")
    -62135596800000000
    >>> Type("binary").text(Type("binary").parse("00FF"))
    '00FF'
    >>> Type("float").parse("0.1") == Type("double").parse("0.1")
    False
    >>> Type("boolean").parse("yes")
    Traceback (most recent call last):
    ValueError: neither true nor false: 'yes'
    """

    def __init__(self, name):
        self.name = name
        found = re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", name)
        self.kind = "decimal" if found else name
        self.precision, self.scale = (int(n) for n in found.groups()) if found else (0, 0)
        if self.kind not in KINDS:
            raise ValueError(f"no Delta type that is compared: {name!r}")

    def parse(self, text):
        if self.kind in INTEGERS:
            return int(text)
        if self.kind == "boolean":
            if text not in ("true", "false"):
                raise ValueError(f"neither true nor false: {text!r}")
            return text == "true"
        if self.kind in FLOATS:
            return self.rounded(float(text))
        if self.kind == "decimal":
            if len(text.partition(".")[2]) != self.scale:
                raise ValueError(f"not {self.scale} digits behind the point: {text!r}")
            return self.digits(decimal.Decimal(text))
        if self.kind == "date":
            return (datetime.datetime.fromisoformat(text) - EPOCH).days
        if self.kind in TIMESTAMPS:
            return (datetime.datetime.fromisoformat(text.removesuffix("Z")) - EPOCH) // MICROSECOND
        if self.kind == "binary":
            return bytes.fromhex(text)
        return text

    def text(self, value):
        if self.kind == "boolean":
            return "true" if value else "false"
        if self.kind == "decimal":
            return format(self.decimal(value), "f")
        if self.kind == "date":
            return (EPOCH + datetime.timedelta(days=value)).date().isoformat()
        if self.kind in TIMESTAMPS:
            return self.datetime(value).isoformat(timespec="microseconds")
        if self.kind == "binary":
            return value.hex().upper()
        return str(value)

    def digits(self, value):
        """A decimal's digits at the type's scale; the value must fit without rounding."""
        return int(EXACT.to_integral_exact(EXACT.scaleb(value, self.scale)))

    def decimal(self, digits):
        return EXACT.scaleb(decimal.Decimal(digits), -self.scale)

    def datetime(self, micros):
        return EPOCH + micros * MICROSECOND

    def rounded(self, value):
        if self.kind == "float" and math.isfinite(value):
            return struct.unpack("<f", struct.pack("<f", value))[0]
        return value

    def key(self, value):
        """What makes two values the same: for floats the bits, and any NaN is any other."""
        if isinstance(value, float):
            return "NaN" if math.isnan(value) else struct.pack("<d", value)
        return value


def is_nan(value):
    return isinstance(value, float) and math.isnan(value)
