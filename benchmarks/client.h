/* What the parts of the client share: its options, its clock, and its two ways to end. */
#ifndef CLIENT_H
#define CLIENT_H

#include <signal.h>
#include <stddef.h>

enum { MAX_PROPERTIES = 64, MAX_CONNECTIONS = 128 };

struct options {
    const char *brokers, *topic, *group, *frame, *answer;
    long partitions, count, size, keys, rate, seconds, skip, port, connections, depth;
    const char *properties[MAX_PROPERTIES];
    int property_count;
};

extern struct options options;
extern volatile sig_atomic_t stopping;

double now(void);
double cpu_seconds(void);
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);
void *allocate(size_t size);
__attribute__((noreturn)) void finish(void);
int ascending(const void *left, const void *right); /* doubles, for qsort */

/* sockets.c */
int connect_loopback(void);
void flood(void);

/* members.c */
void join_classic(void);
void join_consumer(void);

#endif
