"""tsql: FreeTDS' own command line. What it prints is text, so the server is asked to tell each value
as text.
"""

import os
import queue
import re
import subprocess
import threading

from driver import Checks, Driver
from report import Different, NotHere

# What separates columns and rows in its output: characters that no value holds.
COLUMN, ROW = "\x1f", "\x1e"
# A row that tells that everything before it has been printed.
END = "the end of this batch"
MESSAGE = re.compile(r"^Msg (\d+) \(severity (\d+), state (\d+)\)", re.MULTILINE)
# An error has at least this severity; below it the server only tells something.
ERROR_SEVERITY = 11
# Seconds for an answer.
TIME_LIMIT = 60


class TsqlError(Exception):
    """What the program printed of an error."""

    def __init__(self, text):
        super().__init__(" ".join(text.split()))
        number = MESSAGE.search(text)
        self.number = int(number[1]) if number else None


class Session:
    """A running program, fed with batches."""

    def __init__(self, server, protection, database, password, certificate):
        configuration = server.directory / "freetds.conf"
        lines = [
            "[global]", "tds version = 7.4", "client charset = UTF-8", "text size = 2147483647",
            f"encryption = {'require' if protection == 'tls' else 'off'}",
            "[server]", f"host = {server.host}", f"port = {server.port}",
        ]
        if certificate:
            lines += [f"ca file = {certificate}", "check certificate hostname = yes"]
        configuration.write_text("\n".join(lines) + "\n")
        self.program = subprocess.Popen(
            [
                "stdbuf", "-oL", "tsql", "-S", "server", "-U", server.user,
                "-P", password, "-D", database, "-o", "qfh", "-t", COLUMN, "-r", ROW + "\n",
            ],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "FREETDSCONF": str(configuration), "LC_ALL": "C.UTF-8"},
        )
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.ask("SELECT 1")

    def _read(self):
        for line in self.program.stdout:
            self.lines.put(line.decode("utf-8", "replace"))
        self.lines.put(None)

    def ask(self, sql):
        """What the program prints for a batch."""
        try:
            self.program.stdin.write(f"{sql}\nGO\nSELECT '{END}'\nGO\n".encode())
            self.program.stdin.flush()
        except BrokenPipeError:
            pass
        printed = []
        while True:
            try:
                line = self.lines.get(timeout=TIME_LIMIT)
            except queue.Empty:
                raise Different(f"no answer within {TIME_LIMIT} s: {''.join(printed)[-200:]}")
            if line is None:
                raise TsqlError("".join(printed))
            if line == f"{END}{ROW}\n":
                break
            printed.append(line)
        text = "".join(printed)
        if any(int(found[2]) >= ERROR_SEVERITY for found in MESSAGE.finditer(text)):
            raise TsqlError(text)
        return text

    def close(self):
        self.program.stdin.close()
        self.program.wait(timeout=TIME_LIMIT)


class Tsql(Driver):
    native = False
    protections = ("plain", "tls")
    looks = ("tls",)
    refuses = ("tls",)

    def connect(self, server, protection="plain", database="master", password=None,
                certificate=None):
        password = password or server.password
        return Session(server, protection, database, password, certificate)

    def run(self, connection, sql):
        connection.ask(sql)

    def rows(self, connection, sql):
        rows = connection.ask(sql).split(ROW + "\n")
        if rows.pop():
            raise Different(f"something after the last row: {rows[-1:]}")
        return [
            tuple(None if cell == "NULL" else cell for cell in row.split(COLUMN)) for row in rows
        ]

    def results(self, connection, sql):
        raise NotHere("it prints the rows of all results alike")

    def number(self, error):
        return getattr(error, "number", None)


if __name__ == "__main__":
    Checks(Tsql()).run()
