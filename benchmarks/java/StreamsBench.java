import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/** The workloads of benchmarks.streams in Java: `StreamsBench WORKLOAD ID SERVERS FOLDER THREADS CACHE`, until stdin ends. */
public final class StreamsBench {
    private StreamsBench() {}

    public static void main(String[] given) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        switch (given[0]) {
            case "words" -> builder.<String, String>stream("lines")
                .flatMapValues(line -> Arrays.asList(line.split(" ")))
                .groupBy((key, word) -> word)
                .count(Materialized.as("counts"))
                .toStream().to("out", Produced.valueSerde(Serdes.Long()));
            case "windows" -> builder.<String, String>stream("events")
                .groupByKey()
                .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), Duration.ofMinutes(1)))
                .count(Materialized.as("counts"))
                .toStream().to("out", Produced.with(
                    WindowedSerdes.timeWindowedSerdeFrom(String.class, 60_000L), Serdes.Long()));
            case "stream-table" -> builder.<String, String>stream("events")
                .join(builder.<String, String>table("table"), (event, row) -> event + row)
                .to("out");
            case "table-table" -> builder.<String, String>table("events")
                .join(builder.<String, String>table("table"), (event, row) -> event + row)
                .toStream().to("out");
            case "keyed" -> builder.<String, String>stream("events")
                .groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
                .reduce((one, other) -> other)
                .toStream().to("out");
            default -> throw new IllegalArgumentException(given[0]);
        }
        run(builder, given);
    }

    /** Runs a topology until stdin ends. */
    static void run(StreamsBuilder builder, String[] given) throws Exception {
        Properties settings = new Properties();
        settings.put("application.id", given[1]);
        settings.put("bootstrap.servers", given[2]);
        settings.put("state.dir", given[3]);
        settings.put("num.stream.threads", given[4]);
        settings.put("statestore.cache.max.bytes", given[5]);
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        settings.put("auto.offset.reset", "earliest");
        try (KafkaStreams streams = new KafkaStreams(builder.build(settings), settings)) {
            streams.start();
            while (System.in.read() >= 0) { }
        }
        Runtime.getRuntime().halt(0);
    }
}
