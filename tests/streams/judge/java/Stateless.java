import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;

/** Functions of one record, branches, merges, repartitioning, sources and sinks. */
final class Stateless {
    private Stateless() {}

    /** The length of the value in seconds. Null has none: a record with a time below zero is skipped. */
    static long lengthTime(ConsumerRecord<Object, Object> record, long partitionTime) {
        return record.value() == null ? -1 : record.value().toString().length() * 1000L;
    }

    /** The record's own time, but that of the partition where the value is empty. */
    static long partitionTimeForEmpty(ConsumerRecord<Object, Object> record, long partitionTime) {
        return "".equals(record.value()) ? partitionTime : record.timestamp();
    }

    static List<String> letters(String value) {
        List<String> letters = new ArrayList<>();
        for (int index = 0; value != null && index < value.length(); index++) {
            letters.add(value.substring(index, index + 1));
        }
        return letters;
    }

    static List<KeyValue<String, String>> pairs(String key, String value) {
        List<KeyValue<String, String>> pairs = new ArrayList<>();
        letters(value).forEach(letter -> pairs.add(KeyValue.pair(letter, Functions.text(key))));
        return pairs;
    }

    static void addTo(Topologies.Table all) {
        all.dsl("filter", b -> Functions.in(b).filter((k, v) -> Functions.even(v)).to("out"));
        all.dsl("filter_not", b -> Functions.in(b).filterNot((k, v) -> Functions.even(v), Named.as("odd")).to("out"));
        all.dsl("select_key", b -> Functions.in(b).selectKey((k, v) -> Functions.first(v)).to("out"));
        all.dsl("map", b -> Functions.in(b)
            .map((k, v) -> KeyValue.pair(Functions.first(v), Functions.both(k, v))).to("out"));
        all.dsl("map_values", b -> Functions.in(b).mapValues(v -> Functions.text(v) + "!").to("out"));
        all.dsl("map_values_with_key", b -> Functions.in(b).mapValues((k, v) -> Functions.both(k, v)).to("out"));
        all.dsl("flat_map", b -> Functions.in(b).flatMap(Stateless::pairs).to("out"));
        all.dsl("flat_map_values", b -> Functions.in(b).flatMapValues(Stateless::letters).to("out"));
        all.dsl("flat_map_values_with_key", b -> Functions.in(b)
            .flatMapValues((k, v) -> List.of(Functions.text(k), Functions.text(v))).to("out"));
        all.dsl("peek", b -> Functions.in(b).peek(Functions::see).to("out"));
        all.dsl("foreach", b -> Functions.in(b).foreach(Functions::see, Named.as("look")));
        all.dsl("merge", b -> Functions.left(b).merge(Functions.right(b).mapValues(v -> Functions.text(v) + "r")).to("out"));
        all.dsl("merge_named", b -> Functions.left(b).merge(Functions.right(b), Named.as("meet"))
            .merge(Functions.in(b)).filter((k, v) -> v != null).to("out"));
        all.dsl("two_sinks", b -> {
            KStream<String, String> source = Functions.in(b);
            source.mapValues(v -> Functions.text(v) + "1").to("one");
            source.mapValues(v -> Functions.text(v) + "2").to("two", Produced.as("sink-two"));
        });
        all.dsl("many_topics", b -> b.<String, String>stream(List.of("left", "right"))
            .mapValues(v -> Functions.text(v) + "!").to("out"));
        all.dsl("pattern", b -> b.<String, String>stream(Pattern.compile("left|right")).to("out"));
        all.dsl("to_extractor", b -> Functions.in(b)
            .filter((k, v) -> v != null)
            .to((key, value, context) -> Functions.even(value) ? "even" : "odd"));
        branches(all);
        repartitions(all);
        times(all);
    }

    private static void branches(Topologies.Table all) {
        all.dsl("split", b -> {
            Map<String, KStream<String, String>> split = Functions.in(b).split(Named.as("by-"))
                .branch((k, v) -> Functions.even(v), Branched.as("even"))
                .branch((k, v) -> v != null && v.startsWith("a"))
                .defaultBranch(Branched.as("rest"));
            split.get("by-even").to("even");
            split.get("by-2").to("second");
            split.get("by-rest").to("rest");
        });
        all.dsl("split_no_default", b -> Functions.in(b).split()
            .branch((k, v) -> "a".equals(k), Branched.withConsumer(stream -> stream.to("out")))
            .noDefaultBranch());
        all.dsl("split_functions", b -> {
            Map<String, KStream<String, String>> split = Functions.in(b).split(Named.as("way-"))
                .branch((k, v) -> Functions.even(v),
                    Branched.withFunction(stream -> stream.mapValues(v -> v + "e"), "changed"))
                .branch((k, v) -> "b".equals(k), Branched.withConsumer(stream -> stream.to("taken"), "gone"))
                .defaultBranch();
            split.get("way-changed").merge(split.get("way-0")).to("out");
        });
    }

    private static void repartitions(Topologies.Table all) {
        all.dsl("repartition", b -> Functions.in(b).selectKey((k, v) -> Functions.first(v)).repartition().to("out"));
        all.dsl("repartition_named", b -> Functions.in(b)
            .repartition(Repartitioned.<String, String>as("again").withNumberOfPartitions(1))
            .mapValues(v -> Functions.text(v) + "!").to("out"));
        all.dsl("repartition_count", b -> Functions.in(b).selectKey((k, v) -> Functions.first(v))
            .repartition(Repartitioned.as("once")).groupByKey().count().toStream().to("out"));
        all.dsl("to_table", b -> Functions.in(b).toTable().toStream().to("out"));
        all.dsl("to_table_stored", b -> Functions.in(b).toTable(Named.as("rows"), Functions.texts("kept"))
            .toStream().to("out"));
        all.dsl("to_table_rekeyed", b -> Functions.in(b).selectKey((k, v) -> Functions.first(v)).toTable()
            .mapValues(v -> v + "!").toStream().to("out"));
    }

    private static void times(Topologies.Table all) {
        all.dsl("time_extracted", b -> b.stream("in",
                Consumed.with(Functions.STRING, Functions.STRING).withTimestampExtractor(Stateless::lengthTime))
            .groupByKey().count().toStream().to("out"));
        all.dsl("time_of_partition", b -> b.stream("in",
                Consumed.with(Functions.STRING, Functions.STRING).withTimestampExtractor(Stateless::partitionTimeForEmpty))
            .to("out"));
    }
}
