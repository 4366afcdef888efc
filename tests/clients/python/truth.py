"""What was committed: a table with a column of every type, read from every_type.json, and the one
text form in which what a driver returns is compared with it.
"""

import datetime
import decimal
import json
import pathlib
import re
import struct
import uuid

FILE = pathlib.Path(__file__).parent.parent / "every_type.json"

# Enough for any decimal of the server, whatever the driver calls its context.
EXACT = decimal.Context(prec=80, traps=[decimal.InvalidOperation, decimal.Inexact])
# Ticks of 100 ns have seven digits.
DIGITS_MAX = 7
MOMENT = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)?[ T]?(?P<time>\d\d:\d\d:\d\d)?(?:\.(?P<fraction>\d+))?"
    r"(?: ?(?P<offset>[+-]\d\d:\d\d))?"
)
# Characters of a text that a report shows.
SHOWN_MAX = 60


class Column:
    """A column, its type, and the text forms of its values."""

    def __init__(self, given):
        self.name = given["name"]
        self.type = given["type"]
        self.collation = given.get("collation")
        self.values = [
            value if isinstance(value, str) else value[0] * value[1] for value in given["values"]
        ]
        self.base, _, arguments = self.type.rstrip(")").partition("(")
        numbers = [int(number) for number in arguments.split(",") if number.isdigit()]
        self.length = numbers[0] if numbers else None
        self.scale = {"money": 4, "smallmoney": 4}.get(self.base, numbers[-1] if numbers else 0)

    @property
    def declaration(self):
        """The column in CREATE TABLE."""
        collation = f" COLLATE {self.collation}" if self.collation else ""
        return f"{self.name} {self.type}{collation} NULL"

    @property
    def large(self):
        """Whether a change row leaves it out of an update's image before, when it was not set."""
        return "max" in self.type or self.base == "xml" or self.legacy

    @property
    def legacy(self):
        """Whether a change row never has what was there before."""
        return self.base in ("text", "ntext", "image")

    @property
    def is_binary(self):
        return self.base in ("binary", "varbinary", "image", "rowversion")

    @property
    def is_text(self):
        return self.base in (
            "char", "varchar", "nchar", "nvarchar", "text", "ntext", "xml", "sysname"
        )

    @property
    def digits(self):
        """Fractional digits of its seconds; none when it has no seconds."""
        return {
            "datetime": 3, "smalldatetime": 0, "datetime2": self.scale, "time": self.scale,
            "datetimeoffset": self.scale,
        }.get(self.base)

    def literal(self, text):
        """A value as T-SQL writes it."""
        if text is None:
            return "NULL"
        if self.is_binary:
            return f"0x{text}"
        if self.is_text:
            plain = self.base in ("char", "varchar", "text") and not self.collation
            return ("'" if plain else "N'") + text.replace("'", "''") + "'"
        if self.digits is not None or self.base in ("date", "uniqueidentifier"):
            return f"'{text}'"
        return text

    def told(self):
        """An expression that has the server write the value as text, with nothing cut off."""
        name = self.name
        if self.base == "real":
            return f"CONVERT(varchar(40), {name}, 3)"
        if self.base == "float":
            return f"CONVERT(varchar(40), {name}, 3)"
        if self.base in ("money", "smallmoney"):
            return f"CONVERT(varchar(40), {name}, 2)"
        if self.base == "date":
            return f"CONVERT(varchar(40), {name}, 23)"
        if self.base in ("datetime2", "datetimeoffset", "datetime", "smalldatetime"):
            return f"CONVERT(varchar(40), {name}, 121)"
        if self.base == "time":
            return f"CONVERT(varchar(40), {name}, 121)"
        if self.base in ("image", "binary", "varbinary"):
            return f"CONVERT(varchar(max), CONVERT(varbinary(max), {name}), 2)"
        if self.is_text:
            return f"CONVERT(nvarchar(max), {name})"
        return f"CONVERT(varchar(60), {name})"

    def canonical(self, value, digits=DIGITS_MAX):
        """The text form of a value, be it a driver's or a text of the table. A driver whose values
        hold fewer fractional digits of a second is compared in those.

        >>> Column({"name": "a", "type": "decimal(5,2)", "values": []}).canonical("1.5")
        '1.50'
        >>> Column({"name": "a", "type": "datetime2(7)", "values": []}).canonical(
        ...     datetime.datetime(1, 1, 1, 2, 3, 4, 50), 6)
        '0001-01-01 02:03:04.000050'
        >>> Column({"name": "a", "type": "datetime2(7)", "values": []}).canonical(
        ...     "0001-01-01 02:03:04.0000509", 6)
        '0001-01-01 02:03:04.000050'
        >>> Column({"name": "a", "type": "real", "values": []}).canonical("0.1")
        '3dcccccd'
        """
        if value is None:
            return None
        base = self.base
        if base == "bit":
            return str(int(value))
        if base in ("tinyint", "smallint", "int", "bigint"):
            return str(value) if isinstance(value, int) else str(int(str(value)))
        if base == "real":
            return struct.pack(">f", float(value)).hex()
        if base == "float":
            return struct.pack(">d", float(value)).hex()
        if base in ("decimal", "numeric", "money", "smallmoney"):
            return self._decimal(value)
        if base == "date" or self.digits is not None:
            return self._moment(value, digits)
        if base == "uniqueidentifier":
            if isinstance(value, bytes):
                value = uuid.UUID(bytes_le=value)
            return str(value).upper()
        if self.is_binary:
            return value.upper() if isinstance(value, str) else bytes(value).hex().upper()
        return str(value)

    def _decimal(self, value):
        given = value if isinstance(value, decimal.Decimal) else decimal.Decimal(str(value))
        try:
            exact = EXACT.quantize(given, decimal.Decimal(1).scaleb(-self.scale))
        except (decimal.Inexact, decimal.InvalidOperation):
            return f"{given} (which does not fit {self.type})"
        return format(exact + 0 if exact else abs(exact), "f")

    def _moment(self, value, digits):
        if isinstance(value, datetime.datetime):
            offset = ""
            if value.tzinfo is not None and self.base == "datetimeoffset":
                offset = " " + value.strftime("%z")[:3] + ":" + value.strftime("%z")[3:]
            text = f"{value.year:04}" + value.strftime("-%m-%d %H:%M:%S.%f") + offset
        elif isinstance(value, (datetime.date, datetime.time)):
            text = str(value)
        else:
            text = str(value)
        parts = MOMENT.fullmatch(text)
        if not parts:
            return f"{text} (which is no {self.type})"
        date, time, fraction, offset = parts["date"], parts["time"], parts["fraction"], parts["offset"]
        if self.base == "date":
            return date if not time or time == "00:00:00" else text
        kept = min(self.digits, digits)
        fraction = (fraction or "").ljust(DIGITS_MAX + 2, "0")
        if self.base == "datetime":
            # Its ticks are thirds of a hundredth of a second; some drivers give all the digits.
            second = round(int(fraction[:6]) / 1000)
            fraction = f"{second:03}000000"
        elif set(fraction[self.digits:]) - {"0"}:
            return f"{text} (which has more digits than {self.type})"
        text = (time or "00:00:00") + (f".{fraction[:kept]}" if kept else "")
        if self.base != "time":
            text = f"{date} {text}"
        if self.base == "datetimeoffset":
            text += f" {offset}"
        return text


