/* Members of a group over plain sockets, one connection each, in one thread: how long a broker takes to give
 * `partitions` of `topic` to `connections` members. Rounds repeat until there are `count` of them.
 *
 * classic    All members know each other from a generation before, whose forming is not measured. They join again; the
 *            leader shares out when it has the answer, and all sync. JoinGroup v5, SyncGroup v3.
 * consumer   KIP-848: in each round a new group, which all members join at once. A member that was given something, or
 *            that has to give up something, says at once that it did; else it comes back after PAUSE.
 *
 * The time of a round is from the last join, when its bytes go out, until the last member has its partitions.
 */
#define _GNU_SOURCE
#include "client.h"
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { JOIN_GROUP = 11, SYNC_GROUP = 14, HEARTBEAT_848 = 68, MEMBER_ID_REQUIRED = 79, ROOM = 1 << 18, ID = 96 };

static const double PAUSE = 0.02;

struct member {
    int socket;
    char id[ID];
    int32_t epoch; /* or generation */
    unsigned char *in;
    long in_size;
    int waiting, done, owned;
    double due;
    unsigned char topic_id[16];
    int32_t *partitions; /* of consumer groups */
};

static struct member members[MAX_CONNECTIONS];
static char group[128];
static double last_join;

/* ---- what is written ---- */

static unsigned char out[ROOM];
static long out_size;

static void put(const void *bytes, long size) {
    if (out_size + size > ROOM)
        fail("a request of more than %d bytes", ROOM);
    memcpy(out + out_size, bytes, size);
    out_size += size;
}

static void put_number(uint64_t value, int size) {
    for (int i = size - 1; i >= 0; i--)
        put(&(unsigned char){value >> (8 * i)}, 1);
}

static void put_text(const char *text) {
    put_number(strlen(text), 2);
    put(text, strlen(text));
}

static void put_varint(uint32_t value) {
    for (; value > 127; value >>= 7)
        put_number(value | 128, 1);
    put_number(value, 1);
}

static void put_compact(const char *text) {
    put_varint(strlen(text) + 1);
    put(text, strlen(text));
}

static void begin_request(int key, int version) {
    out_size = 0;
    put_number(0, 4);
    put_number(key, 2), put_number(version, 2), put_number(7, 4), put_text("bench");
}

static void send_request(struct member *m) {
    long size = out_size;
    out_size = 0;
    put_number(size - 4, 4);
    for (long at = 0; at < size;) {
        ssize_t taken = send(m->socket, out + at, size - at, MSG_NOSIGNAL);
        if (taken < 0 && errno != EAGAIN)
            fail("send: %s", strerror(errno));
        at += taken > 0 ? taken : 0;
    }
    m->waiting = 1;
}

/* ---- what is read ---- */

struct reader {
    const unsigned char *at, *end;
};

static uint64_t take_number(struct reader *r, int size) {
    uint64_t value = 0;
    if (r->end - r->at < size)
        fail("an answer is too short");
    for (int i = 0; i < size; i++)
        value = value << 8 | *r->at++;
    return value;
}

static uint32_t take_varint(struct reader *r) {
    uint32_t value = 0;
    for (int shift = 0; shift < 32; shift += 7) {
        uint32_t byte = take_number(r, 1);
        value |= (byte & 127) << shift;
        if (byte < 128)
            break;
    }
    return value;
}

static void skip(struct reader *r, long size) {
    if (r->end - r->at < size)
        fail("an answer is too short");
    r->at += size > 0 ? size : 0;
}

static void take_text(struct reader *r, char *into) {
    int16_t size = take_number(r, 2);
    if (size >= ID || r->end - r->at < size)
        fail("a text of %d bytes", size);
    memcpy(into, r->at, size > 0 ? size : 0);
    into[size > 0 ? size : 0] = 0;
    skip(r, size);
}

/* ---- all members ---- */

static void open_members(void) {
    if (options.connections > MAX_CONNECTIONS)
        fail("at most %d connections", MAX_CONNECTIONS);
    for (int i = 0; i < options.connections; i++) {
        members[i].socket = connect_loopback();
        members[i].in = allocate(ROOM);
        members[i].partitions = allocate(options.partitions * sizeof(int32_t));
    }
}

