import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/** The workloads of benchmarks.sql_spark in Java: `JsonBench WORKLOAD ID SERVERS FOLDER THREADS CACHE`, until stdin ends. */
public final class JsonBench {
    public record Pay(int amount, String shop, String currency, String item) {}

    public record Card(String town, String owner) {}

    public record Large(@JsonProperty("SHOP") String shop, @JsonProperty("TWICE") int twice) {}

    public record Spent(@JsonProperty("N") long n, @JsonProperty("TOTAL") int total) {}

    public record Count(@JsonProperty("N") long n) {}

    public record Priced(
        @JsonProperty("AMOUNT") int amount, @JsonProperty("SHOP") String shop, @JsonProperty("TOWN") String town) {}

    private static final ObjectMapper JSON =
        new ObjectMapper().disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);

    private JsonBench() {}

    static <T> Serde<T> serde(Class<T> type) {
        ObjectReader reader = JSON.readerFor(type);
        ObjectWriter writer = JSON.writerFor(type);
        return Serdes.serdeFrom(
            (topic, value) -> {
                try {
                    return value == null ? null : writer.writeValueAsBytes(value);
                } catch (IOException error) {
                    throw new UncheckedIOException(error);
                }
            },
            (topic, data) -> {
                try {
                    return data == null ? null : reader.readValue(data);
                } catch (IOException error) {
                    throw new UncheckedIOException(error);
                }
            });
    }

    public static void main(String[] given) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        Serde<String> text = Serdes.String();
        Serde<Pay> pay = serde(Pay.class);
        KStream<String, Pay> pays = builder.stream("pays", Consumed.with(text, pay));
        switch (given[0]) {
            case "filter" -> pays
                .filter((card, one) -> one.amount() > 50)
                .mapValues(one -> new Large(one.shop().toUpperCase(), one.amount() * 2))
                .to("out", Produced.with(text, serde(Large.class)));
            case "group" -> pays
                .groupByKey(Grouped.with(text, pay))
                .aggregate(() -> new Spent(0, 0),
                    (card, one, spent) -> new Spent(spent.n() + 1, spent.total() + one.amount()),
                    Materialized.with(text, serde(Spent.class)))
                .toStream().to("out", Produced.with(text, serde(Spent.class)));
            case "window" -> pays
                .groupByKey(Grouped.with(text, pay))
                .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), Duration.ofMinutes(1)))
                .count(Materialized.as("counts"))
                .toStream().mapValues(Count::new)
                .to("out", Produced.with(
                    WindowedSerdes.timeWindowedSerdeFrom(String.class, 60_000L), serde(Count.class)));
            case "join" -> {
                Serde<Card> card = serde(Card.class);
                pays.join(builder.table("cards", Consumed.with(text, card), Materialized.with(text, card)),
                        (one, with) -> new Priced(one.amount(), one.shop(), with.town()),
                        Joined.with(text, pay, card))
                    .to("out", Produced.with(text, serde(Priced.class)));
            }
            default -> throw new IllegalArgumentException(given[0]);
        }
        StreamsBench.run(builder, given);
    }
}
