"""pymssql: FreeTDS' db-lib under Python. It writes parameters into the statement's text itself, and
sends those of a procedure by remote call.
"""

import os

import pymssql

from driver import Checks, OwnTransactions


class Pymssql(OwnTransactions):
    protections = ("plain", "tls")
    looks = ("tls",)
    refuses = ("tls",)

    def connect(self, server, protection="plain", database="master", password=None,
                certificate=None):
        configuration = server.directory / "freetds.conf"
        lines = ["[server]", f"host = {server.host}", f"port = {server.port}"]
        if certificate:
            lines += [f"ca file = {certificate}", "check certificate hostname = yes"]
        configuration.write_text("\n".join(lines) + "\n")
        os.environ["FREETDSCONF"] = str(configuration)
        return pymssql.connect(
            server="server", port=str(server.port), user=server.user,
            password=password or server.password, database=database, autocommit=True,
            tds_version="7.4", login_timeout=20, timeout=60, charset="UTF-8",
            encryption="require" if protection == "tls" else "off",
        )

    def let_commit(self, connection, each):
        connection.autocommit(each)

    def run(self, connection, sql):
        with connection.cursor() as cursor:
            cursor.execute(sql)
            while cursor.nextset():
                pass

    def rows(self, connection, sql):
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def results(self, connection, sql):
        found = []
        with connection.cursor() as cursor:
            cursor.execute(sql)
            while True:
                if cursor.description:
                    found.append(cursor.fetchall())
                if not cursor.nextset():
                    return found

    def number(self, error):
        first = error.args[0] if error.args else None
        if isinstance(first, tuple):
            first = first[0]
        return first if isinstance(first, int) else None

    def parameter(self, column, text):
        value = super().parameter(column, text)
        # It writes bytes of the length 0 as a text of the length 0.
        return bytearray(value) if isinstance(value, bytes) else value

    def write(self, connection, table, rows):
        places = ", ".join(["%s"] * (len(table.columns) + 1))
        sql = f"INSERT INTO dbo.{table.name} (id, {table.names}) VALUES ({places})"
        with connection.cursor() as cursor:
            cursor.executemany(sql, [(key, *values) for key, values in rows])

    def rows_with(self, connection, sql, *parameters):
        with connection.cursor() as cursor:
            cursor.execute(sql.replace("?", "%s"), parameters)
            return cursor.fetchall()

    def begin_read(self, connection, sql):
        cursor = connection.cursor()
        cursor.execute(sql)
        assert cursor.fetchone() is not None
        cursor.close()


if __name__ == "__main__":
    Checks(Pymssql()).run()
