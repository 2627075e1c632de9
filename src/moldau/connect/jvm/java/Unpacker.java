package moldau.connect;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;

/** Reads what codec.py has written into a frame. */
final class Unpacker {
    private static final Schema.Type[] TYPES = Schema.Type.values();
    private final List<Schema> schemas = new ArrayList<>();
    private final Layout.Known layouts = new Layout.Known();
    private String topic; // of the last record, and so on
    private Integer partition;
    private Schema keySchema, valueSchema;

    void forget() {
        schemas.clear();
    }

    Object read(ByteBuffer in) {
        char tag = (char) in.get();
        switch (tag) {
            case 'N': return null;
            case 'T': return true;
            case 'F': return false;
            case 'b': return in.get();
            case 'h': return in.getShort();
            case 'i': return in.getInt();
            case 'l': return in.getLong();
            case 'f': return in.getFloat();
            case 'd': return in.getDouble();
            case 's': return new String(blob(in), StandardCharsets.UTF_8);
            case 'y': return blob(in);
            case 'B': return new BigInteger(blob(in));
            case 'I': return new java.util.Date(in.getLong());
            case 'D': {
                int scale = in.getInt();
                in.get();
                return new BigDecimal(new BigInteger(blob(in)), scale);
            }
            case 'a': return list(in);
            case 'm': return map(in);
            case 'r': return struct(in);
            case 'R': return record(in);
            case 'x': return schemas.get(in.getInt());
            case 'X': return schema(in);
            default: throw new IllegalStateException("A frame has the unknown tag " + tag);
        }
    }

    private static byte[] blob(ByteBuffer in) {
        return bytes(in, in.getInt());
    }

    private static byte[] bytes(ByteBuffer in, int size) {
        byte[] made = new byte[size];
        in.get(made);
        return made;
    }

    private List<Object> list(ByteBuffer in) {
        int size = in.getInt();
        List<Object> made = new ArrayList<>(size);
        for (int at = 0; at < size; at++) made.add(read(in));
        return made;
    }

    private Map<Object, Object> map(ByteBuffer in) {
        Map<Object, Object> made = new LinkedHashMap<>();
        for (int left = in.getInt(); left > 0; left--) {
            Object key = read(in);
            made.put(key, read(in));
        }
        return made;
    }

    private Struct struct(ByteBuffer in) {
        Schema schema = (Schema) read(in);
        Layout layout = layouts.of(schema);
        byte[] mask = new byte[layout.maskSize()];
        in.get(mask);
        int count = layout.fields.length;
        Object[] values = new Object[count];
        int[] sizes = new int[count];
        for (int at = 0; at < count; at++)
            if ((mask[at >> 3] >> (at & 7) & 1) != 0) {
                values[at] = fixed(layout.kinds[at], in);
                if (layout.kinds[at] == Layout.NUMERIC) sizes[at] = in.getInt();
            }
        Struct made = new Struct(schema);
        for (int at = 0; at < count; at++) {
            Object value = values[at];
            if (value == null) continue;
            switch (layout.kinds[at]) {
                case Layout.TEXT: value = new String(bytes(in, (Integer) value), StandardCharsets.UTF_8); break;
                case Layout.BYTES: value = bytes(in, (Integer) value); break;
                case Layout.NUMERIC: value = new BigDecimal(new BigInteger(bytes(in, sizes[at])), (Integer) value); break;
                case Layout.OTHER: value = read(in); break;
                default: break;
            }
            made.put(layout.fields[at], value);
        }
        return made;
    }

    /** Reads what of a field has a fixed size: a value, the length of one, the scale of a decimal, or nothing. */
    private static Object fixed(char kind, ByteBuffer in) {
        switch (kind) {
            case 'b': return in.get();
            case 'h': return in.getShort();
            case 'l': return in.getLong();
            case 'f': return in.getFloat();
            case 'd': return in.getDouble();
            case 'T': return in.get() != 0;
            case Layout.INSTANT: return new java.util.Date(in.getLong());
            case Layout.OTHER: return 0;
            default: return in.getInt();
        }
    }

    private Schema schema(ByteBuffer in) {
        Schema.Type type = TYPES[in.get()];
        boolean optional = in.get() != 0;
        String name = (String) read(in);
        Integer version = (Integer) read(in);
        String doc = (String) read(in);
        Map<?, ?> parameters = (Map<?, ?>) read(in);
        Object byDefault = read(in);
        Schema key = (Schema) read(in);
        Schema value = (Schema) read(in);
        SchemaBuilder made = type == Schema.Type.ARRAY ? SchemaBuilder.array(value)
            : type == Schema.Type.MAP ? SchemaBuilder.map(key, value) : new SchemaBuilder(type);
        if (type == Schema.Type.STRUCT)
            for (int left = in.getInt(); left > 0; left--) {
                String field = (String) read(in);
                made.field(field, (Schema) read(in));
            }
        if (optional) made.optional();
        if (name != null) made.name(name);
        if (version != null) made.version(version);
        if (doc != null) made.doc(doc);
        if (parameters != null) parameters.forEach((each, text) -> made.parameter((String) each, (String) text));
        if (byDefault != null) made.defaultValue(byDefault);
        Schema built = made.build();
        schemas.add(built);
        return built;
    }

    @SuppressWarnings("unchecked")
    private Object record(ByteBuffer in) {
        if (in.get() == 'H') {
            topic = (String) read(in);
            partition = (Integer) read(in);
            keySchema = (Schema) read(in);
            valueSchema = (Schema) read(in);
        }
        Object key = read(in);
        Object value = read(in);
        Long timestamp = (Long) read(in);
        ConnectHeaders headers = new ConnectHeaders();
        for (int left = in.getInt(); left > 0; left--) {
            String name = (String) read(in);
            Schema schema = (Schema) read(in);
            headers.add(name, read(in), schema);
        }
        if (in.get() == 'S') {
            Map<String, ?> of = (Map<String, ?>) read(in);
            in.getInt();
            Map<String, ?> offset = (Map<String, ?>) read(in);
            return new SourceRecord(of, offset, topic, partition, keySchema, key, valueSchema, value, timestamp, headers);
        }
        long offset = in.getLong();
        TimestampType kind = type(in.get());
        String originalTopic = (String) read(in);
        Integer originalPartition = (Integer) read(in);
        long originalOffset = in.getLong();
        return new SinkRecord(topic, partition, keySchema, key, valueSchema, value, offset, timestamp, kind, headers,
            originalTopic, originalPartition, originalOffset);
    }

    private static TimestampType type(int id) {
        for (TimestampType one : TimestampType.values()) if (one.id == id) return one;
        throw new IllegalStateException("There is no type of timestamps " + id);
    }
}