/* One whole answer, if it has come; the correlation id is skipped. */
static int receive(struct member *m, struct reader *r) {
    ssize_t size = recv(m->socket, m->in + m->in_size, ROOM - m->in_size, 0);
    if (size == 0)
        fail("the broker closed the connection");
    if (size < 0 && errno != EAGAIN)
        fail("recv: %s", strerror(errno));
    m->in_size += size > 0 ? size : 0;
    struct reader length = {m->in, m->in + m->in_size};
    if (m->in_size < 4 || m->in_size < 4 + (long)take_number(&length, 4))
        return 0;
    *r = (struct reader){m->in + 8, m->in + m->in_size};
    m->in_size = m->waiting = 0;
    return 1;
}

/* Answers go to `handle` as they come; who has a time to come back at is sent to `resume` then. */
static void serve(int (*settled)(void), void (*handle)(struct member *, struct reader *), void (*resume)(struct member *)) {
    struct pollfd polled[MAX_CONNECTIONS];
    double deadline = now() + options.seconds;
    for (int i = 0; i < options.connections; i++)
        polled[i] = (struct pollfd){members[i].socket, POLLIN, 0};
    while (!settled()) {
        if (stopping || now() > deadline)
            fail("not all members were assigned within %ld s", options.seconds);
        poll(polled, options.connections, 1);
        for (int i = 0; i < options.connections; i++) {
            struct reader r;
            if (polled[i].revents && receive(&members[i], &r))
                handle(&members[i], &r);
            else if (resume && !members[i].waiting && members[i].due <= now())
                resume(&members[i]);
        }
    }
}

static int all_done(void) {
    int done = 0;
    for (int i = 0; i < options.connections; i++)
        done += members[i].done;
    return done == options.connections;
}

static void expect_success(const char *what, int error) {
    if (error)
        fail("%s was refused with error %d", what, error);
}

static void print_rounds(double *after, double *whole) {
    qsort(after, options.count, sizeof *after, ascending);
    qsort(whole, options.count, sizeof *whole, ascending);
    printf("{\"n\":%ld,\"last_join\":%.3f,\"last_join_best\":%.3f,\"last_join_worst\":%.3f,\"first_join\":%.3f}\n",
           options.count, after[options.count / 2] * 1e3, after[0] * 1e3, after[options.count - 1] * 1e3,
           whole[options.count / 2] * 1e3);
    finish();
}

/* ---- classic ---- */

static long joins; /* counts, so that each subscription is a new one and asks for a rebalance */

static void send_join(struct member *m) {
    begin_request(JOIN_GROUP, 5);
    put_text(group), put_number(60000, 4), put_number(60000, 4), put_text(m->id), put_number(-1, 2);
    put_text("consumer"), put_number(1, 4), put_text("range");
    put_number(2 + 4 + 2 + strlen(options.topic) + 4 + 8 + 4, 4); /* the subscription, as consumers write it */
    put_number(1, 2), put_number(1, 4), put_text(options.topic), put_number(8, 4), put_number(joins++, 8), put_number(0, 4);
    send_request(m);
    last_join = now();
}

static void put_share(long number) {
    long each = options.partitions / options.connections;
    put_number(2 + 4 + 2 + strlen(options.topic) + 4 + 4 * each + 4, 4);
    put_number(1, 2), put_number(1, 4), put_text(options.topic), put_number(each, 4);
    for (long i = 0; i < each; i++)
        put_number(number * each + i, 4);
    put_number(-1, 4);
}

/* `r` stands at the members of the answer, of which only the leader sees any. */
static void send_sync(struct member *m, struct reader *r) {
    begin_request(SYNC_GROUP, 3);
    put_text(group), put_number(m->epoch, 4), put_text(m->id), put_number(-1, 2);
    long count = take_number(r, 4);
    put_number(count, 4);
    for (long i = 0; i < count; i++) {
        char id[ID], instance[ID];
        take_text(r, id), take_text(r, instance);
        skip(r, (int32_t)take_number(r, 4));
        put_text(id), put_share(i);
    }
    send_request(m);
}

static void on_classic(struct member *m, struct reader *r) {
    char text[ID];
    take_number(r, 4);
    int error = take_number(r, 2);
    if (m->epoch >= 0) { /* the answer to a sync */
        expect_success("SyncGroup", error);
        if ((int32_t)take_number(r, 4) < 4 * options.partitions / options.connections)
            fail("an assignment is too short");
        m->done = 1;
        return;
    }
    if (error != MEMBER_ID_REQUIRED)
        expect_success("JoinGroup", error);
    int32_t generation = take_number(r, 4);
    take_text(r, text), take_text(r, text), take_text(r, m->id);
    if (error) {
        send_join(m);
        return;
    }
    m->epoch = generation;
    send_sync(m, r);
}

