"""The T-SQL client of mssql-cdc-pyspark, without Spark. It asks the server over the wire; the project's
own source has read the same database in memory and written down what it saw: positions, times, ranges
and rows have to be the same.
"""

import datetime
import decimal
import importlib.util
import json
import struct
import sys
import types

import pyarrow

from report import Different, Report, equal
from server import Server

# The package asks for Spark when it is imported as a whole; its client does not need it.
NAME = "mssql_cdc"
specification = importlib.util.find_spec(NAME)
package = types.ModuleType(NAME)
package.__path__ = list(specification.submodule_search_locations)
package.__spec__ = specification
sys.modules[NAME] = package
from mssql_cdc.client import make_client  # noqa: E402  (only now can it be found)

BATCH_ROWS = 1000
# Ranges to share the changes out in.
RANGES = 4
# The second before a moment, and a tick of datetime.
PASSED_OVER = datetime.timedelta(seconds=1, milliseconds=4)


def text(value):
    """A value as the source's own description writes it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return struct.pack(">d", value).hex()
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return f"{value.year:04}" + value.strftime("-%m-%dT%H:%M:%S.%f")
    if isinstance(value, datetime.date):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def milliseconds(text):
    """A moment as the client gives it, who rounds datetime to milliseconds.

    >>> milliseconds("2026-10-30T12:00:25.856666")
    '2026-10-30T12:00:25.857000'
    """
    if text is None:
        return None
    moment = datetime.datetime.fromisoformat(text)
    rounded = round(moment.microsecond / 1000) * 1000
    return f"{moment + datetime.timedelta(microseconds=rounded - moment.microsecond):%Y-%m-%dT%H:%M:%S.%f}"


def rows_of(batch, names):
    """The rows of a batch; times of the day as text, since Python has six of their seven digits."""
    columns = []
    for name in names:
        column = batch.column(name)
        if pyarrow.types.is_time(column.type):
            ticks = column.cast(pyarrow.time64("ns")).cast(pyarrow.int64()).to_pylist()
            columns.append([None if tick is None else time_of_day(tick) for tick in ticks])
        else:
            columns.append(column.to_pylist())
    return [dict(zip(names, row)) for row in zip(*columns)]


def time_of_day(nanoseconds):
    """
    >>> time_of_day(86_399_999_999_900)
    '23:59:59.9999999'
    """
    seconds, rest = divmod(nanoseconds, 10**9)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest // 100:07}"


class Comparison:
    """The client, and what the source has written down."""

    def __init__(self, server):
        self.expected = json.loads((server.directory / "source.json").read_text("utf-8"))
        options = "".join(
            f"{name}={value};"
            for name, value in {
                "Server": f"{server.host},{server.port}",
                "Database": self.expected["database"],
                "Encrypt": "Mandatory",
                "TrustServerCertificate": "Yes",
            }.items()
        )
        self.client = make_client({
            "connectionString": options, "user": server.user, "password": server.password,
        })

    def zone(self):
        equal(self.client.clock(), (self.expected["zone"], None), "the zone of the server's clock")

    def bounds(self):
        equal(self.client.max_lsn(), self.expected["high"], "the newest position")
        for table in self.expected["tables"]:
            low = self.client.min_lsn(table["instance"])
            equal(low, table["low"], f"the first position of {table['instance']}")

    def times(self):
        for lsn, time in self.expected["commits"]:
            found = self.client.lsn_to_time(lsn)
            equal(text(datetime.datetime.fromisoformat(found)), milliseconds(time), f"the time of {lsn}")

    def positions(self):
        for time, lsn in self.expected["marks"]:
            moment = datetime.datetime.fromisoformat(time)
            found = self.client.time_to_lsn(moment)
            # The source passes over commits of the second before the moment, to be sure.
            between = [
                datetime.datetime.fromisoformat(commit)
                for at, commit in self.expected["commits"]
                if (lsn or "") < at <= (found or "")
            ]
            if (found or "") < (lsn or "") or any(
                not moment - PASSED_OVER < commit <= moment for commit in between
            ):
                raise Different(f"the position at {time}: {found} instead of {lsn}")
        for after, count, lsn in self.expected["counted"]:
            found = self.client.nth_commit_after(after, count)
            equal(found, lsn, f"commit {count} after {after}")

    def neighbours(self):
        for lsn, previous, following in self.expected["neighbours"]:
            equal(self.client.decrement_lsn(lsn), previous, f"the position before {lsn}")
            equal(self.client.increment_lsn(lsn), following, f"the position after {lsn}")

    def instances(self):
        for table in self.expected["tables"]:
            found = self.client.capture_instances(table["instance"])
            equal(
                [(instance.name, instance.start_lsn) for instance in found],
                [
                    (other["instance"], other["start"])
                    for other in self.expected["tables"]
                    if other["table"] == table["table"]
                ],
                f"the instances of {table['table']}",
            )
            [own] = [instance for instance in found if instance.name == table["instance"]]
            expected = [name for name in table["columns"] if name not in table["computed"]]
            equal(own.columns, expected, f"the columns of {table['instance']}")
            equal(list(own.computed), table["computed"], "the computed columns")
            source = self.client.source_table(table["instance"])
            equal((source.schema, source.table), (table["schema"], table["table"]), "the table")
            equal(source.keys, table["key"], f"the key of {table['table']}")

    def changes(self):
        for table in self.expected["tables"]:
            self.compare_changes(table, [(table["low"], self.expected["high"])])

    def compare_changes(self, table, ranges):
        """Compares the changes of ranges, one after the other, with all changes."""
        columns = [name for name in table["columns"] if name not in table["computed"]]
        batches = [
            batch
            for begin, end in ranges
            for batch in self.client.iter_changes(
                table["instance"], begin, end, columns, True, BATCH_ROWS
            )
        ]
        names = ["_start_lsn", "_seqval", "_operation", "_command_id", "_commit_ts", *columns]
        self.compare(table, "changes", names, batches)

    def rows(self):
        for table in self.expected["tables"]:
            captured = [name for name in table["columns"] if name not in table["computed"]]
            columns = self.client.present_columns(table["instance"], captured)
            gone = [name for name in captured if name not in columns]
            equal(
                [name for name in gone if any(row[name] is not None for row in table["rows"])],
                [], "columns that are gone and have values",
            )
            batches = self.client.iter_table(
                table["schema"], table["table"], columns, table["key"], None, None, None, BATCH_ROWS
            )
            self.compare(table, "rows", columns, batches)

    def compare(self, table, what, names, batches):
        """Compares rows column by column, in order."""
        found = [row for batch in batches for row in rows_of(batch, names)]
        expected = table[what]
        if what == "rows":
            # The table has no order of its own.
            found.sort(key=lambda row: [text(row[name]) for name in table["key"]])
            expected = sorted(expected, key=lambda row: [row[name] for name in table["key"]])
        for number, (got, row) in enumerate(zip(found, expected)):
            for name in names:
                value, given = text(got[name]), row[name]
                if name in table["datetimes"] or name == "_commit_ts":
                    given = milliseconds(given)
                if value != given:
                    raise Different(
                        f"{table['table']}, {what}, row {number}, {name}: {value!r} "
                        f"instead of {given!r}"
                    )
        equal(len(found), len(expected), f"{what} of {table['table']}")

    def splits(self):
        """Ranges that share the changes out: read one after the other, they are the whole."""
        for table in self.expected["tables"]:
            low, high = table["low"], self.expected["high"]
            tiles = self.client.split_points(table["instance"], low, high, RANGES)
            begins = [low, *(following for _, following, _ in tiles)]
            ends = [*(end for end, _, _ in tiles), high]
            ranges = [(begin, end) for begin, end in zip(begins, ends) if begin <= end]
            if len(table["changes"]) > BATCH_ROWS // RANGES and len(ranges) < RANGES:
                raise Different(f"{len(ranges)} ranges of {table['instance']} instead of {RANGES}")
            self.compare_changes(table, ranges)

    def ddl(self):
        for table in self.expected["tables"]:
            found = self.client.ddl_history(table["instance"], table["start"], self.expected["high"])
            equal(
                [(change.lsn, change.command) for change in found],
                [tuple(change) for change in table["ddl"]],
                f"the DDL of {table['table']}",
            )

    def estimates(self):
        for table in self.expected["tables"]:
            found = self.client.row_estimate(table["schema"], table["table"])
            equal(found, len(table["rows"]), f"the estimated rows of {table['table']}")


def main():
    report = Report()
    comparison = report.check("logs in", Comparison, Server())
    if comparison:
        check = report.check
        check("detects the zone of the server's clock", comparison.zone)
        check("sees the same bounds", comparison.bounds)
        check("sees the same neighbours of a position", comparison.neighbours)
        check("sees the same commit times", comparison.times)
        check("finds the same positions by time and by count", comparison.positions)
        check("sees the same instances, columns and keys", comparison.instances)
        check("reads the same changes", comparison.changes)
        check("reads the same rows", comparison.rows)
        check("shares the changes out in ranges", comparison.splits)
        check("sees the same changes of columns", comparison.ddl)
        check("estimates the rows of a table", comparison.estimates)
    report.end()


if __name__ == "__main__":
    main()
