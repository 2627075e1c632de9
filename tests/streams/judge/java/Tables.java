import java.time.Duration;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.ValueTransformerWithKey;
import org.apache.kafka.streams.processor.ProcessorContext;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** Tables: their functions, groups, suppression and versions. */
final class Tables {
    static final Duration HISTORY = Duration.ofMinutes(2);

    private Tables() {}

    /** The value and how many values there were before, of any key: state in a store. */
    static final class Numbered implements ValueTransformerWithKey<String, String, String> {
        private KeyValueStore<String, Long> store;

        @Override
        public void init(ProcessorContext context) {
            store = context.getStateStore("numbers");
        }

        @Override
        public String transform(String key, String value) {
            Long before = store.get("all");
            long number = before == null ? 1 : before + 1;
            store.put("all", number);
            return value == null ? null : value + number;
        }

        @Override
        public void close() {}
    }

    /** Without state. */
    static final class Keyed implements ValueTransformerWithKey<String, String, String> {
        @Override
        public void init(ProcessorContext context) {}

        @Override
        public String transform(String key, String value) {
            return value == null ? null : key + value;
        }

        @Override
        public void close() {}
    }

    static KTable<String, String> in(StreamsBuilder b) {
        return Functions.table(b, "in");
    }

    static KTable<String, String> versioned(StreamsBuilder b, String topic) {
        return b.table(topic, Consumed.with(Functions.STRING, Functions.STRING), Materialized.<String, String>as(
            Stores.persistentVersionedKeyValueStore(topic + "-versions", HISTORY)));
    }

    static void addTo(Topologies.Table all) {
        plain(all);
        transforms(all);
        groups(all);
        suppressed(all);
        versions(all);
    }

    private static void plain(Topologies.Table all) {
        all.dsl("table", b -> in(b).toStream().to("out"));
        all.dsl("table_stored", b -> b.table("in", Consumed.as("rows"), Functions.texts("kept")).toStream().to("out"));
        all.dsl("table_in_memory", b -> b.table("in", Functions.texts("kept")
            .withStoreType(Materialized.StoreType.IN_MEMORY)).toStream().to("out"));
        all.dsl("table_filter", b -> in(b).filter((k, v) -> Functions.even(v)).toStream().to("out"));
        all.dsl("table_filter_stored", b -> in(b).filter((k, v) -> Functions.even(v), Functions.texts("evens"))
            .toStream().to("out"));
        all.dsl("table_stored_filter", b -> b.table("in", Functions.texts("kept"))
            .filter((k, v) -> Functions.even(v), Named.as("evens")).toStream().to("out"));
        all.dsl("table_filter_not", b -> in(b).filterNot((k, v) -> Functions.even(v)).toStream().to("out"));
        all.dsl("table_map_values", b -> in(b).mapValues(v -> v + "!").toStream().to("out"));
        all.dsl("table_map_values_with_key", b -> in(b).mapValues((k, v) -> k + v, Named.as("keyed")).toStream().to("out"));
        all.dsl("table_map_values_stored", b -> in(b).mapValues(v -> v + "!", Functions.texts("mapped"))
            .filter((k, v) -> v.length() < 4).toStream().to("out"));
        all.dsl("table_map_to_null", b -> in(b).mapValues(v -> v.isEmpty() ? null : v).toStream().to("out"));
        all.dsl("table_chain", b -> in(b).filter((k, v) -> !"b".equals(v)).mapValues(v -> v + v)
            .filterNot((k, v) -> v.length() > 4, Functions.texts("short")).mapValues(v -> v + ".").toStream().to("out"));
        all.dsl("table_to_stream_key", b -> in(b).toStream((k, v) -> k + Functions.text(v)).to("out"));
    }

    private static void transforms(Topologies.Table all) {
        all.dsl("table_transform_values", b -> in(b).transformValues(Keyed::new).toStream().to("out"));
        all.dsl("table_transform_values_stored", b -> {
            b.addStateStore(Stores.keyValueStoreBuilder(
                Stores.inMemoryKeyValueStore("numbers"), Functions.STRING, Functions.LONG));
            in(b).transformValues(Numbered::new, Functions.texts("numbered"), "numbers").toStream().to("out");
        });
    }

