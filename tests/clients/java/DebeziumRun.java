import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.debezium.engine.ChangeEvent;
import java.io.File;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/**
 * Runs Debezium's SQL Server connector, commits changes over JDBC, and compares each event with what
 * was committed: its kind, its key, the row before and after, and their order.
 */
public final class DebeziumRun {
    private static final String DATABASE = "debezium";
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Report report = new Report();
    private Connection connection;
    private Events events;

    public static void main(String[] arguments) throws Exception {
        try {
            new DebeziumRun().run();
        } catch (Exception error) {
            error.printStackTrace();
        }
        // The connector's threads do not all end by themselves.
        System.exit(0);
    }

    private void run() throws Exception {
        report.check("prepares a database over JDBC", this::prepare);
        Jdbc jdbc = new Jdbc(connection, new Truth(new File(env("TYPES"))));
        report.apart("writes every type by a prepared statement over JDBC", jdbc::write);
        report.apart("reads every type and its change rows over JDBC", jdbc::read);
        report.check("takes its snapshot", () -> {
            events = new Events(properties());
            expect(
                    "r 1 null -> [1,\"Anna\",\"10.5000\",1709209861003,true,\"3q2+7w==\"]",
                    "r 2 null -> [2,\"Ωmega 日本 😀\",\"-99999999999999.9999\",-62135596800000,false,\"\"]",
                    "r 3 null -> [3,null,null,null,null,null]",
                    "r 1 null -> [1,18295,1580702706007,30,\"none\"]");
        });
        report.check("streams inserts", () -> {
            commit("INSERT INTO dbo.orders VALUES "
                    + "(4, N'Dora', 0.0001, '9999-12-31 23:59:59.999', 0, 0xFF), "
                    + "(5, N'', 0, '1970-01-01', 1, NULL)");
            expect(
                    "c 4 null -> [4,\"Dora\",\"0.0001\",253402300799999,false,\"/w==\"]",
                    "c 5 null -> [5,\"\",\"0.0000\",0,true,null]");
        });
        report.check("streams updates with the row before and after", () -> {
            commit("UPDATE dbo.orders SET name = N'Ανδρέας', amount = NULL WHERE id = 4");
            expect("u 4 [4,\"Dora\",\"0.0001\",253402300799999,false,\"/w==\"] -> "
                    + "[4,\"Ανδρέας\",null,253402300799999,false,\"/w==\"]");
        });
        report.check("streams deletes", () -> {
            commit("DELETE FROM dbo.orders WHERE id = 3");
            expect("d 3 [3,null,null,null,null,null] -> null");
        });
        report.check("streams an update of the key as a delete and an insert", () -> {
            commit("UPDATE dbo.orders SET id = 50 WHERE id = 5");
            expect(
                    "d 5 [5,\"\",\"0.0000\",0,true,null] -> null",
                    "c 50 null -> [50,\"\",\"0.0000\",0,true,null]");
        });
        report.check("sees nothing of what was rolled back", this::rollBack);
        report.check("keeps the order of statements and transactions", this::order);
        report.check("tells where and when a change was committed", this::position);
        report.check("follows the table to a new instance with a column more", this::newInstance);
        report.check("goes on where it was when the old instance is gone", this::oldInstanceGone);
        report.check("reads beside a writer under snapshot isolation, and through the functions",
                this::functions);
        if (events != null) {
            events.close();
        }
        report.end();
    }

    private static String env(String name) {
        return System.getenv("CDC_CLIENTS_" + name);
    }

    private static Connection connect(String database) throws Exception {
        String url = "jdbc:sqlserver://" + env("HOST") + ":" + env("PORT") + ";databaseName=" + database
                + ";encrypt=true;trustServerCertificate=true;loginTimeout=20";
        return DriverManager.getConnection(url, env("USER"), env("PASSWORD"));
    }

    private void execute(String... statements) throws Exception {
        try (Statement statement = connection.createStatement()) {
            for (String text : statements) {
                statement.execute(text);
            }
        }
    }

    /** Commits each statement by itself and has the capture job read the log. */
    private void commit(String... statements) throws Exception {
        execute(statements);
        execute("EXEC fake.run_capture");
    }

