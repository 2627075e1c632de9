import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.Cancellable;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;

/** The Processor API: stores of every kind, punctuators, headers, children by name, global stores, plain topologies. */
final class Processors {
    private Processors() {}

    /** A processor of texts; each of them says what it does with a record that has a key. */
    abstract static class Texts extends ContextualProcessor<String, String, String, String> {
        void send(Record<String, String> like, String value) {
            context().forward(like.withValue(value));
        }
    }

    static StoreBuilder<KeyValueStore<String, Long>> numbers(String name) {
        return Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(name), Functions.STRING, Functions.LONG);
    }

    /** Counts in a store; what is empty deletes, "a" asks for all that is stored, from both ends. */
    static final class Counter extends Texts {
        private KeyValueStore<String, Long> store;

        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            store = context.getStateStore("counts");
        }

        @Override
        public void process(Record<String, String> record) {
            if (record.key() == null) {
                return;
            }
            Long before = store.get(record.key());
            store.put(record.key(), "".equals(record.value()) ? null : before == null ? 1L : before + 1);
            send(record, Functions.both(before, store.get(record.key())));
            if ("a".equals(record.value())) {
                send(record, listed(store.all()) + listed(store.reverseAll()));
                send(record, listed(store.range("b", "c")) + listed(store.reverseRange(null, "b")));
                send(record, Functions.both(store.putIfAbsent("z", 7L), store.delete("y")));
            }
        }

        static String listed(KeyValueIterator<String, Long> rows) {
            StringBuilder text = new StringBuilder("[");
            try (rows) {
                rows.forEachRemaining(row -> text.append(row.key).append(row.value));
            }
            return text.append("]").toString();
        }
    }

    /** What a record carries: its metadata, stream time, and one header more. */
    static final class Labels extends Texts {
        @Override
        public void process(Record<String, String> record) {
            record.headers().add("label", Functions.text(record.key()).getBytes(StandardCharsets.UTF_8));
            String place = context().recordMetadata()
                .map(from -> from.topic() + from.partition() + from.offset()).orElse("nowhere");
            String time = "@" + context().currentStreamTimeMs() + "@" + context().currentSystemTimeMs();
            context().forward(record.withValue(place + time).withTimestamp(record.timestamp() + 1));
        }
    }

    static final class FixedLabels extends ContextualFixedKeyProcessor<String, String, String> {
        @Override
        public void process(FixedKeyRecord<String, String> record) {
            if (Functions.even(record.value())) {
                context().forward(record.withValue(Functions.text(record.key()) + "1"));
                context().forward(record.withValue(Functions.text(record.key()) + "2"));
            }
        }
    }

    /** Tells at each punctuation what was counted since; where it is more than three, that was the last one. */
    static final class Punctual extends Texts {
        private final PunctuationType type;
        private KeyValueStore<String, Long> store;
        private Cancellable schedule;

        Punctual(PunctuationType type) {
            this.type = type;
        }

        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            store = context.getStateStore("counts");
            schedule = context.schedule(Functions.SIZE, type, this::tell);
        }

        private void tell(long time) {
            List<KeyValue<String, Long>> rows = new ArrayList<>();
            try (KeyValueIterator<String, Long> all = store.all()) {
                all.forEachRemaining(rows::add);
            }
            context().forward(new Record<>("tick", String.valueOf(context().currentStreamTimeMs()), time));
            for (KeyValue<String, Long> row : rows) {
                context().forward(new Record<>(row.key, row.value.toString(), time));
                store.delete(row.key);
                if (row.value > 3) {
                    schedule.cancel();
                }
            }
        }

        @Override
        public void process(Record<String, String> record) {
            if (record.key() != null) {
                Long before = store.get(record.key());
                store.put(record.key(), before == null ? 1L : before + 1);
            }
        }
    }

    /** Writes to a window store at the record's time, and lists what is there by key, by time and backwards. */
    static final class Windower extends Texts {
        private WindowStore<String, String> store;

        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            store = context.getStateStore("windows");
        }

        @Override
        public void process(Record<String, String> record) {
            if (record.key() == null) {
                return;
            }
            long time = record.timestamp();
            store.put(record.key(), record.value(), time);
            long from = Math.max(0, time - 10_000);
            send(record, times(store.fetch(record.key(), from, time)) + times(store.backwardFetch(record.key(), from, time)));
            send(record, Functions.text(store.fetch(record.key(), time)) + keys(store.fetch("a", "b", from, time))
                + keys(store.fetchAll(from, time)) + keys(store.backwardFetchAll(from, time)));
            send(record, keys(store.all()) + keys(store.backwardAll()));
        }

        static String times(WindowStoreIterator<String> rows) {
            StringBuilder text = new StringBuilder("[");
            try (rows) {
                rows.forEachRemaining(row -> text.append(row.key).append(row.value).append(" "));
            }
            return text.append("]").toString();
        }

        static String keys(KeyValueIterator<Windowed<String>, String> rows) {
            StringBuilder text = new StringBuilder("[");
            try (rows) {
                rows.forEachRemaining(row -> text.append(row.key.key()).append(row.key.window().start()).append("-")
                    .append(row.key.window().end()).append(row.value).append(" "));
            }
            return text.append("]").toString();
        }
    }

    /** Asks for keys that begin alike, and for ranges from both ends, those that are empty too. */
    static final class Scanner extends Texts {
        @Override
        public void process(Record<String, String> record) {
            KeyValueStore<String, Long> store = context().getStateStore("counts");
            String key = Functions.text(record.value());
            store.putAll(List.of(KeyValue.pair(key, (long) key.length()), KeyValue.pair("b" + key, 0L)));
            send(record, Counter.listed(store.prefixScan("b", Functions.STRING.serializer()))
                + Counter.listed(store.prefixScan(key, Functions.STRING.serializer())));
            send(record, Counter.listed(store.range("b", "a")) + Counter.listed(store.range("b", null))
                + Counter.listed(store.reverseRange("a", "c")) + Counter.listed(store.reverseRange("b", null)));
        }
    }

    /** Windows of many keys from the end. */
    static final class WindowerBackwards extends Texts {
        @Override
        public void process(Record<String, String> record) {
            WindowStore<String, String> store = context().getStateStore("windows");
            if (record.key() == null) {
                return;
            }
            long time = record.timestamp();
            store.put(record.key(), record.value(), time);
            send(record, Windower.keys(store.backwardFetch("a", "c", 0, time)));
            send(record, Windower.keys(store.backwardFetch(null, "b", 0, time)) + Windower.keys(store.fetch("b", null, 0, time)));
        }
    }

    /** Sessions of many keys from the end. */
    static final class SessionerBackwards extends Texts {
        @Override
        public void process(Record<String, String> record) {
            SessionStore<String, String> store = context().getStateStore("sessions");
            if (record.key() == null) {
                return;
            }
            long time = record.timestamp();
            store.put(new Windowed<>(record.key(), new SessionWindow(Math.max(0, time - 1000), time)), record.value());
            send(record, Windower.keys(store.backwardFetch("a", "c")) + Windower.keys(store.fetch("b", null)));
            send(record, Windower.keys(store.backwardFindSessions("a", "b", Math.max(0, time - 2000), time + 2000)));
        }
    }

    /** Puts a session that ends at the record's time, and finds those around it. */
    static final class Sessioner extends Texts {
        private SessionStore<String, String> store;

        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            store = context.getStateStore("sessions");
        }

        @Override
        public void process(Record<String, String> record) {
            if (record.key() == null) {
                return;
            }
            long time = record.timestamp();
            long start = Math.max(0, time - 1000L * Functions.text(record.value()).length());
            store.put(new Windowed<>(record.key(), new SessionWindow(start, time)), record.value());
            send(record, Windower.keys(store.fetch(record.key())) + Windower.keys(store.backwardFetch(record.key())));
            send(record, Windower.keys(store.findSessions(record.key(), Math.max(0, time - 2000), time + 2000))
                + Windower.keys(store.findSessions("a", "b", Math.max(0, time - 2000), time + 2000))
                + Windower.keys(store.backwardFindSessions(record.key(), 0, time)));
            send(record, Functions.text(store.fetchSession(record.key(), start, time)));
            if ("b".equals(record.value())) {
                store.remove(new Windowed<>(record.key(), new SessionWindow(start, time)));
                send(record, Windower.keys(store.fetch("a", "c")));
            }
        }
    }

    /** Puts a version, then asks for it as of times around. */
    static final class Versioner extends Texts {
        private VersionedKeyValueStore<String, String> store;

        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            store = context.getStateStore("versions");
        }

        @Override
        public void process(Record<String, String> record) {
            if (record.key() == null) {
                return;
            }
            long time = record.timestamp();
            if ("b".equals(record.value())) {
                send(record, told(store.delete(record.key(), time)));
            } else {
                send(record, String.valueOf(store.put(record.key(), record.value(), time)));
            }
            send(record, told(store.get(record.key())) + told(store.get(record.key(), Math.max(0, time - 5000)))
                + told(store.get(record.key(), time)) + told(store.get(record.key(), time + 5000)));
        }

        static String told(VersionedRecord<String> version) {
            return version == null ? "~" : "<" + version.value() + "@" + version.timestamp() + ">";
        }
    }

    /** Keeps the latest by timestamp in a timestamped store. */
    static final class Latest extends Texts {
        private TimestampedKeyValueStore<String, String> store;

        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            store = context.getStateStore("latest");
        }

        @Override
        public void process(Record<String, String> record) {
            if (record.key() == null) {
                return;
            }
            ValueAndTimestamp<String> before = store.get(record.key());
            if (before == null || before.timestamp() <= record.timestamp()) {
                store.put(record.key(), ValueAndTimestamp.make(record.value(), record.timestamp()));
            }
            send(record, before == null ? "~" : before.value() + "@" + before.timestamp());
        }
    }

    /** Keys that begin with a go to one child, the rest to both. */
    static final class Forker extends Texts {
        @Override
        public void process(Record<String, String> record) {
            if ("a".equals(record.key())) {
                context().forward(record, "left-sink");
            } else {
                context().forward(record);
            }
        }
    }

    /** Keeps a global store; the sum of lengths is not what the topic holds. */
    static final class Global extends ContextualProcessor<String, String, Void, Void> {
        @Override
        public void process(Record<String, String> record) {
            KeyValueStore<String, Long> store = context().getStateStore("lengths");
            if (record.key() != null) {
                store.put(record.key(), record.value() == null ? null : (long) record.value().length());
            }
        }
    }

    static final class Asker extends Texts {
        @Override
        public void process(Record<String, String> record) {
            KeyValueStore<String, ?> store = context().getStateStore("lengths");
            Object found = record.key() == null ? null : store.get(record.key());
            send(record, Functions.both(record.value(), found));
        }
    }

    /** A supplier that brings its own stores (ConnectedStoreProvider). */
    static ProcessorSupplier<String, String, String, String> with(StoreBuilder<?> store, Supplier<Texts> made) {
        return new ProcessorSupplier<>() {
            @Override
            public Texts get() {
                return made.get();
            }

            @Override
            public Set<StoreBuilder<?>> stores() {
                return Set.of(store);
            }
        };
    }

    static void addTo(Topologies.Table all) {
        all.dsl("process_store", b -> {
            b.addStateStore(numbers("counts"));
            Functions.in(b).process(Counter::new, "counts").to("out");
        });
        all.dsl("process_connected", b -> Functions.in(b).process(with(numbers("counts"), Counter::new), Named.as("counter"))
            .to("out"));
        all.dsl("process_labels", b -> Functions.in(b).mapValues(v -> Functions.text(v) + "!").process(Labels::new).to("out"));
        all.dsl("process_values", b -> Functions.in(b).processValues(FixedLabels::new)
            .groupByKey().count().toStream().to("out"));
        all.dsl("process_group", b -> Functions.in(b).process(Labels::new).groupByKey().count().toStream().to("out"));
        stores(all);
        punctuators(all);
        plain(all);
        all.dsl("global_store", b -> {
            b.addGlobalStore(numbers("lengths").withLoggingDisabled(), "right",
                Consumed.with(Functions.STRING, Functions.STRING), Global::new);
            Functions.left(b).process(Asker::new).to("out");
        });
    }

    private static void stores(Topologies.Table all) {
        all.dsl("process_windows", b -> Functions.in(b).process(with(Stores.windowStoreBuilder(
            Stores.persistentWindowStore("windows", Duration.ofMinutes(3), Functions.SIZE, false),
            Functions.STRING, Functions.STRING), Windower::new)).to("out"));
        all.dsl("process_windows_in_memory", b -> Functions.in(b).process(with(Stores.windowStoreBuilder(
            Stores.inMemoryWindowStore("windows", Duration.ofMinutes(3), Functions.SIZE, false),
            Functions.STRING, Functions.STRING), Windower::new)).to("out"));
        all.dsl("process_windows_duplicates", b -> Functions.in(b).filter((k, v) -> v != null)
            .process(with(Stores.windowStoreBuilder(
                Stores.inMemoryWindowStore("windows", Duration.ofMinutes(3), Functions.SIZE, true),
                Functions.STRING, Functions.STRING), Windower::new)).to("out"));
        all.dsl("process_sessions", b -> Functions.in(b).process(with(Stores.sessionStoreBuilder(
            Stores.persistentSessionStore("sessions", Duration.ofMinutes(3)),
            Functions.STRING, Functions.STRING), Sessioner::new)).to("out"));
        all.dsl("process_sessions_in_memory", b -> Functions.in(b).process(with(Stores.sessionStoreBuilder(
            Stores.inMemorySessionStore("sessions", Duration.ofMinutes(3)),
            Functions.STRING, Functions.STRING), Sessioner::new)).to("out"));
        all.dsl("process_windows_backwards", b -> Functions.in(b).process(with(Stores.windowStoreBuilder(
            Stores.persistentWindowStore("windows", Duration.ofMinutes(3), Functions.SIZE, false),
            Functions.STRING, Functions.STRING), WindowerBackwards::new)).to("out"));
        all.dsl("process_sessions_backwards", b -> Functions.in(b).process(with(Stores.sessionStoreBuilder(
            Stores.persistentSessionStore("sessions", Duration.ofMinutes(3)),
            Functions.STRING, Functions.STRING), SessionerBackwards::new)).to("out"));
        all.dsl("process_scans", b -> Functions.in(b).process(with(numbers("counts"), Scanner::new)).to("out"));
        all.dsl("process_recent", b -> Functions.in(b).process(with(Stores.keyValueStoreBuilder(
            Stores.lruMap("counts", 2), Functions.STRING, Functions.LONG), Counter::new)).to("out"));
        all.dsl("process_versions", b -> Functions.in(b).process(with(Stores.versionedKeyValueStoreBuilder(
            Stores.persistentVersionedKeyValueStore("versions", Tables.HISTORY),
            Functions.STRING, Functions.STRING), Versioner::new)).to("out"));
        all.dsl("process_latest", b -> Functions.in(b).process(with(Stores.timestampedKeyValueStoreBuilder(
            Stores.persistentTimestampedKeyValueStore("latest"), Functions.STRING, Functions.STRING), Latest::new)).to("out"));
    }

    private static void punctuators(Topologies.Table all) {
        all.dsl("punctuate_stream_time", b -> Functions.in(b).process(
            with(numbers("counts"), () -> new Punctual(PunctuationType.STREAM_TIME))).to("out"));
        all.dsl("punctuate_wall_clock", b -> Functions.in(b).process(
            with(numbers("counts"), () -> new Punctual(PunctuationType.WALL_CLOCK_TIME))).to("out"));
    }

    private static void plain(Topologies.Table all) {
        all.plain("topology_forks", settings -> new Topology()
            .addSource("source", "in")
            .addProcessor("fork", Forker::new, "source")
            .addSink("left-sink", "left-out", "fork")
            .addSink("right-sink", "right-out", "fork"));
        all.plain("topology_store", settings -> new Topology()
            .addSource("one", "left")
            .addSource("two", "right")
            .addProcessor("count", Counter::new, "one", "two")
            .addStateStore(numbers("counts"), "count")
            .addProcessor("label", Labels::new, "count")
            .addSink("sink", "out", "label"));
        all.plain("topology_read_only", settings -> new Topology()
            .addReadOnlyStateStore(numbers("lengths"), "filling", Functions.STRING.deserializer(),
                Functions.STRING.deserializer(), "right", "fill", Global::new)
            .addSource("asking", "left")
            .addProcessor("ask", Asker::new, "asking")
            .connectProcessorAndStateStores("ask", "lengths")
            .addSink("sink", "out", "ask"));
    }
}
