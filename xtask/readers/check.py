"""The comparison's own tests: every kind of difference is found, and equality is none. They need
no reader.
"""

import doctest
import pathlib
import sys
import tempfile

import value
from compare import OPERATORS, Report, compare


class Listed:
    """A reader for the comparison's own tests: it answers from a list, and may skip a row."""

    nan_is_greatest = True
    takes_infinity = True
    shows_as = {}

    def __init__(self, schema, rows, skipped=None):
        self.given = schema, rows
        self.skipped = skipped

    def open(self, path):
        return path

    def schema(self, table):
        return self.given[0]

    def rows(self, table, schema):
        return self.given[1]

    def count(self, table, column, type_, comparison, value):
        if comparison == "IS NULL":
            return sum(row[0] is None for row in self.given[1])
        rows = [row[0] for row in self.given[1] if row[0] is not None]
        if comparison == "IS NOT NULL":
            return len(rows)
        return sum(OPERATORS[comparison](row, value) and row != self.skipped for row in rows)


def check():
    """Returns how many tests failed."""
    failed = doctest.testmod(value).failed
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(temporary)
        (directory / "expected").mkdir()
        (directory / "tables" / "t").mkdir(parents=True)
        (directory / "expected/t.schema.json").write_text('{"a": "long"}')
        lines = ['{"a": "1"}', '{"a": "1"}', '{"a": "7"}', '{"a": null}', ""]
        (directory / "expected/t.jsonl").write_text("\n".join(lines))
        rows, long = [(1,), (1,), (7,), (None,)], {"a": "long"}
        cases = [
            ("equal rows in another order", Listed(long, rows[::-1]), None),
            ("a row once instead of twice", Listed(long, rows[1:]), "1 rows missing"),
            ("a row too many", Listed(long, [*rows, (8,)]), "1 rows not expected"),
            ("a value gone NULL", Listed(long, [*rows[:2], (None,), (None,)]), "1 rows missing"),
            ("another type", Listed({"a": "integer"}, rows), "t.a is integer, expected long"),
            ("a column more", Listed({**long, "b": "long"}, rows), "t.b is long, expected None"),
            ("a file skipped", Listed(long, rows, skipped=7), "a >= 7 finds 0 rows of 1"),
        ]
        for case, reader, wanted in cases:
            lines = []
            report = Report("listed", lines.append)
            compare(reader, directory, report)
            found = any(wanted in line for line in lines) if wanted else not report.differences
            if not found:
                failed += 1
                print(f"FAILED {case}: {lines}")
        (directory / "expected/t.jsonl").write_text('{"b": "1"}')
        lines = []
        compare(Listed(long, rows), directory, Report("listed", lines.append))
        if not any("its columns are not the schema's" in line for line in lines):
            failed += 1
            print(f"FAILED expected rows of another shape: {lines}")
    print(f"{failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(1 if check() else 0)
