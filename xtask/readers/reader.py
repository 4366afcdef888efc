"""The readers: each opens a Delta table, names its columns and types, returns its rows, and counts
the rows that a predicate finds.

Their attributes say where they differ: whether NaN is greater than every number in a predicate,
whether infinity can stand in one, and which types they show as another.
"""

import datetime
import decimal
import json
import pathlib
import re

from value import EPOCH, TIMESTAMPS


class DuckDb:
    """DuckDB with its delta extension, whose binary lies in a package of its own."""

    nan_is_greatest = True
    takes_infinity = True
    shows_as = {}
    types = {
        "TINYINT": "byte", "SMALLINT": "short", "INTEGER": "integer", "BIGINT": "long",
        "BOOLEAN": "boolean", "FLOAT": "float", "DOUBLE": "double", "DATE": "date",
        "TIMESTAMP": "timestamp_ntz", "TIMESTAMP WITH TIME ZONE": "timestamp",
        "VARCHAR": "string", "BLOB": "binary",
    }

    def __init__(self):
        import duckdb
        import duckdb_extension_delta

        self.version = duckdb.__version__
        package = pathlib.Path(duckdb_extension_delta.__file__).parent
        binary = package / f"extensions/v{self.version}/delta.duckdb_extension"
        if not binary.is_file():
            raise ImportError(f"duckdb-extension-delta has no binary for duckdb {self.version}")
        self.connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
        self.connection.execute(f"LOAD {self.quoted(str(binary))}")
        self.tables = 0

    def open(self, path):
        self.tables += 1
        name = f"t{self.tables}"
        # One snapshot for all queries of a table, so that the log is read once.
        attach = f"ATTACH {self.quoted(str(path))} AS {name} (TYPE delta, PIN_SNAPSHOT)"
        self.connection.execute(attach)
        return name

    def schema(self, table):
        rows = self.connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()
        types = {row[0]: row[1] for row in rows}
        return {
            column: self.types.get(type_, type_.replace("DECIMAL", "decimal"))
            for column, type_ in types.items()
        }

    def rows(self, table, schema):
        columns = ", ".join(self.read(name, type_) for name, type_ in schema.items())
        rows = self.connection.execute(f"SELECT {columns} FROM {table}").fetchall()
        kinds = list(schema.values())
        return [tuple(map(self.value, kinds, row)) for row in rows]

    def count(self, table, column, type_, comparison, value):
        where = f"{self.name(column)} {comparison}"
        if value is not None:
            where += f" {self.literal(type_, value)}"
        query = f"SELECT count(*) FROM {table} WHERE {where}"
        return self.connection.execute(query).fetchone()[0]

    def read(self, column, type_):
        name = self.name(column)
        if type_.kind in TIMESTAMPS:
            return f"epoch_us({name})"
        if type_.kind == "decimal":
            return f"CAST({name} AS VARCHAR)"
        if type_.kind == "date":
            return f"{name} - DATE '1970-01-01'"
        return name

    def value(self, type_, value):
        if value is not None and type_.kind == "decimal":
            return type_.digits(decimal.Decimal(value))
        return value

    def literal(self, type_, value):
        text = type_.text(value)
        if type_.kind == "binary":
            return f"from_hex('{text}')"
        sql = {
            "byte": "TINYINT", "short": "SMALLINT", "integer": "INTEGER", "long": "BIGINT",
            "boolean": "BOOLEAN", "float": "FLOAT", "double": "DOUBLE", "date": "DATE",
            "timestamp": "TIMESTAMPTZ", "timestamp_ntz": "TIMESTAMP", "string": "VARCHAR",
            "decimal": f"DECIMAL({type_.precision},{type_.scale})",
        }[type_.kind]
        zone = "+00:00" if type_.kind == "timestamp" else ""
        return f"CAST({self.quoted(text + zone)} AS {sql})"

    @staticmethod
    def quoted(text):
        return "'" + text.replace("'", "''") + "'"

    @staticmethod
    def name(column):
        return '"' + column.replace('"', '""') + '"'


