import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;

/** Schemas and values as JSON: a value is [tag, content], and the tag is the class of the object. */
final class Coding {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    static Schema schema(JsonNode node) {
        if (node == null || node.isNull()) return null;
        Schema.Type type = Schema.Type.valueOf(node.get("type").asText());
        SchemaBuilder builder;
        if (type == Schema.Type.ARRAY) builder = SchemaBuilder.array(schema(node.get("value")));
        else if (type == Schema.Type.MAP) builder = SchemaBuilder.map(schema(node.get("key")), schema(node.get("value")));
        else builder = new SchemaBuilder(type);
        if (type == Schema.Type.STRUCT)
            for (JsonNode field : node.get("fields")) builder.field(field.get(0).asText(), schema(field.get(1)));
        if (node.get("optional").asBoolean()) builder.optional();
        if (node.hasNonNull("name")) builder.name(node.get("name").asText());
        if (node.hasNonNull("version")) builder.version(node.get("version").asInt());
        if (node.hasNonNull("doc")) builder.doc(node.get("doc").asText());
        if (node.hasNonNull("parameters"))
            node.get("parameters").fields().forEachRemaining(e -> builder.parameter(e.getKey(), e.getValue().asText()));
        if (node.hasNonNull("default")) builder.defaultValue(value(node.get("default")));
        return builder.build();
    }

    static Object value(JsonNode node) {
        if (node == null || node.isNull()) return null;
        JsonNode content = node.get(1);
        switch (node.get(0).asText()) {
            case "b": return (byte) content.asInt();
            case "s": return (short) content.asInt();
            case "i": return content.asInt();
            case "l": return Long.parseLong(content.asText());
            case "f": return Float.intBitsToFloat((int) Long.parseLong(content.asText()));
            case "d": return Double.longBitsToDouble(Long.parseLong(content.asText()));
            case "z": return content.asBoolean();
            case "t": return content.asText();
            case "y": return Base64.getDecoder().decode(content.asText());
            case "B": return new BigInteger(content.asText());
            case "D": return new BigDecimal(new BigInteger(content.asText()), node.get(2).asInt());
            case "I": return new java.util.Date(Long.parseLong(content.asText()));
            case "a": {
                List<Object> list = new ArrayList<>();
                for (JsonNode each : content) list.add(value(each));
                return list;
            }
            case "m": {
                Map<Object, Object> map = new LinkedHashMap<>();
                for (JsonNode each : content) map.put(value(each.get(0)), value(each.get(1)));
                return map;
            }
            default: {
                Schema schema = schema(content);
                Struct struct = new Struct(schema);
                int at = 0;
                for (Field field : schema.fields()) {
                    Object each = value(node.get(2).get(at++));
                    if (each != null) struct.put(field, each);
                }
                return struct;
            }
        }
    }

    static JsonNode coded(Schema schema) {
        if (schema == null) return JSON.nullNode();
        ObjectNode node = JSON.objectNode();
        node.put("type", schema.type().name());
        node.put("optional", schema.isOptional());
        node.set("default", coded(schema.defaultValue()));
        node.put("name", schema.name());
        if (schema.version() == null) node.putNull("version");
        else node.put("version", schema.version());
        node.put("doc", schema.doc());
        if (schema.parameters() == null) node.putNull("parameters");
        else new TreeMap<>(schema.parameters()).forEach(node.putObject("parameters")::put);
        ArrayNode fields = node.putArray("fields");
        if (schema.type() == Schema.Type.STRUCT)
            for (Field field : schema.fields()) fields.addArray().add(field.name()).add(coded(field.schema()));
        boolean map = schema.type() == Schema.Type.MAP;
        node.set("key", map ? coded(schema.keySchema()) : JSON.nullNode());
        node.set("value", map || schema.type() == Schema.Type.ARRAY ? coded(schema.valueSchema()) : JSON.nullNode());
        return node;
    }

    static JsonNode coded(Object value) {
        if (value == null) return JSON.nullNode();
        ArrayNode node = JSON.arrayNode();
        if (value instanceof Byte) return node.add("b").add(((Byte) value).intValue());
        if (value instanceof Short) return node.add("s").add(((Short) value).intValue());
        if (value instanceof Integer) return node.add("i").add((Integer) value);
        if (value instanceof Long) return node.add("l").add(value.toString());
        if (value instanceof Float) return node.add("f").add(Integer.toString(Float.floatToIntBits((Float) value)));
        if (value instanceof Double) return node.add("d").add(Long.toString(Double.doubleToLongBits((Double) value)));
        if (value instanceof Boolean) return node.add("z").add((Boolean) value);
        if (value instanceof String) return node.add("t").add((String) value);
        if (value instanceof byte[]) return node.add("y").add(Base64.getEncoder().encodeToString((byte[]) value));
        if (value instanceof ByteBuffer) return coded(((ByteBuffer) value).array());
        if (value instanceof BigInteger) return node.add("B").add(value.toString());
        if (value instanceof BigDecimal) {
            BigDecimal decimal = (BigDecimal) value;
            return node.add("D").add(decimal.unscaledValue().toString()).add(decimal.scale());
        }
        if (value instanceof java.util.Date) return node.add("I").add(Long.toString(((java.util.Date) value).getTime()));
        if (value instanceof List) {
            ArrayNode list = node.add("a").addArray();
            for (Object each : (List<?>) value) list.add(coded(each));
            return node;
        }
        if (value instanceof Map) {
            TreeMap<String, JsonNode> sorted = new TreeMap<>();
            for (Map.Entry<?, ?> each : ((Map<?, ?>) value).entrySet()) {
                JsonNode key = coded(each.getKey());
                sorted.put(key.toString(), JSON.arrayNode().add(key).add(coded(each.getValue())));
            }
            ArrayNode list = node.add("m").addArray();
            sorted.values().forEach(list::add);
            return node;
        }
        Struct struct = (Struct) value;
        ArrayNode values = node.add("r").add(coded(struct.schema())).addArray();
        for (Field field : struct.schema().fields()) values.add(coded(struct.getWithoutDefault(field.name())));
        return node;
    }
}
