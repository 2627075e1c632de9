import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.VersionedBytesStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.internals.WrappedStateStore;

/**
 * What the stores of a topology hold at the end, as bytes, in the order of their iterators: [key, value] of a
 * key-value store, [key, start, value] of a window store, [key, start, end, value] of a session store,
 * [key, as of, value] of a versioned one, asked for the keys and times of the input. Values of timestamped and
 * versioned stores begin with the timestamp. Buffers (suppress, joins with grace) are not shown.
 */
final class Contents {
    private Contents() {}

    static Map<String, Object> of(TopologyTestDriver driver, JsonNode steps) throws Exception {
        Map<String, Object> contents = new TreeMap<>();
        for (Map.Entry<String, StateStore> store : driver.getAllStateStores().entrySet()) {
            if (store.getValue() instanceof WrappedStateStore<?, ?, ?> wrapped) {
                try {
                    List<Object> rows = rows(wrapped.wrapped(), steps);
                    if (rows != null) {
                        contents.put(store.getKey(), rows);
                    }
                } catch (IllegalArgumentException noWindow) {
                    // Kafka cannot list a store of windows whose size is 0.
                    contents.remove(store.getKey());
                }
            }
        }
        return contents;
    }

    @SuppressWarnings("unchecked")
    private static List<Object> rows(StateStore bytes, JsonNode steps) throws Exception {
        if (bytes instanceof VersionedBytesStore versioned) {
            return versions(versioned, steps);
        } else if (bytes instanceof KeyValueStore) {
            return drained(((KeyValueStore<Bytes, byte[]>) bytes).all(), row -> Arrays.asList(row.key.get(), row.value));
        } else if (bytes instanceof WindowStore) {
            KeyValueIterator<Windowed<Bytes>, byte[]> all = ((WindowStore<Bytes, byte[]>) bytes).all();
            return drained(all, row -> Arrays.asList(row.key.key().get(), row.key.window().start(), row.value));
        } else if (bytes instanceof SessionStore) {
            KeyValueIterator<Windowed<Bytes>, byte[]> all =
                ((SessionStore<Bytes, byte[]>) bytes).findSessions(null, null, 0, Long.MAX_VALUE);
            return drained(all, row -> Arrays.asList(
                row.key.key().get(), row.key.window().start(), row.key.window().end(), row.value));
        }
        return null;
    }

    private static <K> List<Object> drained(KeyValueIterator<K, byte[]> all, Function<KeyValue<K, byte[]>, Object> row) {
        List<Object> rows = new ArrayList<>();
        try (all) {
            all.forEachRemaining(entry -> rows.add(row.apply(entry)));
        }
        return rows;
    }

    private static List<Object> versions(VersionedBytesStore store, JsonNode steps) throws Exception {
        Set<Bytes> keys = new TreeSet<>();
        Set<Long> times = new TreeSet<>();
        for (JsonNode step : steps) {
            if (step.has("timestamp")) {
                times.add(step.get("timestamp").asLong());
                byte[] key = Judge.bytes(step.get("key"));
                if (key != null) {
                    keys.add(Bytes.wrap(key));
                }
            }
        }
        List<Object> rows = new ArrayList<>();
        for (Bytes key : keys) {
            for (long time : times) {
                rows.add(Arrays.asList(key.get(), time, store.get(key, time)));
            }
        }
        return rows;
    }
}
