"""rivet: copies the changes of an instance to Parquet. What it wrote is compared with what was
committed.
"""

import os
import pathlib
import subprocess
import urllib.parse

import pyarrow.parquet

from drive_pytds import Pytds
from report import Different, Report, equal
from server import Server

DATABASE = "rivet"
TIME_LIMIT = 60

TABLE = """CREATE TABLE dbo.orders (
  id int NOT NULL CONSTRAINT pk_orders PRIMARY KEY,
  name nvarchar(40) NULL,
  amount decimal(18,4) NULL,
  at datetime2(3) NULL,
  paid bit NULL,
  weight float NULL,
  quantity bigint NULL,
  day date NULL
)"""
ENABLE = (
    "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'orders', "
    "@role_name = NULL"
)
# Statements, each a transaction of its own, and the rows they leave in the change table.
CHANGES = [
    (
        "INSERT INTO dbo.orders VALUES "
        "(1, N'Anna', 10.5, '2024-02-29 12:31:01.003', 1, 0.1, 9223372036854775807, '2024-02-29'), "
        "(2, N'Ωmega 日本', -99999999999999.9999, '1970-01-01', 0, -1e300, 0, '0001-01-01'), "
        "(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        [
            ("insert", 1, "Anna", "10.5000", "2024-02-29 12:31:01.003", True, 0.1, 2**63 - 1,
             "2024-02-29"),
            ("insert", 2, "Ωmega 日本", "-99999999999999.9999", "1970-01-01 00:00:00", False,
             -1e300, 0, "0001-01-01"),
            ("insert", 3, None, None, None, None, None, None, None),
        ],
    ),
    (
        "UPDATE dbo.orders SET amount = 0, name = N'' WHERE id = 3",
        [("update", 3, "", "0.0000", None, None, None, None, None)],
    ),
    (
        "DELETE FROM dbo.orders WHERE id = 3",
        [("delete", 3, "", "0.0000", None, None, None, None, None)],
    ),
    (
        "UPDATE dbo.orders SET id = 20 WHERE id = 2",
        [
            ("delete", 2, "Ωmega 日本", "-99999999999999.9999", "1970-01-01 00:00:00", False,
             -1e300, 0, "0001-01-01"),
            ("insert", 20, "Ωmega 日本", "-99999999999999.9999", "1970-01-01 00:00:00", False,
             -1e300, 0, "0001-01-01"),
        ],
    ),
]
LATER = (
    "INSERT INTO dbo.orders (id, name) VALUES (30, N'later')",
    [("insert", 30, "later", None, None, None, None, None, None)],
)
COLUMNS = ["id", "name", "amount", "at", "paid", "weight", "quantity", "day"]


class Rivet:
    """The program, and the rows it has written."""

    def __init__(self, server):
        self.server = server
        self.output = server.directory / "parquet"
        self.checkpoint = server.directory / "checkpoint"
        self.connection = None

    def prepare(self):
        driver = Pytds()
        master = driver.connect(self.server)
        driver.run(master, f"CREATE DATABASE {DATABASE}")
        master.close()
        self.connection = driver.connect(self.server, database=DATABASE)
        self.run("EXEC sys.sp_cdc_enable_db", TABLE, ENABLE)
        self.run("BEGIN TRANSACTION; INSERT INTO dbo.orders (id) VALUES (9); ROLLBACK TRANSACTION")
        for statement, _ in CHANGES:
            self.run(statement)

    def run(self, *statements):
        driver = Pytds()
        for statement in statements:
            driver.run(self.connection, statement)
        driver.run(self.connection, "EXEC fake.run_capture")

    def copy(self):
        """Runs the program to the end of the log."""
        program = pathlib.Path(os.environ["CDC_CLIENTS_PATH"]) / "rivet"
        secret = urllib.parse.quote(self.server.password, safe="")
        source = (
            f"sqlserver://{self.server.user}:{secret}@{self.server.host}:{self.server.port}/{DATABASE}"
        )
        ended = subprocess.run(
            [
                program, "cdc", "--source-env", "CDC_CLIENTS_SOURCE", "--capture-instance", "dbo_orders",
                "--table", "dbo.orders", "--output", self.output,
                "--checkpoint", self.checkpoint, "--no-notify",
            ],
            capture_output=True, text=True, timeout=TIME_LIMIT, cwd=self.server.directory,
            env={**os.environ, "CDC_CLIENTS_SOURCE": source},
        )
        with open(self.server.directory / "rivet.log", "a", encoding="utf-8") as log:
            log.write(ended.stdout + ended.stderr)
        if ended.returncode:
            said = (ended.stderr or ended.stdout).strip().splitlines()[-1:]
            raise Different(f"it ended with {ended.returncode}: {' '.join(said)}")

    def rows(self):
        """What the files hold, as text where Python's values could round."""
        files = sorted(self.output.rglob("*.parquet"), key=lambda file: (file.stat().st_mtime, file))
        tables = [pyarrow.parquet.read_table(file) for file in files]
        rows = []
        for table in tables:
            kinds = next(name for name in table.column_names if name not in COLUMNS and "op" in name)
            for row in table.to_pylist():
                rows.append((row[kinds], *(told(row[name]) for name in COLUMNS)))
        return rows


def told(value):
    """A value as this file writes it."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    text = str(value)
    return text[:-3] if "." in text and ":" in text and len(text.partition(".")[2]) == 6 else text


def compare(found, expected):
    for got, row in zip(found, expected):
        equal(got, row, "the row")
    equal(len(found), len(expected), "rows")


def main():
    report = Report()
    rivet = Rivet(Server())
    report.check("prepares a database", rivet.prepare)
    first = [row for _, rows in CHANGES for row in rows]

    def whole():
        rivet.copy()
        compare(rivet.rows(), first)

    def later():
        rivet.run(LATER[0])
        rivet.copy()
        compare(rivet.rows(), first + LATER[1])

    report.check("copies every change to Parquet, in order and in value", whole)
    report.check("goes on where it was", later)
    report.end()


if __name__ == "__main__":
    main()
