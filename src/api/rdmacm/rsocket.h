/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Datagram rsockets: sockets of the calls in rsocket(7) whose datagrams are UD messages. Each
 * message begins with a header that names the sender's address, as the original's do.
 *
 * An rsocket has an end, which is a queue pair with its buffers, on each port that it uses. It is
 * known to others by an rdma_cm identifier with its port number, whose service the daemon
 * resolves (CONTROL_CM_SERVE): a program that is busy can be found all the same, and there is no
 * thread of ours in it. A peer is an address that was sent to; its queue pair is asked for before
 * the first datagram leaves, and again when nothing has come from it for a second, as it may have
 * been restarted.
 *
 * Thread safety: rsocket.lock guards an rsocket. It is released while a thread sleeps. Who is in a
 * call holds a reference, so that another thread may close it.
 */
#ifndef API_RDMACM_RSOCKET_H
#define API_RDMACM_RSOCKET_H

#include <poll.h>
#include <rdma/rsocket.h>
#include <sys/uio.h>

#include "api/rdmacm/rdmacm.h"
#include "base/hash.h"

#define RSOCKET_GRH        40
#define RSOCKET_HEADER_4   8
#define RSOCKET_HEADER_6   24
#define RSOCKET_MAX_BYTES  (4096 - RSOCKET_HEADER_4)
#define RSOCKET_MAX_QUEUED 16   /* datagrams that wait until their peer is resolved */
#define RSOCKET_RESOLVE_MS 1000 /* that a blocking call waits for it */
#define RSOCKET_BUFFER     2048 /* bytes of SO_RCVBUF and SO_SNDBUF that one datagram counts for */

/* The receives that an end has posted are slots of @memory, the sends in progress those after. */
struct rsocket_end {
	TAILQ_ENTRY(rsocket_end) entry;
	struct ibv_context *verbs;
	uint8_t port_num;
	uint32_t mtu; /* bytes */
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
	uint32_t slot_bytes, n_recv, n_send;
	uint32_t *free_slot; /* of the send slots */
	uint32_t n_free;
	bool has_arrival; /* polled, and not received by the program yet */
	struct ibv_wc arrival;
};

struct rsocket_datagram {
	STAILQ_ENTRY(rsocket_datagram) entry;
	size_t bytes;
	uint8_t data[];
};

struct rsocket_peer {
	struct base_hash_node node;
	union control_cm_addr addr; /* no IPv4 address is mapped */
	struct rdma_cm_id *id;      /* while its queue pair is asked for */
	struct rsocket_end *end;    /* that leads there; NULL: not known yet */
	union control_cm_addr src;  /* of the datagrams to it; once there is an end */
	struct ibv_ah *ah;          /* NULL: not resolved */
	uint32_t qpn, qkey;
	uint32_t mtu; /* of the path, bytes */
	int error;    /* why it cannot be reached: -errno, to be told once */
	uint64_t asked_ms, heard_ms;
	STAILQ_HEAD(, rsocket_datagram) queued;
	unsigned n_queued;
};

struct rsocket {
	int fd;         /* an epoll instance with all that can wake; the rsocket's number */
	unsigned refs;  /* session's lock */
	bool inherited; /* session's lock: it is the parent's, fork() made a copy */

	pthread_mutex_t lock; /* of what follows */
	int domain;
	int kick; /* an eventfd that wakes a sleeper */
	unsigned sleepers;
	bool nonblocking, closed, no_read, no_write;
	bool reuse_addr, v6_only, keepalive, oob_inline, linger;
	bool dead; /* the daemon has gone */
	uint32_t rcvbuf, sndbuf, n_recv, n_send, inline_bytes;
	struct rdma_event_channel *events; /* non-blocking */
	struct rdma_cm_id *id;             /* with the port number; NULL: not bound */
	TAILQ_HEAD(, rsocket_end) ends;
	struct base_hash peers;
	struct rsocket_peer *connected;
	unsigned n_resolving; /* peers with an identifier: whose events are to be looked for */
	unsigned n_empty;     /* looks for a datagram that found none */
	uint64_t swept_ms;
};

static inline uint64_t rsocket_now_ms(void)
{
	return base_now_ns() / 1000000;
}

/* ---- session.c: rsockets by descriptor ---- */

/* The rsocket, with a reference; or NULL: there is none, or it is the parent's. */
struct rsocket *rdmacm_session_rsocket(int fd);
void rdmacm_session_rsocket_put(struct rsocket *rs);

/* 0 or -ENOMEM. The table's reference is the first. */
int rdmacm_session_rsocket_add(struct rsocket *rs);

