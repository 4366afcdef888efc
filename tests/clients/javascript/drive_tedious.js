// tedious: the driver of Node, in JavaScript alone. The checks are those of python/driver.py.

"use strict";

const fs = require("fs");
const { Connection, Request, TYPES } = require("tedious");
const { Table } = require("./truth");

const DATABASE = "clients";
// Rows written by parameters have keys from here; prepared ones from the second.
const PARAMETER_KEY = 101;
const PREPARED_KEY = 201;
const CANCEL_LIMIT_MS = 20000;
const LONG_READ =
  "SELECT a.v + b.v + c.v + d.v + e.v + f.v + g.v + h.v AS n FROM " +
  [..."abcdefgh"]
    .map((n) => `(VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS ${n}(v)`)
    .join(" CROSS JOIN ");

class NotHere extends Error {}
class Different extends Error {}

const env = process.env;
const table = new Table("every_type");

function say(...parts) {
  console.log(parts.map((part) => String(part).replace(/\s+/g, " ").slice(0, 400)).join("\t"));
}

async function check(name, does) {
  try {
    const given = await does();
    say("passed", name);
    return given;
  } catch (error) {
    if (error instanceof NotHere) {
      say("skipped", name, error.message);
    } else if (error instanceof Different) {
      say("failed", name, error.message);
    } else {
      console.error(error);
      say("failed", name, `${error.name}: ${error.message}`);
    }
    return undefined;
  }
}

function equal(found, expected, what) {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  if (a !== b) throw new Different(`${what}: ${a} instead of ${b}`);
}

/** A connection; with a certificate, the server must have that one. */
function connect({ protection = "plain", database = "master", password, certificate } = {}) {
  const encrypt = { plain: false, tls: true, strict: "strict" }[protection];
  const trusted = certificate ?? (protection === "strict" ? env.CDC_CLIENTS_CERTIFICATE : null);
  const connection = new Connection({
    server: env.CDC_CLIENTS_HOST,
    authentication: {
      type: "default",
      options: { userName: env.CDC_CLIENTS_USER, password: password ?? env.CDC_CLIENTS_PASSWORD },
    },
    options: {
      port: Number(env.CDC_CLIENTS_PORT),
      database,
      encrypt,
      trustServerCertificate: !trusted,
      cryptoCredentialsDetails: trusted ? { ca: fs.readFileSync(trusted) } : {},
      connectTimeout: 20000,
      requestTimeout: 60000,
      maxRetriesOnTransientErrors: 0,
      useUTC: true,
    },
  });
  return new Promise((resolve, reject) => {
    connection.on("error", () => {});
    connection.connect((error) => (error ? reject(error) : resolve(connection)));
  });
}

/** The rows of each result of a request; `start` hands the request to the connection. */
function ask(sql, start) {
  return new Promise((resolve, reject) => {
    const results = [];
    const request = new Request(sql, (error) => (error ? reject(error) : resolve(results)));
    request.on("columnMetadata", () => results.push([]));
    request.on("row", (columns) => results.at(-1).push(columns.map((column) => column.value)));
    start(request);
  });
}

const batch = (connection, sql) => ask(sql, (request) => connection.execSqlBatch(request));

async function rows(connection, sql) {
  const results = await batch(connection, sql);
  equal(results.length, 1, `results of ${sql.slice(0, 60)}`);
  return results[0];
}

async function first(connection, sql) {
  const found = await rows(connection, sql);
  equal(found.length, 1, `rows of ${sql}`);
  return found[0][0];
}

/** What a promise fails with; that it does not fail is a difference. */
async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Different("no error at all");
}

/** The server's number of an error. */
function number(error) {
  return error.number ?? error.cause?.number ?? error.errors?.[0]?.number;
}

async function logIn(protection) {
  const connection = await connect({ protection });
  equal(await first(connection, "SELECT 42 AS answer"), 42, "SELECT 42");
  connection.close();
}

async function wrongPassword() {
  for (const protection of ["plain", "tls", "strict"]) {
    const error = await failure(connect({ protection, password: "not the password" }));
    const told = number(error) ?? (error.code === "ELOGIN" ? 18456 : error.code);
    equal(told, 18456, `the number of ${error.message}, ${protection}`);
  }
}

async function certificate() {
  for (const protection of ["tls", "strict"]) {
    const options = { protection, certificate: env.CDC_CLIENTS_CERTIFICATE };
    const connection = await connect(options);
    equal(await first(connection, "SELECT 1"), 1, "SELECT 1");
    connection.close();
  }
}

