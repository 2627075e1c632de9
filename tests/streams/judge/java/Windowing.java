import java.time.Duration;
import java.time.Instant;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.UnlimitedWindows;

/** Aggregates in tumbling, hopping, sliding and unlimited windows. */
final class Windowing {
    static final TimeWindows TUMBLING = TimeWindows.ofSizeWithNoGrace(Functions.SIZE);
    static final TimeWindows TUMBLING_GRACE = TimeWindows.ofSizeAndGrace(Functions.SIZE, Functions.GRACE);
    static final TimeWindows HOPPING = TUMBLING.advanceBy(Functions.ADVANCE);
    static final TimeWindows HOPPING_GRACE = TUMBLING_GRACE.advanceBy(Functions.ADVANCE);
    static final SlidingWindows SLIDING = SlidingWindows.ofTimeDifferenceWithNoGrace(Functions.SIZE);
    static final SlidingWindows SLIDING_GRACE =
        SlidingWindows.ofTimeDifferenceAndGrace(Functions.SIZE, Functions.GRACE);

    private Windowing() {}

    static TimeWindowedKStream<String, String> windowed(StreamsBuilder b, TimeWindows windows) {
        return Functions.in(b).groupByKey().windowedBy(windows);
    }

    static TimeWindowedKStream<String, String> windowed(StreamsBuilder b, SlidingWindows windows) {
        return Functions.in(b).groupByKey().windowedBy(windows);
    }

    static void addTo(Topologies.Table all) {
        timed(all);
        sliding(all);
        unlimited(all);
        closed(all);
        chains(all);
    }

    private static void timed(Topologies.Table all) {
        all.dsl("tumbling_count", b -> windowed(b, TUMBLING).count().toStream().to("out"));
        all.dsl("tumbling_grace", b -> windowed(b, TUMBLING_GRACE).count(Functions.windowCounts("counts")).toStream().to("out"));
        all.dsl("tumbling_reduce", b -> windowed(b, TUMBLING_GRACE).reduce(Functions::joined).toStream().to("out"));
        all.dsl("tumbling_aggregate", b -> windowed(b, TUMBLING_GRACE)
            .aggregate(() -> "", Functions::add, Functions.windowTexts("joined")).toStream().to("out"));
        all.dsl("tumbling_to_null", b -> windowed(b, TUMBLING_GRACE)
            .aggregate(() -> "", (k, v, a) -> v == null || v.isEmpty() ? null : a + v, Functions.windowTexts("joined"))
            .toStream().to("out"));
        all.dsl("tumbling_retention", b -> windowed(b, TUMBLING_GRACE)
            .count(Functions.windowCounts("counts").withRetention(Duration.ofMinutes(3))).toStream().to("out"));
        all.dsl("tumbling_in_memory", b -> windowed(b, TUMBLING_GRACE)
            .count(Functions.windowCounts("counts").withStoreType(Materialized.StoreType.IN_MEMORY)).toStream().to("out"));
        all.dsl("hopping_count", b -> windowed(b, HOPPING).count(Named.as("hops")).toStream().to("out"));
        all.dsl("hopping_aggregate", b -> windowed(b, HOPPING_GRACE)
            .aggregate(() -> "", Functions::add, Materialized.with(Functions.STRING, Functions.STRING))
            .toStream().to("out"));
    }

    private static void sliding(Topologies.Table all) {
        all.dsl("sliding_count", b -> windowed(b, SLIDING).count().toStream().to("out"));
        all.dsl("sliding_grace", b -> windowed(b, SLIDING_GRACE).count(Functions.windowCounts("counts")).toStream().to("out"));
        all.dsl("sliding_reduce", b -> windowed(b, SLIDING_GRACE).reduce(Functions::joined).toStream().to("out"));
        all.dsl("sliding_aggregate", b -> windowed(b, SLIDING_GRACE)
            .aggregate(() -> "", Functions::add, Functions.windowTexts("joined")).toStream().to("out"));
        all.dsl("sliding_narrow", b -> windowed(b, SlidingWindows.ofTimeDifferenceAndGrace(Duration.ofMillis(1), Functions.GRACE))
            .count().toStream().to("out"));
        all.dsl("sliding_close", b -> windowed(b, SLIDING_GRACE).emitStrategy(EmitStrategy.onWindowClose())
            .count().toStream().to("out"));
    }

