/* The load of the benchmarks: librdkafka and plain sockets, so that the client is not the bottleneck.
 *
 *   client version
 *   client produce   brokers= topic= partitions= count= size= seconds= [keys=] [rd.NAME=VALUE ...]
 *   client consume   brokers= topic= partitions= count= seconds= [rd.NAME=VALUE ...]
 *   client latency   brokers= topic= count= size= rate= seconds= skip= [p.NAME=VALUE c.NAME=VALUE ...]
 *   client commit    brokers= topic= partitions= group= count= connections= seconds= [rd.NAME=VALUE ...]
 *   client flood     port= frame=FILE [answer=FILE] count= connections= depth= seconds=
 *   client classic   port= topic= partitions= group= count= connections= seconds=
 *   client consumer  port= topic= partitions= group= count= connections= seconds=
 *
 * rd. goes to every librdkafka client, p. to producers and c. to consumers only. Every loop ends after `count`
 * messages or `seconds`, and on SIGTERM, whichever is first. The answer is one line of JSON; a fault is one
 * sentence on stderr and exit code 1.
 */
#define _GNU_SOURCE
#include "client.h"
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { PAYLOADS = 64, BATCH = 2000, LEADERS_S = 300 };

struct options options = {.partitions = 1, .count = 1, .size = 100, .rate = 1000, .seconds = 60,
                                 .connections = 1, .depth = 1};

static const struct {
    const char *name;
    size_t offset;
    int is_text;
} OPTIONS[] = {
    {"brokers", offsetof(struct options, brokers), 1},
    {"topic", offsetof(struct options, topic), 1},
    {"group", offsetof(struct options, group), 1},
    {"frame", offsetof(struct options, frame), 1},
    {"answer", offsetof(struct options, answer), 1},
    {"partitions", offsetof(struct options, partitions), 0},
    {"count", offsetof(struct options, count), 0},
    {"size", offsetof(struct options, size), 0},
    {"keys", offsetof(struct options, keys), 0},
    {"rate", offsetof(struct options, rate), 0},
    {"seconds", offsetof(struct options, seconds), 0},
    {"skip", offsetof(struct options, skip), 0},
    {"port", offsetof(struct options, port), 0},
    {"connections", offsetof(struct options, connections), 0},
    {"depth", offsetof(struct options, depth), 0},
};

volatile sig_atomic_t stopping;

static void on_stop(int signal) {
    (void)signal;
    stopping = 1;
}

double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

double cpu_seconds(void) {
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return r.ru_utime.tv_sec + r.ru_stime.tv_sec + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1e-6;
}

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    _exit(1);
}

void *allocate(size_t size) {
    void *memory = calloc(1, size);
    if (!memory)
        fail("out of memory: %zu bytes", size);
    return memory;
}

/* The answer is printed; closing the clients in order would only cost time that nobody measures. */
void finish(void) {
    fflush(stdout);
    _exit(0);
}

static void read_option(const char *argument) {
    const char *equals = strchr(argument, '=');
    if (!equals)
        fail("not NAME=VALUE: %s", argument);
    if (memchr(argument, '.', equals - argument)) {
        if (options.property_count == MAX_PROPERTIES)
            fail("more than %d librdkafka properties", MAX_PROPERTIES);
        options.properties[options.property_count++] = argument;
        return;
    }
    for (size_t i = 0; i < sizeof OPTIONS / sizeof *OPTIONS; i++) {
        if (strlen(OPTIONS[i].name) != (size_t)(equals - argument) || strncmp(OPTIONS[i].name, argument, equals - argument))
            continue;
        char *field = (char *)&options + OPTIONS[i].offset;
        if (OPTIONS[i].is_text)
            *(const char **)field = equals + 1;
        else
            *(long *)field = atol(equals + 1);
        return;
    }
    fail("unknown option: %s", argument);
}

/* ---- librdkafka ---- */

static void set_property(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char error[512];
    if (rd_kafka_conf_set(conf, name, value, error, sizeof error) != RD_KAFKA_CONF_OK)
        fail("librdkafka: %s", error);
}

static rd_kafka_conf_t *configuration(char role) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set_property(conf, "bootstrap.servers", options.brokers);
    for (int i = 0; i < options.property_count; i++) {
        const char *property = options.properties[i];
        if (strncmp(property, "rd.", 3) && property[0] != role)
            continue;
        char *name = strdup(strchr(property, '.') + 1);
        char *equals = strchr(name, '=');
        *equals = 0;
        set_property(conf, name, equals + 1);
        free(name);
    }
    return conf;
}

