package moldau.connect;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.storage.OffsetStorageReader;

/** The stored offsets of a source, which the worker has. */
final class Offsets implements OffsetStorageReader {
    private final Link link;

    Offsets(Link link) {
        this.link = link;
    }

    @Override
    public <T> Map<String, Object> offset(Map<String, T> partition) {
        return offsets(List.of(partition)).get(partition);
    }

    @Override
    @SuppressWarnings("unchecked")
    public <T> Map<Map<String, T>, Map<String, Object>> offsets(Collection<Map<String, T>> partitions) {
        List<Map<String, T>> wanted = new ArrayList<>(partitions);
        List<?> found = (List<?>) Served.await(link.ask("offsets", wanted));
        Map<Map<String, T>, Map<String, Object>> made = new HashMap<>();
        for (int at = 0; at < found.size(); at++) made.put(wanted.get(at), (Map<String, Object>) found.get(at));
        return made;
    }
}
