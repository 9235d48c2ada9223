/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libumbel-sockets.so: TCP sockets of unmodified programs become rsockets. `umbel exec --sockets`
 * preloads it. Its functions that have names of the C library's are in wrap_*.c.
 *
 * A program's descriptor is always a TCP socket of the kernel's, so its number can be no other's,
 * and what is asked of it before anything is known of it works. When it is bound or connected to an
 * address of the fabric's, an rsocket is made, which has a descriptor of its own that the program
 * does not know; from then on calls go there. All other addresses are left to TCP, and such a
 * socket is forgotten.
 *
 * Sets of epoll are the kernel's, too: see epoll.c.
 *
 * Locks: the table's guards which socket a number means; that of the sets (sockets_lock()) guards
 * sets and watches, and is taken before. None is held while a call sleeps.
 */
#ifndef SOCKETS_SOCKETS_H
#define SOCKETS_SOCKETS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/util.h"
#include "sockets/real.h"

/*
 * Around the calls of librdmacm: calls of these libraries to functions of the C library's names,
 * such as getsockopt() of all descriptors that the process has, are not for us. A thread that may
 * be cancelled at any instruction is so at cancellation points only from then on: librdmacm would
 * make a system call in each of its calls to be safe from the former, and we have locks, too.
 */
extern _Thread_local unsigned sockets_inside
        __attribute__((visibility("hidden"), tls_model("initial-exec")));
#define SOCKETS_INSIDE(call)                                          \
	({                                                            \
		__typeof__(call) result_;                             \
                                                                      \
		sockets_inside++;                                     \
		pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL); \
		result_ = (call);                                     \
		sockets_inside--;                                     \
		result_;                                              \
	})

#define SOCKETS_RETRY_MS 100 /* while another process listens */

#define SOCKETS_MOST 65536 /* descriptors: those above are TCP's */

struct sockets_watch;

struct sockets_socket {
	unsigned numbers; /* descriptors of the program that mean it; the table's lock */
	unsigned refs;    /* one for all numbers, and those of calls; likewise */
	TAILQ_ENTRY(sockets_socket) entry;
	LIST_HEAD(, sockets_watch) watches; /* the sets' lock */

	int fd; /* its first number */
	int domain;
	atomic_int rs;                /* the rsocket's descriptor; -1: it is the kernel's so far */
	bool is_parents;              /* fork() was called since: it works in the parent alone */
	bool is_inherited;            /* a parent of this process made it */
	bool connects;                /* so it was told */
	bool listens;                 /* so it was told */
	bool is_used;                 /* it listens, and was asked for connections */
	bool is_left;                 /* likewise, but another process listens there */
	int backlog;                  /* of one that listens */
	struct sockaddr_storage name; /* likewise: its own; before, the one that it was bound to */
	socklen_t name_bytes;
	bool is_relayed; /* relay.c: it is an end of a pair by now */
	struct sockaddr_storage peer;
	socklen_t peer_bytes;
	int rcvbuf, sndbuf;        /* what the program wants; 0: it did not say */
	atomic_int rcv_ms, snd_ms; /* SO_RCVTIMEO, SO_SNDTIMEO; 0: none */
};

/* ---- table.c: sockets by number ---- */

extern _Atomic(struct sockets_socket *) sockets_table[SOCKETS_MOST]
        __attribute__((visibility("hidden")));

static inline bool sockets_may_be(int fd)
{
	/* relaxed: a thread that uses a number knows of it by other means than this */
	return (unsigned)fd < SOCKETS_MOST && !sockets_inside &&
	       atomic_load_explicit(&sockets_table[fd], memory_order_relaxed);
}

/* The socket with this number, with a reference; NULL: it is none of ours. */
struct sockets_socket *sockets_find(int fd);

/* The same if it is an rsocket. */
struct sockets_socket *sockets_rsocket(int fd);

void sockets_put(struct sockets_socket *s);

/* For pthread_cleanup_push(): the thread is cancelled in a call of librdmacm. */
void sockets_abandon(void *socket);

/* A new one of that number, with a reference; NULL: there is no memory, or the number is too high.
 */
struct sockets_socket *sockets_new(int fd, int domain, int rs);

/* @to means what @from does, if that is of ours. */
void sockets_also(int from, int to);

/* The number means it no more: to be called before the kernel closes it. */
void sockets_close(int fd);
void sockets_close_range(unsigned first, unsigned last);

/* It is TCP's for good: no number means it any more. */
void sockets_forget(struct sockets_socket *s);

/* Calls @each with all there are, each with a reference. */
void sockets_each(void (*each)(struct sockets_socket *s));

/* Whether this is the process that the tables are of: not a child of vfork(), which shares them. */
bool sockets_is_here(void);

/* Around fork(); forked: in the child, where no lock is held then. */
void sockets_table_begin(void);
void sockets_table_lock(void);
void sockets_table_unlock(void);
void sockets_table_forked(void);

/* ---- stream.c: what a socket becomes ---- */

/* 0, or -1 and errno, as the calls. -2: it is left to the kernel. */
#define SOCKETS_KERNEL (-2)
int sockets_bind(struct sockets_socket *s, int fd, const struct sockaddr *addr, socklen_t bytes);
int sockets_connect(struct sockets_socket *s, int fd, const struct sockaddr *addr, socklen_t bytes);
int sockets_listen(struct sockets_socket *s, int fd, int backlog);
int sockets_accept(struct sockets_socket *s, int fd, struct sockaddr *addr, socklen_t *bytes,
                   int flags);

/* The socket is about to be asked for connections, or for its events: one that listened before a
 * fork() listens again. False: another process listens there. */
bool sockets_use(struct sockets_socket *s, int fd);

/* Whether another process listens where some of ours would; tries again for all that would. */
bool sockets_are_left(void);
void sockets_set_left(struct sockets_socket *s, bool left);
void sockets_use_all(void);

/* Before fork(): one that listens and was not used is left to the first process that does. */
void sockets_leave_listener(struct sockets_socket *s);

/* Something has been done with it: @clear has the bits of poll() that are over. */
void sockets_touch(struct sockets_socket *s, unsigned clear);

/* ---- epoll.c: sets ---- */

void sockets_lock(void);
void sockets_unlock(void);

/* Whether the number is a set that sockets of ours have been added to. */
bool sockets_is_set(int fd);

int sockets_epoll_ctl(int set, int op, int fd, struct epoll_event *event);
int sockets_epoll_wait(int set, struct epoll_event *events, int n, int64_t timeout_ns,
                       const sigset_t *mask);

/* A set that others than sockets_epoll_wait() sleep on: it is readable when it has something. */
void sockets_epoll_expose(int set);

/* The socket has become an rsocket: sets watch that. */
void sockets_epoll_adopt(struct sockets_socket *s);

/* No set watches it any more; or the kernel does that with its socket. */
void sockets_epoll_leave(struct sockets_socket *s, bool to_kernel);

void sockets_epoll_also(int from, int to);
void sockets_epoll_close(int fd);
void sockets_epoll_forked(void);

/* ---- poll.c ---- */

int sockets_poll(struct pollfd *fds, nfds_t n, int timeout, const sigset_t *mask);
bool sockets_poll_is_ours(const struct pollfd *fds, nfds_t n);

/* The end of a call that begins now and may take @ms. */
static inline uint64_t sockets_end_of(int ms)
{
	return base_now_ns() + (uint64_t)ms * 1000000;
}

/* 0, or -1: EAGAIN when the time is over; EINTR, as calls with a time limit are not made again
 * after a signal. */
int sockets_await(const struct sockets_socket *s, short events, uint64_t until);

#endif