/* Removes it. 0; -EBADF: there is none. @inherited: it is the parent's. */
int rdmacm_session_rsocket_remove(int fd, bool *inherited);

/* ---- rsocket.c ---- */

/* The rsocket, referenced and locked; NULL and errno. Counterpart: rsocket_leave(). */
struct rsocket *rsocket_enter(int fd);

/* Unlocks and releases; @ret is the call's result: a number, or -errno, which it translates. */
ssize_t rsocket_leave(struct rsocket *rs, ssize_t ret);

/* The last reference has gone. */
void rsocket_free(struct rsocket *rs);

/* Gives it a port number if it has none. @addr NULL: any address, and ends as they are needed. 0
 * or -errno. */
int rsocket_bind(struct rsocket *rs, const union control_cm_addr *addr);

/* A program's address with IPv4 unmapped; -EAFNOSUPPORT, -EINVAL. */
int rsocket_addr_get(const struct rsocket *rs, const struct sockaddr *addr, socklen_t bytes,
                     union control_cm_addr *out);

/* An address as the program wants it: mapped for AF_INET6, cut if there is no room. */
void rsocket_addr_put(const struct rsocket *rs, union control_cm_addr addr, void *to,
                      socklen_t *bytes);

bool rsocket_is_group(const union control_cm_addr *a);

/* ---- rsocket_end.c ---- */

/* The end on that port, made if there is none, and served. 0 or -errno. */
int rsocket_end_get(struct rsocket *rs, struct ibv_context *verbs, uint8_t port_num,
                    struct rsocket_end **end);
void rsocket_end_free(struct rsocket *rs, struct rsocket_end *end);

/* Whether a send slot is free, after a look at the completions. */
bool rsocket_end_can_send(struct rsocket_end *end);

/* Sends a datagram to @peer, which is resolved. 0; -EAGAIN: no slot; -EMSGSIZE; -errno. */
int rsocket_end_send(const struct rsocket *rs, const struct rsocket_peer *peer,
                     const struct iovec *iov, int n);

/* A datagram of those that have arrived, without the GRH; the oldest of its end stays until
 * rsocket_end_pop(). NULL: there is none. */
const uint8_t *rsocket_end_peek(struct rsocket_end *end, uint32_t *bytes);
void rsocket_end_pop(struct rsocket_end *end);

/* Has the next datagram wake sleepers. disarm: acknowledges such events. */
void rsocket_end_arm(struct rsocket_end *end);
void rsocket_end_disarm(struct rsocket_end *end);

/* ---- rsocket_peer.c ---- */

/* 0; -ENOMEM, -ENOBUFS. */
int rsocket_peer_get(struct rsocket *rs, const union control_cm_addr *addr,
                     struct rsocket_peer **peer);
struct rsocket_peer *rsocket_peer_find(const struct rsocket *rs, const union control_cm_addr *addr);
void rsocket_peers_free(struct rsocket *rs);

/* Asks for the peer's queue pair, if there is reason to. 0 or -errno: there is no route. */
int rsocket_peer_resolve(struct rsocket *rs, struct rsocket_peer *peer);

/* Serves the events of all resolutions. */
void rsocket_peers_progress(struct rsocket *rs);

/* Keeps a datagram until the peer is resolved; the oldest of too many is lost. 0 or -ENOMEM. */
int rsocket_peer_queue(struct rsocket_peer *peer, const struct iovec *iov, int n);

/* Whether any datagram waits so. */
bool rsocket_peers_have_queued(const struct rsocket *rs);

/* ---- rsocket_sleep.c ---- */

/* Has what may happen next wake sleepers. To be followed by one more look, then a sleep. */
void rsocket_arm(struct rsocket *rs);

/* Sleeps, unlocked, until something has happened. 0; -EINTR; -ETIMEDOUT: @until_ms is past. */
int rsocket_sleep(struct rsocket *rs, uint64_t until_ms);

/* Acknowledges what has woken us. */
void rsocket_drain(struct rsocket *rs);

/* Something has been received or changed: others that sleep look for what is left. */
void rsocket_pass_on(struct rsocket *rs);
void rsocket_wake(struct rsocket *rs);

/* ---- rsocket_receive.c ---- */

/* The end with the next datagram for the program, or NULL. */
struct rsocket_end *rsocket_next(struct rsocket *rs);

/* poll()'s bits of what could be done now. */
short rsocket_events(struct rsocket *rs);

/* Sum of the bytes; -EINVAL, -EMSGSIZE. */
ssize_t rsocket_iov_bytes(const struct iovec *iov, size_t n);

#endif
