package moldau;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.StreamingQueryListener;
import scala.collection.Iterator;

/**
 * Tells Python of batches that are done, if the query reads by a source of ours: the options of its sources, and the
 * progress as JSON. A listener in Python would be called when a query starts, by the query's own thread, while start()
 * waits; and Py4J keeps a socket and a thread of Python for every thread of Java that has ever called.
 */
public final class BatchListener extends StreamingQueryListener {
    private final transient SparkSession session;
    private final transient String source;
    private final transient BiConsumer<List<Map<String, String>>, String> done;
    private final Map<UUID, ArrayList<Map<String, String>>> options = new ConcurrentHashMap<>();

    public BatchListener(SparkSession session, String source, BiConsumer<List<Map<String, String>>, String> done) {
        this.session = session;
        this.source = source;
        this.done = done;
    }

    @Override
    public void onQueryStarted(QueryStartedEvent event) {
        StreamingQuery query = session.streams().get(event.id());
        if (!(query instanceof StreamingQueryWrapper)) return;
        ArrayList<Map<String, String>> found = new ArrayList<>();
        LogicalPlan plan = ((StreamingQueryWrapper) query).streamingQuery().analyzedPlan();
        for (Iterator<LogicalPlan> leaves = plan.collectLeaves().iterator(); leaves.hasNext(); ) {
            if (leaves.next() instanceof StreamingRelationV2 leaf && leaf.sourceName().equals(source)) {
                found.add(leaf.extraOptions().asCaseSensitiveMap());
            }
        }
        if (!found.isEmpty()) options.put(event.runId(), found);
    }

    @Override
    public void onQueryProgress(QueryProgressEvent event) {
        ArrayList<Map<String, String>> found = options.get(event.progress().runId());
        if (found != null) done.accept(found, event.progress().json());
    }

    @Override
    public void onQueryTerminated(QueryTerminatedEvent event) {
        options.remove(event.runId());
    }
}
