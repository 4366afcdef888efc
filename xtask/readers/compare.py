"""Compares Delta tables with their expected rows in one reader.

    compare.py probe --reader NAME          can the reader be loaded here? its version, or why not
    compare.py compare --reader NAME DIR    every row, column and bound of every table below DIR

README.md beside this file describes DIR. Exit code 0: equal; 1: not, or not loadable.
"""

import argparse
import collections
import json
import math
import operator
import pathlib
import sys
import time

from reader import READERS
from value import Type, is_nan

# Values of a column that predicates are made from: the least, the greatest, and some between.
PROBES_MAX = 6
# Differing rows that a report shows.
SHOWN_MAX = 3
OPERATORS = {">=": operator.ge, "<=": operator.le, "=": operator.eq}


class Expected:
    """The rows a table must have."""

    def __init__(self, directory, name):
        schema = json.loads((directory / f"{name}.schema.json").read_text("utf-8"))
        self.schema = {column: Type(type_) for column, type_ in schema.items()}
        self.rows = []
        lines = (directory / f"{name}.jsonl").read_text("utf-8").split("\n")
        for number, line in enumerate(lines, 1):
            if line:
                row = json.loads(line)
                if set(row) != set(schema):
                    raise ValueError(f"{name}.jsonl:{number}: its columns are not the schema's")
                self.rows.append(tuple(
                    None if row[column] is None else type_.parse(row[column])
                    for column, type_ in self.schema.items()
                ))

    def probes(self, index, infinity):
        """Some values of a column, the least and the greatest among them."""
        present = {row[index] for row in self.rows} - {None}
        values = sorted(
            value for value in present
            if not isinstance(value, float)
            or math.isfinite(value)
            or (infinity and not math.isnan(value))
        )
        if len(values) <= PROBES_MAX:
            return values
        step = (len(values) - 1) / (PROBES_MAX - 1)
        return [values[round(at * step)] for at in range(PROBES_MAX)]

    def count(self, index, comparison, value, nan_is_greatest):
        """How many rows a predicate holds for."""
        column = [row[index] for row in self.rows]
        if value is None:
            nulls = column.count(None)
            return nulls if comparison == "IS NULL" else len(column) - nulls
        compare = OPERATORS[comparison]
        nans = sum(map(is_nan, column)) if nan_is_greatest and comparison == ">=" else 0
        return nans + sum(
            1 for given in column
            if given is not None and not is_nan(given) and compare(given, value)
        )


class Report:
    """What was compared and what differs."""

    def __init__(self, reader_name, out=print):
        self.reader_name = reader_name
        self.differences = 0
        self.tables = self.rows = self.predicates = 0
        self.out = out

    def differs(self, what):
        self.differences += 1
        self.out(f"DIFFERS {self.reader_name}: {what}")


def compare(reader, directory, report):
    """Compares every table below the directory."""
    if not (directory / "tables").is_dir():
        report.differs(f"{directory} holds no directory tables")
        return
    schemas = (directory / "expected").glob("*.schema.json")
    expected = {path.name.removesuffix(".schema.json") for path in schemas}
    written = {path.name for path in (directory / "tables").iterdir() if path.is_dir()}
    for name in sorted(expected ^ written):
        report.differs(f"table {name} has no {'table' if name in expected else 'expected rows'}")
    if not expected:
        report.differs(f"there is no table below {directory}")
    for name in sorted(expected & written):
        report.tables += 1
        compare_table(reader, name, directory, report)


def compare_table(reader, name, directory, report):
    try:
        expected = Expected(directory / "expected", name)
    except (OSError, ValueError, ArithmeticError) as error:
        report.differs(f"{name}: its expected rows cannot be read: {error}")
        return
    try:
        table = reader.open(directory / "tables" / name)
        schema = reader.schema(table)
        wanted = {column: type_.name.replace(" ", "") for column, type_ in expected.schema.items()}
        wanted = {column: reader.shows_as.get(type_, type_) for column, type_ in wanted.items()}
        for column in sorted(wanted.keys() | schema.keys()):
            shown, as_wanted = schema.get(column), wanted.get(column)
            if shown != as_wanted:
                report.differs(f"{name}.{column} is {shown}, expected {as_wanted}")
        # Rows of another shape say nothing, and bounds of other rows say nothing either.
        if schema == wanted and compare_rows(
            name, reader.rows(table, expected.schema), expected, report
        ):
            compare_bounds(reader, table, name, expected, report)
    except Exception as error:  # any reader's error is a finding about the table
        report.differs(f"{name} cannot be read: {type(error).__name__}: {error}")


def compare_rows(name, given, expected, report):
    """Compares the rows as a multiset, and says whether they are the same."""
    types = list(expected.schema.values())

    def key(row):
        return tuple(type_.key(value) for type_, value in zip(types, row, strict=True))

    shown = {key(row): row for row in [*given, *expected.rows]}
    given = collections.Counter(map(key, given))
    wanted = collections.Counter(map(key, expected.rows))
    report.rows += given.total()
    for what, left in (("missing", wanted - given), ("not expected", given - wanted)):
        if left:
            report.differs(f"{name}: {left.total()} rows {what}")
            for row in list(left)[:SHOWN_MAX]:
                texts = (
                    f"{column}={'NULL' if value is None else type_.text(value)}"
                    for (column, type_), value in zip(expected.schema.items(), shown[row])
                )
                report.out(f"  {what}: {', '.join(texts)}")
    return given == wanted


def compare_bounds(reader, table, name, expected, report):
    """A file whose bounds or null counts are wrong is skipped by a predicate its rows fulfil."""
    for index, (column, type_) in enumerate(expected.schema.items()):
        predicates = [("IS NULL", None), ("IS NOT NULL", None)]
        for value in expected.probes(index, reader.takes_infinity):
            predicates += [(comparison, value) for comparison in OPERATORS]
        for comparison, value in predicates:
            report.predicates += 1
            given = reader.count(table, column, type_, comparison, value)
            wanted = expected.count(index, comparison, value, reader.nan_is_greatest)
            if given != wanted:
                text = "" if value is None else f" {type_.text(value)}"
                report.differs(
                    f"{name}: {column} {comparison}{text} finds {given} rows of {wanted}; "
                    "look at the file statistics of the column"
                )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    tasks = parser.add_subparsers(dest="task", required=True)
    for task in ("probe", "compare"):
        tasks.add_parser(task).add_argument("--reader", choices=READERS, required=True)
    tasks.choices["compare"].add_argument("directory", type=pathlib.Path)
    arguments = parser.parse_args()
    try:
        reader = READERS[arguments.reader]()
    except Exception as error:  # whatever keeps it from loading is the reason
        print(" ".join(str(error).split()) or type(error).__name__, file=sys.stderr)
        return 1
    if arguments.task == "probe":
        print(reader.version)
        return 0
    start = time.monotonic()
    report = Report(arguments.reader)
    compare(reader, arguments.directory.resolve(), report)
    seconds = time.monotonic() - start
    state = f"{report.differences} DIFFERENCES" if report.differences else "equal"
    print(
        f"{state} in {arguments.reader} {reader.version}: {report.tables} tables, "
        f"{report.rows} rows, {report.predicates} predicates, {seconds:.1f} s"
    )
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(main())
