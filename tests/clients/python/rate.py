"""How fast a client takes what it asks for: it does so twice, and tells rows and seconds of the
second time. Arguments: the client, host, port, user, password, database, the query, and a directory
to write to.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import time
import urllib.parse

# Rows that a client takes at once.
BATCH_ROWS = 16_384
# What the change table belongs to.
INSTANCE, TABLE = "dbo_orders", "dbo.orders"


def url(scheme, host, port, user, password, database):
    secret = urllib.parse.quote(password, safe="")
    return f"{scheme}://{user}:{secret}@{host}:{port}/{database}"


def mssql_python(host, port, user, password, database, query, _directory):
    import mssql_python as driver

    connection = driver.connect(
        f"Server={host},{port};Database={database};UID={user};PWD={password};Encrypt=Optional;"
        "TrustServerCertificate=Yes;"
    )

    def read():
        cursor, rows = connection.cursor(), 0
        cursor.execute(query)
        while True:
            batch = cursor.arrow_batch(BATCH_ROWS)
            if batch.num_rows == 0:
                cursor.close()
                return rows
            rows += batch.num_rows

    return read


def connectorx(host, port, user, password, database, query, _directory):
    import connectorx as driver

    address = url("mssql", host, port, user, password, database) + (
        "?encrypt=false&trust_server_certificate=true"
    )
    return lambda: driver.read_sql(address, query, return_type="arrow").num_rows


def rivet(host, port, user, password, database, _query, directory):
    import pyarrow.parquet

    program = pathlib.Path(sys.executable).parent / "rivet"
    address = url("sqlserver", host, port, user, password, database)
    target = pathlib.Path(directory)

    def copy():
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        command = [
            program, "cdc", "--source", address, "--capture-instance", INSTANCE, "--table", TABLE,
            "--output", target, "--rollover", "100000",
        ]
        subprocess.run(command, cwd=target, stdout=subprocess.DEVNULL, check=True,
                       env={**os.environ, "HOME": str(target)})
        return None

    def rows():
        files = target.rglob("*.parquet")
        return sum(pyarrow.parquet.ParquetFile(file).metadata.num_rows for file in files)

    copy.rows = rows
    return copy


def main(name, *arguments):
    known = {"mssql-python": mssql_python, "connectorx": connectorx, "rivet": rivet}
    take = known[name](*arguments)
    take()
    begun = time.perf_counter()
    rows = take()
    seconds = time.perf_counter() - begun
    if rows is None:
        rows = take.rows()
    print(rows, seconds)


if __name__ == "__main__":
    main(*sys.argv[1:])
