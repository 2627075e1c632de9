// Cleans partitions with the cleaner of Apache Kafka. A line of input: folder, first dirty offset, time, bytes of a
// segment, end offset. Output: "end offset upper", then for each segment its base offset, its bytes in hex and its
// aborted transactions, then "done".
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Files;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ScheduledFuture;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.*;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

public class Clean {
    static long now;

    static final Time CLOCK = new Time() {
        public long milliseconds() { return now; }
        public long nanoseconds() { return now * 1_000_000; }
        public void sleep(long ms) { }
        public void waitObject(Object object, Supplier<Boolean> condition, long deadline) { }
    };

    static final Scheduler NEVER = new Scheduler() {
        public void startup() { }
        public void shutdown() { }
        public void resizeThreadPool(int size) { }
        public ScheduledFuture<?> schedule(String name, Runnable task, long delay, long period) { return null; }
    };

    static UnifiedLog open(String folder, String segmentBytes, long end, BrokerTopicStats stats) throws Exception {
        LogConfig config = new LogConfig(Map.of(
            "cleanup.policy", "compact", "internal.segment.bytes", segmentBytes,
            "index.interval.bytes", "200", "delete.retention.ms", "86400000"));
        UnifiedLog log = UnifiedLog.create(new File(folder), config, 0, end, NEVER, stats, CLOCK, Integer.MAX_VALUE,
            new ProducerStateManagerConfig(Integer.MAX_VALUE, false), Integer.MAX_VALUE, new LogDirFailureChannel(1),
            true, Optional.empty());
        log.updateHighWatermark(log.logEndOffset());
        return log;
    }

    static void clean(String[] words, PrintStream out, BrokerTopicStats stats) throws Exception {
        long dirty = Long.parseLong(words[1]);
        now = Long.parseLong(words[2]);
        UnifiedLog log = open(words[0], words[3], Long.parseLong(words[4]), stats);
        Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(1 << 20), 1 << 20, 1 << 20, 0.9,
            new Throttler(1e12, 100, "read", "bytes", CLOCK), CLOCK, partition -> { });
        long limit = Math.min(log.lastStableOffset(), log.activeSegment().baseOffset());
        LogToClean chosen = new LogToClean(log, dirty, Math.max(dirty, limit), false);
        out.println(cleaner.clean(chosen).getKey() + " " + chosen.firstUncleanableOffset());
        for (LogSegment segment : log.logSegments()) {
            String bytes = HexFormat.of().formatHex(Files.readAllBytes(segment.log().file().toPath()), 0, segment.size());
            String aborted = segment.txnIndex().allAbortedTxns().stream()
                .map(txn -> txn.producerId() + "," + txn.firstOffset() + "," + txn.lastOffset())
                .collect(Collectors.joining(";"));
            out.println(segment.baseOffset() + " [" + bytes + "] [" + aborted + "]");
        }
        for (LogSegment segment : log.logSegments()) segment.close();
    }

    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        System.setOut(System.err);
        BrokerTopicStats stats = new BrokerTopicStats();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            clean(line.split(" "), out, stats);
            out.println("done");
            out.flush();
        }
    }
}
