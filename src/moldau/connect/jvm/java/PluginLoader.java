package moldau.connect;

import java.io.IOException;
import java.io.InputStream;
import java.net.JarURLConnection;
import java.net.URL;
import java.net.URLClassLoader;
import java.net.URLConnection;
import java.nio.file.FileVisitOption;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.CodeSource;
import java.security.cert.Certificate;
import java.util.ArrayList;
import java.util.List;
import java.util.jar.Manifest;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The classes of one plugin. Java's own and the API of Connect are shared; everything else comes from the plugin's jars
 * first, so that two plugins may have two versions of a library, and last from what Connect has beside its API.
 */
final class PluginLoader extends URLClassLoader {
    private static final Pattern SHARED = Pattern.compile(
        "org\\.slf4j\\..*|moldau\\.connect\\.Guard|org\\.apache\\.kafka\\.(?:common|clients)\\..*|"
        + "org\\.apache\\.kafka\\.connect\\.(?:components|connector|data|errors|header|health|rest|sink|source|storage"
        + "|util)\\..*|org\\.apache\\.kafka\\.connect\\.transforms\\.(?:Transformation|predicates\\.Predicate)");
    private static final ClassLoader OURS = PluginLoader.class.getClassLoader();
    final Path location;

    static {
        registerAsParallelCapable();
    }

    PluginLoader(Path location) throws IOException {
        super(urls(location), ClassLoader.getPlatformClassLoader());
        this.location = location;
    }

    private static URL[] urls(Path location) throws IOException {
        List<URL> found = new ArrayList<>();
        if (Files.isRegularFile(location)) found.add(location.toUri().toURL());
        else {
            found.add(location.toUri().toURL());
            try (Stream<Path> files = Files.walk(location, FileVisitOption.FOLLOW_LINKS)) {
                for (Path one : (Iterable<Path>) files.filter(f -> f.toString().endsWith(".jar")).sorted()::iterator)
                    found.add(one.toUri().toURL());
            }
        }
        return found.toArray(new URL[0]);
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        synchronized (getClassLoadingLock(name)) {
            if (SHARED.matcher(name).matches()) {
                try {
                    return OURS.loadClass(name);
                } catch (ClassNotFoundException of) {
                    // a plugin may bring a class of such a package that Connect itself does not have
                }
            }
            try {
                return super.loadClass(name, resolve);
            } catch (ClassNotFoundException of) {
                if (name.startsWith("moldau.connect.")) throw of;
                return OURS.loadClass(name);
            }
        }
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        URL url = findResource(name.replace('.', '/') + ".class");
        if (url == null) throw new ClassNotFoundException(name);
        try {
            URLConnection connection = url.openConnection();
            byte[] bytes;
            try (InputStream in = connection.getInputStream()) {
                bytes = Guard.patched(in.readAllBytes());
            }
            boolean isJar = connection instanceof JarURLConnection;
            URL source = isJar ? ((JarURLConnection) connection).getJarFileURL() : location.toUri().toURL();
            define(name, isJar ? ((JarURLConnection) connection).getManifest() : null, source);
            return defineClass(name, bytes, 0, bytes.length, new CodeSource(source, (Certificate[]) null));
        } catch (IOException error) {
            throw new ClassNotFoundException(name, error);
        }
    }

    private void define(String name, Manifest manifest, URL source) {
        String pack = name.contains(".") ? name.substring(0, name.lastIndexOf('.')) : "";
        if (pack.isEmpty() || getDefinedPackage(pack) != null) return;
        try {
            if (manifest == null) definePackage(pack, null, null, null, null, null, null, null);
            else definePackage(pack, manifest, source);
        } catch (IllegalArgumentException of) {
            // another thread was quicker
        }
    }

    @Override
    public URL getResource(String name) {
        URL own = super.getResource(name);
        return own != null || name.startsWith("META-INF/services/org.slf4j") ? own : OURS.getResource(name);
    }
}
