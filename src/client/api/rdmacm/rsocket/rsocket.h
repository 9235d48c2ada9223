/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rsockets: the calls of rsocket(7). Here is the common part of all rsockets. The functions of each
 * type are in a table (struct rsocket_type). rsocket_dgram.h has datagrams, which are UD messages,
 * rsocket_stream.h streams, which are RDMA WRITEs over reliable connections.
 *
 * An rsocket's descriptor is an epoll instance, which is readable when something may have happened.
 *
 * Thread safety: rsocket.lock guards an rsocket. It is released while a thread sleeps. A thread in
 * a call holds a reference, so that another thread may close it. The functions of a table are
 * called with the lock held.
 */
#ifndef API_RDMACM_RSOCKET_H
#define API_RDMACM_RSOCKET_H

#include <poll.h>
#include <rdma/rsocket.h>
#include <sys/uio.h>

#include "api/rdmacm/rdmacm.h"

struct rsocket;

/* The data that a call sends, or the room that it has; and how much of that it used. */
struct rsocket_message {
	const struct iovec *iov;
	size_t n_iov;
	size_t bytes; /* of all */
	int flags;
	const struct sockaddr *to; /* sending: NULL if the caller says none */
	socklen_t to_bytes;
	union control_cm_addr src; /* receiving: the sender; no family: none */
	bool truncated;
};

/* How rsockets of a type work. Functions return 0 or -errno if nothing else is said. */
struct rsocket_type {
	int type, protocol;
	bool by_gid; /* there are such rsockets of AF_IB as well */

	struct rsocket *(*alloc)(void);
	void (*free)(struct rsocket *rs);  /* what open() and later calls made, and the rsocket */
	void (*flush)(struct rsocket *rs); /* it is about to be closed: sent data may leave */

	/* @addr NULL: any address, and only if it has none. */
	int (*bind)(struct rsocket *rs, const union control_cm_addr *addr);
	int (*listen)(struct rsocket *rs, int backlog); /* NULL: it has no such call */
	int (*accept)(struct rsocket *rs, struct rsocket **accepted); /* one with a descriptor */
	int (*connect)(struct rsocket *rs, const union control_cm_addr *addr);
	int (*disconnect)(struct rsocket *rs); /* connect() to AF_UNSPEC */
	int (*shutdown)(struct rsocket *rs, int how);
	int (*own_name)(const struct rsocket *rs, union control_cm_addr *addr);
	int (*peer_name)(const struct rsocket *rs, union control_cm_addr *addr);

	/* The number of bytes, or -errno. */
	ssize_t (*send)(struct rsocket *rs, const struct rsocket_message *m);
	ssize_t (*receive)(struct rsocket *rs, struct rsocket_message *m);

	/* poll()'s bits of what could be done now. */
	short (*events)(struct rsocket *rs);
	/* Has what may happen next wake sleepers. To be followed by one more look, then a sleep. */
	void (*arm)(struct rsocket *rs);
	/* The descriptor that was added to the epoll instance with @what has woken us: acknowledges
	 * it. */
	void (*disarm)(struct rsocket *rs, void *what);
	/* Serves the events of rdma_cm. */
	void (*progress)(struct rsocket *rs);
	/* It listens, connects, or asks for a peer, whether a call waits for that or not. */
	bool (*goes_on)(const struct rsocket *rs);

	/* Options that not all have; -ENOTSUP. NULL: it has none. */
	int (*set)(struct rsocket *rs, int level, int name, const void *value, socklen_t bytes);
	int (*get)(struct rsocket *rs, int level, int name, void *value, socklen_t *bytes);
	/* Of queues and buffers, from now on: whether they are made already. */
	bool (*has_queues)(const struct rsocket *rs);
	int (*take_error)(struct rsocket *rs); /* SO_ERROR: an errno, told once */

	/* riomap() and its kin; NULL: it has no such calls. */
	int (*map)(struct rsocket *rs, void *addr, size_t bytes, int prot, off_t *offset);
	int (*unmap)(struct rsocket *rs, void *addr, size_t bytes);
	ssize_t (*write_mapped)(struct rsocket *rs, const struct rsocket_message *m, off_t offset);
};

extern const struct rsocket_type rsocket_dgram_type, rsocket_stream_type;

/* The options that a program has set; rsockets that a listener accepts begin with the
 * listener's. */
struct rsocket_options {
	bool nonblocking;
	bool reuse_addr, v6_only, keepalive, oob_inline;
	struct linger linger;
	uint32_t rcvbuf, sndbuf; /* bytes */
	uint32_t n_recv, n_send; /* depth of queues */
	uint32_t inline_bytes;
	int tos;
};

struct rsocket {
	const struct rsocket_type *type;
	int fd;         /* an epoll instance with all that can wake; the rsocket's number */
	unsigned refs;  /* session's lock */
	bool inherited; /* session's lock: it is the parent's, fork() made a copy */

	pthread_mutex_t lock; /* of what follows */
	int domain;
	int kick;             /* an eventfd that wakes a sleeper */
	bool is_served;       /* any call of the process does */
	bool is_led;          /* a thread sleeps in a call, on the epoll instance */
	unsigned n_followers; /* others that sleep in calls, on @changed */
	unsigned n_pollers;   /* threads in rpoll() */
	bool is_watched;      /* sets of epoll may have it: they have armed it */
	pthread_cond_t changed;
	bool closed, no_read, no_write;
	bool dead;     /* the daemon has gone */
	uint32_t news; /* streams: messages, connections and ends that have come (look.h) */
	struct rsocket_options options;
	struct rdma_event_channel *events; /* non-blocking */
	struct rdma_cm_id *id;             /* with the port number; NULL: it has none yet */
};