    private static void unlimited(Topologies.Table all) {
        all.dsl("unlimited_count", b -> Functions.in(b).groupByKey().windowedBy(UnlimitedWindows.of())
            .count().toStream().to("out"));
        all.dsl("unlimited_start", b -> Functions.in(b).groupByKey()
            .windowedBy(UnlimitedWindows.of().startOn(Instant.ofEpochMilli(10_000)))
            .reduce(Functions::joined, Functions.windowTexts("reduced")).toStream().to("out"));
    }

    private static void closed(Topologies.Table all) {
        all.dsl("tumbling_close", b -> windowed(b, TUMBLING).emitStrategy(EmitStrategy.onWindowClose())
            .count().toStream().to("out"));
        all.dsl("tumbling_close_grace", b -> windowed(b, TUMBLING_GRACE).emitStrategy(EmitStrategy.onWindowClose())
            .aggregate(() -> "", Functions::add, Functions.windowTexts("joined")).toStream().to("out"));
        all.dsl("hopping_close", b -> windowed(b, HOPPING_GRACE).emitStrategy(EmitStrategy.onWindowClose())
            .reduce(Functions::joined).toStream().to("out"));
        all.dsl("tumbling_suppress", b -> windowed(b, TUMBLING_GRACE).count()
            .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded())).toStream().to("out"));
        all.dsl("hopping_suppress", b -> windowed(b, HOPPING_GRACE)
            .aggregate(() -> "", Functions::add, Functions.windowTexts("joined"))
            .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()).withName("late")).toStream().to("out"));
        all.dsl("sliding_suppress", b -> windowed(b, SLIDING_GRACE).count()
            .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded())).toStream().to("out"));
        all.dsl("tumbling_suppress_time", b -> windowed(b, TUMBLING_GRACE).count()
            .suppress(Suppressed.untilTimeLimit(Duration.ofSeconds(3), BufferConfig.unbounded())).toStream().to("out"));
    }

    private static void chains(Topologies.Table all) {
        all.dsl("cogroup_tumbling", b -> Aggregates.grouped(Functions.left(b))
            .cogroup((String k, String v, String a) -> a + "l" + Functions.text(v))
            .cogroup(Aggregates.grouped(Functions.right(b)), (k, v, a) -> a + "r" + Functions.text(v))
            .windowedBy(TUMBLING_GRACE)
            .aggregate(() -> "", Functions.windowTexts("cogrouped")).toStream().to("out"));
        all.dsl("cogroup_sliding", b -> Aggregates.grouped(Functions.left(b))
            .cogroup((String k, String v, String a) -> a + "l" + Functions.text(v))
            .cogroup(Aggregates.grouped(Functions.right(b)), (k, v, a) -> a + "r" + Functions.text(v))
            .windowedBy(SLIDING_GRACE)
            .aggregate(() -> "", Named.as("together"), Materialized.with(Functions.STRING, Functions.STRING))
            .toStream().to("out"));
        all.dsl("cogroup_unlimited", b -> Aggregates.grouped(Functions.left(b))
            .cogroup((String k, String v, String a) -> a + "l" + Functions.text(v))
            .cogroup(Aggregates.grouped(Functions.right(b)), (k, v, a) -> a + "r" + Functions.text(v))
            .windowedBy(UnlimitedWindows.of())
            .aggregate(() -> "", Functions.windowTexts("cogrouped")).toStream().to("out"));
        all.dsl("windowed_key_mapped", b -> windowed(b, TUMBLING_GRACE).count()
            .toStream((k, n) -> k.key() + "@" + k.window().start() + "-" + k.window().end()).to("out"));
        all.dsl("windowed_filter", b -> windowed(b, TUMBLING_GRACE).count()
            .filter((k, n) -> n % 2 == 0).mapValues((k, n) -> k.key() + n).toStream((k, v) -> k.key()).to("out"));
        all.dsl("windowed_regrouped", b -> windowed(b, TUMBLING_GRACE).count()
            .toStream((k, n) -> k.key() + n)
            .groupByKey(Grouped.with(Functions.STRING, Functions.LONG)).windowedBy(TUMBLING)
            .count().toStream().to("out"));
        all.dsl("windowed_table_regrouped", b -> windowed(b, TUMBLING_GRACE).count()
            .groupBy((k, n) -> KeyValue.pair(k.key(), n), Grouped.with(Functions.STRING, Functions.LONG))
            .reduce(Long::sum, (total, n) -> total - n, Functions.counts("totals")).toStream().to("out"));
        all.dsl("group_by_tumbling", b -> Functions.in(b).groupBy((k, v) -> Functions.first(v))
            .windowedBy(TUMBLING_GRACE).reduce(Functions::joined, Named.as("rest"), Functions.windowTexts("letters"))
            .toStream().to("out"));
    }
}