async function otherCertificate() {
  for (const protection of ["tls", "strict"]) {
    const options = { protection, certificate: env.CDC_CLIENTS_OTHER_CERTIFICATE };
    const error = await failure(connect(options));
    if (number(error) === 18456) throw new Different(`it sent its password, ${protection}`);
  }
}

async function createDatabase() {
  const connection = await connect();
  await batch(connection, `CREATE DATABASE ${DATABASE}`);
  connection.close();
  const opened = await connect({ database: DATABASE });
  equal(await first(opened, "SELECT DB_NAME()"), DATABASE, "DB_NAME()");
  return opened;
}

async function enableCapture(connection) {
  await ask("sys.sp_cdc_enable_db", (request) => connection.callProcedure(request));
  await batch(connection, table.create());
  await ask("sys.sp_cdc_enable_table", (request) => {
    request.addParameter("source_schema", TYPES.NVarChar, "dbo");
    request.addParameter("source_name", TYPES.NVarChar, table.name);
    request.addParameter("role_name", TYPES.NVarChar, null);
    request.addParameter("supports_net_changes", TYPES.Bit, true);
    connection.callProcedure(request);
  });
  const instance = await first(connection, "SELECT capture_instance FROM cdc.change_tables");
  equal(instance, `dbo_${table.name}`, "the capture instance");
}

async function writeLiterals(connection) {
  for (const [at, row] of table.rows.entries()) await batch(connection, table.insert(at + 1, row));
}

/** Compares the first rows of a query with the rows of the table. */
async function compare(connection, columns, firstKey) {
  const sql = `SELECT ${columns} FROM dbo.${table.name} WHERE id >= ${firstKey} ORDER BY id`;
  const found = await rows(connection, sql);
  if (found.length < table.rows.length) throw new Different(`${found.length} rows`);
  for (const [at, row] of table.rows.entries()) {
    const difference = table.difference(row, found[at]);
    if (difference) throw new Different(`row ${table.rowNames[at]}: ${difference}`);
  }
}

/** The driver's type of a column, and what it is told of it. */
function parameterType(column) {
  const length = column.length === "max" ? Infinity : Number(column.length);
  const scale = column.scale;
  const types = {
    bit: TYPES.Bit, tinyint: TYPES.TinyInt, smallint: TYPES.SmallInt, int: TYPES.Int,
    bigint: TYPES.BigInt, real: TYPES.Real, float: TYPES.Float, money: TYPES.Money,
    smallmoney: TYPES.SmallMoney, date: TYPES.Date, datetime: TYPES.DateTime,
    smalldatetime: TYPES.SmallDateTime, text: TYPES.Text, ntext: TYPES.NText,
    uniqueidentifier: TYPES.UniqueIdentifier, image: TYPES.Image,
  };
  const sized = {
    char: TYPES.Char, varchar: TYPES.VarChar, nchar: TYPES.NChar, nvarchar: TYPES.NVarChar,
    binary: TYPES.Binary, varbinary: TYPES.VarBinary,
  };
  const scaled = {
    datetime2: TYPES.DateTime2, datetimeoffset: TYPES.DateTimeOffset, time: TYPES.Time,
  };
  const base = column.base;
  // Its numbers have 53 bits, its varchar one code page: those travel as Unicode text.
  if (column.collation || ["decimal", "numeric", "money", "bigint", "xml", "sysname"].includes(base)) {
    return [TYPES.NVarChar, { length: column.length === "max" || base === "xml" ? Infinity : 4000 }];
  }
  if (types[base]) return [types[base], {}];
  if (sized[base]) return [sized[base], { length }];
  return [scaled[base], { scale }];
}

/** A value as the driver is given it. */
function parameter(column, text) {
  const [type] = parameterType(column);
  if (text === null || type === TYPES.NVarChar) return text;
  if (column.base === "bit") return text === "1";
  if (column.isBinary) return Buffer.from(text, "hex");
  if (["tinyint", "smallint", "int", "real", "float", "smallmoney"].includes(column.base)) {
    return Number(text);
  }
  if (column.base === "date") return new Date(`${text}T00:00:00Z`);
  if (column.digits === undefined) return text;
  const [, date = "1970-01-01", time, fraction = "", offset = "Z"] =
    /^(?:(\d{4}-\d\d-\d\d) )?(\d\d:\d\d:\d\d)(?:\.(\d+))?(?: ([+-]\d\d:\d\d))?$/.exec(text);
  const ticks = fraction.padEnd(7, "0");
  const value = new Date(`${date}T${time}.${ticks.slice(0, 3)}${offset}`);
  value.nanosecondDelta = Number(ticks.slice(3)) / 1e7;
  return value;
}

