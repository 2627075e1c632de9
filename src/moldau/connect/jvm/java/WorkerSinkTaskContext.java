package org.apache.kafka.connect.runtime;

import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.connect.sink.SinkTaskContext;

/**
 * What a sink's task is told of. Its name, and that of its field, are those of Connect's own: sinks that commit their
 * offsets in transactions of their own, such as Apache Iceberg's, look there for the consumer.
 */
public abstract class WorkerSinkTaskContext implements SinkTaskContext {
    protected Consumer<byte[], byte[]> consumer;
}
