package moldau.connect;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionException;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.sink.SinkTaskContext;

/** What a plugin may do with the consumer of its sink's task, which is the worker's: ask, and read on elsewhere. */
final class TaskConsumer implements InvocationHandler {
    private final Link link;
    private final SinkTaskContext context;

    private TaskConsumer(Link link, SinkTaskContext context) {
        this.link = link;
        this.context = context;
    }

    @SuppressWarnings("unchecked")
    static Consumer<byte[], byte[]> of(Link link, SinkTaskContext context) {
        Class<?>[] kinds = {Consumer.class};
        return (Consumer<byte[], byte[]>) Proxy.newProxyInstance(
            Consumer.class.getClassLoader(), kinds, new TaskConsumer(link, context));
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] given) {
        switch (method.getName()) {
            case "groupMetadata": return member();
            case "assignment": return context.assignment();
            case "committed": return committed((Collection<?>) given[0]);
            case "seek":
                context.offset((TopicPartition) given[0], offset(given[1]));
                return null;
            case "hashCode": return System.identityHashCode(proxy);
            case "equals": return proxy == given[0];
            case "toString": return "the consumer of a sink's task";
            default:
                throw new UnsupportedOperationException(
                    "The consumer of a sink is the worker's; a plugin may not call " + method.getName() + ".");
        }
    }

    private ConsumerGroupMetadata member() {
        List<?> row = (List<?>) answer("member", null);
        return new ConsumerGroupMetadata(
            (String) row.get(0), ((Number) row.get(1)).intValue(), (String) row.get(2),
            Optional.ofNullable((String) row.get(3)));
    }

    private Map<TopicPartition, OffsetAndMetadata> committed(Collection<?> partitions) {
        List<Object> asked = new ArrayList<>();
        Map<TopicPartition, OffsetAndMetadata> made = new HashMap<>();
        for (Object one : partitions) {
            TopicPartition partition = (TopicPartition) one;
            made.put(partition, null);
            asked.add(List.of(partition.topic(), partition.partition()));
        }
        for (Object one : (List<?>) answer("committed", asked)) {
            List<?> row = (List<?>) one;
            made.put(SinkServed.partition(row), new OffsetAndMetadata((Long) row.get(2)));
        }
        return made;
    }

    private static long offset(Object given) {
        return given instanceof OffsetAndMetadata ? ((OffsetAndMetadata) given).offset() : (Long) given;
    }

    private Object answer(String op, Object given) {
        try {
            return link.ask(op, given).join();
        } catch (CompletionException error) {
            throw new ConnectException(error.getCause());
        }
    }
}
