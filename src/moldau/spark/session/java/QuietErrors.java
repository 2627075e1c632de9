package moldau;

import java.io.ByteArrayOutputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;

/**
 * Standard error without what PySpark prints, to nobody's use, whenever a query with state starts: lines that begin so,
 * and the empty line behind each of them. All else goes on as it comes, by the byte.
 */
public class QuietErrors extends FilterOutputStream {
    private static final String[] KNOWN = {
        "Starting Streaming TransformWithState", "Streaming TransformWithState",
    };

    private enum State { BEGINNING, PASSING, DROPPING }

    private final ByteArrayOutputStream held = new ByteArrayOutputStream();
    private State state = State.BEGINNING;
    private boolean dropped; // the line before

    public QuietErrors(OutputStream out) {
        super(out);
    }

    @Override
    public synchronized void write(int one) throws IOException {
        boolean ends = (byte) one == '\n';
        switch (state) {
            case PASSING -> out.write(one);
            case DROPPING -> { }
            default -> begin(one, ends);
        }
        if (ends) {
            dropped = state == State.DROPPING;
            state = State.BEGINNING;
        }
    }

    @Override
    public synchronized void write(byte[] bytes, int offset, int length) throws IOException {
        for (int at = offset; at < offset + length; at++) {
            write(bytes[at]);
        }
    }

    private void begin(int one, boolean ends) throws IOException {
        if (ends && dropped && held.size() == 0) {
            return;
        }
        held.write(one);
        String line = held.toString(StandardCharsets.ISO_8859_1);
        for (String known : KNOWN) {
            if (line.startsWith(known)) {
                held.reset();
                state = State.DROPPING;
                return;
            }
            if (known.startsWith(line)) {
                return;
            }
        }
        held.writeTo(out);
        held.reset();
        state = State.PASSING;
    }
}
