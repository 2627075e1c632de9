package sample;

import java.io.IOException;
import java.lang.reflect.Field;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.Importance;
import org.apache.kafka.common.config.ConfigDef.Type;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Decimal;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Timestamp;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;
import org.apache.kafka.connect.source.ConnectorTransactionBoundaries;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** Plugins that do whatever a test wants them to, well or badly. */
public final class Sample {
    private Sample() {}

    static void append(String path, String line) {
        try {
            Files.writeString(Path.of(path), line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new ConnectException(error);
        }
    }

    /** Counts up to `count`, and then does what `act` says. */
    public static final class Numbers extends SourceConnector {
        static final ConfigDef SETTINGS = new ConfigDef()
            .define("topic", Type.STRING, Importance.HIGH, "The topic.")
            .define("count", Type.INT, 3, ConfigDef.Range.atLeast(0), Importance.MEDIUM, "How many numbers.")
            .define("secret", Type.PASSWORD, null, Importance.LOW, "A password.")
            .define("act", Type.STRING, "rest", Importance.LOW, "What to do then.")
            .define("log", Type.STRING, "", Importance.LOW, "A file for what happens.")
            .define("grow", Type.STRING, "", Importance.LOW, "A second task is wanted when this file is there.");
        private Map<String, String> config;
        private Thread watch;

        @Override public String version() { return "1.2.3"; }
        @Override public Class<? extends Task> taskClass() { return NumbersTask.class; }
        @Override public ConfigDef config() { return SETTINGS; }

        @Override public void start(Map<String, String> given) {
            config = given;
            if ("refuse".equals(config.get("act"))) throw new ConnectException("not with me");
            if (config.getOrDefault("grow", "").isEmpty()) return;
            watch = new Thread(() -> {
                try {
                    while (!Files.exists(Path.of(config.get("grow")))) Thread.sleep(20);
                    context().requestTaskReconfiguration();
                } catch (InterruptedException error) {
                    // stopped
                }
            });
            watch.start();
        }

        @Override public List<Map<String, String>> taskConfigs(int most) {
            List<Map<String, String>> made = new ArrayList<>();
            String grow = config.getOrDefault("grow", "");
            int wanted = !grow.isEmpty() && Files.exists(Path.of(grow)) ? 2 : 1;
            for (int at = 0; at < Math.min(wanted, most); at++) {
                made.add(new HashMap<>(config));
                made.get(at).put("task.number", "" + at);
            }
            return made;
        }

        @Override public void stop() { if (watch != null) watch.interrupt(); }

        @Override public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> given) {
            return "rest".equals(given.getOrDefault("act", "rest")) ? ExactlyOnceSupport.SUPPORTED : ExactlyOnceSupport.UNSUPPORTED;
        }

        @Override public ConnectorTransactionBoundaries canDefineTransactionBoundaries(Map<String, String> given) {
            return ConnectorTransactionBoundaries.SUPPORTED;
        }

        @Override public boolean alterOffsets(Map<String, String> given, Map<Map<String, ?>, Map<String, ?>> offsets) {
            offsets.forEach((partition, offset) -> {
                if (offset != null && !(offset.get("n") instanceof Long)) throw new ConnectException("n is not a Long");
            });
            return given.get("act") == null;
        }
    }

    public static final class NumbersTask extends SourceTask {
        static final Schema VALUE = SchemaBuilder.struct().name("sample.Value").version(2).doc("of a test")
            .field("n", Schema.INT64_SCHEMA).field("small", Schema.INT8_SCHEMA).field("half", Schema.FLOAT32_SCHEMA)
            .field("exact", Decimal.schema(2)).field("at", Timestamp.SCHEMA)
            .field("words", SchemaBuilder.array(Schema.STRING_SCHEMA).optional().build())
            .field("inner", SchemaBuilder.struct().optional().field("x", Schema.OPTIONAL_INT32_SCHEMA).build())
            .field("counts", SchemaBuilder.map(Schema.STRING_SCHEMA, Schema.INT32_SCHEMA).build())
            .field("raw", SchemaBuilder.bytes().defaultValue(new byte[] {1, 2}).build()).build();
        private Map<String, String> config;
        private Map<String, String> partition;
        private long next;

        @Override public String version() { return "1.2.3"; }

        @Override public void start(Map<String, String> given) {
            config = given;
            partition = Map.of("task", config.getOrDefault("task.number", "0"));
            Map<String, Object> stored = context.offsetStorageReader().offset(partition);
            next = stored == null ? 1 : (Long) stored.get("n") + 1;
            log("start at " + next);
        }

