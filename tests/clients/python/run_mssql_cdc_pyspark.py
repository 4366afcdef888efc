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
    if isinstance(value, datetime.time):
        return f"{value.isoformat(timespec='microseconds')}"
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


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
            moment = datetime.datetime.fromisoformat(found) if found else None
            equal(text(moment), time, f"the time of {lsn}")

    def positions(self):
        for time, lsn in self.expected["marks"]:
            found = self.client.time_to_lsn(datetime.datetime.fromisoformat(time))
            equal(found, lsn, f"the position at {time}")
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
                [(table["instance"], table["start"])],
                f"the instances of {table['table']}",
            )
            expected = [name for name in table["columns"] if name not in table["computed"]]
            equal(found[0].columns, expected, f"the columns of {table['instance']}")
            equal(list(found[0].computed), table["computed"], "the computed columns")
            source = self.client.source_table(table["instance"])
            equal((source.schema, source.table), (table["schema"], table["table"]), "the table")
            equal(source.keys, table["key"], f"the key of {table['table']}")

    def changes(self):
        for table in self.expected["tables"]:
            columns = [name for name in table["columns"] if name not in table["computed"]]
            batches = self.client.iter_changes(
                table["instance"], table["low"], self.expected["high"], columns, True, BATCH_ROWS
            )
            names = ["_start_lsn", "_seqval", "_operation", "_command_id", "_commit_ts", *columns]
            self.compare(table, "changes", names, batches)

    def rows(self):
        for table in self.expected["tables"]:
            columns = [name for name in table["columns"] if name not in table["computed"]]
            batches = self.client.iter_table(
                table["schema"], table["table"], columns, table["key"], None, None, None, BATCH_ROWS
            )
            self.compare(table, "rows", columns, batches)

    def compare(self, table, what, names, batches):
        """Compares rows column by column, in order."""
        found = [row for batch in batches for row in batch.select(names).to_pylist()]
        expected = table[what]
        if what == "rows":
            # The table has no order of its own.
            found.sort(key=lambda row: text(row[table["key"][0]]))
            expected = sorted(expected, key=lambda row: row[table["key"][0]])
        for number, (got, row) in enumerate(zip(found, expected)):
            for name in names:
                value = text(got[name])
                if value != row[name]:
                    raise Different(
                        f"{table['table']}, {what}, row {number}, {name}: {value!r} "
                        f"instead of {row[name]!r}"
                    )
        equal(len(found), len(expected), f"{what} of {table['table']}")

    def splits(self):
        """Ranges that share the rows out: together they are the whole, none overlap."""
        for table in self.expected["tables"]:
            low, high = table["low"], self.expected["high"]
            tiles = self.client.split_points(table["instance"], low, high, 4)
            changes = sorted(row["_start_lsn"] for row in table["changes"])
            begin, seen = low, 0
            for end, following, rows in tiles:
                count = sum(begin <= lsn <= end for lsn in changes)
                equal(rows, count, f"rows of {table['instance']} from {begin} to {end}")
                begin, seen = following, seen + count
            rest = sum(begin <= lsn <= high for lsn in changes)
            equal(seen + rest, len(changes), f"rows of all ranges of {table['instance']}")

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
