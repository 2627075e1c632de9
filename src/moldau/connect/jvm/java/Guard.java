package moldau.connect;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.connect.errors.ConnectException;

/**
 * Keeps plugins from ending the JVM that they share: where a class of theirs calls System.exit it calls `exit` here.
 * Only the pool of constants changes: the reference to the method gets another class. Java 24 has no other means left.
 */
public final class Guard {
    private static final int[] SIZES = {0, 0, 0, 4, 4, 8, 8, 2, 2, 4, 4, 4, 4, 0, 0, 3, 2, 4, 4, 2, 2};
    private static final byte[] EXIT = "exit".getBytes(StandardCharsets.UTF_8);
    private static final byte[] SYSTEM = "java/lang/System".getBytes(StandardCharsets.UTF_8);
    private static final byte[] TAKES = "(I)V".getBytes(StandardCharsets.UTF_8);

    private Guard() {}

    /** Refuses to exit. */
    public static void exit(int code) {
        throw new ConnectException("The plugin called System.exit(" + code + "), which would end the tasks of others.");
    }

    /** Returns a class whose calls of System.exit come here; most classes have none and are returned as they are. */
    static byte[] patched(byte[] given) throws IOException {
        ByteBuffer in = ByteBuffer.wrap(given);
        int count = in.getShort(8) & 0xffff;
        int[] at = new int[count];
        int place = 10;
        for (int one = 1; one < count; one++) {
            at[one] = place;
            int tag = given[place];
            place += tag == 1 ? 3 + (in.getShort(place + 1) & 0xffff) : 1 + SIZES[tag];
            if (tag == 5 || tag == 6) one++; // a long or a double takes two places
        }
        byte[] made = given;
        for (int one = 1; one < count; one++)
            if (at[one] > 0 && given[at[one]] == 10 && isExit(in, at, at[one])) {
                if (made == given) made = given.clone();
                ByteBuffer.wrap(made).putShort(at[one] + 1, (short) (count + 1));
            }
        return made == given ? given : withGuard(made, place, count);
    }

    private static boolean isExit(ByteBuffer in, int[] at, int place) {
        int owner = at[in.getShort(place + 1) & 0xffff], name = at[in.getShort(place + 3) & 0xffff];
        return is(in, at[in.getShort(owner + 1) & 0xffff], SYSTEM)
            && is(in, at[in.getShort(name + 1) & 0xffff], EXIT)
            && is(in, at[in.getShort(name + 3) & 0xffff], TAKES);
    }

    private static boolean is(ByteBuffer in, int place, byte[] text) {
        if ((in.getShort(place + 1) & 0xffff) != text.length) return false;
        for (int at = 0; at < text.length; at++) if (in.get(place + 3 + at) != text[at]) return false;
        return true;
    }

    /** Adds the name of this class, and a reference to it, to the end of the pool. */
    private static byte[] withGuard(byte[] given, int end, int count) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(given.length + 32);
        try (DataOutputStream out = new DataOutputStream(bytes)) {
            out.write(given, 0, 8);
            out.writeShort(count + 2);
            out.write(given, 10, end - 10);
            out.writeByte(1);
            out.writeUTF(Guard.class.getName().replace('.', '/'));
            out.writeByte(7);
            out.writeShort(count);
            out.write(given, end, given.length - end);
        }
        return bytes.toByteArray();
    }
}
