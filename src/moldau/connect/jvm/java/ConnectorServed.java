package moldau.connect;

import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.connect.connector.Connector;
import org.apache.kafka.connect.connector.ConnectorContext;
import org.apache.kafka.connect.sink.SinkConnectorContext;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceConnectorContext;
import org.apache.kafka.connect.storage.OffsetStorageReader;

/** A connector that runs beside its tasks. */
final class ConnectorServed extends Served {
    private final Connector connector;
    private boolean isStopped;

    ConnectorServed(Link link, ClassLoader loader, Connector connector) {
        super(link, loader);
        this.connector = connector;
    }

    @Override
    Object call(String op, List<?> words) {
        switch (op) {
            case "start": {
                Map<String, String> config = texts(words.get(1));
                connector.initialize(connector instanceof SourceConnector ? new OfSource() : new OfSink());
                connector.start(config);
                return null;
            }
            case "tasks": return connector.taskConfigs(((Number) words.get(1)).intValue());
            case "stop":
                stop();
                return null;
            default: throw unknown(op);
        }
    }

    @Override
    void note(String op, List<?> words) {
        if (op.equals("cancel")) stop();
    }

    private void stop() {
        synchronized (link) {
            if (isStopped) return;
            isStopped = true;
        }
        connector.stop();
    }

    private class Context implements ConnectorContext {
        private final PluginMetrics metrics = metrics();

        public void requestTaskReconfiguration() {
            link.tell("reconfigure");
        }

        public void raiseError(Exception error) {
            link.tell("raise", Link.described(error));
        }

        public PluginMetrics pluginMetrics() {
            return metrics;
        }
    }

    private final class OfSink extends Context implements SinkConnectorContext {}

    private final class OfSource extends Context implements SourceConnectorContext {
        public OffsetStorageReader offsetStorageReader() {
            return new Offsets(link);
        }
    }
}
