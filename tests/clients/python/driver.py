"""What every driver is asked: to log in, to write and read every type, to read the change rows, and
to behave as its users expect when something is refused, rolled back or cancelled.
"""

import datetime
import decimal
import time
import uuid

from report import Different, NotHere, Report, equal
from server import Server
from truth import DIGITS_MAX, Table

DATABASE = "clients"
# Rows written by parameters have keys from here.
PARAMETER_KEY = 101
# A read that is cancelled has this many rows; nobody waits for all of them.
LONG_READ = "SELECT " + " + ".join(f"{n}.v * 1" for n in "abcdefgh") + " AS n FROM " + (
    " CROSS JOIN ".join(
        f"(VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS {n}(v)" for n in "abcdefgh"
    )
)
# A cancelled read has to let go within this many seconds.
CANCEL_LIMIT = 20

LOGIN_FAILED = 18456
DUPLICATE_KEY = 2627
DIVIDED_BY_ZERO = 8134
NO_SUCH_OBJECT = 208
LOCK_TIMEOUT = 1222
DEADLOCK = 1205
THROWN = 51234


class Driver:
    """A driver, as the checks need it. A program fills in what its driver has."""

    # Fractional digits of a second in its values.
    digits = 6
    # Whether it gives values at all, or only what the server wrote as text.
    native = True
    # Whether it tells why the server refused a login.
    tells_refusals = True
    # How it can protect the connection, of plain, tls and strict.
    protections = ("plain", "tls")
    # Of these, the ways in which it can be told which certificate the server must have, and those
    # in which it refuses one that nobody it knows has signed.
    looks = ()
    refuses = ()

    def connect(self, server, protection="plain", database="master", password=None,
                certificate=None):
        """A connection that commits each statement. With a certificate, the server must have that
        one."""
        raise NotImplementedError

    def run(self, connection, sql):
        """Runs a batch and drops its results."""
        raise NotImplementedError

    def rows(self, connection, sql):
        """The rows of a batch with one result."""
        raise NotImplementedError

    def results(self, connection, sql):
        """The rows of each result of a batch."""
        raise NotImplementedError

    def number(self, error):
        """The server's number of an error that the driver raised; None when it has none."""
        raise NotImplementedError

    def write(self, connection, table, rows):
        """Writes rows of (key, values) by parameters, prepared once when it can."""
        raise NotHere("it has no parameters")

    def rows_with(self, connection, sql, *parameters):
        """The rows of a statement with parameters, written as ? in it."""
        raise NotHere("it has no parameters")

    def begin_read(self, connection, sql):
        """Begins a read and leaves it after the first row."""
        raise NotHere("it reads a result to its end")

    def begin(self, connection):
        self.run(connection, "BEGIN TRANSACTION")

    def commit(self, connection):
        self.run(connection, "COMMIT TRANSACTION")

    def roll_back(self, connection):
        self.run(connection, "ROLLBACK TRANSACTION")

    def end_transactions(self, connection):
        """Lets each statement commit again, where the driver's own transactions stopped that."""

    def close(self, connection):
        connection.close()

    def holds(self, column):
        """Whether its values can hold the column's."""
        return True

    def parameter(self, column, text):
        """A value as the driver is given it. What Python's own values cannot hold is text."""
        if text is None:
            return None
        base = column.base
        if base == "bit":
            return text == "1"
        if base in ("tinyint", "smallint", "int", "bigint"):
            return int(text)
        if base in ("real", "float"):
            return float(text)
        if base in ("decimal", "numeric", "money", "smallmoney"):
            return decimal.Decimal(text)
        if base == "date":
            return datetime.date.fromisoformat(text)
        if column.is_binary:
            return bytes.fromhex(text)
        if base == "uniqueidentifier":
            return uuid.UUID(text)
        if column.digits is not None and column.digits <= 6:
            if base == "time":
                return datetime.time.fromisoformat(text)
            if base == "datetimeoffset":
                return datetime.datetime.strptime(text, "%Y-%m-%d %H:%M:%S %z")
            return datetime.datetime.fromisoformat(text)
        return text


