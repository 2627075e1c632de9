import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.streams.KafkaStreams;

/**
 * Kafka Streams itself, on a broker: runs a topology of the table until it is told to stop.
 *
 * <p>A line of JSON on stdin starts one: {"topology": name, "settings": {...}}; the next line, whatever it says, stops
 * it. Each is answered by a line: {"state": the state it is in}.
 */
public final class Live {
    private Live() {}

    public static void main(String[] arguments) throws Exception {
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            JsonNode asked = Judge.JSON.readTree(line);
            Properties settings = Judge.settings(asked.get("settings"), arguments[0]);
            try (KafkaStreams streams = new KafkaStreams(
                    Judge.TOPOLOGIES.get(asked.get("topology").asText()).make(settings), settings)) {
                streams.start();
                answer(answers, streams);
                requests.readLine();
                streams.close(Duration.ofSeconds(60));
                answer(answers, streams);
                streams.cleanUp();
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static void answer(PrintStream answers, KafkaStreams streams) throws Exception {
        answers.println(Judge.JSON.writeValueAsString(Map.of("state", streams.state().toString())));
        answers.flush();
    }
}
