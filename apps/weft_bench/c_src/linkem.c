/* SPDX-License-Identifier: Apache-2.0
 *
 * linkem: a link between two network namespaces, emulated in user space.
 *
 *   linkem NETNS_A ADDRESS_A/LEN NETNS_B ADDRESS_B/LEN
 *
 * The namespaces exist already (ip netns add). Each gets a TUN device `link0' with its address;
 * what one sends comes out of the other, so that the kernel's real TCP meets a real path. One
 * thread per direction keeps packets in order until they are due:
 *
 *   loss  ->  queue (drops what does not fit)  ->  rate  ->  delay
 *
 * It prints `ready', then takes commands from standard input, one per line, and answers each with
 * one line. Both directions are alike.
 *
 *   delay MICROSECONDS    one way
 *   rate KBIT             per second, 0: not limited
 *   queue BYTES           waiting for the wire, as in a router
 *   loss PPM              packets of a million, at random
 *   cut | open            lose everything | as before
 *   stats                 ab PACKETS BYTES LOST DROPPED ba PACKETS BYTES LOST DROPPED
 *
 * End of input ends it. Needs root. It does not reorder or duplicate packets.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define PACKET_MAX 65536
#define BURST 64
#define DEVICE "link0"
#define MTU 1500
/* Packets between one look at the clock and the next, on their way to a device. */
#define DEVICE_QUEUE 10000

/* Written by the thread that reads commands, read by the two that move packets. */
static atomic_long delay_us, rate_kbit, queue_bytes = 4 << 20, loss_ppm;
static atomic_int is_cut;

struct packet {
    struct packet *next;
    uint64_t due_ns;
    int size;
    unsigned char bytes[];
};

struct direction {
    int from, to;
    struct packet *first, *last;
    uint64_t last_due_ns, wire_free_ns, random;
    atomic_ulong packets, bytes, lost, dropped;
};

static struct direction ab, ba;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* xorshift64: the same losses in each run. */
static uint64_t next_random(struct direction *d) {
    d->random ^= d->random << 13;
    d->random ^= d->random >> 7;
    d->random ^= d->random << 17;
    return d->random;
}

static void configure(const char *netns, const char *address) {
    char command[512];
    snprintf(command, sizeof command,
             "ip -n %s addr add %s dev " DEVICE " && ip -n %s link set " DEVICE
             " mtu %d txqueuelen %d up && ip -n %s link set lo up",
             netns, address, netns, MTU, DEVICE_QUEUE, netns);
    if (system(command) != 0) {
        fprintf(stderr, "linkem: failed: %s\n", command);
        exit(1);
    }
}

/* A TUN device belongs to the namespace in which it was opened, its file descriptor works anywhere. */
static int open_tun(const char *netns, const char *address) {
    char path[256];
    struct ifreq request;
    int home = open("/proc/self/ns/net", O_RDONLY), there, tun;

    snprintf(path, sizeof path, "/run/netns/%s", netns);
    if (home < 0 || (there = open(path, O_RDONLY)) < 0 || setns(there, CLONE_NEWNET) < 0)
        fail(path);
    memset(&request, 0, sizeof request);
    request.ifr_flags = IFF_TUN | IFF_NO_PI;
    strncpy(request.ifr_name, DEVICE, IFNAMSIZ - 1);
    if ((tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK)) < 0 || ioctl(tun, TUNSETIFF, &request) < 0)
        fail("/dev/net/tun");
    if (setns(home, CLONE_NEWNET) < 0)
        fail("setns");
    close(home);
    close(there);
    configure(netns, address);
    return tun;
}

/* When a packet that came now is through, or 0 if it does not fit into the queue. */
static uint64_t due_ns(struct direction *d, uint64_t now, int size) {
    long rate = atomic_load(&rate_kbit);
    uint64_t due = now;

    if (rate > 0) {
        uint64_t start = d->wire_free_ns > now ? d->wire_free_ns : now;
        double waiting_bytes = (double)(start - now) * (double)rate / 8e6;
        if (waiting_bytes + size > (double)atomic_load(&queue_bytes))
            return 0;
        d->wire_free_ns = due = start + (uint64_t)(size * 8e6 / (double)rate);
    }
    due += (uint64_t)atomic_load(&delay_us) * 1000u;
    if (due < d->last_due_ns)
        due = d->last_due_ns;
    return d->last_due_ns = due;
}

