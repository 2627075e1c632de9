import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.TableJoined;

/** Joins of tables: by key and by foreign key. */
final class TableJoins {
    private TableJoins() {}

    static void addTo(Topologies.Table all) {
        byKey(all);
        byForeignKey(all);
    }

    private static void byKey(Topologies.Table all) {
        all.dsl("table_join", b -> Functions.table(b, "left").join(Functions.table(b, "right"), Functions::both)
            .toStream().to("out"));
        all.dsl("table_left_join", b -> Functions.table(b, "left").leftJoin(Functions.table(b, "right"), Functions::both)
            .toStream().to("out"));
        all.dsl("table_outer_join", b -> Functions.table(b, "left").outerJoin(Functions.table(b, "right"), Functions::both)
            .toStream().to("out"));
        all.dsl("table_join_stored", b -> Functions.table(b, "left")
            .join(Functions.table(b, "right"), Functions::both, Named.as("meet"), Functions.texts("met"))
            .filter((k, v) -> v.length() < 8).toStream().to("out"));
        all.dsl("table_left_join_stored", b -> Functions.table(b, "left")
            .leftJoin(Functions.table(b, "right"), Functions::both, Functions.texts("met")).toStream().to("out"));
        all.dsl("table_outer_join_stored", b -> Functions.table(b, "left")
            .outerJoin(Functions.table(b, "right"), Functions::both, Functions.texts("met")).toStream().to("out"));
        all.dsl("table_join_to_null", b -> Functions.table(b, "left")
            .outerJoin(Functions.table(b, "right"), (l, r) -> l != null && l.equals(r) ? null : Functions.both(l, r))
            .toStream().to("out"));
        all.dsl("table_join_filtered", b -> Functions.table(b, "left").filter((k, v) -> Functions.even(v))
            .leftJoin(Functions.table(b, "right").mapValues(v -> v + "!"), Functions::both).toStream().to("out"));
        all.dsl("table_self_join", b -> {
            KTable<String, String> table = Functions.table(b, "in");
            table.join(table.filter((k, v) -> Functions.even(v)), Functions::both).toStream().to("out");
        });
        all.dsl("table_join_three", b -> Functions.table(b, "left")
            .outerJoin(Functions.table(b, "right"), Functions::both)
            .leftJoin(Functions.table(b, "in"), Functions::both).toStream().to("out"));
        all.dsl("table_join_counts", b -> Functions.left(b).groupByKey().count()
            .outerJoin(Functions.right(b).groupByKey().count(), Functions::both).toStream().to("out"));
        all.dsl("table_join_group", b -> Functions.table(b, "left")
            .join(Functions.table(b, "right"), Functions::both)
            .groupBy((k, v) -> KeyValue.pair(v, k)).count().toStream().to("out"));
        all.dsl("versioned_join", b -> Tables.versioned(b, "left").join(Tables.versioned(b, "right"), Functions::both)
            .toStream().to("out"));
        all.dsl("versioned_left_join", b -> Tables.versioned(b, "left")
            .leftJoin(Functions.table(b, "right"), Functions::both).toStream().to("out"));
        all.dsl("versioned_outer_join", b -> Tables.versioned(b, "left")
            .outerJoin(Tables.versioned(b, "right"), Functions::both, Functions.texts("met")).toStream().to("out"));
    }

    private static void byForeignKey(Topologies.Table all) {
        all.dsl("foreign_join", b -> Functions.table(b, "left")
            .join(Functions.table(b, "right"), Functions::first, Functions::both).toStream().to("out"));
        all.dsl("foreign_left_join", b -> Functions.table(b, "left")
            .leftJoin(Functions.table(b, "right"), Functions::first, Functions::both).toStream().to("out"));
        all.dsl("foreign_join_stored", b -> Functions.table(b, "left")
            .join(Functions.table(b, "right"), Functions::first, Functions::both, TableJoined.as("owners"),
                Functions.texts("owned")).toStream().to("out"));
        all.dsl("foreign_left_join_stored", b -> Functions.table(b, "left")
            .leftJoin(Functions.table(b, "right"), Functions::first, Functions::both,
                Materialized.with(Functions.STRING, Functions.STRING)).toStream().to("out"));
        all.dsl("foreign_join_key", b -> Functions.table(b, "left")
            .leftJoin(Functions.table(b, "right"), (String k, String v) -> v.isEmpty() ? k : v.substring(0, 1),
                Functions::both).toStream().to("out"));
        all.dsl("foreign_join_count", b -> Functions.table(b, "left")
            .join(Functions.table(b, "right"), Functions::first, Functions::both)
            .groupBy((k, v) -> KeyValue.pair(v, k)).count().toStream().to("out"));
        all.dsl("foreign_join_versioned", b -> Tables.versioned(b, "left")
            .leftJoin(Tables.versioned(b, "right"), Functions::first, Functions::both).toStream().to("out"));
        all.dsl("foreign_self_join", b -> {
            KTable<String, String> table = Functions.table(b, "in");
            table.leftJoin(table, Functions::first, Functions::both).toStream().to("out");
        });
    }
}
