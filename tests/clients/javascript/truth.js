// What was committed: a table with a column of every type, read from every_type.json, and the one
// text form in which what the driver returns is compared with it.

"use strict";

const fs = require("fs");
const path = require("path");

const FILE = path.join(__dirname, "..", "every_type.json");
// Ticks of 100 ns have seven digits.
const DIGITS_MAX = 7;
const MOMENT =
  /^(\d{4}-\d\d-\d\d)?[ T]?(\d\d:\d\d:\d\d)?(?:\.(\d+))?(?: ?([+-]\d\d:\d\d))?$/;
// Digits that survive in a number of JavaScript.
const NUMBER_DIGITS = 15;
const SHOWN_MAX = 60;

/** A column, its type, and the text forms of its values. */
class Column {
  constructor(given) {
    this.name = given.name;
    this.type = given.type;
    this.collation = given.collation;
    this.values = given.values.map((v) => (typeof v === "string" ? v : v[0].repeat(v[1])));
    const parts = /^(\w+)(?:\((\w+)(?:,(\d+))?\))?$/.exec(given.type);
    this.base = parts[1];
    this.length = parts[2];
    const last = parts[3] ?? (/^\d+$/.test(parts[2] ?? "") ? parts[2] : "0");
    this.precision = Number(parts[2] ?? 0);
    this.scale = { money: 4, smallmoney: 4 }[this.base] ?? Number(last);
  }

  get declaration() {
    const collation = this.collation ? ` COLLATE ${this.collation}` : "";
    return `${this.name} ${this.type}${collation} NULL`;
  }

  /** Whether a change row never has what was there before. */
  get legacy() {
    return ["text", "ntext", "image"].includes(this.base);
  }

  /** Whether a change row leaves it out of an update's image before, when it was not set. */
  get large() {
    return this.length === "max" || this.base === "xml" || this.legacy;
  }

  get isBinary() {
    return ["binary", "varbinary", "image"].includes(this.base);
  }

  get isText() {
    const texts = ["char", "varchar", "nchar", "nvarchar", "text", "ntext", "xml", "sysname"];
    return texts.includes(this.base);
  }

  /** Fractional digits of its seconds; undefined when it has no seconds. */
  get digits() {
    const scale = this.scale;
    const digits = { datetime: 3, smalldatetime: 0, datetime2: scale, time: scale };
    return { ...digits, datetimeoffset: scale }[this.base];
  }

  /** A value as T-SQL writes it. */
  literal(text) {
    if (text === null) return "NULL";
    if (this.isBinary) return `0x${text}`;
    if (this.isText) {
      const plain = ["char", "varchar", "text"].includes(this.base) && !this.collation;
      return `${plain ? "'" : "N'"}${text.replaceAll("'", "''")}'`;
    }
    if (this.digits !== undefined || ["date", "uniqueidentifier"].includes(this.base)) {
      return `'${text}'`;
    }
    return text;
  }

  /** An expression that has the server write the value as text, with nothing cut off. */
  get told() {
    const { name, base } = this;
    if (base === "real" || base === "float") return `CONVERT(varchar(40), ${name}, 3)`;
    if (base === "money" || base === "smallmoney") return `CONVERT(varchar(40), ${name}, 2)`;
    if (base === "date") return `CONVERT(varchar(40), ${name}, 23)`;
    if (this.digits !== undefined) return `CONVERT(varchar(40), ${name}, 121)`;
    if (this.isBinary) return `CONVERT(varchar(max), CONVERT(varbinary(max), ${name}), 2)`;
    if (this.isText) return `CONVERT(nvarchar(max), ${name})`;
    return `CONVERT(varchar(60), ${name})`;
  }

  /**
   * The text form of a value, be it the driver's or a text of the table. The driver's decimals are
   * numbers of 53 bits, computed: where it gives one, it is compared in the digits that it can tell.
   */
  canonical(value, asNumber = false) {
    if (value === null || value === undefined) return null;
    const base = this.base;
    if (base === "bit") return typeof value === "string" ? value : String(Number(value));
    if (["tinyint", "smallint", "int", "bigint"].includes(base)) return String(BigInt(value));
    if (base === "real") return hex(4, (view) => view.setFloat32(0, Number(value)));
    if (base === "float") return hex(8, (view) => view.setFloat64(0, Number(value)));
    if (["decimal", "numeric", "money", "smallmoney"].includes(base)) {
      return asNumber ? Number(value).toPrecision(NUMBER_DIGITS) : String(value);
    }
    if (base === "date" || this.digits !== undefined) return this.moment(value);
    if (base === "uniqueidentifier") return String(value).toUpperCase();
    if (this.isBinary) {
      return (typeof value === "string" ? value : value.toString("hex")).toUpperCase();
    }
    return String(value);
  }

