/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The wire: connected queue pairs (RC, UC) whose peer is outside of the fabric exchange packets of
 * RoCEv2 with it (InfiniBand specification volume 1, sections 9.7 and 9.8; annex A17). So do those
 * of one fabric whose packets make the detour by the daemon (hca/link/detour.h).
 *
 * packet_requester.c        requests that wait in the send queue become packets
 * packet_requester_*.c      the requester takes responses, and sends lost packets again
 * packet_responder.c        carries out what packets ask for, by responder.h
 * packet_responder_acks.c   sends acknowledgements and responses
 * packet_states.c           the wire opens and closes with the queue pair's state; for its owner
 * packet_receiver.c         whose packet this is; for the thread that receives at a port
 * packet_path.c             whether there are packets, and by which path they go
 * packet_build.c            headers of packets, payloads from memory and into it
 * packet_send_order.c       packets leave in the order in which they were made
 * packet_out_of_order.c     packets that came before their turn are kept
 * packet_repair.c           a process died in the middle of this
 * packet_connection.c       what several of these need
 *
 * How far they are stands in shared memory (shm/packets.h), so any thread of any process can go on
 * with either half: the thread that posts, the thread that takes a datagram off the port's sockets
 * for all (hca/link/link_roce.h), or the daemon, while nobody polls, and when a time is over. For
 * that a thread needs a struct hca_wire, of its own.
 *
 * A half is worked on with its lock held, which names the holder: see shm/packets.h.
 */
#ifndef HCA_PACKET_CONNECTION_H
#define HCA_PACKET_CONNECTION_H

#include "hca/link/link_roce.h"
#include "hca/transport/connected.h"
#include "shm/packets.h"

/* The two bits of ECN in a traffic class: not marked, may be; and marked. */
#define HCA_WIRE_ECN_MASK    3
#define HCA_WIRE_ECN_CAPABLE 2
#define HCA_WIRE_ECN_MARKED  3

/* So long one worker waits for another, to keep packets in order; then that one was stopped. */
#define HCA_WIRE_PATIENCE_NS 100000000

/* This worker waits for another one: for which, perhaps at which turn, since when, and when it was
 * seen there the last time. seen_ns 0: it does not wait. */
struct hca_wire_wait {
	uint32_t worker;
	uint64_t since_ns, seen_ns;
};

/* Notes that this worker still waits for @worker. Whether it has waited for so long that @worker
 * counts as stopped. */
bool hca_wire_has_waited(struct hca_wire_wait *wait, uint32_t worker);

/* Which half a packet is for. */
enum hca_wire_half { HCA_WIRE_REQUESTER, HCA_WIRE_RESPONDER, HCA_WIRE_HALVES };

/* A packet for later, with its payload. */
struct hca_wire_copy {
	TAILQ_ENTRY(hca_wire_copy) entry; /* of the queue pair's */
	/* of one that was put off: as in shm_wire.put_off */
	uint32_t number;
	/* of one that is ahead of its turn */
	uint32_t open;     /* hca_wire.open then */
	uint64_t position; /* its PSN, and before it how often PSNs have come around */
	uint64_t kept_ns;
	enum hca_wire_half half;
	struct hca_wire *wire;
	TAILQ_ENTRY(hca_wire_copy) all; /* of the port's */
	struct wire_roce_packet packet;
	uint8_t payload[];
};

/* Packets that came one behind the other, of one message if they are several: those behind the
 * first have no header that says anything new. They are worked on as if they were one, so that
 * their payloads are copied at one time. */
struct hca_wire_run {
	const struct wire_roce_packet *packets;
	unsigned n;
	unsigned flags; /* enum wire_opcode_flag: of the first and of the last */
	uint32_t bytes; /* of payload */
	bool wants_ack;
};

static inline struct hca_wire_run hca_wire_run_of(const struct wire_roce_packet *packets,
                                                  unsigned n)
{
	struct hca_wire_run run = { .packets = packets,
		                    .n = n,
		                    .flags = wire_opcodes[packets[0].h.bth.opcode].flags |
		                             wire_opcodes[packets[n - 1].h.bth.opcode].flags };

	for (unsigned i = 0; i < n; i++) {
		run.bytes += packets[i].payload_bytes;
		run.wants_ack |= packets[i].h.bth.ack_requested;
	}
	return run;
}

/* Their payloads, as what is copied from. @iov: HCA_WIRES_RUN_MOST. */
struct hca_span hca_wire_payloads(const struct hca_wire_run *run, struct iovec *iov);