    private void prepare() throws Exception {
        try (Connection master = connect("master"); Statement statement = master.createStatement()) {
            statement.execute("CREATE DATABASE " + DATABASE);
        }
        connection = connect(DATABASE);
        commit(
                "EXEC sys.sp_cdc_enable_db",
                "CREATE TABLE dbo.orders (id int NOT NULL CONSTRAINT pk_orders PRIMARY KEY, "
                        + "name nvarchar(40) NULL, amount decimal(18,4) NULL, at datetime2(3) NULL, "
                        + "paid bit NULL, mark varbinary(8) NULL)",
                "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'orders', "
                        + "@role_name = NULL",
                "INSERT INTO dbo.orders VALUES "
                        + "(1, N'Anna', 10.5, '2024-02-29 12:31:01.003', 1, 0xDEADBEEF), "
                        + "(2, N'Ωmega 日本 😀', -99999999999999.9999, '0001-01-01', 0, 0x), "
                        + "(3, NULL, NULL, NULL, NULL, NULL)",
                // The connector has the server read what the columns' defaults say.
                "CREATE TABLE dbo.terms (id int NOT NULL CONSTRAINT pk_terms PRIMARY KEY, "
                        + "due date NOT NULL DEFAULT '2020-02-03', "
                        + "at datetime2(3) NOT NULL DEFAULT ('2020-02-03T04:05:06.007'), "
                        + "days int NOT NULL DEFAULT ((30)), word nvarchar(10) NULL DEFAULT (N'none'))",
                "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'terms', "
                        + "@role_name = NULL",
                "INSERT INTO dbo.terms (id) VALUES (1)");
    }

    private static Properties properties() {
        return properties("dbo.orders,dbo.terms", "first");
    }

    private static Properties properties(String tables, String name) {
        String directory = env("DIRECTORY");
        Properties properties = new Properties();
        String[][] given = {
            {"name", name},
            {"connector.class", "io.debezium.connector.sqlserver.SqlServerConnector"},
            {"topic.prefix", name},
            {"database.hostname", env("HOST")},
            {"database.port", env("PORT")},
            {"database.user", env("USER")},
            {"database.password", env("PASSWORD")},
            {"database.names", DATABASE},
            {"table.include.list", tables},
            {"driver.encrypt", "true"},
            {"driver.trustServerCertificate", "true"},
            {"decimal.handling.mode", "string"},
            {"tombstones.on.delete", "false"},
            {"include.schema.changes", "false"},
            {"poll.interval.ms", "50"},
            {"errors.max.retries", "0"},
            {"offset.flush.interval.ms", "1000"},
            {"offset.storage", "org.apache.kafka.connect.storage.FileOffsetBackingStore"},
            {"offset.storage.file.filename", Path.of(directory, name + ".offsets").toString()},
            {"schema.history.internal", "io.debezium.storage.file.history.FileSchemaHistory"},
            {"schema.history.internal.file.filename", Path.of(directory, name + ".history").toString()},
            {"key.converter.schemas.enable", "false"},
            {"value.converter.schemas.enable", "false"},
            // Else a NULL in a column with a default is told as the default.
            {"value.converter.replace.null.with.default", "false"},
        };
        for (String[] pair : given) {
            properties.setProperty(pair[0], pair[1]);
        }
        return properties;
    }

    /** Compares the next events with the expected ones, one by one. */
    private void expect(String... expected) throws Exception {
        for (String text : expected) {
            Report.equal(told(events.next()), text, "the event");
        }
    }

    /** An event as kind, key, row before and row after. */
    private static String told(ChangeEvent<String, String> event) throws Exception {
        JsonNode value = JSON.readTree(event.value());
        JsonNode key = JSON.readTree(event.key());
        return value.get("op").asText() + " " + key.get("id") + " " + row(value.get("before")) + " -> "
                + row(value.get("after"));
    }

    private static String row(JsonNode row) {
        if (row == null || row.isNull()) {
            return "null";
        }
        List<String> cells = new ArrayList<>();
        row.elements().forEachRemaining(cell -> cells.add(cell.toString()));
        return "[" + String.join(",", cells) + "]";
    }

    private void rollBack() throws Exception {
        connection.setAutoCommit(false);
        execute(
                "INSERT INTO dbo.orders VALUES (6, N'never', 1, NULL, 1, NULL)",
                "DELETE FROM dbo.orders WHERE id = 1");
        connection.rollback();
        java.sql.Savepoint none = null;
        execute("UPDATE dbo.orders SET paid = 0 WHERE id = 1");
        none = connection.setSavepoint("kept");
        execute("UPDATE dbo.orders SET name = N'lost' WHERE id = 1");
        connection.rollback(none);
        connection.commit();
        connection.setAutoCommit(true);
        commit();
        expect("u 1 [1,\"Anna\",\"10.5000\",1709209861003,true,\"3q2+7w==\"] -> "
                + "[1,\"Anna\",\"10.5000\",1709209861003,false,\"3q2+7w==\"]");
    }

