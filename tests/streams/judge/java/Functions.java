import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;

/** What the topologies are made of: small functions, spans of time, sources. functions.py says the same in Python. */
final class Functions {
    static final Duration SIZE = Duration.ofSeconds(10);
    static final Duration ADVANCE = Duration.ofSeconds(4);
    static final Duration GRACE = Duration.ofSeconds(5);
    static final Duration ZERO = Duration.ZERO;
    static final Serde<String> STRING = Serdes.String();
    static final Serde<Long> LONG = Serdes.Long();

    /** What foreach and its like saw: part of the answer. */
    static final List<String> SEEN = new ArrayList<>();

    private Functions() {}

    static String text(Object value) {
        return value == null ? "~" : value.toString();
    }

    static String both(Object left, Object right) {
        return "(" + text(left) + "+" + text(right) + ")";
    }

    static String three(Object key, Object left, Object right) {
        return text(key) + both(left, right);
    }

    static String first(String value) {
        return value == null || value.isEmpty() ? null : value.substring(0, 1);
    }

    static boolean even(String value) {
        return value != null && value.length() % 2 == 0;
    }

    /** Joins of aggregates, in order, so that the order of the calls is seen. */
    static String add(String key, String value, String aggregate) {
        return aggregate + text(value);
    }

    /** The first place where the value stands is taken out. */
    static String subtract(String key, String value, String aggregate) {
        int at = aggregate.indexOf(text(value));
        return at < 0 ? aggregate + "?" : aggregate.substring(0, at) + aggregate.substring(at + text(value).length());
    }

    /** As add, for reducers. */
    static String joined(String aggregate, String value) {
        return aggregate + text(value);
    }

    static void see(Object key, Object value) {
        SEEN.add(both(key, value));
    }

    static KStream<String, String> in(StreamsBuilder builder) {
        return builder.stream("in", Consumed.with(STRING, STRING));
    }

    static KStream<String, String> left(StreamsBuilder builder) {
        return builder.stream("left", Consumed.with(STRING, STRING));
    }

    static KStream<String, String> right(StreamsBuilder builder) {
        return builder.stream("right", Consumed.with(STRING, STRING));
    }

    static KTable<String, String> table(StreamsBuilder builder, String topic) {
        return builder.table(topic, Consumed.with(STRING, STRING));
    }

    static Materialized<String, String, KeyValueStore<Bytes, byte[]>> texts(String store) {
        return Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(store)
            .withKeySerde(STRING).withValueSerde(STRING);
    }

    static Materialized<String, Long, KeyValueStore<Bytes, byte[]>> counts(String store) {
        return Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as(store)
            .withKeySerde(STRING).withValueSerde(LONG);
    }

    static Materialized<String, Long, WindowStore<Bytes, byte[]>> windowCounts(String store) {
        return Materialized.<String, Long, WindowStore<Bytes, byte[]>>as(store)
            .withKeySerde(STRING).withValueSerde(LONG);
    }

    static Materialized<String, String, WindowStore<Bytes, byte[]>> windowTexts(String store) {
        return Materialized.<String, String, WindowStore<Bytes, byte[]>>as(store)
            .withKeySerde(STRING).withValueSerde(STRING);
    }

    static Materialized<String, Long, SessionStore<Bytes, byte[]>> sessionCounts(String store) {
        return Materialized.<String, Long, SessionStore<Bytes, byte[]>>as(store)
            .withKeySerde(STRING).withValueSerde(LONG);
    }

    static Materialized<String, String, SessionStore<Bytes, byte[]>> sessionTexts(String store) {
        return Materialized.<String, String, SessionStore<Bytes, byte[]>>as(store)
            .withKeySerde(STRING).withValueSerde(STRING);
    }
}