struct hca_wire {
	struct base_hash_node node;  /* of the port's, by queue pair number; not of the owner's */
	TAILQ_ENTRY(hca_wire) entry; /* of those that have something to send: hca_wires.due */
	TAILQ_ENTRY(hca_wire) known; /* of the port's: hca_wires.known */
	bool is_due;
	TAILQ_HEAD(, hca_wire_copy) deferred; /* packets that are put off: the lock was another's */
	unsigned n_deferred;
	struct hca_wire_ahead_list ahead[HCA_WIRE_HALVES]; /* packets behind a gap, by PSN */
	struct hca_wires *wires; /* the port's receiver, of which it is; or NULL */
	/* the turn of this one, of another process, is waited for since then; 0: of none */
	uint32_t awaited;
	uint64_t awaited_since_ns;
	uint32_t qpn;
	uint32_t worker;          /* in whose name this thread works: a queue pair of its process */
	uint32_t turn;            /* as hca_exchange.turn */
	uint32_t open;            /* shm_wire.open, when this was prepared */
	uint64_t barred_since_ns; /* its owner has not had the lock since then; 0: it has, */
	uint64_t barred_by;       /* as somebody else was at this turn of his */
	uint32_t room;            /* in the sender's batch, for packets of requests */
	struct hca_sender *sender; /* by which packets leave */
	/* both are nobody's from hca_wire_lose() up to the end of the turn */
	struct shm_wire *shm;
	struct shm_connection *connection;
	struct hca_roce_route route;
	/* of a packet that makes the detour, between begin() and end(): room for its payload */
	uint8_t *payload;
	uint32_t payload_bytes;
	struct shm_wire_path path;
	uint32_t gids_seq;    /* of the port's record, when its GID was looked for */
	bool has_source;      /* the port has the GID by which its packets leave */
	bool waits_for_reply; /* an acknowledgement was put off */
	bool tells;           /* of the requests done in this turn some have completions */
	bool needs_owner;     /* the first request is the owner's own business */
	uint32_t egress;      /* as it stands in shm_wire.egress while it is held; or 0 */
	uint32_t egress_turn; /* of this worker */
	struct hca_wire_wait egress_wait;
	struct hca_wire_wait ack_wait;  /* for the responder's lock, to acknowledge first */
	uint64_t notified_ns;           /* when this thread has sent a CNP last */
	struct hca_end end;             /* memory of the queue pair's process, for its requests */
	struct hca_responder responder; /* the same queue pair, for requests of its peer */
};

/* How far PSN @a is behind @b; less than 0: before it. PSNs have 24 bits and come around. */
static inline int32_t wire_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t wire_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & WIRE_PSN_MASK;
}

/* Packets of a message of @bytes: one, if it is empty. */
static inline uint32_t hca_wire_packets(const struct hca_wire *w, uint32_t bytes)
{
	return bytes ? ((bytes - 1) >> w->path.mtu_shift) + 1 : 1;
}

/* Bytes of packet @i of a message of @length. */
static inline uint32_t hca_wire_packet_bytes(const struct hca_wire *w, uint32_t length, uint32_t i)
{
	const uint64_t left = length - ((uint64_t)i << w->path.mtu_shift);

	return left < 1u << w->path.mtu_shift ? (uint32_t)left : 1u << w->path.mtu_shift;
}

/* ---- for its owner, with the send lock held ---- */

/* The queue pair moves to RTR, RTS or SQD, or its attributes change there: opens the wire, if it is
 * to exchange packets, or tells those who use it what is new. */
void hca_wire_open(struct hca_connected_qp *c);

/* It does not send or receive any more. Returns when nobody works on it. */
void hca_wire_close(struct hca_connected_qp *c);

/* It has moved to SQD. Whether requests that were begun are not done: then IBV_EVENT_SQ_DRAINED
 * follows, when they are. */
bool hca_wire_drain(struct hca_connected_qp *c);

/* Requests were posted, or it polls: sends what may be sent, and sees to what is late. */
void hca_wire_go_on(struct hca_connected_qp *c);

/* A program that polls may post for longer than the daemon relies on a poll. Then what has come is
 * taken here, and the daemon does not compete with the program for the processors; unless the
 * program may sleep. With the queue pair's send lock held. */
void hca_wire_look_at_network(const struct hca_connected_qp *c);

void hca_wire_free(struct hca_connected_qp *c);