static double join_all(void) {
    double start = now();
    for (int i = 0; i < options.connections; i++) {
        members[i].epoch = -1;
        members[i].done = 0;
        send_join(&members[i]);
    }
    serve(all_done, on_classic, NULL);
    return start;
}

void join_classic(void) {
    double *after = allocate(options.count * sizeof(double)), *whole = allocate(options.count * sizeof(double));
    snprintf(group, sizeof group, "%s", options.group);
    open_members();
    join_all(); /* the group forms; a broker waits for more members for a while */
    for (long round = 0; round < options.count; round++) {
        double start = join_all();
        after[round] = now() - last_join;
        whole[round] = now() - start;
    }
    print_rounds(after, whole);
}

/* ---- consumer groups ---- */

static void put_owned(struct member *m) {
    put_varint(m->owned ? 2 : 1);
    if (m->owned) {
        put(m->topic_id, 16), put_varint(m->owned + 1);
        for (int i = 0; i < m->owned; i++)
            put_number(m->partitions[i], 4);
        put_number(0, 1);
    }
}

static void send_heartbeat(struct member *m, int full) {
    begin_request(HEARTBEAT_848, 1);
    put_number(0, 1); /* tags of the header */
    put_compact(group), put_compact(m->id), put_number(m->epoch, 4), put_number(0, 2); /* no instance, no rack */
    put_number(full ? 60000 : -1, 4);
    if (full && m->epoch == 0)
        put_varint(2), put_compact(options.topic);
    else
        put_varint(0);
    put_number(0, 2); /* no pattern, no assignor of our own */
    if (full)
        put_owned(m);
    else
        put_varint(0);
    put_number(0, 1);
    send_request(m);
}

static void resume_heartbeats(struct member *m) {
    send_heartbeat(m, 0);
}

/* A new assignment is taken at once, and what it lacks is given up at once. */
static void take_assignment(struct member *m, struct reader *r) {
    m->owned = 0;
    for (uint32_t topics = take_varint(r); topics > 1; topics--) {
        skip(r, 16);
        memcpy(m->topic_id, r->at - 16, 16);
        for (uint32_t left = take_varint(r); left > 1; left--)
            if (m->owned < options.partitions)
                m->partitions[m->owned++] = take_number(r, 4);
        skip(r, 1);
    }
}

static void on_consumer(struct member *m, struct reader *r) {
    take_number(r, 1 + 4); /* tags of the header, throttle time */
    expect_success("ConsumerGroupHeartbeat", take_number(r, 2));
    skip(r, (long)take_varint(r) - 1);
    skip(r, (long)take_varint(r) - 1);
    int32_t epoch = take_number(r, 4);
    take_number(r, 4);
    m->epoch = epoch;
    if ((int8_t)take_number(r, 1) >= 0) {
        take_assignment(m, r);
        send_heartbeat(m, 1);
    } else {
        m->due = now() + PAUSE;
    }
}

static int all_shared_out(void) {
    long owned = 0;
    for (int i = 0; i < options.connections; i++) {
        if (members[i].epoch != members[0].epoch || members[i].owned > options.partitions / options.connections + 1)
            return 0;
        owned += members[i].owned;
    }
    return owned == options.partitions;
}

/* Answers that are still under way belong to the round before. */
static void drain(void) {
    for (int i = 0; i < options.connections; i++)
        for (struct reader r; members[i].waiting;)
            receive(&members[i], &r);
}

void join_consumer(void) {
    double *after = allocate(options.count * sizeof(double)), *whole = allocate(options.count * sizeof(double));
    open_members();
    for (long round = 0; round < options.count; round++) {
        snprintf(group, sizeof group, "%s-%ld", options.group, round);
        double start = now();
        for (int i = 0; i < options.connections; i++) {
            members[i].epoch = members[i].owned = 0;
            snprintf(members[i].id, ID, "bench-member-%06ld-%04d", round, i);
            send_heartbeat(&members[i], 1);
            last_join = now();
        }
        serve(all_shared_out, on_consumer, resume_heartbeats);
        after[round] = now() - last_join;
        whole[round] = now() - start;
        drain();
    }
    print_rounds(after, whole);
}
