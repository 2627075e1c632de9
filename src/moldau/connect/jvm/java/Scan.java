package moldau.connect;

import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.reflect.Modifier;
import java.net.URL;
import java.nio.file.FileVisitOption;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.stream.Stream;
import org.apache.kafka.connect.components.Versioned;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** Finds the plugins in jars: those that the jars declare as services, or, where they declare no connector, all. */
final class Scan {
    private static final Map<Class<?>, String> KINDS = new LinkedHashMap<>();

    static {
        KINDS.put(SourceConnector.class, "source");
        KINDS.put(SinkConnector.class, "sink");
        KINDS.put(Converter.class, "converter");
        KINDS.put(HeaderConverter.class, "header_converter");
        KINDS.put(Transformation.class, "transformation");
        KINDS.put(Predicate.class, "predicate");
    }

    private final PluginLoader loader;
    private final Map<String, List<String>> parents = new HashMap<>();

    Scan(PluginLoader loader) {
        this.loader = loader;
    }

    /** Rows of class, kind and version; a row with the kind `problem` has the reason in place of the version. */
    List<Object> rows() throws IOException {
        Set<String> names = declared();
        List<Object> made = rows(names);
        boolean hasConnector = made.stream().map(one -> ((List<?>) one).get(1)).anyMatch(Set.of("source", "sink")::contains);
        return hasConnector ? made : rows(names, undeclared());
    }

    @SafeVarargs
    private List<Object> rows(Set<String>... all) {
        Set<String> names = new TreeSet<>();
        for (Set<String> one : all) names.addAll(one);
        List<Object> made = new ArrayList<>();
        for (String name : names) {
            try {
                Class<?> found = Class.forName(name, false, loader);
                if (Modifier.isAbstract(found.getModifiers()) || !Modifier.isPublic(found.getModifiers())) continue;
                Object one = found.getConstructor().newInstance();
                String version = one instanceof Versioned ? ((Versioned) one).version() : null;
                KINDS.forEach((type, kind) -> {
                    if (type.isInstance(one)) made.add(List.of(name, kind, version == null ? "undefined" : version));
                });
            } catch (NoSuchMethodException of) {
                // nobody could make one
            } catch (Throwable error) {
                made.add(List.of(name, "problem", String.valueOf(error)));
            }
        }
        return made;
    }

    private Set<String> declared() throws IOException {
        Set<String> found = new TreeSet<>();
        for (Class<?> type : KINDS.keySet())
            for (URL url : Collections.list(loader.findResources("META-INF/services/" + type.getName())))
                try (BufferedReader in =
                        new BufferedReader(new InputStreamReader(url.openStream(), StandardCharsets.UTF_8))) {
                    in.lines().map(line -> line.replaceFirst("#.*", "").trim()).filter(line -> !line.isEmpty())
                        .forEach(found::add);
                }
        return found;
    }

    private Set<String> undeclared() throws IOException {
        if (Files.isRegularFile(loader.location)) readJar(loader.location);
        else
            try (Stream<Path> files = Files.walk(loader.location, FileVisitOption.FOLLOW_LINKS)) {
                for (Path one : (Iterable<Path>) files::iterator)
                    if (one.toString().endsWith(".jar")) readJar(one);
                    else if (one.toString().endsWith(".class"))
                        try (InputStream in = Files.newInputStream(one)) {
                            readClass(in);
                        }
            }
        Set<String> found = new TreeSet<>();
        for (String name : parents.keySet()) if (isPlugin(name, 0)) found.add(name);
        return found;
    }

    private boolean isPlugin(String name, int depth) {
        for (String parent : parents.getOrDefault(name, List.of()))
            if (KINDS.keySet().stream().anyMatch(type -> type.getName().equals(parent))
                || depth < 20 && isPlugin(parent, depth + 1)) return true;
        return false;
    }

    private void readJar(Path path) throws IOException {
        try (JarFile jar = new JarFile(path.toFile())) {
            for (JarEntry one : Collections.list(jar.entries()))
                if (one.getName().endsWith(".class") && !one.getName().startsWith("META-INF/"))
                    try (InputStream in = jar.getInputStream(one)) {
                        readClass(in);
                    }
        }
    }

    /** Notes what a class extends and implements, without loading it. */
    private void readClass(InputStream given) throws IOException {
        DataInputStream in = new DataInputStream(new java.io.BufferedInputStream(given));
        in.readLong();
        int count = in.readUnsignedShort();
        String[] texts = new String[count];
        int[] classes = new int[count];
        for (int at = 1; at < count; at++) {
            int tag = in.readUnsignedByte();
            switch (tag) {
                case 1: texts[at] = in.readUTF(); break;
                case 7: classes[at] = in.readUnsignedShort(); break;
                case 8: case 16: case 19: case 20: in.readUnsignedShort(); break;
                case 15: in.skipBytes(3); break;
                case 5: case 6: in.readLong(); at++; break;
                default: in.readInt();
            }
        }
        in.readUnsignedShort();
        String name = dotted(texts[classes[in.readUnsignedShort()]]);
        List<String> found = new ArrayList<>();
        int parent = in.readUnsignedShort();
        if (parent != 0) found.add(dotted(texts[classes[parent]]));
        for (int left = in.readUnsignedShort(); left > 0; left--) found.add(dotted(texts[classes[in.readUnsignedShort()]]));
        parents.put(name, found);
    }

    private static String dotted(String name) {
        return name.replace('/', '.');
    }
}
