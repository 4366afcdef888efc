"""mssql-python: Microsoft's driver for Python, on Microsoft's ODBC Driver 18."""

import re

import mssql_python

from driver import Checks, Driver

# The driver tells errors by SQLSTATE and text; some numbers have a state of their own.
NUMBERS = {"28000": 18456, "42S02": 208, "23000": 2627, "22012": 8134}


class MssqlPython(Driver):
    protections = ("plain", "tls", "strict")
    looks = ("tls", "strict")

    def connect(self, server, protection="plain", database="master", password=None,
                certificate=None):
        options = {
            "Server": f"{server.host},{server.port}",
            "Database": database,
            "UID": server.user,
            "PWD": password or server.password,
            "Encrypt": {"plain": "Optional", "tls": "Mandatory", "strict": "Strict"}[protection],
        }
        if protection == "strict" or certificate:
            options["ServerCertificate"] = certificate or server.certificate
        if protection != "strict":
            options["TrustServerCertificate"] = "No" if certificate else "Yes"
        text = "".join(f"{name}={value};" for name, value in options.items())
        return mssql_python.connect(text, autocommit=True, timeout=60)

    def run(self, connection, sql):
        cursor = connection.cursor()
        cursor.execute(sql)
        while cursor.nextset():
            pass
        cursor.close()

    def rows(self, connection, sql):
        cursor = connection.cursor()
        cursor.execute(sql)
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
        return None

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