static volatile long acknowledged, refused;
static double *sent_at, *acknowledged_after; /* latency only: by message number */

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client, (void)opaque;
    if (message->err) {
        if (!refused++)
            fprintf(stderr, "not delivered: %s\n", rd_kafka_err2str(message->err));
        return;
    }
    acknowledged++;
    long number = (long)message->_private;
    if (acknowledged_after)
        acknowledged_after[number] = now() - sent_at[number];
}

static int leaders(rd_kafka_t *client, rd_kafka_topic_t *topic) {
    const struct rd_kafka_metadata *metadata;
    int count = 0;
    if (rd_kafka_metadata(client, 0, topic, &metadata, 5000))
        return 0;
    for (int i = 0; metadata->topic_cnt == 1 && i < metadata->topics[0].partition_cnt; i++)
        count += metadata->topics[0].partitions[i].leader >= 0;
    rd_kafka_metadata_destroy(metadata);
    return count;
}

/* A producer whose topic is known to have a leader for each partition: the clock starts after that. */
static rd_kafka_topic_t *producer(rd_kafka_t **client) {
    char error[512];
    rd_kafka_conf_t *conf = configuration('p');
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    *client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof error);
    if (!*client)
        fail("no producer: %s", error);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(*client, options.topic, NULL);
    double deadline = now() + LEADERS_S;
    while (leaders(*client, topic) < options.partitions) {
        if (now() > deadline)
            fail("topic %s has no %ld partitions with a leader after %d s", options.topic, options.partitions, LEADERS_S);
        usleep(20000);
    }
    return topic;
}

static rd_kafka_t *member(const char *group) {
    char error[512];
    rd_kafka_conf_t *conf = configuration('c');
    set_property(conf, "group.id", group);
    set_property(conf, "enable.auto.commit", "false");
    rd_kafka_t *client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error, sizeof error);
    if (!client)
        fail("no consumer: %s", error);
    rd_kafka_poll_set_consumer(client);
    return client;
}

static rd_kafka_t *consumer(void) {
    rd_kafka_t *client = member("bench");
    rd_kafka_topic_partition_list_t *partitions = rd_kafka_topic_partition_list_new(options.partitions);
    for (int i = 0; i < options.partitions; i++)
        rd_kafka_topic_partition_list_add(partitions, options.topic, i)->offset = 0;
    rd_kafka_resp_err_t refusal = rd_kafka_assign(client, partitions);
    if (refusal)
        fail("assign: %s", rd_kafka_err2str(refusal));
    rd_kafka_topic_partition_list_destroy(partitions);
    return client;
}

/* Text-like bytes, a few different ones, so that no layer gains from one constant message. */
static char *payloads(void) {
    long size = options.size * PAYLOADS;
    char *bytes = allocate(size);
    srand(7);
    for (long i = 0; i < size; i++)
        bytes[i] = i % 4 ? 'a' + rand() % 8 : (char)rand();
    return bytes;
}

static void send_message(rd_kafka_t *client, rd_kafka_topic_t *topic, long number, char *payload) {
    char key[16];
    size_t key_size = 0;
    if (options.keys) /* a multiplicative hash: each key comes back at distances that vary */
        key_size = snprintf(key, sizeof key, "%010lu", (unsigned long)number * 2654435761UL % (unsigned long)options.keys);
    while (rd_kafka_produce(topic, number % options.partitions, RD_KAFKA_MSG_F_COPY, payload, options.size,
                            key_size ? key : NULL, key_size, (void *)number) == -1) {
        if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
            fail("produce: %s", rd_kafka_err2str(rd_kafka_last_error()));
        rd_kafka_poll(client, 10);
    }
}

static void produce(void) {
    rd_kafka_t *client;
    rd_kafka_topic_t *topic = producer(&client);
    char *payload = payloads();
    double start = now(), deadline = start + options.seconds, cpu = cpu_seconds();
    for (long i = 0; i < options.count; i++) {
        send_message(client, topic, i, payload + i % PAYLOADS * options.size);
        if ((i & 1023) == 0) {
            rd_kafka_poll(client, 0);
            if (stopping || now() > deadline)
                break;
        }
    }
    while (rd_kafka_outq_len(client) > 0 && now() < deadline + 30)
        rd_kafka_poll(client, 5);
    double wall = now() - start;
    printf("{\"n\":%ld,\"refused\":%ld,\"wall\":%.4f,\"per_second\":%.1f,\"mb_per_second\":%.2f,\"client_cpu\":%.3f}\n",
           acknowledged, refused, wall, acknowledged / wall, acknowledged / wall * options.size / 1e6, cpu_seconds() - cpu);
    finish();
}