        private void log(String line) {
            if (!config.getOrDefault("log", "").isEmpty()) append(config.get("log"), line);
        }

        @Override public List<SourceRecord> poll() throws InterruptedException {
            if (next > Long.parseLong(config.getOrDefault("count", "3"))) return act();
            List<SourceRecord> made = new ArrayList<>();
            for (int left = 2; left > 0 && next <= Long.parseLong(config.getOrDefault("count", "3")); left--) {
                SourceRecord one = record(next++);
                made.add(one);
                if (context.transactionContext() != null) {
                    if (next == 4) context.transactionContext().abortTransaction(one); // 1, 2 and 3 are discarded
                    if (next == 6) context.transactionContext().commitTransaction(); // with the batch: 4 and 5
                }
            }
            return made;
        }

        private List<SourceRecord> act() throws InterruptedException {
            switch (config.getOrDefault("act", "rest")) {
                case "exit": System.exit(3);
                case "halt": Runtime.getRuntime().halt(4);
                case "fail": throw new IllegalStateException("broken on purpose", new IOException("deep inside"));
                case "strange": return List.of(new SourceRecord(partition, Map.of(), config.get("topic"), null, new Thread()));
                case "hang":
                    log("hangs");
                    while (true)
                        try {
                            Thread.sleep(1000);
                        } catch (InterruptedException error) {
                            log("interrupted"); // and goes on
                        }
                case "print":
                    System.out.println("printed by a plugin");
                    new Thread(() -> {
                        while (true)
                            try {
                                Thread.sleep(60_000);
                            } catch (InterruptedException error) {
                                continue; // it never ends, and nobody waits for it
                            }
                    }).start();
                    config = new HashMap<>(config);
                    config.put("act", "rest");
                    // falls through
                default:
                    Thread.sleep(20);
                    return null;
            }
        }

        private SourceRecord record(long n) {
            Struct inner = new Struct(VALUE.field("inner").schema()).put("x", (int) n);
            Struct value = new Struct(VALUE).put("n", n).put("small", (byte) n).put("half", n / 2f)
                .put("exact", new BigDecimal("1.25")).put("at", new Date(86_400_000L * n)).put("words", List.of("a", "ž"))
                .put("inner", n % 2 == 0 ? null : inner).put("counts", Map.of("k", 7)).put("raw", new byte[] {(byte) n});
            SourceRecord made = new SourceRecord(partition, Map.of("n", n), config.get("topic"), null,
                Schema.STRING_SCHEMA, "k" + n, VALUE, value, 1000L + n);
            made.headers().addInt("number", (int) n).addString("text", "t" + n);
            return made;
        }

        @Override public void commitRecord(SourceRecord record, RecordMetadata metadata) {
            log("record " + record.sourceOffset().get("n"));
        }

        @Override public void commit() { log("commit"); }
        @Override public void stop() { log("stop"); }
    }

    /** Writes what it is given to the file `log`; some values have it do other things. */
    public static final class Keeper extends SinkConnector {
        private Map<String, String> config;

        @Override public String version() { return "4.5.6"; }
        @Override public Class<? extends Task> taskClass() { return KeeperTask.class; }
        @Override public ConfigDef config() { return new ConfigDef().define("log", Type.STRING, Importance.HIGH, "A file."); }
        @Override public void start(Map<String, String> given) { config = given; }
        @Override public List<Map<String, String>> taskConfigs(int most) { return List.of(config); }
        @Override public void stop() {}

        @Override public boolean alterOffsets(Map<String, String> given, Map<TopicPartition, Long> offsets) {
            return offsets.values().stream().allMatch(one -> one == null || one < 100);
        }
    }

    public static final class KeeperTask extends SinkTask {
        private String log;
        private boolean hasFailed;
        private boolean hasSought;

        @Override public String version() { return "4.5.6"; }
        @Override public void start(Map<String, String> given) { log = given.get("log"); }
        @Override public void open(Collection<TopicPartition> given) { append(log, "open " + given); }
        @Override public void close(Collection<TopicPartition> given) { append(log, "close " + given); }
        @Override public void stop() { append(log, "stop"); }

        @Override public void put(Collection<SinkRecord> records) {
            for (SinkRecord one : records) put(one);
        }

