"""python-tds: the protocol in Python alone, with pyOpenSSL."""

import pytds

from driver import Checks, OwnTransactions


class Pytds(OwnTransactions):
    protections = ("plain", "tls")
    looks = ("tls",)
    refuses = ("tls",)

    def connect(self, server, protection="plain", database="master", password=None,
                certificate=None):
        tls = {}
        if protection == "tls":
            # Its check of the host's name needs a pyOpenSSL of years ago.
            tls = {"cafile": certificate or server.certificate, "validate_host": False}
        return pytds.connect(
            dsn=server.host, port=server.port, user=server.user,
            password=password or server.password, database=database, autocommit=True,
            login_timeout=20, timeout=60, **tls,
        )

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
        found, described = [], None
        with connection.cursor() as cursor:
            cursor.execute(sql)
            while True:
                # What follows a statement without a result has the columns of the one before.
                columns = cursor.description
                if columns and columns != described:
                    found.append(cursor.fetchall())
                described = columns
                if not cursor.nextset():
                    return found

    def number(self, error):
        return getattr(error, "msg_no", None) or getattr(error, "number", None)

    def write(self, connection, table, rows):
        places = ", ".join(["%s"] * (len(table.columns) + 1))
        sql = f"INSERT INTO dbo.{table.name} (id, {table.names}) VALUES ({places})"
        with connection.cursor() as cursor:
            for key, values in rows:
                cursor.execute(sql, (key, *values))

    def parameter(self, column, text):
        value = super().parameter(column, text)
        return pytds.Binary(value) if isinstance(value, bytes) else value

    def rows_with(self, connection, sql, *parameters):
        with connection.cursor() as cursor:
            cursor.execute(sql.replace("?", "%s"), parameters)
            return cursor.fetchall()

    def begin_read(self, connection, sql):
        cursor = connection.cursor()
        cursor.execute(sql)
        assert cursor.fetchone() is not None
        cursor.cancel()
        cursor.close()


if __name__ == "__main__":
    Checks(Pytds()).run()