function insertion() {
  const places = table.columns.map((column) => `@${column.name}`).join(", ");
  return `INSERT INTO dbo.${table.name} (id, ${table.names}) VALUES (@id, ${places})`;
}

async function writeParameters(connection) {
  for (const [at, row] of table.rows.entries()) {
    await ask(insertion(), (request) => {
      request.addParameter("id", TYPES.Int, PARAMETER_KEY + at);
      for (const [place, column] of table.columns.entries()) {
        const [type, options] = parameterType(column);
        request.addParameter(column.name, type, parameter(column, row[place]), options);
      }
      connection.execSql(request);
    });
  }
}

/** Prepares the insertion once and executes it for each row. */
async function writePrepared(connection) {
  const request = new Request(insertion(), (error) => settle(error));
  let settle = () => {};
  const step = (start) =>
    new Promise((resolve, reject) => {
      settle = (error) => (error ? reject(error) : resolve());
      start();
    });
  request.addParameter("id", TYPES.Int);
  for (const column of table.columns) {
    const [type, options] = parameterType(column);
    request.addParameter(column.name, type, undefined, options);
  }
  const prepared = new Promise((resolve, reject) => {
    settle = (error) => (error ? reject(error) : resolve());
    request.on("prepared", resolve);
  });
  connection.prepare(request);
  await prepared;
  for (const [at, row] of table.rows.entries()) {
    const values = { id: PREPARED_KEY + at };
    table.columns.forEach((column, place) => {
      values[column.name] = parameter(column, row[place]);
    });
    await step(() => connection.execute(request, values));
  }
  await step(() => connection.unprepare(request));
}

const capture = (connection) => batch(connection, "EXEC fake.run_capture");

async function compareChanges(connection, condition, expected) {
  const found = await rows(
    connection,
    `SELECT __$operation, ${table.names} FROM cdc.dbo_${table.name}_CT WHERE ${condition} ` +
      "ORDER BY __$start_lsn, __$command_id, __$seqval, __$operation",
  );
  equal(found.map((row) => row[0]), expected.map((change) => change[0]), "operations");
  for (const [at, [operation, name, cInt, leftOut]] of expected.entries()) {
    const row = [...table.rows[table.rowNames.indexOf(name)]];
    if (cInt) row[table.columns.findIndex((column) => column.name === "c_int")] = cInt;
    const difference = table.difference(row, found[at].slice(1), leftOut);
    if (difference) throw new Different(`operation ${operation} of row ${name}: ${difference}`);
  }
}

async function changes(connection) {
  await capture(connection);
  const expected = table.rowNames.map((name) => [2, name]);
  await compareChanges(connection, "id < 100", expected);
}

async function laterChanges(connection) {
  for (const key of [1, 2, 5]) {
    await batch(connection, `UPDATE dbo.${table.name} SET c_int = 7 WHERE id = ${key}`);
    await batch(connection, `DELETE FROM dbo.${table.name} WHERE id = ${key}`);
  }
  await capture(connection);
  const expected = ["least", "greatest", "nulls"].flatMap((name) => [
    [3, name, null, (column) => column.large],
    [4, name, "7"],
    [1, name, "7", (column) => column.legacy],
  ]);
  await compareChanges(connection, "__$operation <> 2", expected);
}

async function transactions(connection) {
  const call = (method, ...given) =>
    new Promise((resolve, reject) => {
      connection[method]((error) => (error ? reject(error) : resolve()), ...given);
    });
  await batch(connection, "CREATE TABLE dbo.accounts (id int NOT NULL PRIMARY KEY, amount int)");
  await call("beginTransaction");
  await batch(connection, "INSERT INTO dbo.accounts VALUES (1, 10), (2, 20)");
  await call("commitTransaction");
  await call("beginTransaction");
  await batch(connection, "UPDATE dbo.accounts SET amount = amount + 1");
  await call("rollbackTransaction");
  await call("beginTransaction");
  await batch(connection, "UPDATE dbo.accounts SET amount = 11 WHERE id = 1");
  await call("saveTransaction", "before_two");
  await batch(connection, "DELETE FROM dbo.accounts WHERE id = 2");
  await call("rollbackTransaction", "before_two");
  await call("commitTransaction");
  const found = await rows(connection, "SELECT id, amount FROM dbo.accounts ORDER BY id");
  equal(found, [[1, 11], [2, 20]], "the rows that were committed");
  equal(await first(connection, "SELECT @@TRANCOUNT"), 0, "@@TRANCOUNT");
}