class OwnTransactions(Driver):
    """A driver of Python's common interface: its transactions begin by themselves."""

    def let_commit(self, connection, each):
        """Whether each statement commits by itself."""
        connection.autocommit = each

    def begin(self, connection):
        self.let_commit(connection, False)

    def commit(self, connection):
        connection.commit()

    def roll_back(self, connection):
        connection.rollback()

    def end_transactions(self, connection):
        self.let_commit(connection, True)


def error_of(does):
    """Runs something and gives what it raised; nothing raised is a difference."""
    try:
        does()
    except Exception as error:  # Each driver has errors of its own.
        return error
    raise Different("no error at all")


class Checks:
    """The checks of a driver, in their order."""

    def __init__(self, driver, server=None, report=None):
        self.driver = driver
        self.server = server or Server()
        self.report = report or Report()
        self.table = Table("every_type")
        self.read_table = self.table.reads(self.driver)
        self.connection = None

    def check(self, name, does, *arguments):
        """Runs a check; one that broke the connection does not break those after it."""
        failed = self.report.failed
        given = self.report.check(name, does, *arguments)
        if self.report.failed > failed and self.connection is not None:
            try:
                self.first(self.connection, "SELECT 1")
            except Exception:  # Whatever it is: there will be a new connection.
                self.connection = self.open(database=DATABASE)
        return given

    def run(self):
        check = self.check
        for protection in ("plain", "tls", "strict"):
            check(f"logs in, {protection}", self.logs_in, protection)
        check("is refused with a wrong password: 18456", self.wrong_password)
        check("trusts the certificate it was given", self.certificate)
        check("refuses a certificate it was not given", self.other_certificate)
        self.connection = check("creates a database", self.create_database)
        if self.connection is None:
            self.report.end()
            return
        check("enables capture for a database and a table", self.enable_capture)
        check("writes every type by literals", self.write_literals)
        check("reads every type", self.read_literals)
        check("reads every type as the server tells it", self.read_told, 1)
        check("writes every type by parameters", self.write_parameters)
        check("reads every type that it wrote by parameters", self.read_parameters)
        check("finds a row by a parameter", self.find)
        check("reads the change rows of every type", self.changes)
        check("reads the change rows of an update and a delete", self.later_changes)
        check("reads the changes through the functions of the instance", self.function)
        check("reads a row version and a computed column as captured", self.derived)
        check("commits, rolls back, and goes back to a savepoint", self.transactions)
        check("is told the number of an error, and goes on", self.errors)
        check("does not read what another connection has not committed", self.isolation)
        check("meets an error that was planted", self.planted)
        check("reads several results of one batch", self.several_results)
        check("leaves a long read and goes on", self.cancel)
        self.report.end()

    def open(self, **options):
        connection = self.driver.connect(self.server, **options)
        return connection

    def logs_in(self, protection):
        if protection not in self.driver.protections:
            raise NotHere(f"the driver has no {protection}")
        connection = self.open(protection=protection)
        found = self.first(connection, "SELECT 42 AS answer")
        equal(int(found), 42, "SELECT 42")
        self.driver.close(connection)

    def wrong_password(self):
        if not self.driver.tells_refusals:
            error_of(lambda: self.open(password="not the password"))
            return
        for protection in self.driver.protections:
            wrong = lambda: self.open(protection=protection, password="not the password")
            error = error_of(wrong)
            equal(self.driver.number(error), LOGIN_FAILED, f"the number of {error}, {protection}")

    def certificate(self):
        if not self.driver.looks:
            raise NotHere("the driver cannot be told of a certificate")
        for protection in self.driver.looks:
            connection = self.open(protection=protection, certificate=self.server.certificate)
            equal(int(self.first(connection, "SELECT 1")), 1, "SELECT 1")
            self.driver.close(connection)

    def other_certificate(self):
        if not self.driver.refuses:
            raise NotHere("the driver does not look at certificates")
        for protection in self.driver.refuses:
            other = self.server.other_certificate
            error_of(lambda: self.open(protection=protection, certificate=other))

    def create_database(self):
        connection = self.open()
        self.driver.run(connection, f"CREATE DATABASE {DATABASE}")
        self.driver.close(connection)
        connection = self.open(database=DATABASE)
        equal(self.first(connection, "SELECT DB_NAME()"), DATABASE, "DB_NAME()")
        return connection

    def enable_capture(self):
        run = self.driver.run
        run(self.connection, "EXEC sys.sp_cdc_enable_db")
        run(self.connection, self.table.create())
        run(
            self.connection,
            "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', "
            f"@source_name = N'{self.table.name}', @role_name = NULL, @supports_net_changes = 1",
        )
        instance = self.first(self.connection, "SELECT capture_instance FROM cdc.change_tables")
        equal(instance, f"dbo_{self.table.name}", "the capture instance")

    def write_literals(self):
        for key, row in enumerate(self.table.rows.values(), 1):
            self.driver.run(self.connection, self.table.insert(key, row))

    def read_literals(self):
        self.read(1)

    def read(self, first_key):
        if not self.driver.native:
            raise NotHere("its values are texts of its own")
        columns = self.read_table.names
        self.compare(self.read_table, columns, first_key, self.driver.digits)

    def read_told(self, first_key):
        self.compare(self.table, self.table.told, first_key, DIGITS_MAX)

    def compare(self, table, columns, first_key, digits):
        """Compares rows from a key on with the rows of the table."""
        found = self.driver.rows(
            self.connection,
            f"SELECT {columns} FROM dbo.{table.name} WHERE id >= {first_key} ORDER BY id",
        )
        if len(found) < len(table.rows):
            raise Different(f"{len(found)} rows instead of {len(table.rows)}")
        for (name, row), got in zip(table.rows.items(), found):
            difference = table.difference(row, got, digits)
            if difference:
                raise Different(f"row {name}: {difference}")

    def write_parameters(self):
        rows = [
            (key, [self.driver.parameter(*pair) for pair in zip(self.table.columns, row)])
            for key, row in enumerate(self.table.rows.values(), PARAMETER_KEY)
        ]
        self.driver.write(self.connection, self.table, rows)

    def read_parameters(self):
        keys = f"SELECT COUNT(*) FROM dbo.{self.table.name} WHERE id >= {PARAMETER_KEY}"
        if int(self.first(self.connection, keys)) == 0:
            raise NotHere("nothing was written by parameters")
        if self.driver.native:
            self.read(PARAMETER_KEY)
        self.read_told(PARAMETER_KEY)

    def find(self):
        sql = f"SELECT id FROM dbo.{self.table.name} WHERE c_nvarchar = ? AND id < ? ORDER BY id"
        text = dict(zip(self.table.names.split(", "), self.table.rows["greatest"]))["c_nvarchar"]
        for _ in range(3):
            found = self.driver.rows_with(self.connection, sql, text, PARAMETER_KEY)
            equal([int(row[0]) for row in found], [2], "the row with a Unicode text")

    def capture(self):
        self.driver.run(self.connection, "EXEC fake.run_capture")

    def change_columns(self):
        """The select list of change rows: values where the driver has them."""
        return self.read_table.names if self.driver.native else self.table.told

    def changes(self):
        self.capture()
        self.compare_changes(
            f"SELECT __$operation, {self.change_columns()} FROM cdc.dbo_{self.table.name}_CT "
            "WHERE id < 100 ORDER BY __$start_lsn, __$command_id, __$seqval, __$operation",
            [(2, name, None, None) for name in self.table.rows],
        )

    def later_changes(self):
        for key in (1, 2, 5):
            self.driver.run(
                self.connection, f"UPDATE dbo.{self.table.name} SET c_int = 7 WHERE id = {key}"
            )
            self.driver.run(self.connection, f"DELETE FROM dbo.{self.table.name} WHERE id = {key}")
        self.capture()
        self.compare_changes(self.later_sql(), self.later_expected())

    def later_sql(self):
        return (
            f"SELECT __$operation, {self.change_columns()} FROM cdc.dbo_{self.table.name}_CT "
            "WHERE __$operation <> 2 ORDER BY __$start_lsn, __$command_id, __$seqval, __$operation"
        )

    def later_expected(self):
        """Operation, row, the value that c_int was set to, and which columns are left out."""
        large, legacy = (lambda column: column.large), (lambda column: column.legacy)
        return [
            change
            for name in ("least", "greatest", "nulls")
            for change in [
                (3, name, None, large), (4, name, "7", None), (1, name, "7", legacy)
            ]
        ]

    def compare_changes(self, sql, expected):
        digits = self.driver.digits if self.driver.native else DIGITS_MAX
        found = self.driver.rows(self.connection, sql)
        equal([int(row[0]) for row in found], [change[0] for change in expected], "operations")
        for got, (operation, name, c_int, left_out) in zip(found, expected):
            row = list(self.read_table.rows[name])
            if c_int is not None:
                row[self.read_table.names.split(", ").index("c_int")] = c_int
            left_out = left_out or (lambda column: False)
            difference = self.read_table.difference(row, got[1:], digits, left_out)
            if difference:
                raise Different(f"operation {operation} of row {name}: {difference}")

    def function(self):
        instance = f"dbo_{self.table.name}"
        sql = (
            "DECLARE @from binary(10) = sys.fn_cdc_get_min_lsn(N'%s'), "
            "@to binary(10) = sys.fn_cdc_get_max_lsn(); "
            "SELECT __$operation, id FROM cdc.fn_cdc_get_%s_changes_%s(@from, @to, N'%s') "
            "WHERE id < 100 ORDER BY __$start_lsn, %s"
        )
        # The net changes have no sequence.
        order = {"all": "__$seqval, __$operation", "net": "id"}
        changes = lambda which, how: [
            (int(operation), int(key))
            for operation, key in self.driver.rows(
                self.connection, sql % (instance, which, instance, how, order[which])
            )
        ]
        inserts = [(2, key) for key in (1, 2, 3, 4, 5)]
        later = lambda *operations: [(op, key) for key in (1, 2, 5) for op in operations]
        equal(changes("all", "all"), inserts + later(4, 1), "all changes")
        old = changes("all", "all update old")
        equal(old, inserts + later(3, 4, 1), "all changes with the old rows")
        # Rows that came and went within the range are no change at all.
        equal(sorted(changes("net", "all")), [(2, 3), (2, 4)], "net changes")

    def derived(self):
        name = self.table.name
        version = "CONVERT(varchar(18), CONVERT(binary(8), c_version), 1)"
        base = f"SELECT id, {version} FROM dbo.{name} WHERE id IN (3, 4) ORDER BY id"
        changes = (
            f"SELECT id, {version} FROM cdc.dbo_{name}_CT WHERE id IN (3, 4) "
            "AND __$operation = 2 AND c_computed IS NULL ORDER BY id"
        )
        versions = self.driver.rows(self.connection, base)
        equal(len(versions), 2, "rows with a version")
        captured = self.driver.rows(self.connection, changes)
        texts = lambda rows: [[str(cell) for cell in row] for row in rows]
        equal(texts(captured), texts(versions), "captured versions")
        computed = self.first(self.connection, f"SELECT c_computed FROM dbo.{name} WHERE id = 3")
        equal(int(computed), 6, "the computed column")

    def transactions(self):
        run, connection = self.driver.run, self.connection
        run(connection, "CREATE TABLE dbo.accounts ("
            "id int NOT NULL CONSTRAINT pk_accounts PRIMARY KEY, amount int)")
        self.driver.begin(connection)
        run(connection, "INSERT INTO dbo.accounts VALUES (1, 10), (2, 20)")
        self.driver.commit(connection)
        self.driver.begin(connection)
        run(connection, "UPDATE dbo.accounts SET amount = amount + 1; INSERT dbo.accounts VALUES (3, 30)")
        self.driver.roll_back(connection)
        self.driver.begin(connection)
        run(connection, "UPDATE dbo.accounts SET amount = 11 WHERE id = 1")
        run(connection, "SAVE TRANSACTION before_two")
        run(connection, "DELETE FROM dbo.accounts WHERE id = 2")
        run(connection, "ROLLBACK TRANSACTION before_two")
        self.driver.commit(connection)
        self.driver.end_transactions(connection)
        rows = self.driver.rows(connection, "SELECT id, amount FROM dbo.accounts ORDER BY id")
        equal([(int(a), int(b)) for a, b in rows], [(1, 11), (2, 20)], "the rows that were committed")
        equal(int(self.first(connection, "SELECT @@TRANCOUNT")), 0, "@@TRANCOUNT")

    def errors(self):
        for sql, number in [
            ("INSERT INTO dbo.accounts VALUES (1, 0)", DUPLICATE_KEY),
            ("SELECT amount / 0 FROM dbo.accounts", DIVIDED_BY_ZERO),
            ("SELECT * FROM dbo.no_such_table", NO_SUCH_OBJECT),
            (f"THROW {THROWN}, N'of one''s own', 1", THROWN),
        ]:
            error = error_of(lambda: self.driver.rows(self.connection, sql))
            equal(self.driver.number(error), number, f"the number of {error} ({sql})")
            equal(int(self.first(self.connection, "SELECT 5")), 5, "a read after an error")

    def isolation(self):
        other = self.open(database=DATABASE)
        self.driver.run(other, "BEGIN TRANSACTION; UPDATE dbo.accounts SET amount = 0 WHERE id = 1")
        read = "SET LOCK_TIMEOUT {}; SELECT amount FROM dbo.accounts{} WHERE id = 1"
        error = error_of(lambda: self.driver.rows(self.connection, read.format(0, "")))
        equal(self.driver.number(error), LOCK_TIMEOUT, f"the number of {error}")
        dirty = self.first(self.connection, read.format(0, " WITH (NOLOCK)"))
        equal(int(dirty), 0, "a read of what is not committed")
        self.driver.run(other, "ROLLBACK TRANSACTION")
        equal(int(self.first(self.connection, read.format(-1, ""))), 11, "a read after the rollback")
        self.driver.close(other)

    def planted(self):
        self.driver.run(self.connection, f"EXEC fake.inject_error {DEADLOCK}, 1, N'UPDATE'")
        update = "UPDATE dbo.accounts SET amount = 5; SELECT 7"
        error = error_of(lambda: self.driver.rows(self.connection, update))
        equal(self.driver.number(error), DEADLOCK, f"the number of {error}")
        unchanged = "SELECT COUNT(*) FROM dbo.accounts WHERE amount <> 5"
        equal(int(self.first(self.connection, unchanged)), 2, "rows after it")

    def several_results(self):
        found = self.driver.results(
            self.connection,
            "SELECT 1 AS a, N'x' AS b; DECLARE @n int = 2; SELECT @n AS c WHERE 1 = 0; "
            "UPDATE dbo.accounts SET amount = amount; SELECT id FROM dbo.accounts ORDER BY id",
        )
        texts = [[tuple(str(cell) for cell in row) for row in rows] for rows in found]
        equal(texts, [[("1", "x")], [], [("1",), ("2",)]], "the results")

    def cancel(self):
        start = time.monotonic()
        self.driver.begin_read(self.connection, LONG_READ)
        equal(int(self.first(self.connection, "SELECT 6")), 6, "a read after one that was left")
        took = time.monotonic() - start
        if took > CANCEL_LIMIT:
            raise Different(f"the read that was left went on for {took:.0f} s")

    def first(self, connection, sql):
        """The one value of a query with one row."""
        rows = self.driver.rows(connection, sql)
        if len(rows) != 1:
            raise Different(f"{len(rows)} rows instead of 1 ({sql})")
        return rows[0][0]
