import java.math.BigDecimal;
import java.sql.*;
import java.util.*;

/** JDBC: metadata, getters by type, prepared statements; the argument is prepareThreshold, -1 for binary at once. */
public class Jdbc {
    static final Map<String, String> TYPES = Map.of("int4", "integer", "int2", "smallint", "int8", "bigint",
            "bool", "boolean", "float8", "double precision");

    static void show(String probe, Object... fields) {
        StringBuilder line = new StringBuilder(probe);
        for (Object f : fields) {
            String text = f == null ? "NULL" : f instanceof Boolean b ? (b ? "t" : "f")
                    : f instanceof Timestamp t ? t.toLocalDateTime().toString().replace('T', ' ') : f.toString();
            if (f instanceof Timestamp t && text.length() == 16) text += ":00"; // LocalDateTime leaves seconds out
            line.append('\t').append(text);
        }
        System.out.println(line);
    }

    static Object orNull(ResultSet r, Object value) throws SQLException { return r.wasNull() ? null : value; }

    public static void main(String[] args) throws Exception {
        String url = "jdbc:postgresql://127.0.0.1:" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE") + "?prepareThreshold=" + args[0];
        try (Connection c = DriverManager.getConnection(url, System.getenv("PGUSER"), System.getenv("PGPASSWORD"))) {
            DatabaseMetaData m = c.getMetaData();
            show("version", m.getDriverVersion());
            try (ResultSet r = m.getColumns(null, "research", "people", null)) {
                while (r.next()) show("types", r.getString("COLUMN_NAME"), TYPES.getOrDefault(r.getString("TYPE_NAME"), r.getString("TYPE_NAME")));
            }
            c.setAutoCommit(false);
            try (PreparedStatement s = c.prepareStatement("SELECT * FROM people")) {
                s.setFetchSize(500);
                try (ResultSet r = s.executeQuery()) {
                    while (r.next()) show("rows", orNull(r, r.getInt("age")), orNull(r, r.getShort("height")), r.getBigDecimal("weight"),
                            r.getDate("born"), orNull(r, r.getBoolean("member")), r.getString("sex"), r.getString("zip"),
                            orNull(r, r.getLong("visits")), r.getBigDecimal("cost"), orNull(r, r.getDouble("score")),
                            r.getTimestamp("admitted"), orNull(r, r.getBoolean("consents")), r.getString("diagnosis"));
                }
            }
            c.commit();
            try (PreparedStatement s = c.prepareStatement("SELECT age, zip FROM people WHERE age >= ? AND sex = ?")) {
                s.setInt(1, 65);
                s.setString(2, "female");
                for (int again = 0; again < 6; again++) { // from the fifth time on the server's own statement
                    List<Object[]> rows = new ArrayList<>();
                    try (ResultSet r = s.executeQuery()) { while (r.next()) rows.add(new Object[] {r.getInt(1), r.getString(2)}); }
                    if (again == 5) for (Object[] row : rows) show("filter", row);
                }
            }
            try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(
                    "SELECT sex, count(*), sum(age), min(born), max(cost) FROM people GROUP BY sex")) {
                while (r.next()) show("groups", r.getString(1), r.getInt(2), r.getLong(3), r.getDate(4), r.getBigDecimal(5));
            }
            try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(
                    "SELECT city, count(*) FROM people LEFT JOIN postcodes USING (zip) GROUP BY city")) {
                while (r.next()) show("join", r.getString(1), r.getInt(2));
            }
        }
    }
}
