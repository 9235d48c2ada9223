/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Datagram rsockets: their datagrams are UD messages. Each begins with a header that names the
 * sender's address, as the original's do.
 *
 * An rsocket has an end, which is a queue pair with its buffers, on each port that it uses. It is
 * known to others by an rdma_cm identifier with its port number, whose service the daemon
 * resolves (CONTROL_CM_SERVE): a program that is busy can be found all the same, and there is no
 * thread of ours in it. A peer is an address that was sent to; its queue pair is asked for before
 * the first datagram leaves, and again when nothing has come from it for a second, as it may have
 * been restarted.
 */
#ifndef API_RDMACM_RSOCKET_DGRAM_H
#define API_RDMACM_RSOCKET_DGRAM_H

#include "api/rdmacm/rsocket/rsocket.h"
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
	union control_cm_addr
	        from;      /* of those that it sends, likewise: @addr may be any of its own */
	struct ibv_ah *ah; /* NULL: not resolved */
	uint32_t qpn, qkey;
	uint32_t mtu; /* of the path, bytes */
	int error;    /* why it cannot be reached: -errno, to be told once */
	uint64_t asked_ms, heard_ms;
	STAILQ_HEAD(, rsocket_datagram) queued;
	unsigned n_queued;
};

struct rsocket_dgram {
	struct rsocket rs;
	TAILQ_HEAD(, rsocket_end) ends;
	struct base_hash peers;
	struct rsocket_peer *connected;
	unsigned n_resolving; /* peers with an identifier: whose events are to be looked for */
	unsigned n_empty;     /* looks for a datagram that found none */
	uint64_t swept_ms;
};

static inline struct rsocket_dgram *rsocket_dgram(struct rsocket *rs)
{
	return container_of(rs, struct rsocket_dgram, rs);
}

static inline const struct rsocket_dgram *rsocket_dgram_const(const struct rsocket *rs)
{
	return container_of(rs, const struct rsocket_dgram, rs);
}

/* ---- rsocket_dgram.c ---- */

/* Gives it a port number if it has none. @addr NULL: any address, and ends as they are needed. 0
 * or -errno. */
int rsocket_dgram_bind(struct rsocket_dgram *d, const union control_cm_addr *addr);

/* ---- rsocket_dgram_end.c ---- */

/* The end on that port, made if there is none, and served. 0 or -errno. */
int rsocket_end_get(struct rsocket_dgram *d, struct ibv_context *verbs, uint8_t port_num,
                    struct rsocket_end **end);
void rsocket_end_free(struct rsocket_dgram *d, struct rsocket_end *end);

/* Whether a send slot is free, after a look at the completions. */
bool rsocket_end_can_send(struct rsocket_end *end);

/* Sends a datagram to @peer, which is resolved. 0; -EAGAIN: no slot; -EMSGSIZE; -errno. */
int rsocket_end_send(const struct rsocket_dgram *d, const struct rsocket_peer *peer,
                     const struct iovec *iov, size_t n);

/* A datagram of those that have arrived, without the GRH; the oldest of its end stays until
 * rsocket_end_pop(). NULL: there is none. */
const uint8_t *rsocket_end_peek(struct rsocket_end *end, uint32_t *bytes);
void rsocket_end_pop(struct rsocket_end *end);

/* Has the next datagram wake sleepers. disarm: acknowledges such events. */
void rsocket_end_arm(struct rsocket_end *end);
void rsocket_end_disarm(struct rsocket_end *end);

/* ---- rsocket_dgram_peer.c ---- */

/* 0; -ENOMEM, -ENOBUFS. */
int rsocket_peer_get(struct rsocket_dgram *d, const union control_cm_addr *addr,
                     struct rsocket_peer **peer);
struct rsocket_peer *rsocket_peer_find(const struct rsocket_dgram *d,
                                       const union control_cm_addr *addr);
void rsocket_peers_free(struct rsocket_dgram *d);

/* Asks for the peer's queue pair, if there is reason to. 0 or -errno: there is no route. */
int rsocket_peer_resolve(struct rsocket_dgram *d, struct rsocket_peer *peer);

/* Serves the events of all resolutions. */
void rsocket_peers_progress(struct rsocket_dgram *d);

/* Keeps a datagram until the peer is resolved; the oldest of too many is lost. 0 or -ENOMEM. */
int rsocket_peer_queue(struct rsocket_peer *peer, const struct iovec *iov, size_t n);

/* Whether any datagram waits so. */
bool rsocket_peers_have_queued(const struct rsocket_dgram *d);

/* ---- rsocket_dgram_send.c, rsocket_dgram_receive.c: of the table ---- */

ssize_t rsocket_dgram_send(struct rsocket *rs, const struct rsocket_message *m);
ssize_t rsocket_dgram_receive(struct rsocket *rs, struct rsocket_message *m);
short rsocket_dgram_events(struct rsocket *rs);
void rsocket_dgram_arm(struct rsocket *rs);

#endif
