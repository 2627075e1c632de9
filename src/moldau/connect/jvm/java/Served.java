package moldau.connect;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.MetricValueProvider;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.connect.errors.ConnectException;

/** What a connection is for. `call` answers; `note` does not, and may run beside a call. */
abstract class Served {
    final Link link;
    final ClassLoader loader;

    Served(Link link, ClassLoader loader) {
        this.link = link;
        this.loader = loader;
        Thread.currentThread().setContextClassLoader(loader);
    }

    abstract Object call(String op, List<?> words) throws Exception;

    void note(String op, List<?> words) throws Exception {}

    static ConnectException unknown(String op) {
        return new ConnectException("The host does not know the call " + op);
    }

    @SuppressWarnings("unchecked")
    static Map<String, String> texts(Object given) {
        return new LinkedHashMap<>((Map<String, String>) given);
    }

    static <T> T await(Future<T> future) {
        try {
            return future.get();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new ConnectException("Interrupted while the worker was asked", error);
        } catch (ExecutionException error) {
            throw new ConnectException(error.getCause().getMessage(), error.getCause());
        }
    }

    /** Metrics that a plugin may keep (KIP-877); they stay inside the JVM. */
    static PluginMetrics metrics() {
        Metrics kept = new Metrics();
        return new PluginMetrics() {
            public MetricName metricName(String name, String description, LinkedHashMap<String, String> tags) {
                return kept.metricName(name, "plugins", description, tags);
            }

            public void addMetric(MetricName name, MetricValueProvider<?> provider) {
                kept.addMetric(name, provider);
            }

            public void removeMetric(MetricName name) {
                kept.removeMetric(name);
            }

            public Sensor addSensor(String name) {
                return kept.sensor(name);
            }

            public void removeSensor(String name) {
                kept.removeSensor(name);
            }
        };
    }
}