    private static void groups(Topologies.Table all) {
        all.dsl("table_group_count", b -> in(b).groupBy((k, v) -> KeyValue.pair(v, k)).count().toStream().to("out"));
        all.dsl("table_group_null", b -> in(b).groupBy((k, v) -> KeyValue.pair(Functions.first(v), v)).count()
            .toStream().to("out"));
        all.dsl("table_group_reduce", b -> in(b)
            .groupBy((k, v) -> KeyValue.pair(v.length() > 1 ? "long" : "short", v), Grouped.as("lengths"))
            .reduce((a, v) -> a + v, (a, v) -> Functions.subtract(null, v, a), Functions.texts("reduced"))
            .toStream().to("out"));
        all.dsl("table_group_aggregate", b -> in(b).groupBy((k, v) -> KeyValue.pair(letter(v), k + v))
            .aggregate(() -> "", Functions::add, Functions::subtract, Materialized.with(Functions.STRING, Functions.STRING))
            .toStream().to("out"));
        all.dsl("table_filter_group_count", b -> in(b).filter((k, v) -> !v.isEmpty())
            .groupBy((k, v) -> KeyValue.pair(Functions.first(v), v)).count(Functions.counts("letters"))
            .toStream().to("out"));
        all.dsl("count_group_sum", b -> Functions.in(b).groupByKey().count()
            .groupBy((k, n) -> KeyValue.pair("all", n), Grouped.with(Functions.STRING, Functions.LONG))
            .reduce(Long::sum, (total, n) -> total - n).toStream().to("out"));
    }

    private static String letter(String value) {
        return value.isEmpty() ? "none" : value.substring(0, 1);
    }

    private static void suppressed(Topologies.Table all) {
        all.dsl("table_suppress_time", b -> in(b)
            .suppress(Suppressed.untilTimeLimit(Duration.ofSeconds(5), BufferConfig.unbounded())).toStream().to("out"));
        all.dsl("table_suppress_records", b -> in(b)
            .suppress(Suppressed.untilTimeLimit(Duration.ofSeconds(30), BufferConfig.maxRecords(2)).withName("few"))
            .toStream().to("out"));
        all.dsl("table_suppress_bytes", b -> in(b)
            .suppress(Suppressed.untilTimeLimit(Duration.ofSeconds(30), BufferConfig.maxBytes(150)))
            .toStream().to("out"));
        all.dsl("table_suppress_zero", b -> in(b)
            .suppress(Suppressed.untilTimeLimit(Functions.ZERO, BufferConfig.unbounded())).toStream().to("out"));
        all.dsl("count_suppress", b -> Functions.in(b).groupByKey().count(Functions.counts("counts"))
            .suppress(Suppressed.untilTimeLimit(Duration.ofSeconds(5), BufferConfig.maxRecords(3)))
            .mapValues(n -> n + "!").toStream().to("out"));
        all.dsl("suppress_group_count", b -> in(b)
            .suppress(Suppressed.untilTimeLimit(Duration.ofSeconds(5), BufferConfig.unbounded().withLoggingDisabled()))
            .groupBy((k, v) -> KeyValue.pair(v, k)).count().toStream().to("out"));
    }

    private static void versions(Topologies.Table all) {
        all.dsl("versioned_table", b -> versioned(b, "in").toStream().to("out"));
        all.dsl("versioned_filter", b -> versioned(b, "in").filter((k, v) -> Functions.even(v)).toStream().to("out"));
        all.dsl("versioned_map_group", b -> versioned(b, "in").mapValues(v -> v + "!")
            .groupBy((k, v) -> KeyValue.pair(v, k)).count().toStream().to("out"));
        all.dsl("versioned_filter_stored", b -> versioned(b, "in").filter((k, v) -> Functions.even(v),
            Materialized.<String, String>as(Stores.persistentVersionedKeyValueStore("evens", HISTORY))
                .withKeySerde(Functions.STRING).withValueSerde(Functions.STRING)).toStream().to("out"));
    }
}
