import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.FileReader;
import java.io.PrintStream;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.StringJoiner;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;
import org.apache.kafka.connect.source.SourceTaskContext;
import org.apache.kafka.connect.storage.OffsetStorageReader;

/** Runs a source task without stored offsets; prints each record as a line of JSON, until a line comes in. */
public final class Host {
    private static final JsonConverter KEYS = new JsonConverter();
    private static final JsonConverter VALUES = new JsonConverter();

    public static void main(String[] words) throws Exception {
        Map<String, String> config = new HashMap<>();
        Properties read = new Properties();
        try (Reader file = new FileReader(words[1])) {
            read.load(file);
        }
        read.forEach((name, value) -> config.put((String) name, (String) value));
        KEYS.configure(Map.of(), true);
        VALUES.configure(Map.of(), false);
        SourceTask task = (SourceTask) Class.forName(words[0]).getDeclaredConstructor().newInstance();
        task.initialize(new Context(config));
        task.start(config);
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        while (System.in.available() == 0) {
            List<SourceRecord> found = task.poll();
            if (found == null) {
                continue;
            }
            for (SourceRecord record : found) {
                out.println(line(record));
                task.commitRecord(record, null);
            }
            out.flush();
            task.commit();
        }
        task.stop();
        System.exit(0);
    }

    private static String line(SourceRecord record) {
        StringJoiner headers = new StringJoiner(",", "{", "}");
        for (Header one : record.headers()) {
            headers.add("\"" + one.key() + "\":" + text(VALUES.fromConnectData("", one.schema(), one.value())));
        }
        String key = text(KEYS.fromConnectData(record.topic(), record.keySchema(), record.key()));
        String value = text(VALUES.fromConnectData(record.topic(), record.valueSchema(), record.value()));
        return "{\"topic\":\"" + record.topic() + "\",\"key\":" + key + ",\"value\":" + value + ",\"headers\":" + headers + "}";
    }

    private static String text(byte[] data) {
        return data == null ? "null" : new String(data, StandardCharsets.UTF_8);
    }

    private record Context(Map<String, String> configs) implements SourceTaskContext {
        @Override
        public PluginMetrics pluginMetrics() {
            return null;
        }

        @Override
        public OffsetStorageReader offsetStorageReader() {
            return new OffsetStorageReader() {
                @Override
                public <T> Map<String, Object> offset(Map<String, T> partition) {
                    return null;
                }

                @Override
                public <T> Map<Map<String, T>, Map<String, Object>> offsets(Collection<Map<String, T>> partitions) {
                    return new HashMap<>();
                }
            };
        }
    }
}