static void consume(void) {
    double begin = now(), start = 0, deadline = begin + options.seconds, cpu = cpu_seconds();
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(consumer());
    static rd_kafka_message_t *messages[BATCH];
    long got = 0, bytes = 0;
    while (got < options.count && !stopping && now() < deadline) {
        ssize_t taken = rd_kafka_consume_batch_queue(queue, 100, messages, BATCH);
        if (taken > 0 && !start)
            start = now(); /* of the flow itself: connecting and the first answer are not throughput */
        for (ssize_t i = 0; i < taken; i++) {
            if (messages[i]->err)
                fprintf(stderr, "consume: %s\n", rd_kafka_message_errstr(messages[i]));
            else
                got++, bytes += messages[i]->len;
            rd_kafka_message_destroy(messages[i]);
        }
    }
    double wall = now() - start;
    printf("{\"n\":%ld,\"wall\":%.4f,\"per_second\":%.1f,\"mb_per_second\":%.2f,\"client_cpu\":%.3f,\"first\":%.4f}\n",
           got, wall, got / wall, bytes / wall / 1e6, cpu_seconds() - cpu, start - begin);
    finish();
}

/* ---- latency ---- */

struct stamp { /* opens each payload; message 0 only proves that the consumer is there */
    long number;
};

static double *received_after;
static long received;
static volatile int primed, sending_done;
static long sent;

static void *receive_stamped(void *unused) {
    rd_kafka_t *client = consumer();
    double deadline = now() + options.seconds + 30;
    while (now() < deadline && !(sending_done && received >= sent)) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(client, 100);
        if (!message)
            continue;
        if (message->err) {
            fprintf(stderr, "consume: %s\n", rd_kafka_message_errstr(message));
        } else {
            struct stamp stamp;
            memcpy(&stamp, message->payload, sizeof stamp);
            received_after[stamp.number] = now() - sent_at[stamp.number];
            received++;
            primed = 1;
        }
        rd_kafka_message_destroy(message);
    }
    return unused;
}

/* Acknowledgements are taken as they come, not when the next message is due. */
static void *receive_acknowledgements(void *client) {
    while (!sending_done)
        rd_kafka_poll(client, 50);
    return NULL;
}

static void send_stamped(rd_kafka_t *client, rd_kafka_topic_t *topic, char *payload) {
    struct stamp stamp = {sent};
    memcpy(payload, &stamp, sizeof stamp);
    sent_at[sent] = now();
    send_message(client, topic, sent++, payload);
}

static void wait_until_primed(void) {
    double deadline = now() + 30;
    while (!primed || !acknowledged) {
        if (now() > deadline)
            fail("the first message did not come back within 30 s");
        usleep(1000);
    }
}

int ascending(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static void print_percentiles(const char *name, double *values, long count) {
    static const struct {
        const char *name;
        double share;
    } POINTS[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}, {"max", 1}};
    qsort(values, count, sizeof *values, ascending);
    for (size_t i = 0; i < sizeof POINTS / sizeof *POINTS; i++) {
        long at = (long)(POINTS[i].share * count);
        printf(",\"%s_%s\":%.4f", name, POINTS[i].name, values[at < count ? at : count - 1] * 1e3);
    }
}