static inline uint64_t rsocket_now_ms(void)
{
	return base_now_ns() / 1000000;
}

static inline bool rsocket_may_block(const struct rsocket *rs, const struct rsocket_message *m)
{
	return !rs->options.nonblocking && !(m->flags & MSG_DONTWAIT);
}

/* ---- session.c: rsockets by descriptor ---- */

/* The rsocket, with a reference; or NULL: there is none, or it is the parent's. */
struct rsocket *rdmacm_session_rsocket(int fd);
void rdmacm_session_rsocket_put(struct rsocket *rs);

/* 0 or -ENOMEM. The table's reference is the first. */
int rdmacm_session_rsocket_add(struct rsocket *rs);

/* Removes it. 0; -EBADF: there is none. @inherited: it is the parent's. */
int rdmacm_session_rsocket_remove(int fd, bool *inherited);

/* Those that any call serves: @fd is an rsocket's. 0 or -errno. again: the thread that was told of
 * its events could not serve it. */
int rdmacm_session_serve_add(int fd);
void rdmacm_session_serve_remove(int fd);
void rdmacm_session_serve_again(int fd);

/* A descriptor that is readable when any of them has something that nobody was told of yet, of
 * which epoll's data is the descriptor; or -1. The same one as long as the process lives. */
int rdmacm_session_served(void);

/* Whether a call is to serve them in passing: there are any, and none has in this millisecond. */
bool rdmacm_session_serve_is_due(void);

/* ---- rsocket.c ---- */

/* The rsocket, referenced and locked; NULL and errno. Counterpart: rsocket_leave(). */
#define rsocket_enter(fd) rsocket_enter_call(__func__, fd)
struct rsocket *rsocket_enter_call(const char *call, int fd);

/* Unlocks and releases; @ret is the call's result: a number, or -errno, which it translates. */
#define rsocket_leave(rs, ret) rsocket_leave_call(__func__, rs, ret)
ssize_t rsocket_leave_call(const char *call, struct rsocket *rs, ssize_t ret);

/* Makes an rsocket with its descriptors, which is in no table yet. 0 or -errno. */
int rsocket_new(const struct rsocket_type *type, int domain, bool cloexec, struct rsocket **rs);

/* The last reference has gone. */
void rsocket_free(struct rsocket *rs);

/* Has events of @fd wake sleepers; @what: see disarm(). unwatch: no longer. */
int rsocket_watch(const struct rsocket *rs, int fd, void *what);
void rsocket_unwatch(const struct rsocket *rs, int fd);

/* An identifier for it, with the options that matter. 0 or -errno. */
int rsocket_make_id(struct rsocket *rs, enum rdma_port_space ps);

/* Has the identifier, which is there, ask for paths with that option. 0 or -errno. */
int rsocket_set_tos(struct rsocket *rs);

/* ---- rsocket_addr.c ---- */

/* A program's address with IPv4 unmapped; -EAFNOSUPPORT, -EINVAL. */
int rsocket_addr_get(const struct rsocket *rs, const struct sockaddr *addr, socklen_t bytes,
                     union control_cm_addr *out);

/* An address as the program wants it: mapped for AF_INET6, cut if there is no room. */
void rsocket_addr_put(const struct rsocket *rs, union control_cm_addr addr, void *to,
                      socklen_t *bytes);

bool rsocket_is_group(const union control_cm_addr *a);

/* ---- rsocket_sleep.c ---- */

/*
 * A thread that is in a call is cancelled only while it sleeps there, and so that it holds no lock
 * then: also one that asks to be cancelled at any instruction (PTHREAD_CANCEL_ASYNCHRONOUS), which
 * read(2) and others of the kernel's allow, and programs of TCP use. rsocket_cancel_on() and
 * base_cancel_off() are around the sleep, within pthread_cleanup_push().
 */
void rsocket_begin_call(void);
void rsocket_end_call(void);
void rsocket_cancel_on(void);

/* Sleeps, unlocked, until something has happened. 0; -EINTR; -ETIMEDOUT: @until_ms is past. */
int rsocket_sleep(struct rsocket *rs, uint64_t until_ms);

/* Acknowledges what has woken us, unless another thread sleeps, which will do so. */
void rsocket_drain(struct rsocket *rs);

/* This thread has seen something that other threads that sleep may wait for. */
void rsocket_changed(struct rsocket *rs);

/* Something has been received: others that sleep look for what is left. */
void rsocket_pass_on(struct rsocket *rs);

/* Threads that sleep look again. */
void rsocket_wake(struct rsocket *rs);

/* Has any call of the process serve it from now on if it goes on, or no more. 0 or -errno. */
int rsocket_leave_to_all(struct rsocket *rs);

/* Serves those that go on. No lock of an rsocket is held. in_passing: of a call that may have no
 * reason to sleep; now and then, and without waiting for a lock. */
void rsocket_serve_all(void);
void rsocket_serve_in_passing(void);

/* poll()'s timeout until then. */
int rsocket_timeout_ms(uint64_t until_ms);

/* ---- rsocket_io.c ---- */

/* Sum of the bytes; -EINVAL, -EMSGSIZE. */
ssize_t rsocket_iov_bytes(const struct iovec *iov, size_t n);

#endif
