package moldau.connect;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.connect.errors.IllegalWorkerStateException;
import org.apache.kafka.connect.runtime.WorkerSinkTaskContext;
import org.apache.kafka.connect.sink.ErrantRecordReporter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/** A task of a sink. Partitions travel as [topic, number]. */
final class SinkServed extends Served {
    private final SinkTask task;
    private final boolean reports;
    private final Set<TopicPartition> assigned = ConcurrentHashMap.newKeySet();
    private boolean isStopped;

    SinkServed(Link link, ClassLoader loader, SinkTask task, boolean reports) {
        super(link, loader);
        this.task = task;
        this.reports = reports;
    }

    @Override
    @SuppressWarnings("unchecked")
    Object call(String op, List<?> words) throws Exception {
        switch (op) {
            case "start": {
                Map<String, String> config = texts(words.get(1));
                task.initialize(new Context(config));
                task.start(config);
                return null;
            }
            case "open": {
                List<TopicPartition> given = partitions(words.get(1));
                assigned.addAll(given);
                task.open(given);
                return null;
            }
            case "put":
                task.put((Collection<SinkRecord>) words.get(1));
                return null;
            case "flush": return flushed((List<?>) words.get(1));
            case "close": {
                List<TopicPartition> given = partitions(words.get(1));
                task.close(given);
                given.forEach(assigned::remove);
                return null;
            }
            case "stop":
                if (!assigned.isEmpty()) task.close(new ArrayList<>(assigned));
                assigned.clear();
                stop();
                return null;
            default: throw unknown(op);
        }
    }

    private Object flushed(List<?> given) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new LinkedHashMap<>();
        for (Object one : given) {
            List<?> row = (List<?>) one;
            offsets.put(partition(row), new OffsetAndMetadata((Long) row.get(2)));
        }
        Map<TopicPartition, OffsetAndMetadata> safe = task.preCommit(offsets);
        List<Object> made = new ArrayList<>();
        if (safe != null) safe.forEach((at, offset) -> {
            if (offset != null) made.add(List.of(at.topic(), at.partition(), offset.offset()));
        });
        return made;
    }

    @Override
    void note(String op, List<?> words) {
        if (op.equals("cancel")) stop();
    }

    private void stop() {
        synchronized (assigned) {
            if (isStopped) return;
            isStopped = true;
        }
        task.stop();
    }

    static List<TopicPartition> partitions(Object given) {
        List<TopicPartition> made = new ArrayList<>();
        for (Object one : (List<?>) given) made.add(partition((List<?>) one));
        return made;
    }

    static TopicPartition partition(List<?> row) {
        return new TopicPartition((String) row.get(0), ((Number) row.get(1)).intValue());
    }

    private final class Context extends WorkerSinkTaskContext {
        private final Map<String, String> config;
        private final PluginMetrics metrics = metrics();

        Context(Map<String, String> config) {
            this.config = config;
            consumer = TaskConsumer.of(link, this);
        }

        public Map<String, String> configs() {
            return config;
        }

        public void offset(Map<TopicPartition, Long> offsets) {
            List<Object> rows = new ArrayList<>();
            offsets.forEach((at, offset) -> rows.add(List.of(at.topic(), at.partition(), offset)));
            link.tell("offset", rows);
        }

        public void offset(TopicPartition partition, long offset) {
            offset(Map.of(partition, offset));
        }

        public void timeout(long ms) {
            link.tell("timeout", ms);
        }

        public Set<TopicPartition> assignment() {
            return Set.copyOf(assigned);
        }

        public void pause(TopicPartition... partitions) {
            link.tell("pause", rows("pause", partitions));
        }

        public void resume(TopicPartition... partitions) {
            link.tell("resume", rows("resume", partitions));
        }

        private List<Object> rows(String what, TopicPartition... partitions) {
            List<Object> made = new ArrayList<>();
            for (TopicPartition one : partitions) {
                if (!assigned.contains(one))
                    throw new IllegalWorkerStateException(
                        "SinkTasks may not " + what + " partitions that are not currently assigned to them.");
                made.add(List.of(one.topic(), one.partition()));
            }
            return made;
        }

        public void requestCommit() {
            link.tell("commit");
        }

        public ErrantRecordReporter errantRecordReporter() {
            return reports ? this::report : null;
        }

        private Future<Void> report(SinkRecord record, Throwable error) {
            Map<String, Object> given = new HashMap<>();
            given.put("topic", record.originalTopic());
            given.put("partition", record.originalKafkaPartition());
            given.put("offset", record.originalKafkaOffset());
            given.put("error", Link.described(error));
            return link.ask("report", given).thenApply(made -> null);
        }

        public PluginMetrics pluginMetrics() {
            return metrics;
        }
    }
}
