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
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private final DataOutputStream out = new DataOutputStream(bytes);
    private Object partition;
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
        bytes.reset();
        try {
            out.writeInt(0);
            out.writeByte(forgets ? Character.toLowerCase(kind) : kind);
            write(value);
        } catch (IOException error) {
            throw new IllegalStateException(error); // an array of bytes raises none
        }
        isBroken = false;
        byte[] made = bytes.toByteArray();
        ByteBuffer.wrap(made).putInt(0, made.length - 4);
        return made;
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
        for (Field field : value.schema().fields()) write(value.getWithoutDefault(field.name()));
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
        write(record.topic());
        write(record.kafkaPartition());
        write(record.keySchema());
        write(record.key());
        write(record.valueSchema());
        write(record.value());
        write(record.timestamp());
        out.writeInt(record.headers().size());
        for (Header one : record.headers()) {
            write(one.key());
            write(one.schema());
            write(one.value());
        }
        if (record instanceof SourceRecord) {
            SourceRecord of = (SourceRecord) record;
            out.writeByte('S');
            if (of.sourcePartition() != null && of.sourcePartition().equals(partition)) out.writeByte('=');
            else write(of.sourcePartition());
            partition = of.sourcePartition();
            write(of.sourceOffset());
        } else {
            SinkRecord of = (SinkRecord) record;
            out.writeByte('K');
            write(of.kafkaOffset());
            write(of.timestampType().id);
            write(of.originalTopic());
            write(of.originalKafkaPartition());
            write(of.originalKafkaOffset());
        }
    }
}