class PolarsDeltalake:
    """Polars with the plugin that reads Delta tables through the Rust kernel."""

    nan_is_greatest = True
    # The plugin takes a predicate as JSON, which has no infinity.
    takes_infinity = False
    shows_as = {}

    def __init__(self):
        import importlib.metadata

        import polars
        import polars_deltalake

        self.polars = polars
        self.scan = polars_deltalake.scan_delta
        self.version = importlib.metadata.version("polars-deltalake")

    def open(self, path):
        return self.scan(str(path))

    def schema(self, table):
        pl = self.polars
        names = {
            pl.Int8: "byte", pl.Int16: "short", pl.Int32: "integer", pl.Int64: "long",
            pl.Boolean: "boolean", pl.Float32: "float", pl.Float64: "double", pl.Date: "date",
            pl.String: "string", pl.Binary: "binary",
        }

        def name(dtype):
            if isinstance(dtype, pl.Decimal):
                return f"decimal({dtype.precision},{dtype.scale})"
            if isinstance(dtype, pl.Datetime):
                return "timestamp" if dtype.time_zone else "timestamp_ntz"
            return names.get(dtype.base_type(), str(dtype))

        return {column: name(dtype) for column, dtype in table.collect_schema().items()}

    def rows(self, table, schema):
        columns = [self.read(name, type_) for name, type_ in schema.items()]
        kinds = list(schema.values())
        rows = table.select(columns).collect().rows()
        return [tuple(map(self.value, kinds, row)) for row in rows]

    def count(self, table, column, type_, comparison, value):
        pl = self.polars
        of = pl.col(column)
        if value is None:
            wanted = of.is_null() if comparison == "IS NULL" else of.is_not_null()
        else:
            literal = self.literal(type_, value)
            wanted = {">=": of >= literal, "<=": of <= literal, "=": of == literal}[comparison]
        return table.filter(wanted).select(pl.len()).collect().item()

    def read(self, column, type_):
        pl = self.polars
        of = pl.col(column)
        if type_.kind in TIMESTAMPS:
            return of.dt.cast_time_unit("us").cast(pl.Int64)
        if type_.kind == "date":
            return of.cast(pl.Int32)
        return of

    def value(self, type_, value):
        if value is not None and type_.kind == "decimal":
            return type_.digits(value)
        return value

    def literal(self, type_, value):
        pl = self.polars
        if type_.kind == "decimal":
            return pl.lit(type_.decimal(value), dtype=pl.Decimal(type_.precision, type_.scale))
        if type_.kind == "date":
            return pl.lit((EPOCH + datetime.timedelta(days=value)).date(), dtype=pl.Date)
        if type_.kind == "timestamp":
            moment = type_.datetime(value).replace(tzinfo=datetime.timezone.utc)
            return pl.lit(moment, dtype=pl.Datetime("us", "UTC"))
        if type_.kind == "timestamp_ntz":
            return pl.lit(type_.datetime(value), dtype=pl.Datetime("us"))
        dtype = {
            "byte": pl.Int8, "short": pl.Int16, "integer": pl.Int32, "long": pl.Int64,
            "boolean": pl.Boolean, "float": pl.Float32, "double": pl.Float64,
            "string": pl.String, "binary": pl.Binary,
        }[type_.kind]
        return pl.lit(value, dtype=dtype)


class Chdb:
    """ClickHouse, embedded, with its own reader in C++ instead of the kernel's."""

    nan_is_greatest = False
    takes_infinity = True
    # It has one type for text and bytes, and no zone on a timestamp.
    shows_as = {"binary": "string", "timestamp": "timestamp_ntz"}

    def __init__(self):
        import chdb

        self.query = chdb.query
        self.version = chdb.__version__

    def open(self, path):
        return f"deltaLakeLocal({self.quoted(str(path))})"

    def ask(self, query):
        settings = "allow_experimental_delta_kernel_rs = 0, session_timezone = 'UTC'"
        answer = self.query(f"{query} SETTINGS {settings}", "JSONCompactEachRow")
        return [json.loads(line) for line in answer.bytes().decode().splitlines()]

    def schema(self, table):
        names = {
            "Int8": "byte", "Int16": "short", "Int32": "integer", "Int64": "long",
            "Bool": "boolean", "Float32": "float", "Float64": "double", "Date32": "date",
            "DateTime64(6)": "timestamp_ntz", "DateTime64(6, 'UTC')": "timestamp",
            "String": "string",
        }

        def name(text):
            text = re.sub(r"^Nullable\((.*)\)$", r"\1", text)
            return names.get(text, text.replace("Decimal", "decimal").replace(", ", ","))

        return {row[0]: name(row[1]) for row in self.ask(f"DESCRIBE TABLE {table}")}

    def rows(self, table, schema):
        columns = ", ".join(self.read(name, type_) for name, type_ in schema.items())
        kinds = list(schema.values())
        rows = self.ask(f"SELECT {columns} FROM {table}")
        return [tuple(map(self.value, kinds, row)) for row in rows]

    def count(self, table, column, type_, comparison, value):
        where = f"{self.name(column)} {comparison}"
        if value is not None:
            where += f" {self.literal(type_, value)}"
        return int(self.ask(f"SELECT toString(count()) FROM {table} WHERE {where}")[0][0])

    def read(self, column, type_):
        name = self.name(column)
        if type_.kind in TIMESTAMPS:
            name = f"toUnixTimestamp64Micro({name})"
        if type_.kind == "date":
            name = f"toInt32({name})"
        if type_.kind in ("string", "binary"):
            return f"hex({name})"
        return f"toString({name})"

    def value(self, type_, value):
        if value is None:
            return None
        if type_.kind == "string":
            return bytes.fromhex(value).decode()
        if type_.kind == "decimal":
            return type_.digits(decimal.Decimal(value))
        if type_.kind in ("date", *TIMESTAMPS):
            return int(value)
        return type_.parse(value)

    def literal(self, type_, value):
        text = type_.text(value)
        if type_.kind == "binary":
            return f"unhex('{text}')"
        if type_.kind == "boolean":
            return text
        if type_.kind in TIMESTAMPS:
            return f"fromUnixTimestamp64Micro({value}, 'UTC')"
        convert = {
            "byte": "toInt8", "short": "toInt16", "integer": "toInt32", "long": "toInt64",
            "float": "toFloat32", "double": "toFloat64", "date": "toDate32",
        }
        if type_.kind == "decimal":
            return f"CAST({self.quoted(text)} AS Decimal({type_.precision},{type_.scale}))"
        if type_.kind == "string":
            return self.quoted(text)
        return f"{convert[type_.kind]}({self.quoted(text)})"

    @staticmethod
    def quoted(text):
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    @staticmethod
    def name(column):
        return "`" + column.replace("\\", "\\\\").replace("`", "\\`") + "`"


READERS = {"duckdb": DuckDb, "polars-deltalake": PolarsDeltalake, "chdb": Chdb}
