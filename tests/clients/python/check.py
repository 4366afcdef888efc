"""The comparison's own tests: every kind of difference is found, and equality is none. They need no
server and no driver.
"""

import decimal
import doctest
import io
import sys

import report
import truth

# A column's type, a value, another that must not pass for it.
DIFFERENT = [
    ("bit", "1", False),
    ("int", "-1", 1),
    ("real", "0.1", 0.2),
    ("float", "0.1", 0.1000001),
    ("decimal(38,38)", "0.00000000000000000000000000000000000001", decimal.Decimal(0)),
    ("decimal(9,2)", "1.50", decimal.Decimal("1.501")),
    ("datetime", "2024-02-29 12:34:56.003", "2024-02-29 12:34:56.007"),
    ("datetime2(7)", "2024-02-29 12:34:56.1234567", "2024-02-29 12:34:56.1234568"),
    ("datetimeoffset(0)", "2024-02-29 12:34:56 -03:30", "2024-02-29 12:34:56 +03:30"),
    ("time(0)", "23:59:59", "23:59:58"),
    ("varchar(9)", "", None),
    ("varchar(9)", "a", "a "),
    ("varchar(9)", "a", "A"),
    ("varbinary(9)", "00", b""),
    ("uniqueidentifier", "6F9619FF-8B86-D011-B42D-00C04FC964FF", b"\0" * 16),
]
EQUAL = [
    ("bit", "1", True),
    ("real", "3.40282347E+38", 3.4028234663852886e38),
    ("money", "-0.0001", decimal.Decimal("-0.0001")),
    ("datetime", "2024-02-29 12:34:56.003", "2024-02-29 12:34:56.003333"),
    ("varbinary(9)", "CAFE00", b"\xca\xfe\0"),
    ("uniqueidentifier", "01234567-89AB-CDEF-0123-456789ABCDEF",
     b"\x67\x45\x23\x01\xab\x89\xef\xcd\x01\x23\x45\x67\x89\xab\xcd\xef"),
]


def column(type_, text):
    return {"name": "c", "type": type_, "values": [text]}


def check():
    """Returns how many tests failed."""
    failed = doctest.testmod(truth).failed
    for type_, text, other in DIFFERENT + EQUAL:
        table = truth.Table("t", {"columns": [column(type_, text)], "rows": ["r"]})
        difference = table.difference(table.rows["r"], [other])
        if (difference is None) == ((type_, text, other) in DIFFERENT):
            print(f"{type_} {text!r} and {other!r}: {difference}")
            failed += 1
    whole = truth.Table("t")
    for name, row in whole.rows.items():
        if difference := whole.difference(row, row):
            print(f"row {name} differs from itself: {difference}")
            failed += 1
    out = io.StringIO()
    said = report.Report(out)
    said.check("a", lambda: None)
    said.check("b", report.equal, 1, 2, "the number\tof\nrows")
    said.end()
    if out.getvalue() != "passed\ta\nfailed\tb\tthe number of rows: 1 instead of 2\nend\n":
        print(repr(out.getvalue()))
        failed += 1
    return failed


if __name__ == "__main__":
    sys.exit(check() and 1)