    private void order() throws Exception {
        connection.setAutoCommit(false);
        execute(
                "INSERT INTO dbo.orders (id, name) VALUES (12, N'a')",
                "UPDATE dbo.orders SET name = N'b' WHERE id = 12",
                "INSERT INTO dbo.orders (id, name) VALUES (11, N'c')",
                "DELETE FROM dbo.orders WHERE id = 12");
        connection.commit();
        connection.setAutoCommit(true);
        commit("INSERT INTO dbo.orders (id, name) VALUES (10, N'd')");
        expect(
                "c 12 null -> [12,\"a\",null,null,null,null]",
                "u 12 [12,\"a\",null,null,null,null] -> [12,\"b\",null,null,null,null]",
                "c 11 null -> [11,\"c\",null,null,null,null]",
                "d 12 [12,\"b\",null,null,null,null] -> null",
                "c 10 null -> [10,\"d\",null,null,null,null]");
    }

    /** The position and the time of a change are those of the server's own mapping. */
    private void position() throws Exception {
        commit("INSERT INTO dbo.orders (id, name) VALUES (13, N'when')");
        JsonNode source = JSON.readTree(events.next().value()).get("source");
        String lsn = source.get("commit_lsn").asText().replace(":", "");
        String sql = "SELECT DATEDIFF_BIG(millisecond, '19700101', TODATETIMEOFFSET(m.tran_end_time, "
                + "DATEPART(TZOFFSET, SYSDATETIMEOFFSET()))), CONVERT(varchar(30), c.__$seqval, 2) "
                + "FROM cdc.lsn_time_mapping AS m JOIN cdc.dbo_orders_CT AS c "
                + "ON c.__$start_lsn = m.start_lsn "
                + "WHERE m.start_lsn = CONVERT(binary(10), '" + lsn + "', 2)";
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
            if (!rows.next()) {
                throw new Report.Different("no commit at the event's position " + lsn);
            }
            Report.equal(source.get("ts_ms").asLong(), rows.getLong(1), "the time of the commit");
            String change = source.get("change_lsn").asText().replace(":", "");
            Report.equal(change.toUpperCase(), rows.getString(2), "the place of the change");
        }
    }

    /**
     * In one scan of the log: a connector that polls while the commit of the new instance is the newest
     * one of all takes its rows in the old columns.
     */
    private void newInstance() throws Exception {
        commit(
                "ALTER TABLE dbo.orders ADD note nvarchar(20) NULL",
                "INSERT INTO dbo.orders (id, name, note) VALUES (20, N'before', N'not captured')",
                "EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'orders', "
                        + "@capture_instance = N'dbo_orders_2', @role_name = NULL",
                "INSERT INTO dbo.orders (id, name, note) VALUES (21, N'after', N'captured')");
        expect(
                "c 20 null -> [20,\"before\",null,null,null,null]",
                "c 21 null -> [21,\"after\",null,null,null,null,\"captured\"]");
    }

    /** The connector is stopped, since one that runs asks for every instance it has ever read. */
    private void oldInstanceGone() throws Exception {
        events.close();
        commit(
                "EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'orders', "
                        + "@capture_instance = N'dbo_orders'",
                "UPDATE dbo.orders SET note = N'on its own' WHERE id = 21");
        events = new Events(properties());
        expect("u 21 [21,\"after\",null,null,null,null,\"captured\"] -> "
                + "[21,\"after\",null,null,null,null,\"on its own\"]");
    }

    /** Another connector, which reads through the functions of the instance. */
    private void functions() throws Exception {
        events.close();
        execute("ALTER DATABASE " + DATABASE + " SET ALLOW_SNAPSHOT_ISOLATION ON");
        Properties properties = properties("dbo.terms", "second");
        properties.setProperty("snapshot.isolation.mode", "snapshot");
        properties.setProperty("data.query.mode", "function");
        try (Connection writer = connect(DATABASE); Statement statement = writer.createStatement()) {
            writer.setAutoCommit(false);
            statement.execute("UPDATE dbo.terms SET days = 31 WHERE id = 1");
            events = new Events(properties);
            expect("r 1 null -> [1,18295,1580702706007,30,\"none\"]");
            writer.commit();
        }
        commit("INSERT INTO dbo.terms VALUES (2, '2021-01-01', '1970-01-01', 1, NULL)");
        expect(
                "u 1 [1,18295,1580702706007,30,\"none\"] -> [1,18295,1580702706007,31,\"none\"]",
                "c 2 null -> [2,18628,0,1,null]");
        commit("DELETE FROM dbo.terms WHERE id = 1");
        expect("d 1 [1,18295,1580702706007,31,\"none\"] -> null");
    }
}
