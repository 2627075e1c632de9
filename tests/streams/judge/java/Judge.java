import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.test.TestRecord;

/**
 * Kafka Streams as a judge: runs named topologies on given input, one case after the other in one JVM.
 *
 * <p>A line of JSON on stdin asks for a case: {"topology": name, "settings": {...}, "steps": [...]}, a step being
 * {"topic", "key", "value", "timestamp", "headers": [[name, value], ...]} or {"advance": ms} for wall-clock time.
 * The answer is a line on stdout: {"describe": text, "steps": [what each step made, ...], "stores": {name: rows},
 * "seen": [...]}, with "error" where it failed; a made record is [topic, key, value, timestamp, headers].
 * Bytes are in Base64. A line without "topology" is answered by the names that there are.
 */
public final class Judge {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Map<String, Topologies.Maker> TOPOLOGIES = Topologies.all();

    private Judge() {}

    public static void main(String[] arguments) throws Exception {
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err); // what a topology prints is no answer
        String folder = arguments[0];
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            JsonNode asked = JSON.readTree(line);
            Object answer = asked.has("topology") ? judged(asked, folder) : TOPOLOGIES.keySet();
            answers.println(JSON.writeValueAsString(answer));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    static Map<String, Object> judged(JsonNode asked, String folder) {
        Map<String, Object> answer = new LinkedHashMap<>();
        List<Object> steps = new ArrayList<>();
        Functions.SEEN.clear();
        answer.put("steps", steps);
        try {
            Properties settings = settings(asked.get("settings"), folder);
            Topology topology = TOPOLOGIES.get(asked.get("topology").asText()).make(settings);
            answer.put("describe", topology.describe().toString());
            try (TopologyTestDriver driver = new TopologyTestDriver(topology, settings, Instant.ofEpochMilli(0))) {
                Outputs outputs = new Outputs(driver);
                for (JsonNode step : asked.get("steps")) {
                    play(driver, step);
                    steps.add(outputs.fresh());
                }
                answer.put("stores", Contents.of(driver, asked.get("steps")));
            }
        } catch (Exception failure) {
            answer.put("error", failure + causes(failure));
        }
        answer.put("seen", Functions.SEEN);
        return answer;
    }

    static String causes(Throwable failure) {
        StringBuilder text = new StringBuilder();
        for (Throwable cause = failure.getCause(); cause != null; cause = cause.getCause()) {
            text.append(" / ").append(cause);
        }
        return text.toString();
    }

    /** Every change is emitted at once: no cache, and no wall-clock throttle of outer joins and window closes. */
    static Properties settings(JsonNode given, String folder) {
        Properties settings = new Properties();
        settings.put("application.id", "judge");
        settings.put("bootstrap.servers", "127.0.0.1:1");
        settings.put("state.dir", folder);
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        settings.put("statestore.cache.max.bytes", "0");
        settings.put("__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", "0");
        settings.put("__emit.interval.ms.kstreams.windowed.aggregation__", "0");
        given.properties().forEach(row -> settings.put(row.getKey(), row.getValue().asText()));
        return settings;
    }

    static void play(TopologyTestDriver driver, JsonNode step) throws Exception {
        if (step.has("advance")) {
            driver.advanceWallClockTime(Duration.ofMillis(step.get("advance").asLong()));
            return;
        }
        Headers headers = new RecordHeaders();
        for (JsonNode header : step.get("headers")) {
            headers.add(header.get(0).asText(), bytes(header.get(1)));
        }
        TestInputTopic<byte[], byte[]> topic = driver.createInputTopic(
            step.get("topic").asText(), new ByteArraySerializer(), new ByteArraySerializer());
        long timestamp = step.get("timestamp").asLong();
        topic.pipeInput(new TestRecord<>(bytes(step.get("key")), bytes(step.get("value")), headers, timestamp));
    }

    static byte[] bytes(JsonNode node) throws Exception {
        return node.isNull() ? null : node.binaryValue();
    }

    /** What the topics got since it was last asked: sinks, repartition topics and changelogs, in the order of names. */
    static final class Outputs {
        final TopologyTestDriver driver;
        final Map<String, TestOutputTopic<byte[], byte[]>> topics = new TreeMap<>();

        Outputs(TopologyTestDriver driver) {
            this.driver = driver;
        }

        List<Object> fresh() {
            for (String name : new TreeSet<>(driver.producedTopicNames())) {
                topics.computeIfAbsent(name, topic -> driver.createOutputTopic(
                    topic, new ByteArrayDeserializer(), new ByteArrayDeserializer()));
            }
            List<Object> made = new ArrayList<>();
            topics.forEach((name, topic) -> {
                while (!topic.isEmpty()) {
                    made.add(row(name, topic.readRecord()));
                }
            });
            return made;
        }

        static List<Object> row(String topic, TestRecord<byte[], byte[]> record) {
            List<Object> headers = new ArrayList<>();
            for (Header header : record.headers()) {
                headers.add(Arrays.asList(header.key(), header.value()));
            }
            return Arrays.asList(topic, record.key(), record.value(), record.timestamp(), headers);
        }
    }
}
