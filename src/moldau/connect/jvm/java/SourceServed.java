package moldau.connect;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;
import org.apache.kafka.connect.source.SourceTaskContext;
import org.apache.kafka.connect.source.TransactionContext;
import org.apache.kafka.connect.storage.OffsetStorageReader;

/** A task of a source. A poll's answer is its records and, of a source that draws its own, the transactions' bounds. */
final class SourceServed extends Served {
    private final SourceTask task;
    private final boolean wantsRecords;
    /** Whether it may poll while the records before are not committed: not if `commit` is all that tells it of them. */
    private final boolean pollsAhead;
    private final ArrayDeque<SourceRecord> uncommitted = new ArrayDeque<>();
    private final Boundaries boundaries;
    private boolean isStopped;

    SourceServed(Link link, ClassLoader loader, SourceTask task, boolean drawsBoundaries) throws Exception {
        super(link, loader);
        this.task = task;
        this.boundaries = drawsBoundaries ? new Boundaries() : null;
        Class<?> kind = task.getClass();
        wantsRecords = kind.getMethod("commitRecord", SourceRecord.class, RecordMetadata.class).getDeclaringClass()
            != SourceTask.class;
        pollsAhead = wantsRecords || kind.getMethod("commit").getDeclaringClass() == SourceTask.class;
    }

    @Override
    Object call(String op, List<?> words) throws Exception {
        switch (op) {
            case "start": {
                Map<String, String> config = texts(words.get(1));
                task.initialize(new Context(config));
                task.start(config);
                return List.of(wantsRecords, pollsAhead);
            }
            case "poll": return polled();
            case "stop":
                stop();
                return null;
            default: throw unknown(op);
        }
    }

    private Object polled() throws InterruptedException {
        List<SourceRecord> records = task.poll();
        if (records == null) records = List.of();
        if (wantsRecords) synchronized (uncommitted) {
            uncommitted.addAll(records);
        }
        return List.of(records, boundaries == null ? List.of() : boundaries.of(records));
    }

    @Override
    void note(String op, List<?> words) throws Exception {
        if (op.equals("committed")) {
            for (long left = (Long) words.get(1); left > 0; left--) {
                SourceRecord one;
                synchronized (uncommitted) {
                    one = uncommitted.poll();
                }
                if (one != null) task.commitRecord(one, null);
            }
            task.commit();
        } else if (op.equals("cancel")) stop();
    }

    private void stop() {
        synchronized (uncommitted) {
            if (isStopped) return;
            isStopped = true;
        }
        task.stop();
    }

    private final class Context implements SourceTaskContext {
        private final Map<String, String> config;
        private final Offsets offsets = new Offsets(link);
        private final PluginMetrics metrics = metrics();

        Context(Map<String, String> config) {
            this.config = config;
        }

        public Map<String, String> configs() {
            return config;
        }

        public OffsetStorageReader offsetStorageReader() {
            return offsets;
        }

        public TransactionContext transactionContext() {
            return boundaries;
        }

        public PluginMetrics pluginMetrics() {
            return metrics;
        }
    }

    /** Where a source wants its transactions to end: after a record, or after the batch that it polls next. */
    private static final class Boundaries implements TransactionContext {
        private final Map<SourceRecord, Boolean> after = new IdentityHashMap<>();
        private Boolean afterBatch;

        public synchronized void commitTransaction() {
            afterBatch = true;
        }

        public synchronized void commitTransaction(SourceRecord record) {
            after.put(record, true);
        }

        public synchronized void abortTransaction() {
            afterBatch = false;
        }

        public synchronized void abortTransaction(SourceRecord record) {
            after.put(record, false);
        }

        /** Pairs of a record's number, counted from 0, and whether to commit after it; the last is that of the batch. */
        synchronized List<Object> of(List<SourceRecord> records) {
            List<Object> made = new ArrayList<>();
            for (int at = 0; at < records.size(); at++) {
                Boolean commits = after.remove(records.get(at));
                if (commits != null) made.add(List.of((long) at, commits));
            }
            if (afterBatch != null) made.add(List.of((long) records.size() - 1, afterBatch));
            afterBatch = null;
            return made;
        }
    }
}
