package moldau.connect;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;

/**
 * Writes values, schemas and records into frames; codec.py reads them. A value begins with a tag. A schema is written
 * once for each connection and then named by its number, in the order in which schemas were completed.
 */
final class Packer {
    private static final int MOST_SCHEMAS = 4096;
    private final Map<Schema, Integer> equal = new HashMap<>();
    private final Map<Schema, Integer> same = new IdentityHashMap<>();
    private final Buffer bytes = new Buffer();
    private final DataOutputStream out = new DataOutputStream(bytes);
    private final Layout.Known layouts = new Layout.Known();
    private Object partition;
    private ConnectRecord<?> last;
    private boolean isBroken;

    /** Returns a frame: its length, its kind, and the value. A kind in lower case has the reader forget all schemas. */
    byte[] frame(char kind, Object value) {
        boolean forgets = isBroken || same.size() > MOST_SCHEMAS;
        if (forgets) {
            equal.clear();
            same.clear();
        }
        isBroken = true; // until all of it is written: what was begun never reaches the reader
        partition = null;
        last = null;
        bytes.reset();
        try {
            out.writeInt(0);
            out.writeByte(forgets ? Character.toLowerCase(kind) : kind);
            write(value);
        } catch (IOException error) {
            throw new IllegalStateException(error); // an array of bytes raises none
        }
        isBroken = false;
        bytes.putInt(0, bytes.size() - 4);
        return bytes.toByteArray();
    }

    private void write(Object value) throws IOException {
        if (value == null) out.writeByte('N');
        else if (value instanceof String) text((String) value);
        else if (value instanceof Long) number('l', (Long) value);
        else if (value instanceof Integer) {
            out.writeByte('i');
            out.writeInt((Integer) value);
        } else if (value instanceof Struct) struct((Struct) value);
        else if (value instanceof Boolean) out.writeByte((Boolean) value ? 'T' : 'F');
        else if (value instanceof Double) {
            out.writeByte('d');
            out.writeDouble((Double) value);
        } else if (value instanceof ConnectRecord) record((ConnectRecord<?>) value);
        else if (value instanceof Schema) schema((Schema) value);
        else if (value instanceof byte[]) blob('y', (byte[]) value);
        else if (value instanceof ByteBuffer) blob('y', content((ByteBuffer) value));
        else if (value instanceof Collection) {
            Collection<?> all = (Collection<?>) value;
            out.writeByte('a');
            out.writeInt(all.size());
            for (Object one : all) write(one);
        } else if (value instanceof Object[]) write(java.util.Arrays.asList((Object[]) value));
        else if (value instanceof Map) {
            Map<?, ?> all = (Map<?, ?>) value;
            out.writeByte('m');
            out.writeInt(all.size());
            for (Map.Entry<?, ?> one : all.entrySet()) {
                write(one.getKey());
                write(one.getValue());
            }
        } else rare(value);
    }

    private void rare(Object value) throws IOException {
        if (value instanceof Byte) {
            out.writeByte('b');
            out.writeByte((Byte) value);
        } else if (value instanceof Short) {
            out.writeByte('h');
            out.writeShort((Short) value);
        } else if (value instanceof Float) {
            out.writeByte('f');
            out.writeFloat((Float) value);
        } else if (value instanceof BigDecimal) {
            out.writeByte('D');
            out.writeInt(((BigDecimal) value).scale());
            blob('y', ((BigDecimal) value).unscaledValue().toByteArray());
        } else if (value instanceof BigInteger) blob('B', ((BigInteger) value).toByteArray());
        else if (value instanceof java.util.Date) number('I', ((java.util.Date) value).getTime());
        else throw new DataException("Values of " + value.getClass().getName() + " are not among those of Connect.");
    }

    private void number(char tag, long value) throws IOException {
        out.writeByte(tag);
        out.writeLong(value);
    }

    private void text(String value) throws IOException {
        blob('s', value.getBytes(StandardCharsets.UTF_8));
    }

    private void blob(char tag, byte[] value) throws IOException {
        out.writeByte(tag);
        out.writeInt(value.length);
        out.write(value);
    }

    private static byte[] content(ByteBuffer value) {
        byte[] made = new byte[value.remaining()];
        value.duplicate().get(made);
        return made;
    }

