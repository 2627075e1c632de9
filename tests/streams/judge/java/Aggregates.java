import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;

/** Aggregates of streams without windows. */
final class Aggregates {
    private Aggregates() {}

    static KGroupedStream<String, String> grouped(KStream<String, String> stream) {
        return stream.groupByKey();
    }

    static void addTo(Topologies.Table all) {
        all.dsl("count", b -> Functions.in(b).groupByKey().count().toStream().to("out"));
        all.dsl("count_stored", b -> Functions.in(b).groupByKey(Grouped.as("by-key"))
            .count(Named.as("counter"), Functions.counts("counts")).toStream(Named.as("flow")).to("out"));
        all.dsl("reduce", b -> Functions.in(b).groupByKey().reduce((a, v) -> a + "," + v).toStream().to("out"));
        all.dsl("reduce_to_null", b -> Functions.in(b).groupByKey()
            .reduce((a, v) -> v.isEmpty() ? null : a + v, Functions.texts("reduced")).toStream().to("out"));
        all.dsl("aggregate", b -> Functions.in(b).groupByKey()
            .aggregate(() -> "", Functions::add, Functions.texts("joined")).toStream().to("out"));
        all.dsl("aggregate_to_null", b -> Functions.in(b).groupByKey()
            .aggregate(() -> "<", (k, v, a) -> v.isEmpty() ? null : k + a + v,
                Materialized.with(Functions.STRING, Functions.STRING)).toStream().to("out"));
        all.dsl("group_by_count", b -> Functions.in(b).groupBy((k, v) -> Functions.first(v)).count().toStream().to("out"));
        all.dsl("group_by_named", b -> Functions.in(b)
            .groupBy((k, v) -> Functions.first(v), Grouped.<String, String>as("letters"))
            .aggregate(() -> "", Functions::add, Materialized.with(Functions.STRING, Functions.STRING))
            .toStream().to("out"));
        all.dsl("group_after_map_values", b -> Functions.in(b).mapValues(v -> v == null ? null : v + v)
            .groupByKey().reduce((a, v) -> a + "," + v).toStream().to("out"));
        all.dsl("group_after_select_key", b -> Functions.in(b).selectKey((k, v) -> v).filter((k, v) -> true)
            .groupByKey().count().toStream().to("out"));
        all.dsl("two_aggregates", b -> {
            KGroupedStream<String, String> grouped = Functions.in(b).groupBy((k, v) -> Functions.first(v));
            grouped.count().toStream().to("counts");
            grouped.reduce((a, v) -> a + v).toStream().to("reduced");
        });
        all.dsl("count_of_counts", b -> {
            KTable<String, Long> counts = Functions.in(b).groupByKey().count();
            counts.toStream().groupBy((k, n) -> String.valueOf(n), Grouped.with(Functions.STRING, Functions.LONG))
                .count().toStream().to("out");
        });
        all.dsl("cogroup", b -> grouped(Functions.left(b))
            .cogroup((String k, String v, String a) -> a + "l" + Functions.text(v))
            .cogroup(grouped(Functions.right(b)), (k, v, a) -> a + "r" + Functions.text(v))
            .aggregate(() -> "", Materialized.with(Functions.STRING, Functions.STRING)).toStream().to("out"));
        all.dsl("cogroup_stored", b -> grouped(Functions.left(b))
            .cogroup((String k, String v, String a) -> v.isEmpty() ? null : a + "l" + Functions.text(v))
            .cogroup(Functions.right(b).groupBy((k, v) -> Functions.first(v)), (k, v, a) -> a + "r" + Functions.text(v))
            .cogroup(grouped(Functions.in(b)), (k, v, a) -> a + "i" + v)
            .aggregate(() -> "", Named.as("together"), Functions.texts("cogrouped")).toStream().to("out"));
    }
}
