import java.time.Duration;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.SessionWindowedKStream;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;

/** Aggregates in session windows. */
final class Sessions {
    static final SessionWindows NO_GRACE = SessionWindows.ofInactivityGapWithNoGrace(Functions.SIZE);
    static final SessionWindows GRACE = SessionWindows.ofInactivityGapAndGrace(Functions.SIZE, Functions.GRACE);

    private Sessions() {}

    static SessionWindowedKStream<String, String> windowed(StreamsBuilder b, SessionWindows windows) {
        return Functions.in(b).groupByKey().windowedBy(windows);
    }

    static String merge(String key, String left, String right) {
        return left + "|" + right;
    }

    static void addTo(Topologies.Table all) {
        all.dsl("session_count", b -> windowed(b, NO_GRACE).count().toStream().to("out"));
        all.dsl("session_grace", b -> windowed(b, GRACE).count(Functions.sessionCounts("counts")).toStream().to("out"));
        all.dsl("session_reduce", b -> windowed(b, GRACE).reduce(Functions::joined).toStream().to("out"));
        all.dsl("session_aggregate", b -> windowed(b, GRACE)
            .aggregate(() -> "", Functions::add, Sessions::merge, Functions.sessionTexts("joined"))
            .toStream().to("out"));
        all.dsl("session_to_null", b -> windowed(b, GRACE)
            .aggregate(() -> "", (k, v, a) -> v == null || v.isEmpty() ? null : Functions.text(a) + v, Sessions::merge,
                Materialized.with(Functions.STRING, Functions.STRING)).toStream().to("out"));
        all.dsl("session_retention", b -> windowed(b, GRACE)
            .count(Named.as("kept"), Functions.sessionCounts("counts").withRetention(Duration.ofMinutes(3)))
            .toStream().to("out"));
        all.dsl("session_close", b -> windowed(b, GRACE).emitStrategy(EmitStrategy.onWindowClose())
            .count().toStream().to("out"));
        all.dsl("session_close_no_grace", b -> windowed(b, NO_GRACE).emitStrategy(EmitStrategy.onWindowClose())
            .aggregate(() -> "", Functions::add, Sessions::merge, Functions.sessionTexts("joined")).toStream().to("out"));
        all.dsl("session_suppress", b -> windowed(b, GRACE).count()
            .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded())).toStream().to("out"));
        all.dsl("cogroup_session", b -> Aggregates.grouped(Functions.left(b))
            .cogroup((String k, String v, String a) -> a + "l" + Functions.text(v))
            .cogroup(Aggregates.grouped(Functions.right(b)), (k, v, a) -> a + "r" + Functions.text(v))
            .windowedBy(GRACE)
            .aggregate(() -> "", Sessions::merge, Functions.sessionTexts("cogrouped")).toStream().to("out"));
        all.dsl("session_key_mapped", b -> windowed(b, GRACE).count()
            .toStream((k, n) -> k.key() + "@" + k.window().start() + "-" + k.window().end()).to("out"));
    }
}