        private void put(SinkRecord one) {
            TopicPartition place = new TopicPartition(one.topic(), one.kafkaPartition());
            switch (String.valueOf(one.value())) {
                case "again":
                    hasFailed = !hasFailed;
                    context.timeout(10);
                    if (hasFailed) throw new RetriableException("not now");
                    break;
                case "bad":
                    Served.report(context, one);
                    return;
                case "back":
                    if (!hasSought) context.offset(place, 0);
                    hasSought = true;
                    break;
                case "pause":
                    context.pause(place);
                    break;
                case "commit":
                    context.requestCommit();
                    break;
                case "consumer":
                    useConsumer(place);
                    return;
                case "hang":
                    append(log, "hangs");
                    while (true)
                        try {
                            Thread.sleep(1000);
                        } catch (InterruptedException error) {
                            append(log, "interrupted");
                        }
                default:
            }
            append(log, one.topic() + "-" + one.kafkaPartition() + "@" + one.kafkaOffset() + " " + one.key() + "=" + one.value());
        }

        /** Looks for the consumer inside the worker, as sinks do that commit its offsets themselves. */
        private void useConsumer(TopicPartition place) {
            Consumer<?, ?> consumer;
            try {
                ClassLoader loader = Thread.currentThread().getContextClassLoader();
                Class<?> of = loader.loadClass("org.apache.kafka.connect.runtime.WorkerSinkTaskContext");
                Field field = of.getDeclaredField("consumer");
                field.setAccessible(true);
                consumer = (Consumer<?, ?>) field.get(context);
            } catch (ReflectiveOperationException error) {
                throw new ConnectException(error);
            }
            ConsumerGroupMetadata member = consumer.groupMetadata();
            append(log, member.groupId() + " " + member.generationId() + " " + member.memberId());
            append(log, consumer.assignment() + " at " + consumer.committed(Set.of(place)).get(place).offset());
            consumer.seek(place, 7);
            try {
                consumer.poll(java.time.Duration.ZERO);
            } catch (UnsupportedOperationException error) {
                append(log, error.getMessage());
            }
        }

        @Override public Map<TopicPartition, OffsetAndMetadata> preCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {
            offsets.forEach((at, offset) -> append(log, "commit " + at + " " + offset.offset()));
            return offsets;
        }
    }

    private static final class Served {
        static void report(org.apache.kafka.connect.sink.SinkTaskContext context, SinkRecord one) {
            try {
                context.errantRecordReporter().report(one, new IllegalArgumentException("I do not like it")).get();
            } catch (InterruptedException | java.util.concurrent.ExecutionException error) {
                throw new ConnectException("cannot be reported", error.getCause());
            }
        }
    }

    /** Puts a suffix behind the topic. */
    public static final class Suffix<R extends ConnectRecord<R>> implements Transformation<R> {
        private String suffix;

        @Override public R apply(R one) {
            if ("drop".equals(one.key())) return null;
            return one.newRecord(one.topic() + suffix, one.kafkaPartition(), one.keySchema(), one.key(), one.valueSchema(),
                one.value(), one.timestamp());
        }

        @Override public ConfigDef config() {
            return new ConfigDef().define("suffix", Type.STRING, "-x", Importance.HIGH, "What is put behind the topic.");
        }

        @Override public void configure(Map<String, ?> given) { suffix = String.valueOf(given.get("suffix")); }
        @Override public void close() {}
        @Override public String version() { return "7"; }
    }

    /** Is true for records whose key is longer than `least`. */
    public static final class LongKey<R extends ConnectRecord<R>> implements Predicate<R> {
        private int least;

        @Override public ConfigDef config() { return new ConfigDef().define("least", Type.INT, 2, Importance.LOW, "A length."); }
        @Override public boolean test(R one) { return String.valueOf(one.key()).length() > least; }
        @Override public void configure(Map<String, ?> given) { least = Integer.parseInt(String.valueOf(given.get("least"))); }
        @Override public void close() {}
    }

    /** Writes texts backwards. */
    public static final class Backwards implements Converter {
        @Override public void configure(Map<String, ?> given, boolean isKey) {}

        @Override public byte[] fromConnectData(String topic, Schema schema, Object value) {
            return value == null ? null : turned(String.valueOf(value)).getBytes(StandardCharsets.UTF_8);
        }

        @Override public SchemaAndValue toConnectData(String topic, byte[] data) {
            return data == null ? SchemaAndValue.NULL
                : new SchemaAndValue(Schema.OPTIONAL_STRING_SCHEMA, turned(new String(data, StandardCharsets.UTF_8)));
        }

        private static String turned(String text) { return new StringBuilder(text).reverse().toString(); }
    }
}