    private void struct(Struct value) throws IOException {
        out.writeByte('r');
        schema(value.schema());
        Layout layout = layouts.of(value.schema());
        Object[] values = new Object[layout.fields.length];
        byte[] mask = new byte[layout.maskSize()];
        for (int at = 0; at < values.length; at++) {
            values[at] = value.getWithoutDefault(layout.names[at]);
            if (values[at] != null) mask[at >> 3] |= (byte) (1 << (at & 7));
        }
        out.write(mask);
        for (int at = 0; at < values.length; at++)
            if (values[at] != null) values[at] = fixed(layout.kinds[at], values[at]);
        for (Object one : values) {
            if (one instanceof byte[]) out.write((byte[]) one);
            else if (one != null) write(((Object[]) one)[0]);
        }
    }

    /** Writes what of a field has a fixed size; returns its bytes, what else there is to write, or null. */
    private Object fixed(char kind, Object value) throws IOException {
        switch (kind) {
            case 'b': out.writeByte((Byte) value); return null;
            case 'h': out.writeShort((Short) value); return null;
            case 'i': out.writeInt((Integer) value); return null;
            case 'l': out.writeLong((Long) value); return null;
            case 'f': out.writeFloat((Float) value); return null;
            case 'd': out.writeDouble((Double) value); return null;
            case 'T': out.writeBoolean((Boolean) value); return null;
            case Layout.INSTANT: out.writeLong(((java.util.Date) value).getTime()); return null;
            case Layout.OTHER: return new Object[] {value};
            case Layout.NUMERIC: out.writeInt(((BigDecimal) value).scale()); break;
            default: break;
        }
        byte[] made = kind == Layout.NUMERIC ? ((BigDecimal) value).unscaledValue().toByteArray()
            : kind == Layout.TEXT ? ((String) value).getBytes(StandardCharsets.UTF_8)
            : value instanceof ByteBuffer ? content((ByteBuffer) value) : (byte[]) value;
        out.writeInt(made.length);
        return made;
    }

    private void schema(Schema schema) throws IOException {
        Integer known = same.get(schema);
        if (known == null && (known = equal.get(schema)) != null) same.put(schema, known);
        if (known != null) {
            out.writeByte('x');
            out.writeInt(known);
            return;
        }
        out.writeByte('X');
        out.writeByte(schema.type().ordinal());
        out.writeBoolean(schema.isOptional());
        write(schema.name());
        write(schema.version());
        write(schema.doc());
        write(schema.parameters());
        write(schema.defaultValue());
        boolean isMap = schema.type() == Schema.Type.MAP;
        write(isMap ? schema.keySchema() : null);
        write(isMap || schema.type() == Schema.Type.ARRAY ? schema.valueSchema() : null);
        if (schema.type() == Schema.Type.STRUCT) {
            out.writeInt(schema.fields().size());
            for (Field field : schema.fields()) {
                text(field.name());
                schema(field.schema());
            }
        }
        same.put(schema, equal.size());
        equal.put(schema, equal.size());
    }

    private void record(ConnectRecord<?> record) throws IOException {
        out.writeByte('R');
        if (isLike(record, last)) out.writeByte('=');
        else {
            out.writeByte('H');
            write(record.topic());
            write(record.kafkaPartition());
            write(record.keySchema());
            write(record.valueSchema());
        }
        write(record.key());
        write(record.value());
        write(record.timestamp());
        out.writeInt(record.headers().size());
        for (Header one : record.headers()) {
            write(one.key());
            write(one.schema());
            write(one.value());
        }
        if (record instanceof SourceRecord) source((SourceRecord) record);
        else sink((SinkRecord) record);
        last = record;
    }

    private static boolean isLike(ConnectRecord<?> one, ConnectRecord<?> other) {
        return other != null && one.topic().equals(other.topic())
            && Objects.equals(one.kafkaPartition(), other.kafkaPartition())
            && one.keySchema() == other.keySchema() && one.valueSchema() == other.valueSchema();
    }

    /** Of many offsets only the last counts: each has its length before it, so that the others need not be read. */
    private void source(SourceRecord record) throws IOException {
        out.writeByte('S');
        if (record.sourcePartition() != null && record.sourcePartition().equals(partition)) out.writeByte('=');
        else write(record.sourcePartition());
        partition = record.sourcePartition();
        int at = bytes.size();
        out.writeInt(0);
        write(record.sourceOffset());
        bytes.putInt(at, bytes.size() - at - 4);
    }

    private void sink(SinkRecord record) throws IOException {
        out.writeByte('K');
        out.writeLong(record.kafkaOffset());
        out.writeByte(record.timestampType().id);
        write(record.originalTopic());
        write(record.originalKafkaPartition());
        out.writeLong(record.originalKafkaOffset());
    }

    /** Bytes of which some are written later. */
    private static final class Buffer extends ByteArrayOutputStream {
        void putInt(int at, int value) {
            ByteBuffer.wrap(buf).putInt(at, value);
        }
    }
}
