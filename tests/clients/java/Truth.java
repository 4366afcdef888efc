import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What was committed: a table with a column of every type, read from every_type.json, and the one text
 * form in which what a driver returns is compared with it.
 */
final class Truth {
    /** Ticks of 100 ns have seven digits. */
    private static final int DIGITS_MAX = 7;

    private static final int SHOWN_MAX = 60;
    private static final Pattern TYPE = Pattern.compile("(\\w+)(?:\\((\\w+)(?:,(\\d+))?\\))?");
    private static final Pattern MOMENT = Pattern.compile(
            "(\\d{4}-\\d\\d-\\d\\d)?[ T]?(\\d\\d:\\d\\d:\\d\\d)?(?:\\.(\\d+))?(?: ?([+-]\\d\\d:\\d\\d))?");

    /** A column, its type, and the text forms of its values. */
    static final class Column {
        final String name;
        final String type;
        final String base;
        final int scale;
        final String collation;
        private final List<String> values = new ArrayList<>();

        Column(JsonNode given) {
            name = given.get("name").asText();
            type = given.get("type").asText();
            collation = given.path("collation").asText(null);
            Matcher parts = TYPE.matcher(type);
            if (!parts.matches()) {
                throw new IllegalArgumentException(type);
            }
            base = parts.group(1);
            String last = parts.group(3) != null ? parts.group(3) : parts.group(2);
            boolean money = base.endsWith("money");
            scale = money ? 4 : last == null || last.equals("max") ? 0 : Integer.parseInt(last);
            for (JsonNode value : given.get("values")) {
                boolean repeated = value.isArray();
                values.add(repeated ? value.get(0).asText().repeat(value.get(1).asInt()) : value.asText());
            }
        }

        String value(int row) {
            return row < values.size() ? values.get(row) : null;
        }

        boolean isBinary() {
            return base.equals("binary") || base.equals("varbinary") || base.equals("image");
        }

        boolean isDecimal() {
            return base.equals("decimal") || base.equals("numeric") || base.endsWith("money");
        }

        /** Fractional digits of its seconds; negative when it has no seconds. */
        int digits() {
            return switch (base) {
                case "datetime" -> 3;
                case "smalldatetime" -> 0;
                case "datetime2", "datetimeoffset", "time" -> scale;
                default -> -1;
            };
        }

        String declaration() {
            return name + " " + type + (collation == null ? "" : " COLLATE " + collation) + " NULL";
        }

        /** The text form of a value, be it a driver's or a text of the table. */
        String canonical(Object value) {
            if (value == null) {
                return null;
            }
            String text = value instanceof byte[] bytes ? HexFormat.of().formatHex(bytes) : value.toString();
            if (base.equals("bit")) {
                return text.equals("true") ? "1" : text.equals("false") ? "0" : text;
            }
            if (base.equals("real")) {
                return Integer.toHexString(Float.floatToIntBits(Float.parseFloat(text)));
            }
            if (base.equals("float")) {
                return Long.toHexString(Double.doubleToLongBits(Double.parseDouble(text)));
            }
            if (isDecimal()) {
                BigDecimal exact = new BigDecimal(text);
                boolean fits = exact.stripTrailingZeros().scale() <= scale;
                return (fits ? exact.setScale(scale) : exact).toPlainString();
            }
            if (isBinary() || base.equals("uniqueidentifier")) {
                return text.toUpperCase(Locale.ROOT);
            }
            return base.equals("date") || digits() >= 0 ? moment(text) : text;
        }

        private String moment(String text) {
            Matcher parts = MOMENT.matcher(text);
            if (!parts.matches()) {
                return text + " (which is no " + type + ")";
            }
            if (base.equals("date")) {
                return parts.group(1);
            }
            String fraction = parts.group(3) == null ? "" : parts.group(3);
            fraction = fraction + "0".repeat(Math.max(0, DIGITS_MAX + 2 - fraction.length()));
            if (base.equals("datetime")) {
                // Its ticks are thirds of a hundredth of a second.
                long second = Math.round(Integer.parseInt(fraction.substring(0, 6)) / 1000.0);
                fraction = String.format("%03d000000", second);
            }
            if (!fraction.substring(digits()).matches("0*")) {
                return text + " (which has more digits than " + type + ")";
            }
            String time = parts.group(2) == null ? "00:00:00" : parts.group(2);
            String kept = digits() == 0 ? time : time + "." + fraction.substring(0, digits());
            String date = base.equals("time") ? kept : parts.group(1) + " " + kept;
            return base.equals("datetimeoffset") ? date + " " + parts.group(4) : date;
        }
    }

    final List<Column> columns = new ArrayList<>();
    final List<String> rows = new ArrayList<>();

    Truth(File file) throws Exception {
        JsonNode given = new ObjectMapper().readTree(file);
        given.get("rows").forEach(row -> rows.add(row.asText()));
        given.get("columns").forEach(column -> columns.add(new Column(column)));
    }

    String names() {
        return String.join(", ", columns.stream().map(column -> column.name).toList());
    }

    String create(String table) {
        List<String> declarations = columns.stream().map(Column::declaration).toList();
        return "CREATE TABLE dbo." + table + " (id int NOT NULL CONSTRAINT pk_" + table
                + " PRIMARY KEY, " + String.join(", ", declarations) + ")";
    }

    /** Compares a row with the committed one. */
    void compare(int row, List<Object> got) throws Report.Different {
        for (int at = 0; at < columns.size(); at++) {
            Column column = columns.get(at);
            String found = column.canonical(got.get(at));
            String expected = column.canonical(column.value(row));
            if (!java.util.Objects.equals(found, expected)) {
                throw new Report.Different("row " + rows.get(row) + ": " + column.name + " " + column.type
                        + ": " + shown(found) + " instead of " + shown(expected));
            }
        }
    }

    private static String shown(String text) {
        if (text == null) {
            return "NULL";
        }
        return text.length() <= SHOWN_MAX
                ? "'" + text + "'"
                : "'" + text.substring(0, SHOWN_MAX) + "'... of " + text.length();
    }
}
