// Follows the changes of one resource of the mirror and prints them. It keeps its
// place in a table of its own, so that it can stop at any time.
//
//   DATABASE_URL='jdbc:postgresql://…' java -cp postgresql.jar Follow.java contracts
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;

public class Follow {
    public static void main(String[] args) throws Exception {
        String resource = args[0];
        if (!resource.matches("[a-z][a-z0-9_]*")) {
            throw new IllegalArgumentException("no name of a resource: " + resource);
        }
        try (Connection conn = DriverManager.getConnection(System.getenv("DATABASE_URL"))) {
            try (var s = conn.createStatement()) {
                s.execute("create table if not exists mirror_followers (resource text primary key, change_seq bigint not null)");
                s.execute("listen xiaoqu_changes");
            }
            conn.setAutoCommit(false);
            while (true) {
                while (batch(conn, resource) > 0) { }
                if (System.getenv("ONCE") != null) {
                    return;
                }
                // A notice is a hint: without one we look each minute.
                conn.unwrap(org.postgresql.PGConnection.class).getNotifications(60_000);
                conn.commit();
            }
        }
    }

    /** Deals with some changes and moves the place, in one transaction. */
    static int batch(Connection conn, String resource) throws SQLException {
        long at = 0;
        int n = 0;
        try (var place = conn.prepareStatement("select change_seq from mirror_followers where resource = ? for update")) {
            place.setString(1, resource);
            try (var row = place.executeQuery()) {
                if (row.next()) {
                    at = row.getLong(1);
                }
            }
        }
        try (var changes = conn.prepareStatement("select id, deleted_at is not null, change_seq from xiaoqu." + resource
                + "_all where change_seq > ? order by change_seq limit 500")) {
            changes.setLong(1, at);
            try (var row = changes.executeQuery()) {
                for (; row.next(); n++) {
                    at = row.getLong(3);
                    System.out.println(resource + " " + row.getString(1) + (row.getBoolean(2) ? " deleted" : " changed"));
                }
            }
        }
        try (var move = conn.prepareStatement("insert into mirror_followers values (?, ?) on conflict (resource) do update set change_seq = excluded.change_seq")) {
            move.setString(1, resource);
            move.setLong(2, at);
            if (n > 0) {
                move.executeUpdate();
            }
        }
        conn.commit();
        return n;
    }
}