/* ---- for its owner, without it ---- */

/* Receives were posted, after the peer was told that there are none. */
void hca_wire_tell_credits(struct hca_connected_qp *c);

/* ---- locks: of the send queue (shm_connection.lock), or the responder's (shm_wire.lock) ---- */

/* A holder keeps a lock for a microsecond, unless the scheduler stops it: it is not waited for. */
#define HCA_WIRE_LOCK_SPINS 50
/* So many batches of requests are sent at one time: more than a window has. */
#define HCA_WIRE_BATCHES_MOST 8

static inline bool hca_wire_try_lock(_Atomic uint32_t *lock, uint32_t worker)
{
	uint32_t nobody = 0;

	/* acquire: pairs with the release in hca_wire_release() */
	return atomic_compare_exchange_strong_explicit(lock, &nobody, worker, memory_order_acquire,
	                                               memory_order_relaxed);
}

/* Acquires a lock in shared memory, unless somebody else keeps it. */
static inline bool hca_wire_acquire(const struct hca_wire *w, _Atomic uint32_t *lock)
{
	for (unsigned spins = 0; !hca_wire_try_lock(lock, w->worker); spins++) {
		if (spins == HCA_WIRE_LOCK_SPINS)
			return false;
		base_relax();
	}
	return true;
}

static inline void hca_wire_release(_Atomic uint32_t *lock, uint32_t worker)
{
	/* it may have been taken from a thread that was stopped */
	atomic_compare_exchange_strong_explicit(lock, &worker, 0, memory_order_release,
	                                        memory_order_relaxed);
}

/*
 * Packets are made with the lock of their half held. They leave when the lock is released: leaving
 * may take long, and packets that come meanwhile want the lock. A worker that makes packets has the
 * egress until they have left, so that another worker's packets do not overtake them. Packets that
 * make the detour leave at once.
 *
 * acquire_egress(): with a lock held, before packets are made; again is the same. False: another
 * worker has the egress. That worker sends what there is to send, or the daemon does, a tick later.
 * want_egress(): the next worker that has the egress sends what there is to send, or the daemon.
 * leave(): packets leave, and the egress is released. True: another worker wanted the egress, so
 * the caller now sends what there is to send.
 */
bool hca_wire_acquire_egress(struct hca_wire *w);
void hca_wire_want_egress(struct hca_wire *w);
static inline bool hca_wire_egress_is_wanted(const struct hca_wire *w)
{
	return atomic_load_explicit(&w->shm->egress, memory_order_relaxed) & SHM_WIRE_WANTED;
}
bool hca_wire_leave(struct hca_wire *w);

/* Nobody sees what this worker does in its turn from now on. Returns false. */
bool hca_wire_lose(struct hca_wire *w);

/* Behind a copy, in which this worker may have been stopped for long: whether it still has the
 * lock. If not, its owner has taken it, and there may be another connection. */
static inline bool hca_wire_keeps(struct hca_wire *w, const _Atomic uint32_t *lock)
{
	return base_likely(atomic_load_explicit((_Atomic uint32_t *)lock, memory_order_relaxed) ==
	                   w->worker) ||
	       hca_wire_lose(w);
}

static inline uint32_t hca_wire_opened(const struct hca_wire *w)
{
	/* acquire: pairs with the release in hca_wire_open(): the path came before */
	return atomic_load_explicit(&w->shm->open, memory_order_acquire);
}

/* Whether it is open for that, and all that this thread knows is still so. */
static inline bool hca_wire_is_open(const struct hca_wire *w, uint32_t what)
{
	uint32_t open = hca_wire_opened(w);

	return (open & what) && open == w->open;
}

/* ---- a process died while it had a lock (packet_repair.c) ---- */

/* Of the half that receives requests, or sends them. */
static inline enum shm_wire_broken hca_wire_broken_bit(uint32_t what)
{
	return what & SHM_WIRE_RECEIVES ? SHM_WIRE_RESPONDER : SHM_WIRE_REQUESTER;
}

/* Whether that half is to be mended. */
static inline bool hca_wire_is_broken(const struct hca_wire *w, uint32_t what)
{
	return base_unlikely(atomic_load_explicit(&w->shm->broken, memory_order_relaxed) &
	                     hca_wire_broken_bit(what));
}
/* With the lock held: mends it. */
void hca_wire_mend(struct hca_wire *w, uint32_t what);