static void keep(struct direction *d, const unsigned char *bytes, int size, uint64_t due) {
    struct packet *p = malloc(sizeof *p + (size_t)size);
    if (p == NULL)
        fail("malloc");
    p->next = NULL;
    p->due_ns = due;
    p->size = size;
    memcpy(p->bytes, bytes, (size_t)size);
    if (d->last != NULL)
        d->last->next = p;
    else
        d->first = p;
    d->last = p;
}

static void take(struct direction *d, const unsigned char *bytes, int size) {
    uint64_t now = now_ns(), due;

    atomic_fetch_add(&d->packets, 1);
    atomic_fetch_add(&d->bytes, (unsigned long)size);
    if (atomic_load(&is_cut) || (long)(next_random(d) % 1000000) < atomic_load(&loss_ppm))
        atomic_fetch_add(&d->lost, 1);
    else if ((due = due_ns(d, now, size)) == 0)
        atomic_fetch_add(&d->dropped, 1);
    else
        keep(d, bytes, size, due);
}

static void deliver_due(struct direction *d) {
    struct packet *p;
    uint64_t now = now_ns();

    while ((p = d->first) != NULL && p->due_ns <= now) {
        /* A device that takes no more loses the packet, as a full network card does. */
        if (write(d->to, p->bytes, (size_t)p->size) < 0)
            atomic_fetch_add(&d->dropped, 1);
        if ((d->first = p->next) == NULL)
            d->last = NULL;
        free(p);
    }
}

static void set_timer(int timer, uint64_t at_ns) {
    struct itimerspec when = {
        {0, 0}, {(time_t)(at_ns / 1000000000u), (long)(at_ns % 1000000000u)}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static void *run(void *argument) {
    struct direction *d = argument;
    static _Thread_local unsigned char bytes[PACKET_MAX];
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), size, i;
    uint64_t expirations;
    struct pollfd files[2] = {{d->from, POLLIN, 0}, {timer, POLLIN, 0}};

    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    for (;;) {
        if (d->first != NULL)
            set_timer(timer, d->first->due_ns);
        poll(files, 2, -1);
        if (files[1].revents != 0 && read(timer, &expirations, sizeof expirations) < 0 &&
            errno != EAGAIN)
            fail("timer");
        for (i = 0; i < BURST && (size = (int)read(d->from, bytes, sizeof bytes)) > 0; i++)
            take(d, bytes, size);
        deliver_due(d);
    }
    return NULL;
}

static void start(struct direction *d, int from, int to, uint64_t seed) {
    pthread_t thread;
    d->from = from;
    d->to = to;
    d->random = seed;
    if (pthread_create(&thread, NULL, run, d) != 0)
        fail("pthread_create");
}

static void print_stats(void) {
    printf("ab %lu %lu %lu %lu ba %lu %lu %lu %lu\n", ab.packets, ab.bytes, ab.lost, ab.dropped,
           ba.packets, ba.bytes, ba.lost, ba.dropped);
}

static int set(const char *name, long value) {
    if (strcmp(name, "delay") == 0)
        atomic_store(&delay_us, value);
    else if (strcmp(name, "rate") == 0)
        atomic_store(&rate_kbit, value);
    else if (strcmp(name, "queue") == 0)
        atomic_store(&queue_bytes, value);
    else if (strcmp(name, "loss") == 0)
        atomic_store(&loss_ppm, value);
    else
        return 0;
    return 1;
}

static void obey(const char *line) {
    char name[16] = "";
    long value = 0;
    int words = sscanf(line, "%15s %ld", name, &value);

    if (words == 1 && strcmp(name, "stats") == 0) {
        print_stats();
        return;
    }
    if (words == 1 && (strcmp(name, "cut") == 0 || strcmp(name, "open") == 0))
        atomic_store(&is_cut, name[0] == 'c');
    else if (words != 2 || value < 0 || !set(name, value)) {
        printf("bad command: %s", line);
        return;
    }
    printf("ok\n");
}

int main(int count, char **arguments) {
    char line[128];
    int a, b;

    if (count != 5) {
        fprintf(stderr, "usage: linkem NETNS_A ADDRESS_A/LEN NETNS_B ADDRESS_B/LEN\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    a = open_tun(arguments[1], arguments[2]);
    b = open_tun(arguments[3], arguments[4]);
    start(&ab, a, b, 88172645463325252u);
    start(&ba, b, a, 362436069u);
    printf("ready\n");
    while (fgets(line, sizeof line, stdin) != NULL)
        obey(line);
    return 0;
}
