import java.time.Duration;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.StreamJoined;

/** Joins whose left side is a stream: with a stream, a table, a global table. */
final class StreamJoins {
    static final JoinWindows NO_GRACE = JoinWindows.ofTimeDifferenceWithNoGrace(Functions.SIZE);
    static final JoinWindows GRACE = JoinWindows.ofTimeDifferenceAndGrace(Functions.SIZE, Functions.GRACE);

    private StreamJoins() {}

    static void addTo(Topologies.Table all) {
        streams(all);
        windows(all);
        chains(all);
        tables(all);
        globals(all);
    }

    private static void streams(Topologies.Table all) {
        all.dsl("stream_join", b -> Functions.left(b).join(Functions.right(b), Functions::both, NO_GRACE).to("out"));
        all.dsl("stream_join_grace", b -> Functions.left(b).join(Functions.right(b), Functions::three, GRACE,
            StreamJoined.with(Functions.STRING, Functions.STRING, Functions.STRING)).to("out"));
        all.dsl("stream_left_join", b -> Functions.left(b).leftJoin(Functions.right(b), Functions::both, NO_GRACE).to("out"));
        all.dsl("stream_left_join_grace", b -> Functions.left(b).leftJoin(Functions.right(b), Functions::three, GRACE,
            StreamJoined.with(Functions.STRING, Functions.STRING, Functions.STRING)
                .withName("meet").withStoreName("met")).to("out"));
        all.dsl("stream_outer_join", b -> Functions.left(b).outerJoin(Functions.right(b), Functions::both, NO_GRACE).to("out"));
        all.dsl("stream_outer_join_grace", b -> Functions.left(b)
            .outerJoin(Functions.right(b), Functions::three, GRACE,
                StreamJoined.with(Functions.STRING, Functions.STRING, Functions.STRING)).to("out"));
    }

    private static void windows(Topologies.Table all) {
        all.dsl("stream_join_before", b -> Functions.left(b).join(Functions.right(b), Functions::both,
            GRACE.after(Functions.ZERO)).to("out"));
        all.dsl("stream_join_after", b -> Functions.left(b).join(Functions.right(b), Functions::both,
            GRACE.before(Functions.ZERO)).to("out"));
        all.dsl("stream_outer_join_before", b -> Functions.left(b).outerJoin(Functions.right(b), Functions::both,
            GRACE.after(Functions.ZERO)).to("out"));
        all.dsl("stream_outer_join_after", b -> Functions.left(b).outerJoin(Functions.right(b), Functions::both,
            GRACE.before(Functions.ZERO)).to("out"));
        all.dsl("stream_left_join_past", b -> Functions.left(b).leftJoin(Functions.right(b), Functions::both,
            GRACE.after(Duration.ofSeconds(-2))).to("out"));
        all.dsl("stream_left_join_future", b -> Functions.left(b).leftJoin(Functions.right(b), Functions::both,
            GRACE.before(Duration.ofSeconds(-2))).to("out"));
        all.dsl("stream_join_zero", b -> Functions.left(b).join(Functions.right(b), Functions::both,
            JoinWindows.ofTimeDifferenceAndGrace(Functions.ZERO, Functions.GRACE)).to("out"));
        all.dsl("stream_outer_join_zero", b -> Functions.left(b).outerJoin(Functions.right(b), Functions::both,
            JoinWindows.ofTimeDifferenceWithNoGrace(Functions.ZERO)).to("out"));
    }

    private static void chains(Topologies.Table all) {
        all.dsl("stream_self_join", b -> {
            KStream<String, String> source = Functions.in(b);
            source.join(source, Functions::both, GRACE).to("out");
        });
        all.dsl("stream_left_self_join", b -> {
            KStream<String, String> source = Functions.in(b);
            source.leftJoin(source.mapValues(v -> Functions.text(v) + "r"), Functions::both, GRACE).to("out");
        });
        all.dsl("stream_join_rekeyed", b -> Functions.left(b).selectKey((k, v) -> Functions.first(v))
            .join(Functions.right(b).selectKey((k, v) -> Functions.first(v)), Functions::both, GRACE).to("out"));
        all.dsl("stream_left_join_rekeyed", b -> Functions.left(b).selectKey((k, v) -> Functions.first(v))
            .leftJoin(Functions.right(b), Functions::both, GRACE,
                StreamJoined.<String, String, String>as("kept").withName("meet")).to("out"));
        all.dsl("stream_join_three", b -> Functions.left(b)
            .join(Functions.right(b), Functions::both, NO_GRACE)
            .leftJoin(Functions.in(b), Functions::both, GRACE).to("out"));
        all.dsl("stream_join_count", b -> Functions.left(b).outerJoin(Functions.right(b), Functions::both, GRACE)
            .groupByKey().count().toStream().to("out"));
    }

    private static void tables(Topologies.Table all) {
        all.dsl("stream_table_join", b -> Functions.left(b).join(Functions.table(b, "right"), Functions::both).to("out"));
        all.dsl("stream_table_left_join", b -> Functions.left(b)
            .leftJoin(Functions.table(b, "right"), Functions::both).to("out"));
        all.dsl("stream_table_join_key", b -> Functions.left(b)
            .join(Functions.table(b, "right"), Functions::three, Joined.as("look-up")).to("out"));
        all.dsl("stream_table_join_rekeyed", b -> Functions.left(b).selectKey((k, v) -> Functions.first(v))
            .join(Functions.table(b, "right"), Functions::both).to("out"));
        all.dsl("stream_table_filtered", b -> Functions.left(b)
            .leftJoin(Functions.table(b, "right").filter((k, v) -> Functions.even(v)).mapValues(v -> v + "!"),
                Functions::both).to("out"));
        all.dsl("stream_count_join", b -> Functions.left(b)
            .join(Functions.right(b).groupByKey().count(), Functions::both).to("out"));
        all.dsl("stream_versioned_join", b -> Functions.left(b).join(Tables.versioned(b, "right"), Functions::both).to("out"));
        all.dsl("stream_versioned_join_grace", b -> Functions.left(b).join(Tables.versioned(b, "right"), Functions::both,
            Joined.<String, String, String>with(Functions.STRING, Functions.STRING, Functions.STRING)
                .withGracePeriod(Functions.GRACE)).to("out"));
        all.dsl("stream_versioned_left_join_grace", b -> Functions.left(b).filter((k, v) -> k != null)
            .leftJoin(Tables.versioned(b, "right"), Functions::both,
                Joined.<String, String, String>with(Functions.STRING, Functions.STRING, Functions.STRING)
                    .withGracePeriod(Functions.GRACE)).to("out"));
    }

    private static void globals(Topologies.Table all) {
        all.dsl("stream_global_join", b -> {
            GlobalKTable<String, String> table = b.globalTable("right");
            Functions.left(b).join(table, (k, v) -> Functions.first(v), Functions::both).to("out");
        });
        all.dsl("stream_global_left_join", b -> {
            GlobalKTable<String, String> table = b.globalTable(
                "right", Consumed.with(Functions.STRING, Functions.STRING), Functions.texts("everywhere"));
            Functions.left(b).leftJoin(table, (k, v) -> Functions.first(v), Functions::three, Named.as("look-up")).to("out");
        });
        all.dsl("stream_global_by_key", b -> {
            GlobalKTable<String, String> table = b.globalTable("right");
            Functions.left(b).leftJoin(table, (k, v) -> k, Functions::both).groupByKey().count().toStream().to("out");
        });
    }
}
