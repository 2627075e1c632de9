import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;

/** The table of all topologies, by name: topologies/ has the same in Python. */
final class Topologies {
    /** Makes a topology under given settings. */
    interface Maker {
        Topology make(Properties settings);
    }

    /** A table under construction. */
    static final class Table {
        final Map<String, Maker> rows = new TreeMap<>();

        /** A topology that the DSL builds. */
        void dsl(String name, Consumer<StreamsBuilder> build) {
            plain(name, settings -> {
                StreamsBuilder builder = new StreamsBuilder();
                build.accept(builder);
                return builder.build(settings);
            });
        }

        void plain(String name, Maker maker) {
            if (rows.put(name, maker) != null) {
                throw new IllegalArgumentException(name + " is there twice");
            }
        }
    }

    private Topologies() {}

    static Map<String, Maker> all() {
        Table table = new Table();
        Stateless.addTo(table);
        Aggregates.addTo(table);
        Windowing.addTo(table);
        Sessions.addTo(table);
        Tables.addTo(table);
        StreamJoins.addTo(table);
        TableJoins.addTo(table);
        Processors.addTo(table);
        return table.rows;
    }
}