static void latency(void) {
    size_t room = (options.count + 1) * sizeof(double);
    sent_at = allocate(room), acknowledged_after = allocate(room), received_after = allocate(room);
    if (options.size < (long)sizeof(struct stamp))
        fail("size must be at least %zu", sizeof(struct stamp));
    char *payload = payloads();
    pthread_t receiver, acknowledger;
    rd_kafka_t *client;
    rd_kafka_topic_t *topic = producer(&client);
    pthread_create(&receiver, NULL, receive_stamped, NULL);
    pthread_create(&acknowledger, NULL, receive_acknowledgements, client);
    send_stamped(client, topic, payload);
    wait_until_primed();
    double start = now(), deadline = start + options.seconds;
    while (sent <= options.count && !stopping && now() < deadline) {
        double due = start + (double)(sent - 1) / options.rate, wait;
        while ((wait = due - now()) > 0) {
            struct timespec pause = {0, (long)(wait < 0.9 ? wait * 1e9 : 9e8)};
            nanosleep(&pause, NULL);
        }
        send_stamped(client, topic, payload);
    }
    for (double end = now() + 20; acknowledged + refused < sent && now() < end;)
        usleep(1000);
    sending_done = 1;
    pthread_join(receiver, NULL);
    pthread_join(acknowledger, NULL);
    if (refused || acknowledged < sent || received < sent)
        fail("sent %ld, acknowledged %ld, received %ld, refused %ld", sent, acknowledged, received, refused);
    long skip = 1 + (options.skip < sent / 2 ? options.skip : sent / 2), count = sent - skip;
    printf("{\"n\":%ld,\"wall\":%.4f", sent - 1, now() - start);
    print_percentiles("ack", acknowledged_after + skip, count);
    print_percentiles("e2e", received_after + skip, count);
    puts("}");
    finish();
}

/* ---- commit: members that commit all of their partitions, one synchronous call after the other ---- */

static pthread_barrier_t assigned, committed;

static rd_kafka_topic_partition_list_t *wait_for_assignment(rd_kafka_t *client) {
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1), *found = NULL;
    rd_kafka_topic_partition_list_add(topics, options.topic, RD_KAFKA_PARTITION_UA);
    rd_kafka_subscribe(client, topics);
    for (double deadline = now() + options.seconds; !found || found->cnt < options.partitions;) {
        if (now() > deadline)
            fail("no assignment within %ld s", options.seconds);
        rd_kafka_message_t *message = rd_kafka_consumer_poll(client, 100);
        if (message)
            rd_kafka_message_destroy(message);
        if (found)
            rd_kafka_topic_partition_list_destroy(found);
        rd_kafka_assignment(client, &found);
    }
    return found;
}

static void *commit_again_and_again(void *number) {
    char group[128];
    snprintf(group, sizeof group, "%s-%ld", options.group, (long)number);
    rd_kafka_t *client = member(group);
    rd_kafka_topic_partition_list_t *mine = wait_for_assignment(client);
    pthread_barrier_wait(&assigned);
    double deadline = now() + options.seconds;
    for (long done = 0; done < options.count / options.connections && !stopping && now() < deadline; done++) {
        for (int i = 0; i < mine->cnt; i++)
            mine->elems[i].offset = done;
        rd_kafka_resp_err_t error = rd_kafka_commit(client, mine, 0);
        if (error)
            fail("commit: %s", rd_kafka_err2str(error));
        __atomic_add_fetch(&acknowledged, 1, __ATOMIC_RELAXED);
    }
    pthread_barrier_wait(&committed);
    return NULL;
}

static void commit(void) {
    pthread_t thread;
    pthread_barrier_init(&assigned, NULL, options.connections + 1);
    pthread_barrier_init(&committed, NULL, options.connections + 1);
    for (long i = 0; i < options.connections; i++)
        if (pthread_create(&thread, NULL, commit_again_and_again, (void *)i))
            fail("no thread");
    pthread_barrier_wait(&assigned);
    double start = now(), cpu = cpu_seconds();
    pthread_barrier_wait(&committed);
    double wall = now() - start;
    printf("{\"n\":%ld,\"wall\":%.4f,\"per_second\":%.1f,\"client_cpu\":%.3f}\n", acknowledged, wall,
           acknowledged / wall, cpu_seconds() - cpu);
    finish();
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } MODES[] = {
        {"produce", produce}, {"consume", consume}, {"latency", latency}, {"commit", commit},
        {"flood", flood}, {"classic", join_classic}, {"consumer", join_consumer},
    };
    if (argc == 2 && !strcmp(argv[1], "version")) {
        puts(rd_kafka_version_str());
        return 0;
    }
    signal(SIGTERM, on_stop);
    for (int i = 2; i < argc; i++)
        read_option(argv[i]);
    for (size_t i = 0; argc > 1 && i < sizeof MODES / sizeof *MODES; i++)
        if (!strcmp(argv[1], MODES[i].name))
            MODES[i].run();
    fail("usage: client version|produce|consume|latency|commit|flood|classic|consumer NAME=VALUE ...");
}
