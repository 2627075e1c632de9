import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.runtime.ConnectMetrics;
import org.apache.kafka.connect.runtime.ConnectorConfig;
import org.apache.kafka.connect.runtime.TransformationStage;
import org.apache.kafka.connect.runtime.isolation.Plugins;
import org.apache.kafka.connect.runtime.standalone.StandaloneConfig;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;
import org.apache.kafka.connect.util.ConnectorTaskId;

/** Connect as the judge: a request a line, and a line with what Connect makes of each of its items. */
public final class Judge {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static Plugins plugins;
    private static ConnectMetrics metrics;
    private static int chains;

    interface Step { ObjectNode apply(JsonNode item) throws Exception; }

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine())
            out.println(MAPPER.writeValueAsString(answer(MAPPER.readTree(line))));
    }

    static JsonNode answer(JsonNode request) {
        ArrayNode answers = MAPPER.createArrayNode();
        Step step;
        try {
            step = step(request);
        } catch (Throwable error) {
            return MAPPER.createObjectNode().put("refused", error.getClass().getName()).put("message", error.getMessage());
        }
        for (JsonNode item : request.get("items")) {
            try {
                answers.add(step.apply(item));
            } catch (Throwable error) {
                answers.add(MAPPER.createObjectNode().put("error", error.getClass().getName()).put("message", "" + error));
            }
        }
        return answers;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static Step step(JsonNode request) throws Exception {
        Map<String, String> config = new LinkedHashMap<>();
        request.get("config").fields().forEachRemaining(e -> config.put(e.getKey(), e.getValue().asText()));
        String name = request.path("class").asText();
        switch (request.get("op").asText()) {
            case "transform": {
                Transformation transform = (Transformation) Class.forName(name).getDeclaredConstructor().newInstance();
                transform.configure(config);
                return item -> made((ConnectRecord) transform.apply(record(item)));
            }
            case "predicate": {
                Predicate predicate = (Predicate) Class.forName(name).getDeclaredConstructor().newInstance();
                predicate.configure(config);
                return item -> MAPPER.createObjectNode().put("is", predicate.test(record(item)));
            }
            case "chain": {
                List<TransformationStage> stages = stages(config);
                return item -> {
                    ConnectRecord record = record(item);
                    for (TransformationStage stage : stages) {
                        record = stage.apply(record);
                        if (record == null) break;
                    }
                    return made(record);
                };
            }
            case "write": {
                Object converter = converter(name, config);
                return item -> {
                    Schema schema = Coding.schema(item.get("schema"));
                    Object value = Coding.value(item.get("value"));
                    byte[] bytes = converter instanceof Converter
                        ? ((Converter) converter).fromConnectData("t", schema, value)
                        : ((HeaderConverter) converter).fromConnectHeader("t", "h", schema, value);
                    return MAPPER.createObjectNode().put("bytes", bytes == null ? null : Base64.getEncoder().encodeToString(bytes));
                };
            }
            default: {
                Object converter = converter(name, config);
                return item -> {
                    byte[] bytes = item.isNull() ? null : Base64.getDecoder().decode(item.asText());
                    SchemaAndValue found = converter instanceof Converter
                        ? ((Converter) converter).toConnectData("t", bytes)
                        : ((HeaderConverter) converter).toConnectHeader("t", "h", bytes);
                    if (found == null) found = SchemaAndValue.NULL;
                    ObjectNode node = MAPPER.createObjectNode();
                    node.set("schema", Coding.coded(found.schema()));
                    node.set("value", Coding.coded(found.value()));
                    return node;
                };
            }
        }
    }

    static Object converter(String name, Map<String, String> config) throws Exception {
        Object converter = Class.forName(name).getDeclaredConstructor().newInstance();
        if (converter instanceof Converter) ((Converter) converter).configure(config, false);
        else ((HeaderConverter) converter).configure(config);
        return converter;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static List<TransformationStage> stages(Map<String, String> config) {
        if (plugins == null) {
            Map<String, String> worker = new HashMap<>();
            worker.put("bootstrap.servers", "127.0.0.1:1");
            worker.put("key.converter", "org.apache.kafka.connect.storage.StringConverter");
            worker.put("value.converter", "org.apache.kafka.connect.storage.StringConverter");
            worker.put("offset.storage.file.filename", "unused");
            worker.put("plugin.discovery", "service_load");
            plugins = new Plugins(worker);
            metrics = new ConnectMetrics("judge", new StandaloneConfig(worker), Time.SYSTEM, "judge");
        }
        Map<String, String> full = new LinkedHashMap<>(config);
        full.put("name", "c");
        full.put("connector.class", "none");
        ConnectorTaskId task = new ConnectorTaskId("c" + chains++, 0);
        return (List) new ConnectorConfig(plugins, full).transformationStages(plugins, task, metrics);
    }

    static ConnectRecord<?> record(JsonNode node) {
        ConnectHeaders headers = new ConnectHeaders();
        for (JsonNode header : node.get("headers"))
            headers.add(header.get(0).asText(), new SchemaAndValue(Coding.schema(header.get(1)), Coding.value(header.get(2))));
        String topic = node.get("topic").asText();
        Integer partition = node.get("partition").isNull() ? null : node.get("partition").asInt();
        Schema keySchema = Coding.schema(node.get("keySchema"));
        Schema valueSchema = Coding.schema(node.get("valueSchema"));
        Object key = Coding.value(node.get("key"));
        Object value = Coding.value(node.get("value"));
        Long timestamp = node.get("timestamp").isNull() ? null : Long.parseLong(node.get("timestamp").asText());
        if (node.get("offset").isNull())
            return new SourceRecord(Map.of(), Map.of(), topic, partition, keySchema, key, valueSchema, value, timestamp, headers);
        long offset = Long.parseLong(node.get("offset").asText());
        return new SinkRecord(topic, partition == null ? 0 : partition, keySchema, key, valueSchema, value, offset, timestamp,
            TimestampType.CREATE_TIME, headers);
    }

    static ObjectNode made(ConnectRecord<?> record) {
        ObjectNode node = MAPPER.createObjectNode();
        if (record == null) return node.put("dropped", true);
        node.put("topic", record.topic());
        if (record.kafkaPartition() == null) node.putNull("partition");
        else node.put("partition", record.kafkaPartition());
        node.set("keySchema", Coding.coded(record.keySchema()));
        node.set("key", Coding.coded(record.key()));
        node.set("valueSchema", Coding.coded(record.valueSchema()));
        node.set("value", Coding.coded(record.value()));
        node.put("timestamp", record.timestamp() == null ? null : record.timestamp().toString());
        node.put("offset", record instanceof SinkRecord ? Long.toString(((SinkRecord) record).kafkaOffset()) : null);
        ArrayNode headers = node.putArray("headers");
        for (Header header : record.headers())
            headers.addArray().add(header.key()).add(Coding.coded(header.schema())).add(Coding.coded(header.value()));
        return node;
    }
}
