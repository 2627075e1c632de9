package moldau.connect;

import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.data.Date;
import org.apache.kafka.connect.data.Decimal;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.Time;
import org.apache.kafka.connect.data.Timestamp;

/** How structs are packed: which fields are there, then all parts of fixed size, then the rest; layout.py has the same. */
final class Layout {
    static final char TEXT = 's', BYTES = 'y', INSTANT = 'I', NUMERIC = 'D', OTHER = 'o';
    private static final int MOST = 4096;

    final Field[] fields;
    final String[] names;
    final char[] kinds;

    private Layout(Schema schema) {
        List<Field> all = schema.fields();
        fields = all.toArray(new Field[0]);
        names = new String[fields.length];
        kinds = new char[fields.length];
        for (int at = 0; at < fields.length; at++) {
            names[at] = fields[at].name();
            kinds[at] = kind(fields[at].schema());
        }
    }

    int maskSize() {
        return (fields.length + 7) / 8;
    }

    private static char kind(Schema schema) {
        String name = schema.name();
        if (Decimal.LOGICAL_NAME.equals(name)) return NUMERIC;
        if (Date.LOGICAL_NAME.equals(name) || Time.LOGICAL_NAME.equals(name) || Timestamp.LOGICAL_NAME.equals(name))
            return INSTANT;
        switch (schema.type()) {
            case INT8: return 'b';
            case INT16: return 'h';
            case INT32: return 'i';
            case INT64: return 'l';
            case FLOAT32: return 'f';
            case FLOAT64: return 'd';
            case BOOLEAN: return 'T';
            case STRING: return TEXT;
            case BYTES: return BYTES;
            default: return OTHER;
        }
    }

    /** Those of one connection and direction. */
    static final class Known {
        private final Map<Schema, Layout> known = new IdentityHashMap<>();

        Layout of(Schema schema) {
            Layout found = known.get(schema);
            if (found == null) {
                if (known.size() >= MOST) known.clear();
                known.put(schema, found = new Layout(schema));
            }
            return found;
        }
    }
}
