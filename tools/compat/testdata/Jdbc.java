import java.io.StringReader;
import java.sql.*;
import java.util.Properties;

/** What programs do with JDBC: a line for each, "pass" or "fail" and a name. */
public class Jdbc {
    interface Test { void run(Connection c) throws Exception; }

    static Connection connect(String... more) throws SQLException {
        Properties p = new Properties();
        p.setProperty("user", System.getenv("PGUSER"));
        p.setProperty("password", System.getenv("PGPASSWORD"));
        for (int i = 0; i < more.length; i += 2) p.setProperty(more[i], more[i + 1]);
        return DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE"), p);
    }

    static void check(boolean ok) { if (!ok) throw new IllegalStateException("not as expected"); }

    static void run(String name, Test test, String... more) {
        try (Connection c = connect(more)) {
            test.run(c);
            System.out.println("pass " + name);
        } catch (Exception fault) {
            System.out.println("fail " + name);
            System.out.println("# " + fault);
        }
    }

    static void fetchInParts(Connection c) throws Exception {
        c.setAutoCommit(false);
        try (PreparedStatement s = c.prepareStatement("SELECT n FROM generate_series(1, 2500) n")) {
            s.setFetchSize(100);
            long sum = 0;
            try (ResultSet r = s.executeQuery()) { while (r.next()) sum += r.getInt(1); }
            check(sum == 2500L * 2501 / 2);
        }
        c.commit();
    }

    static void preparedOverAndOver(Connection c) throws Exception {
        try (PreparedStatement s = c.prepareStatement("SELECT ? + 1")) {
            for (int n = 0; n < 20; n++) {
                s.setInt(1, n);
                try (ResultSet r = s.executeQuery()) { check(r.next() && r.getInt(1) == n + 1); }
            }
        }
    }

    static void batch(Connection c) throws Exception {
        try (Statement s = c.createStatement()) { s.execute("CREATE TEMP TABLE b (n int, w text)"); }
        try (PreparedStatement s = c.prepareStatement("INSERT INTO b VALUES (?, ?)")) {
            for (int n = 0; n < 500; n++) { s.setInt(1, n); s.setString(2, "w" + n); s.addBatch(); }
            check(s.executeBatch().length == 500);
        }
    }

    static void metadata(Connection c) throws Exception {
        try (ResultSet r = c.getMetaData().getTables(null, "pg_catalog", "pg_cl%", null)) { check(r.next()); }
        try (ResultSet r = c.getMetaData().getColumns(null, "pg_catalog", "pg_class", null)) { check(r.next()); }
    }

    static void errorInTransaction(Connection c) throws Exception {
        c.setAutoCommit(false);
        Savepoint p = c.setSavepoint();
        try (Statement s = c.createStatement()) {
            s.executeQuery("SELECT 1 / 0");
            check(false);
        } catch (SQLException e) { check("22012".equals(e.getSQLState())); }
        c.rollback(p);
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("SELECT 1")) { check(r.next()); }
    }

    static void cancel(Connection c) throws Exception {
        try (Statement s = c.createStatement()) {
            s.setQueryTimeout(1);
            s.executeQuery("SELECT pg_sleep(20)");
            check(false);
        } catch (SQLException e) { check("57014".equals(e.getSQLState())); }
    }

    static void copy(Connection c) throws Exception {
        try (Statement s = c.createStatement()) { s.execute("CREATE TEMP TABLE k (n int)"); }
        var manager = c.unwrap(org.postgresql.PGConnection.class).getCopyAPI();
        check(manager.copyIn("COPY k FROM STDIN", new StringReader("1\n2\n3\n")) == 3);
    }

    static void notifications(Connection c) throws Exception {
        try (Statement s = c.createStatement()) { s.execute("LISTEN news"); s.execute("NOTIFY news, 'payload'"); }
        check(c.unwrap(org.postgresql.PGConnection.class).getNotifications(1000).length == 1);
    }

    public static void main(String[] args) {
        for (String mode : new String[] {"extended", "simple", "extendedForPrepared", "extendedCacheEverything"}) {
            String[] more = {"preferQueryMode", mode};
            run(mode + "/fetch-in-parts", Jdbc::fetchInParts, more);
            run(mode + "/prepared-over-and-over", Jdbc::preparedOverAndOver, more);
            run(mode + "/batch", Jdbc::batch, more);
            run(mode + "/metadata", Jdbc::metadata, more);
            run(mode + "/error-in-transaction", Jdbc::errorInTransaction, more);
            run(mode + "/cancel", Jdbc::cancel, more);
            run(mode + "/copy", Jdbc::copy, more);
            run(mode + "/notifications", Jdbc::notifications, more);
        }
    }
}
