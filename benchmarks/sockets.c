/* Flood: ready-made requests over and over on plain sockets, `depth` of them in flight on each. */
#define _GNU_SOURCE
#include "client.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

struct connection {
    int socket;
    long sent, answered;
    char *block;             /* its requests in a row, the first ones again at the end: one send fills the window */
    long offset;             /* bytes of the next request that are sent already */
    unsigned char length[4]; /* of the answer that is coming in */
    int length_bytes;
    long body_size, body_left;
    int differs;
};

struct file {
    char *bytes;
    long size;
};

static struct file wanted; /* the answer to each request, if it is the same to all; empty where it is not looked at */
static long request_size, turns; /* how many different requests a connection sends */
static long refused;

static struct file read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file)
        fail("%s: %s", path, strerror(errno));
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    struct file found = {allocate(size), size};
    if (size <= 0 || fread(found.bytes, 1, size, file) != (size_t)size)
        fail("%s cannot be read whole", path);
    fclose(file);
    return found;
}

static long length_of(const char *frame) {
    const unsigned char *bytes = (const unsigned char *)frame;
    return (long)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

/* The file has requests of one size. Connections take them in turn, and all the same ones if there are too few. */
static void deal_requests(struct connection *connections) {
    struct file file = read_file(options.frame);
    request_size = 4 + length_of(file.bytes);
    long requests = file.size / request_size;
    if (file.size % request_size)
        fail("%s has requests of several sizes", options.frame);
    turns = requests > options.connections ? requests / options.connections : 1;
    for (long c = 0; c < options.connections; c++) {
        connections[c].block = allocate(request_size * (turns + options.depth));
        for (long i = 0; i < turns + options.depth; i++) {
            long taken = (c + i % turns * options.connections) % requests;
            memcpy(connections[c].block + i * request_size, file.bytes + taken * request_size, request_size);
        }
    }
    if (options.answer)
        wanted = read_file(options.answer);
}

int connect_loopback(void) {
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(options.port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address))
        fail("port %ld: %s", options.port, strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static int may_send(const struct connection *c, long share) {
    return c->sent < share && c->sent - c->answered < options.depth;
}

static void send_window(struct connection *c, long share) {
    while (may_send(c, share)) {
        long window = options.depth - (c->sent - c->answered), left = share - c->sent;
        long bytes = request_size * (window < left ? window : left) - c->offset;
        ssize_t taken = send(c->socket, c->block + c->sent % turns * request_size + c->offset, bytes, MSG_NOSIGNAL);
        if (taken < 0 && errno == EAGAIN)
            return;
        if (taken < 0)
            fail("send: %s", strerror(errno));
        c->offset += taken;
        c->sent += c->offset / request_size;
        c->offset %= request_size;
    }
}

/* A part of an answer has come: it may be looked at, and the last part counts. */
static long take_answer(struct connection *c, const unsigned char *part, long size) {
    long at = c->body_size - c->body_left;
    if (wanted.size)
        c->differs |= c->body_size != wanted.size || memcmp(part, wanted.bytes + at, size);
    c->body_left -= size;
    if (c->body_left)
        return 0;
    refused += c->differs;
    c->differs = c->length_bytes = 0;
    c->answered++;
    return 1;
}

static long receive_answers(struct connection *c) {
    static unsigned char buffer[1 << 16];
    long answers = 0;
    for (;;) {
        ssize_t size = recv(c->socket, buffer, sizeof buffer, 0);
        if (size == 0)
            fail("the broker closed the connection");
        if (size < 0 && errno == EAGAIN)
            return answers;
        if (size < 0)
            fail("recv: %s", strerror(errno));
        for (ssize_t at = 0; at < size;) {
            if (c->length_bytes < 4) {
                c->length[c->length_bytes++] = buffer[at++];
                c->body_size = c->body_left = length_of((char *)c->length);
                continue;
            }
            long step = c->body_left < size - at ? c->body_left : size - at;
            answers += take_answer(c, buffer + at, step);
            at += step;
        }
    }
}

void flood(void) {
    if (options.connections > MAX_CONNECTIONS)
        fail("at most %d connections", MAX_CONNECTIONS);
    struct connection connections[MAX_CONNECTIONS] = {0};
    struct pollfd polled[MAX_CONNECTIONS];
    deal_requests(connections);
    for (int i = 0; i < options.connections; i++)
        polled[i].fd = connections[i].socket = connect_loopback();
    long share = options.count / options.connections, answered = 0;
    double start = now(), deadline = start + options.seconds, cpu = cpu_seconds();
    while (answered < share * options.connections && !stopping && now() < deadline) {
        for (int i = 0; i < options.connections; i++) {
            send_window(&connections[i], share);
            polled[i].events = POLLIN | (may_send(&connections[i], share) ? POLLOUT : 0);
        }
        poll(polled, options.connections, 1000);
        for (int i = 0; i < options.connections; i++)
            if (polled[i].revents)
                answered += receive_answers(&connections[i]);
    }
    double wall = now() - start;
    printf("{\"n\":%ld,\"refused\":%ld,\"wall\":%.4f,\"per_second\":%.1f,\"client_cpu\":%.3f}\n", answered, refused, wall,
           answered / wall, cpu_seconds() - cpu);
    finish();
}
