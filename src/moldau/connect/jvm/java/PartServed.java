package moldau.connect;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** A transform, a predicate or a converter of a pipeline. */
final class PartServed extends Served {
    private final Object part;
    private final boolean isHeader;

    /** `role` is transform, predicate, key, value or header; a class may be a converter of both kinds. */
    PartServed(Link link, ClassLoader loader, Object part, String role, Object given) {
        super(link, loader);
        this.part = part;
        this.isHeader = role.equals("header") && part instanceof HeaderConverter;
        Map<String, Object> config = new LinkedHashMap<>(texts(given));
        if (part instanceof Transformation) ((Transformation<?>) part).configure(config);
        else if (part instanceof Predicate) ((Predicate<?>) part).configure(config);
        else if (isHeader) ((HeaderConverter) part).configure(config);
        else ((Converter) part).configure(config, role.equals("key"));
    }

    @Override
    @SuppressWarnings({"unchecked", "rawtypes"})
    Object call(String op, List<?> words) {
        switch (op) {
            case "apply": return ((Transformation) part).apply((ConnectRecord) words.get(1));
            case "test": return ((Predicate) part).test((ConnectRecord) words.get(1));
            case "write": return write((String) words.get(1), (Schema) words.get(2), words.get(3));
            case "read": {
                SchemaAndValue made = read((String) words.get(1), (byte[]) words.get(2));
                return Arrays.asList(made.schema(), made.value());
            }
            default: throw unknown(op);
        }
    }

    private byte[] write(String topic, Schema schema, Object value) {
        return isHeader ? ((HeaderConverter) part).fromConnectHeader(topic, "", schema, value)
            : ((Converter) part).fromConnectData(topic, new RecordHeaders(), schema, value);
    }

    private SchemaAndValue read(String topic, byte[] data) {
        return isHeader ? ((HeaderConverter) part).toConnectHeader(topic, "", data)
            : ((Converter) part).toConnectData(topic, new RecordHeaders(), data);
    }

    @Override
    void note(String op, List<?> words) throws Exception {
        if (op.equals("cancel") && part instanceof AutoCloseable) ((AutoCloseable) part).close();
    }
}