async function errors(connection) {
  for (const [sql, expected] of [
    ["INSERT INTO dbo.accounts VALUES (1, 0)", 2627],
    ["SELECT amount / 0 FROM dbo.accounts", 8134],
    ["SELECT * FROM dbo.no_such_table", 208],
    ["THROW 51234, N'of one''s own', 1", 51234],
  ]) {
    const error = await failure(batch(connection, sql));
    equal(number(error), expected, `the number of ${error.message} (${sql})`);
    equal(await first(connection, "SELECT 5"), 5, "a read after an error");
  }
}

async function severalResults(connection) {
  const found = await batch(
    connection,
    "SELECT 1 AS a, N'x' AS b; DECLARE @n int = 2; SELECT @n AS c WHERE 1 = 0; " +
      "UPDATE dbo.accounts SET amount = amount; SELECT id FROM dbo.accounts ORDER BY id",
  );
  equal(found, [[[1, "x"]], [], [[1], [2]]], "the results");
}

async function find(connection) {
  const at = table.columns.findIndex((column) => column.name === "c_nvarchar");
  const sql = `SELECT id FROM dbo.${table.name} WHERE c_nvarchar = @text AND id < @key`;
  const [found] = await ask(sql, (request) => {
    request.addParameter("text", TYPES.NVarChar, table.rows[1][at]);
    request.addParameter("key", TYPES.Int, PARAMETER_KEY);
    connection.execSql(request);
  });
  equal(found, [[2]], "the row with a Unicode text");
}

async function returned(connection) {
  const values = {};
  await ask("SELECT @n = @n * 2, @t = N'out ' + @t", (request) => {
    request.addOutputParameter("n", TYPES.Int, 21);
    request.addOutputParameter("t", TYPES.NVarChar, "é", { length: 20 });
    request.on("returnValue", (name, value) => (values[name] = value));
    connection.execSql(request);
  });
  equal(values, { n: 42, t: "out é" }, "the output parameters");
}

async function cancel(connection) {
  const start = Date.now();
  const error = await failure(
    ask(LONG_READ, (request) => {
      request.once("row", () => connection.cancel());
      connection.execSqlBatch(request);
    }),
  );
  equal(error.code, "ECANCEL", "the code of the error");
  equal(await first(connection, "SELECT 6"), 6, "a read after one that was cancelled");
  const took = Date.now() - start;
  if (took > CANCEL_LIMIT_MS) throw new Different(`the read went on for ${took} ms`);
}

async function reset(connection) {
  await batch(connection, "SET LOCK_TIMEOUT 5; CREATE TABLE #gone (a int)");
  await new Promise((resolve, reject) => {
    connection.reset((error) => (error ? reject(error) : resolve()));
  });
  equal(await first(connection, "SELECT @@LOCK_TIMEOUT"), -1, "@@LOCK_TIMEOUT after a reset");
  const error = await failure(batch(connection, "SELECT * FROM #gone"));
  equal(number(error), 208, "a temporary table after a reset");
}

async function main() {
  for (const protection of ["plain", "tls", "strict"]) {
    await check(`logs in, ${protection}`, () => logIn(protection));
  }
  await check("is refused with a wrong password: 18456", wrongPassword);
  await check("trusts the certificate it was given", certificate);
  await check("refuses a certificate it was not given", otherCertificate);
  const connection = await check("creates a database", createDatabase);
  if (!connection) return;
  for (const [name, does] of [
    ["enables capture for a database and a table", enableCapture],
    ["writes every type by literals", writeLiterals],
    ["reads every type", (c) => compare(c, table.names, 1)],
    ["reads every type as the server tells it", (c) => compare(c, table.told, 1)],
    ["writes every type by parameters", writeParameters],
    ["reads every type that it wrote by parameters", (c) => compare(c, table.told, PARAMETER_KEY)],
    ["writes every type by a prepared statement", writePrepared],
    ["reads every type that it wrote prepared", (c) => compare(c, table.told, PREPARED_KEY)],
    ["finds a row by a parameter", find],
    ["is given output parameters", returned],
    ["reads the change rows of every type", changes],
    ["reads the change rows of an update and a delete", laterChanges],
    ["commits, rolls back, and goes back to a savepoint", transactions],
    ["is told the number of an error, and goes on", errors],
    ["reads several results of one batch", severalResults],
    ["cancels a long read and goes on", cancel],
    ["resets its connection", reset],
  ]) {
    await check(name, () => does(connection));
  }
  connection.close();
}

main()
  .catch((error) => say("failed", "the program", error.stack))
  .finally(() => console.log("end"));
