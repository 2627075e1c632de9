package moldau.connect;

import java.io.EOFException;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.errors.RetriableException;

/**
 * One connection of a worker, for one task, connector or part of a pipeline. Its calls run one after the other in a
 * thread, its notes in another: a task's `commit` may come while it polls. A third thread reads, so that a plugin may
 * ask the worker from any thread at any time. What the plugin tells or asks reaches the worker before the result of the
 * call in which it did so.
 */
final class Link {
    private final SocketChannel channel;
    private final Packer packer = new Packer();
    private final Unpacker unpacker = new Unpacker();
    private final Map<Long, CompletableFuture<Object>> asked = new ConcurrentHashMap<>();
    private final AtomicLong questions = new AtomicLong();
    private final LinkedBlockingQueue<List<?>> calls = new LinkedBlockingQueue<>();
    private final LinkedBlockingQueue<List<?>> notes = new LinkedBlockingQueue<>();
    private static final List<?> END = List.of();
    private final Host host;
    private volatile Served served;
    private volatile boolean isClosed;
    private Thread calling;
    private int unnoted; // notes that nobody has seen to yet

    Link(SocketChannel channel, Host host) {
        this.channel = channel;
        this.host = host;
    }

    void start() {
        calling = new Thread(this::serveCalls, "calls");
        for (Thread one : new Thread[] {calling, new Thread(this::serveNotes, "notes"), new Thread(this::read, "reads")}) {
            one.setDaemon(true);
            one.start();
        }
    }

    // The worker's frames.

    private void read() {
        try {
            while (true) {
                ByteBuffer body = bytes(bytes(4).getInt());
                char kind = (char) body.get();
                if (Character.isLowerCase(kind)) unpacker.forget();
                List<?> words = (List<?>) unpacker.read(body);
                switch (Character.toUpperCase(kind)) {
                    case 'C': calls.add(words); break;
                    case 'N': addNote(words); break;
                    case 'A': answer(words).complete(words.get(1)); break;
                    case 'F': answer(words).completeExceptionally(new ConnectException((String) words.get(1))); break;
                    default: throw new IllegalStateException("A frame is of the unknown kind " + kind);
                }
            }
        } catch (IOException error) {
            // the worker has closed the connection, or is gone
        } finally {
            close();
        }
    }

    private synchronized void addNote(List<?> words) {
        unnoted++;
        notes.add(words);
    }

    private synchronized void seenTo() {
        unnoted--;
        notifyAll();
    }

    /** Waits until everything is seen to that the worker has noted: what is committed is, before a task stops. */
    private synchronized void awaitNotes() throws InterruptedException {
        while (unnoted > 0) wait();
    }

    private CompletableFuture<Object> answer(List<?> words) {
        CompletableFuture<Object> found = asked.remove((Long) words.get(0));
        return found == null ? new CompletableFuture<>() : found;
    }

    private ByteBuffer bytes(int count) throws IOException {
        ByteBuffer made = ByteBuffer.allocate(count);
        while (made.hasRemaining()) if (channel.read(made) < 0) throw new EOFException();
        return made.flip();
    }

    private void close() {
        isClosed = true;
        ConnectException gone = new ConnectException("The worker has closed the connection.");
        asked.values().forEach(one -> one.completeExceptionally(gone));
        notes.add(END);
        calls.add(END);
    }

    // What they ask for.

    private void serveCalls() {
        try {
            for (List<?> words = calls.take(); words != END; words = calls.take()) {
                try {
                    Object made = call((String) words.get(0), words);
                    Thread.interrupted(); // a plugin may have left it, and it would close the channel
                    send('R', made);
                } catch (Throwable error) {
                    Thread.interrupted();
                    send('E', described(error));
                }
            }
        } catch (InterruptedException | IOException error) {
            close();
        }
    }

    private Object call(String op, List<?> words) throws Exception {
        if (op.equals("stop")) awaitNotes();
        if (!op.equals("serve")) return served.call(op, words);
        served = host.open(this, (String) words.get(1), words);
        return null;
    }

    private void serveNotes() {
        try {
            for (List<?> words = notes.take(); words != END; words = notes.take()) {
                note(words);
                seenTo();
            }
            note(List.of("cancel")); // whatever is still running has nobody to work for
            channel.close();
        } catch (InterruptedException | IOException error) {
            // nobody waits for it
        }
    }

    private void note(List<?> words) {
        Served of = served;
        if (of == null) return;
        try {
            Thread.currentThread().setContextClassLoader(of.loader);
            of.note((String) words.get(0), words);
        } catch (Throwable error) {
            error.printStackTrace();
        }
        if (words.get(0).equals("cancel")) calling.interrupt();
    }

    // What the plugin has to say.

    void tell(Object... words) {
        if (isClosed) return;
        try {
            send('T', List.of(words));
        } catch (IOException error) {
            throw new ConnectException("The worker is gone.", error);
        }
    }

    CompletableFuture<Object> ask(String op, Object given) {
        CompletableFuture<Object> made = new CompletableFuture<>();
        long number = questions.incrementAndGet();
        asked.put(number, made);
        try {
            if (isClosed) throw new IOException();
            send('Q', java.util.Arrays.asList(number, op, given));
        } catch (IOException error) {
            asked.remove(number);
            made.completeExceptionally(new ConnectException("The worker is gone."));
        }
        return made;
    }

    private synchronized void send(char kind, Object value) throws IOException {
        boolean wasInterrupted = Thread.interrupted(); // of a plugin's thread; it would close the channel
        try {
            ByteBuffer frame = ByteBuffer.wrap(packer.frame(kind, value));
            while (frame.hasRemaining()) channel.write(frame);
        } finally {
            if (wasInterrupted) Thread.currentThread().interrupt();
        }
    }

    static Object described(Throwable error) {
        StringWriter trace = new StringWriter();
        error.printStackTrace(new PrintWriter(trace, true));
        String message = error.getMessage() == null ? "" : error.getMessage();
        return List.of(error.getClass().getName(), message, error instanceof RetriableException, trace.toString());
    }
}
