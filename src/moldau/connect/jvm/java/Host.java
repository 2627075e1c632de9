package moldau.connect;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.connector.Connector;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.sink.SinkTask;
import org.apache.kafka.connect.source.SourceTask;

/**
 * The JVM in which the Java plugins of a worker run. It listens on the Unix socket that its argument names, and ends
 * with its standard input, which the worker holds open as long as it lives.
 */
public final class Host {
    private final Map<Path, PluginLoader> loaders = new HashMap<>();

    private Host() {}

    public static void main(String[] given) throws IOException {
        System.setOut(System.err);
        Thread watch = new Thread(Host::endWithInput, "watch");
        watch.setDaemon(true);
        watch.start();
        Host host = new Host();
        try (ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            server.bind(UnixDomainSocketAddress.of(given[0]));
            while (true) new Link(server.accept(), host).start();
        }
    }

    private static void endWithInput() {
        try {
            while (System.in.read() >= 0) continue;
        } catch (IOException error) {
            // it is closed in another way
        }
        Runtime.getRuntime().halt(0);
    }

    /** Makes what a connection is for: [serve, kind, location, class, more ..]. */
    Served open(Link link, String kind, List<?> words) throws Exception {
        PluginLoader loader = loader(Path.of((String) words.get(2)));
        Scan scan = new Scan(loader);
        Thread.currentThread().setContextClassLoader(loader);
        if (kind.equals("scan")) {
            return new Served(link, loader) {
                @Override
                Object call(String op, List<?> rest) throws Exception {
                    return scan.rows();
                }
            };
        }
        Object made = made(loader, (String) words.get(3));
        switch (kind) {
            case "answer": return new AnswerServed(link, loader, made);
            case "connector": return new ConnectorServed(link, loader, (Connector) made);
            case "source": return new SourceServed(link, loader, (SourceTask) task(made), (Boolean) words.get(4));
            case "sink": return new SinkServed(link, loader, (SinkTask) task(made), (Boolean) words.get(4));
            case "part": return new PartServed(link, loader, made, (String) words.get(4), words.get(5));
            default: throw Served.unknown(kind);
        }
    }

    private static Object task(Object connector) throws Exception {
        return ((Connector) connector).taskClass().getDeclaredConstructor().newInstance();
    }

    private static Object made(PluginLoader loader, String name) throws Exception {
        try {
            return Class.forName(name, true, loader).getDeclaredConstructor().newInstance();
        } catch (java.lang.reflect.InvocationTargetException error) {
            throw new ConnectException("The class " + name + " cannot be made", error.getCause());
        }
    }

    private synchronized PluginLoader loader(Path location) throws IOException {
        PluginLoader found = loaders.get(location);
        if (found == null) loaders.put(location, found = new PluginLoader(location));
        return found;
    }
}