  moment(value) {
    let text = value;
    if (value instanceof Date) {
      // The driver keeps what a Date cannot hold beside it, in seconds.
      const below = Math.round((value.nanosecondsDelta ?? 0) * 1e7);
      const ticks = String(value.getUTCMilliseconds() * 1e4 + below).padStart(DIGITS_MAX, "0");
      const iso = value.toISOString();
      text = `${iso.slice(0, 10)} ${iso.slice(11, 19)}.${ticks} +00:00`;
    }
    const parts = MOMENT.exec(text);
    if (!parts) return `${text} (which is no ${this.type})`;
    let [, date, time, fraction = "", offset = "+00:00"] = parts;
    if (this.base === "date") return date;
    if (this.base === "datetimeoffset") ({ date, time } = inUtc(date, time, offset));
    if (this.base === "datetime") {
      const ms = Math.round(Number(fraction.padEnd(6, "0").slice(0, 6)) / 1000);
      fraction = String(ms).padStart(3, "0");
    }
    fraction = fraction.padEnd(DIGITS_MAX, "0");
    if (/[^0]/.test(fraction.slice(this.digits))) {
      return `${text} (which has more digits than ${this.type})`;
    }
    const kept = this.digits ? `.${fraction.slice(0, this.digits)}` : "";
    return this.base === "time" ? `${time}${kept}` : `${date} ${time}${kept}`;
  }
}

/** The driver's values of datetimeoffset are instants: compared in UTC. */
function inUtc(date, time, offset) {
  const [hours, minutes] = offset.slice(1).split(":").map(Number);
  const sign = offset.startsWith("-") ? -1 : 1;
  const moment = new Date(0);
  const [y, m, d] = date.split("-").map(Number);
  moment.setUTCFullYear(y, m - 1, d);
  const [h, min, s] = time.split(":").map(Number);
  moment.setUTCHours(h, min - sign * (hours * 60 + minutes), s);
  const pad = (n, width = 2) => String(n).padStart(width, "0");
  return {
    date: `${pad(moment.getUTCFullYear(), 4)}-${pad(moment.getUTCMonth() + 1)}-${pad(moment.getUTCDate())}`,
    time: `${pad(moment.getUTCHours())}:${pad(moment.getUTCMinutes())}:${pad(moment.getUTCSeconds())}`,
  };
}

function hex(bytes, set) {
  const view = new DataView(new ArrayBuffer(bytes));
  set(view);
  return Buffer.from(view.buffer).toString("hex");
}

/** The table of every type. */
class Table {
  constructor(name) {
    const given = JSON.parse(fs.readFileSync(FILE, "utf8"));
    this.name = name;
    this.columns = given.columns.map((column) => new Column(column));
    this.rowNames = given.rows;
    this.rows = given.rows.map((_, at) => this.columns.map((c) => c.values[at] ?? null));
  }

  get names() {
    return this.columns.map((column) => column.name).join(", ");
  }

  get told() {
    return this.columns.map((column) => column.told).join(", ");
  }

  create() {
    const columns = this.columns.map((column) => column.declaration).join(",\n  ");
    return (
      `CREATE TABLE dbo.${this.name} (\n  id int NOT NULL CONSTRAINT pk_${this.name} PRIMARY KEY,` +
      `\n  ${columns},\n  c_computed AS id * 2,\n  c_version rowversion\n)`
    );
  }

  insert(key, row) {
    const literals = this.columns.map((column, at) => column.literal(row[at]));
    return `INSERT INTO dbo.${this.name} (id, ${this.names})\nVALUES (${key}, ${literals.join(",\n  ")})`;
  }

  /** The first column in which a row is not the one committed; null when equal. */
  difference(row, got, leftOut = () => false) {
    if (got.length !== this.columns.length) {
      return `${got.length} columns instead of ${this.columns.length}`;
    }
    for (const [at, column] of this.columns.entries()) {
      const asNumber = typeof got[at] === "number";
      const expected = leftOut(column) ? null : column.canonical(row[at], asNumber);
      const found = column.canonical(got[at], asNumber);
      if (found !== expected) {
        return `${column.name} ${column.type}: ${shown(found)} instead of ${shown(expected)}`;
      }
    }
    return null;
  }
}

/** A text short enough for a line. */
function shown(text) {
  if (text === null) return "NULL";
  const told = JSON.stringify(text.slice(0, SHOWN_MAX));
  return text.length <= SHOWN_MAX ? told : `${told}... of ${text.length}`;
}

module.exports = { Column, Table, shown };
