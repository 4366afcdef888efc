import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/** Writes and reads every type over Microsoft's JDBC driver, the one that the connector uses. */
final class Jdbc {
    private static final String TABLE = "every_type";

    private final Connection connection;
    private final Truth truth;

    Jdbc(Connection connection, Truth truth) {
        this.connection = connection;
        this.truth = truth;
    }

    /** Writes the rows by one prepared statement. */
    void write() throws Exception {
        try (Statement statement = connection.createStatement()) {
            statement.execute(truth.create(TABLE));
            statement.execute("EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', "
                    + "@source_name = N'" + TABLE + "', @role_name = NULL");
        }
        String places = ", ?".repeat(truth.columns.size());
        String sql = "INSERT INTO dbo." + TABLE + " (id, " + truth.names() + ") VALUES (?" + places + ")";
        try (PreparedStatement insert = connection.prepareStatement(sql)) {
            for (int row = 0; row < truth.rows.size(); row++) {
                insert.setInt(1, row + 1);
                for (int at = 0; at < truth.columns.size(); at++) {
                    set(insert, at + 2, truth.columns.get(at), truth.columns.get(at).value(row));
                }
                Report.equal(insert.executeUpdate(), 1, "rows written");
            }
        }
        try (Statement statement = connection.createStatement()) {
            statement.execute("EXEC fake.run_capture");
        }
    }

    /** A value by the call for its type; what Java's own values cannot hold, as text. */
    private static void set(PreparedStatement insert, int place, Truth.Column column, String text)
            throws Exception {
        if (column.isBinary()) {
            insert.setBytes(place, text == null ? null : HexFormat.of().parseHex(text));
        } else if (text == null) {
            insert.setNull(place, java.sql.Types.NVARCHAR);
        } else if (column.isDecimal()) {
            insert.setBigDecimal(place, new BigDecimal(text));
        } else {
            switch (column.base) {
                case "bit" -> insert.setBoolean(place, text.equals("1"));
                case "tinyint", "smallint" -> insert.setShort(place, Short.parseShort(text));
                case "int" -> insert.setInt(place, Integer.parseInt(text));
                case "bigint" -> insert.setLong(place, Long.parseLong(text));
                case "real" -> insert.setFloat(place, Float.parseFloat(text));
                case "float" -> insert.setDouble(place, Double.parseDouble(text));
                default -> insert.setNString(place, text);
            }
        }
    }

    /** Reads the table, then its change rows. */
    void read() throws Exception {
        compare("SELECT " + truth.names() + " FROM dbo." + TABLE + " ORDER BY id");
        compare("SELECT " + truth.names() + " FROM cdc.dbo_" + TABLE + "_CT "
                + "WHERE __$operation = 2 ORDER BY __$start_lsn, __$command_id, __$seqval");
    }

    private void compare(String sql) throws Exception {
        int row = 0;
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
            while (rows.next()) {
                truth.compare(row, cells(rows));
                row++;
            }
        }
        Report.equal(row, truth.rows.size(), "rows read");
    }

    private List<Object> cells(ResultSet rows) throws Exception {
        List<Object> cells = new ArrayList<>();
        for (int at = 0; at < truth.columns.size(); at++) {
            Truth.Column column = truth.columns.get(at);
            if (column.isBinary()) {
                cells.add(rows.getBytes(at + 1));
            } else if (column.isDecimal()) {
                cells.add(rows.getBigDecimal(at + 1));
            } else {
                cells.add(rows.getString(at + 1));
            }
        }
        return cells;
    }
}
