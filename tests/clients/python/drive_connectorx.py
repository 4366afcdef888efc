"""connectorx: Rust's tiberius, into Arrow. It only reads: python-tds writes what it reads."""

import re
import subprocess
import sys
import urllib.parse

import connectorx
import pyarrow

from drive_pytds import Pytds
from driver import Checks, Driver
from report import Different, NotHere

NUMBER = re.compile(r"code: (\d+)|\(code (\d+)\)")

# Its pool goes on trying to connect for 30 seconds.
TRY = "import connectorx, sys; connectorx.read_sql(sys.argv[1], 'SELECT 1 AS one')"
REFUSED_AFTER = 10
# Digits of a decimal that it reads.
DECIMAL_DIGITS = 19


class Both:
    """What writes, and where it reads."""

    def __init__(self, writes, url):
        self.writes, self.url = writes, url

    def close(self):
        if self.writes:
            self.writes.close()


class Connectorx(Driver):
    protections = ("plain", "tls")
    looks = ("tls",)
    refuses = ("tls",)
    # Its pool tries again until its time is over.
    tells_refusals = False

    def connect(self, server, protection="plain", database="master", password=None,
                certificate=None):
        options = {"encrypt": "true" if protection == "tls" else "false"}
        if certificate:
            options["trust_server_certificate_ca"] = certificate
        else:
            options["trust_server_certificate"] = "true"
        secret = urllib.parse.quote(password or server.password, safe="")
        url = (
            f"mssql://{server.user}:{secret}@{server.host}:{server.port}/{database}"
            f"?{urllib.parse.urlencode(options)}"
        )
        if password or certificate == server.other_certificate:
            # What has not come about by then never will.
            subprocess.run([sys.executable, "-c", TRY, url], timeout=REFUSED_AFTER, check=True)
        connectorx.read_sql(url, "SELECT 1 AS one", return_type="arrow")
        writes = Pytds().connect(server, database=database)
        return Both(writes, url)

    def run(self, connection, sql):
        Pytds().run(connection.writes, sql)

    def rows(self, connection, sql):
        table = connectorx.read_sql(connection.url, sql, return_type="arrow")
        columns = [self.values(column) for column in table.columns]
        return list(zip(*columns))

    def holds(self, column):
        # It stops at xml and at decimals of more digits than its own, rounds money, and moves a
        # time with an offset by the offset twice.
        if column.base in ("decimal", "numeric"):
            return column.length <= DECIMAL_DIGITS
        return column.base not in ("xml", "money", "datetimeoffset")

    def values(self, column):
        if pyarrow.types.is_timestamp(column.type) and column.type.unit == "ns":
            column = column.cast(pyarrow.timestamp("us", column.type.tz), safe=False)
        return column.to_pylist()

    def results(self, connection, sql):
        raise NotHere("it reads the first result alone")

    def number(self, error):
        found = NUMBER.search(str(error))
        return int(found[1] or found[2]) if found else None


if __name__ == "__main__":
    Checks(Connectorx()).run()
