"""mssql-python: Microsoft's driver for Python, on Microsoft's ODBC Driver 18."""

import datetime

import mssql_python

from driver import (
    DEADLOCK, DIVIDED_BY_ZERO, DUPLICATE_KEY, LOCK_TIMEOUT, LOGIN_FAILED, NO_SUCH_OBJECT, THROWN,
    Checks, OwnTransactions
)

# The driver tells the server's texts and its own words for a state, but no number.
TEXTS = {
    "Login failed for user 'sa'": LOGIN_FAILED,
    "Violation of PRIMARY KEY constraint 'pk_accounts'": DUPLICATE_KEY,
    "Divide by zero error encountered": DIVIDED_BY_ZERO,
    "Invalid object name 'dbo.no_such_table'": NO_SUCH_OBJECT,
    "of one's own": THROWN,
    "Lock request time out period exceeded": LOCK_TIMEOUT,
    "deadlocked": DEADLOCK,
}
# The driver refuses years before this one in a date of its own.
YEAR_MIN = 1753


class MssqlPython(OwnTransactions):
    protections = ("plain", "tls", "strict")
    looks = ("strict",)
    refuses = ("tls", "strict")

    def connect(self, server, protection="plain", database="master", password=None,
                certificate=None):
        options = {
            "Server": f"{server.host},{server.port}",
            "Database": database,
            "UID": server.user,
            "PWD": password or server.password,
            "Encrypt": {"plain": "Optional", "tls": "Mandatory", "strict": "Strict"}[protection],
        }
        if protection == "strict":
            options["ServerCertificate"] = certificate or server.certificate
        else:
            options["TrustServerCertificate"] = "No" if certificate else "Yes"
        text = "".join(f"{name}={value};" for name, value in options.items())
        return mssql_python.connect(text, autocommit=True, timeout=60)

    def let_commit(self, connection, each):
        connection.setautocommit(each)

    def run(self, connection, sql):
        cursor = connection.cursor()
        cursor.execute(sql)
        while cursor.nextset():
            pass
        cursor.close()

    def rows(self, connection, sql):
        cursor = connection.cursor()
        cursor.execute(sql)
        while cursor.description is None and cursor.nextset():
            pass
        rows = [tuple(row) for row in cursor.fetchall()]
        cursor.close()
        return rows

    def results(self, connection, sql):
        found = []
        cursor = connection.cursor()
        cursor.execute(sql)
        while True:
            if cursor.description:
                found.append([tuple(row) for row in cursor.fetchall()])
            if not cursor.nextset():
                cursor.close()
                return found

    def number(self, error):
        return next((number for text, number in TEXTS.items() if text in str(error)), None)

    def parameter(self, column, text):
        value = super().parameter(column, text)
        early = isinstance(value, datetime.date) and value.year < YEAR_MIN
        return text if early else value

    def write(self, connection, table, rows):
        places = ", ".join(["?"] * (len(table.columns) + 1))
        sql = f"INSERT INTO dbo.{table.name} (id, {table.names}) VALUES ({places})"
        cursor = connection.cursor()
        for key, values in rows:
            cursor.execute(sql, (key, *values))
        cursor.close()

    def rows_with(self, connection, sql, *parameters):
        cursor = connection.cursor()
        cursor.execute(sql, parameters)
        rows = [tuple(row) for row in cursor.fetchall()]
        cursor.close()
        return rows

    def begin_read(self, connection, sql):
        cursor = connection.cursor()
        cursor.execute(sql)
        assert cursor.fetchone() is not None
        cursor.close()


if __name__ == "__main__":
    Checks(MssqlPython()).run()