class Table:
    """The table of every type."""

    def __init__(self, name, given=None):
        given = given or json.loads(FILE.read_text("utf-8"))
        self.name = name
        self.columns = [Column(column) for column in given["columns"]]
        names = given["rows"]
        self.rows = {
            name: [column.values[at] if at < len(column.values) else None for column in self.columns]
            for at, name in enumerate(names)
        }

    def reads(self, driver):
        """The same rows, in those columns alone that a driver has values for."""
        kept = [at for at, column in enumerate(self.columns) if driver.holds(column)]
        table = Table.__new__(Table)
        table.name = self.name
        table.columns = [self.columns[at] for at in kept]
        table.rows = {name: [row[at] for at in kept] for name, row in self.rows.items()}
        return table

    def create(self):
        columns = ",\n  ".join(column.declaration for column in self.columns)
        return (
            f"CREATE TABLE dbo.{self.name} (\n  id int NOT NULL CONSTRAINT pk_{self.name} PRIMARY KEY,"
            f"\n  {columns},\n  c_computed AS id * 2,\n  c_version rowversion\n)"
        )

    def insert(self, key, row):
        """A statement that writes a row by its literals."""
        literals = [column.literal(text) for column, text in zip(self.columns, row)]
        return (
            f"INSERT INTO dbo.{self.name} (id, {self.names})\nVALUES ({key}, "
            + ",\n  ".join(literals) + ")"
        )

    @property
    def names(self):
        return ", ".join(column.name for column in self.columns)

    @property
    def told(self):
        """The select list that has the server write each value as text."""
        return ", ".join(column.told() for column in self.columns)

    def difference(self, row, got, digits=DIGITS_MAX, left_out=lambda column: False):
        """The first column in which a driver's row is not the one committed; None when equal."""
        if len(got) != len(self.columns):
            return f"{len(got)} columns instead of {len(self.columns)}"
        for column, text, value in zip(self.columns, row, got):
            expected = None if left_out(column) else column.canonical(text, digits)
            try:
                found = column.canonical(value, digits)
            except (ValueError, TypeError, ArithmeticError) as error:
                found = f"{value!r:.{SHOWN_MAX}} ({type(error).__name__}: {error})"
            if found != expected:
                return (
                    f"{column.name} {column.type}: {shown(found)} ({type(value).__name__}) "
                    f"instead of {shown(expected)}"
                )
        return None


def shown(text):
    """A text short enough for a line; of two long ones the length tells them apart.

    >>> shown(None), shown("a"), shown("x" * 100)
    ('NULL', "'a'", "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'... of 100")
    """
    if text is None:
        return "NULL"
    if len(text) <= SHOWN_MAX:
        return repr(text)
    return f"{text[:SHOWN_MAX]!r}... of {len(text)}"