/* The responder's packet is that far. */
static inline void hca_wire_step(struct hca_wire *w, enum shm_wire_step step)
{
	/* a process that dies has done all that comes before an instruction, and nothing that comes
	 * behind it: only the compiler may change the order */
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&w->shm->step, step, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

/* The lock is held: whether there is anything to do, for a half that is whole then. */
static inline bool hca_wire_may_work(struct hca_wire *w, uint32_t what)
{
	if (!hca_wire_is_open(w, what))
		return false;
	if (hca_wire_is_broken(w, what))
		hca_wire_mend(w, what);
	return true;
}

/* ---- what a thread knows of a queue pair ---- */

/* @worker: in whose name it works; @sender: by which packets leave. */
void hca_wire_init(struct hca_wire *w, struct hca_process *p, uint32_t qpn, uint32_t worker,
                   struct hca_sender *sender);
void hca_wire_fini(struct hca_wire *w);

/* Whether this worker has lost the queue pair in its turn, behind which it finds it again. */
bool hca_wire_is_lost(const struct hca_wire *w);
void hca_wire_find(struct hca_wire *w);

/* As hca_wire_watch(), for a caller that has no struct hca_wire. @detours: as in struct
 * shm_wire_path. */
void hca_wire_watch_queue(struct hca_process *p, uint32_t qpn, const struct hca_sender *sender,
                          bool detours);

/* ---- acknowledgements that wait for replies ---- */

bool hca_wire_reply_is_likely(struct hca_wire *w);
/* The owner has sent something: perhaps the reply. */
void hca_wire_replied(struct hca_wire *w);
/* A request is to be sent while an acknowledgement is due, which must leave first. False: another
 * worker has the responder's lock, and will send both. True: this worker may send. *@has_lock:
 * false if the other worker was stopped, for which this one does not wait, or if nothing can be
 * acknowledged now. */
bool hca_wire_acknowledges_first(struct hca_wire *w, bool *has_lock);
/* Acknowledges, unless another thread has the lock, and may acknowledge. */
void hca_wire_try_acknowledge(struct hca_wire *w);
/* The same, and sends the responses that are due. */
void hca_wire_try_respond(struct hca_wire *w);

/* ---- both halves ---- */

/* Copies the queue pair's record anew if it has changed. False: there is no such queue pair. */
bool hca_wire_renew(struct hca_wire *w);

/* The queue pair has something to wait for, so the daemon looks at it now and then. */
void hca_wire_watch(struct hca_wire *w);

/* Counts at the queue pair's port: a member of struct shm_roce_port. */
#define HCA_WIRE_COUNT(w, what)                                                          \
	atomic_fetch_add_explicit(                                                       \
	        &shm_roce_port_at(&(w)->end.process->region, (w)->end.qp.port)->what, 1, \
	        memory_order_relaxed)

/*
 * A packet of the queue pair, in two steps. begin(): room for its payload of @bytes, up to
 * WIRE_ROCE_MAX_PAYLOAD. NULL: as if it had got lost. end(): the payload is there; the packet
 * leaves, at the latest with hca_sender_finish().
 */
uint8_t *hca_wire_begin(struct hca_wire *w, uint32_t bytes);
void hca_wire_end(struct hca_wire *w, const struct wire_headers *h);

/* Whether what the queue pair sends becomes packets, and the path of these. Its owner's. @is_open:
 * it has been asked for this connection. packet_path.c. */
bool hca_wire_choose(struct hca_connected_qp *c, struct shm_wire_path *path, bool is_open);

/* Finds the GID of the port by which its packets leave: the table of GIDs may be another now. */
void hca_wire_find_source(struct hca_wire *w);

/* Fills in what all packets of the queue pair have. */
struct wire_bth hca_wire_bth(const struct hca_wire *w, enum wire_operation operation, uint32_t psn);

/* Copies @bytes of @parts, from @offset on, to @room. 0 or as hca_memory_copy(). The program may
 * change them meanwhile, and the ICRC is of the copy. */
int hca_wire_gather(const struct hca_end *end, struct hca_parts *parts, uint64_t offset,
                    uint64_t bytes, uint8_t *room);
/*
 * The same for one packet after another, of @length bytes in all. Of memory that takes a system
 * call the payloads of up to @packets are copied at one time, as far as they follow each other in
 * the sender's batch. at: what was copied ahead, left: so many bytes from @next on; 0 at first.
 */
struct hca_wire_gathering {
	const struct hca_end *end;
	struct hca_parts *parts;
	uint64_t length;
	uint32_t packets;
	const uint8_t *at;
	uint64_t left, next;
};
int hca_wire_gather_next(const struct hca_wire *w, struct hca_wire_gathering *g, uint64_t offset,
                         uint32_t bytes, uint8_t *room);
/* The other way round. It changes @from. */
int hca_wire_scatter(const struct hca_end *end, struct hca_parts *parts, uint64_t offset,
                     struct hca_span *from, uint32_t bytes);

/* A copy of the packet, or NULL: no memory. */
struct hca_wire_copy *hca_wire_copy(const struct wire_roce_packet *p);

/* ---- packets ahead of their turn (packet_out_of_order.c): with the lock held of the half that
 * they are for
 * ---- */

/* Whether what comes behind a gap is kept, and only what got lost is sent again. */
static inline bool hca_wire_is_selective(const struct hca_wire *w)
{
	return w->end.process->region.control->settings.roce_selective_repeat &&
	       w->end.qp.type == IBV_QPT_RC;
}

/* Keeps a copy of the packet, as one before it has not come yet, if there is room. */
void hca_wire_keep_ahead(struct hca_wire *w, enum hca_wire_half half,
                         const struct wire_roce_packet *p);
/* The first packet that is kept. Packets whose turn is over are forgotten. */
struct hca_wire_copy *hca_wire_first_ahead(struct hca_wire *w, enum hca_wire_half half);
/* Takes the first packet, if it is its turn; the caller frees it. Else NULL. */
struct hca_wire_copy *hca_wire_take_ahead(struct hca_wire *w, enum hca_wire_half half);
void hca_wire_forget_ahead(struct hca_wire *w);

/* ---- turns to READ (shm/readers.h) ---- */

static inline struct shm_readers *hca_wire_readers(const struct hca_wire *w)
{
	return &shm_roce_port_at(&w->end.process->region, w->end.qp.port)->readers;
}

/* A time as they take it. */
static inline uint32_t hca_wire_ms(uint64_t ns)
{
	return (uint32_t)(ns / 1000000);
}

/* ---- requester: with the lock of the send queue held ---- */

/* Puts what may be sent into the sender's batch, up to as much as that has room for. Whether there
 * is more. */
bool hca_wire_send(struct hca_wire *w);
/* As hca_wire_drain(). */
bool hca_wire_drains(struct hca_wire *w);
/* Sees to what is late. */
void hca_wire_look_at_time(struct hca_wire *w, uint64_t now);
/* A response, or a CNP, has come. As hca_wire_send(), which follows. */
bool hca_wire_response(struct hca_wire *w, const struct hca_wire_run *run);
/* Notes whether the first request is the owner's own business: then hca_wire_release_requests()
 * tells the owner, who may sleep. */
void hca_wire_look_for_owner(struct hca_wire *w);
/* Releases the lock, then tells the owner what was done with it held. Not before: the owner may
 * want the lock at once, and does not wait for it. */
void hca_wire_release_requests(struct hca_wire *w);

/* ---- responder: with its lock held ---- */

/* A request has come. */
void hca_wire_request(struct hca_wire *w, const struct hca_wire_run *run);
/* No more will come, the rest of a message neither: gives back a receive that is kept for it. */
void hca_wire_give_back(struct hca_wire *w);
/* Sends responses and acknowledgements that are due. Whether some are left. */
bool hca_wire_respond(struct hca_wire *w);
/* The packets that have come are to be acknowledged. */
static inline bool hca_wire_ack_is_due(const struct hca_wire *w)
{
	return atomic_load_explicit(&w->shm->ack_due, memory_order_relaxed);
}
/* Whether an acknowledgement is due: of what has come, of a gap behind it, or for the credits that
 * it tells. Nobody knows, if the half is broken. */
static inline bool hca_wire_owes(const struct hca_wire *w)
{
	return hca_wire_ack_is_due(w) || w->shm->in.nak_due ||
	       hca_wire_is_broken(w, SHM_WIRE_RECEIVES) ||
	       atomic_load_explicit(&w->shm->credits_due, memory_order_relaxed);
}
/* The acknowledgement alone, if one is due and no response comes first. */
void hca_wire_acknowledge(struct hca_wire *w);
/* @n packets that were expected, of a SEND or WRITE, are carried out. @is_last: the last one is of
 * its message. */
void hca_wire_count_packets(struct hca_wire *w, uint32_t n, bool is_last);

#endif
