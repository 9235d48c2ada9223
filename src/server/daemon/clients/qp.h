/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs as the daemon has them: number, record in shared memory, ring, flows and payload
 * memory.
 */
#ifndef DAEMON_QP_H
#define DAEMON_QP_H

#include "control/message.h"
#include "daemon/clients/cq.h"
#include "daemon/clients/memory.h"
#include "daemon/clients/qp_life.h"
#include "daemon/clients/srq.h"
#include "fabric/forwarding/flow.h"

/* A walk that undoes, when its process is dead, the queue pair's unfinished actions on a ring. */
struct daemon_qp_undo {
	uint32_t qpn; /* of the ring's owner; 0: there is nothing to undo */
	unsigned srq; /* rings of the shared queue of that QP's receives that had their turn */
	bool own;     /* its own ring has it, or had it */
	struct shm_ring_walk walk;
};

/* Number and memory that a process may make a queue pair of: reserve.h. */
struct daemon_qp_reservation {
	struct daemon_holder *holder;
	TAILQ_ENTRY(daemon_qp) of_all, of_holder;
	struct control_qp_shape shape;
	uint64_t ticket;
};

struct daemon_qp {
	TAILQ_ENTRY(daemon_qp) entry;
	enum daemon_qp_state state;
	struct daemon_holder *holder; /* NULL: it is not LIVE */
	struct daemon_hca *hca;
	struct daemon_cq *cq; /* NULL: it is hidden */
	LIST_ENTRY(daemon_qp) of_cq;
	bool is_roce_sender; /* hidden: in its name a process delivers what RoCE receives */
	uint32_t qpn;
	uint64_t ring_off;
	uint8_t ring_shift;
	uint32_t n_flows;
	LIST_HEAD(, fabric_flow) flows;
	LIST_HEAD(, daemon_payload) payloads;
	bool told_error, told_established; /* events of a connected QP */
	uint32_t events;                   /* that its holder was sent */
	struct daemon_srq *srq;            /* NULL: it receives by its own ring */
	LIST_ENTRY(daemon_qp) of_srq;
	uint64_t queue_off; /* of the requests and entries of a connected QP; or 0 */
	struct base_timer wait;
	uint32_t wait_cq; /* that is woken then */
	struct daemon_memory_want want;
	struct daemon_qp_undo undo;
	unsigned undone;         /* its holder's, when it was undone last */
	struct daemon_chore end; /* ENDING; the holder need not live to see it */
	struct daemon_qps *all;
	uint32_t hca_index;
	LIST_HEAD(, daemon_qp_user) users; /* of an XRC target, beside its owner */
	unsigned n_users;
	struct control_target target;          /* likewise: its path and PSN, for its other users */
	struct daemon_qp_reservation reserved; /* RESERVED */
};

/* A QP that is gone, and the shared receive queue by which it received. */
struct daemon_received {
	uint32_t qpn; /* 0: none has gone that had one */
	uint32_t srq; /* index */
};

/* A process that has an XRC target open which another process owns. */
struct daemon_qp_user {
	LIST_ENTRY(daemon_qp_user) of_holder, of_qp;
	struct daemon_hca *hca;
	struct daemon_qp *qp;
	uint32_t events; /* that this process was sent */
};

struct daemon_qps {
	struct fabric *f;
	struct daemon_memory *memory;
	struct daemon_chores *chores;
	struct daemon_cqs *cqs;
	struct daemon_srqs *srqs;
	struct base_idtable ids;
	uint8_t round[SHM_MAX_QPS]; /* high bits of the next QP number at an index */
	struct daemon_received received[SHM_MAX_QPS]; /* the last one at an index */
	unsigned n_roce;                              /* that are hidden */
	uint32_t extra_flows;              /* of all QPs, beyond those that each may have */
	unsigned n_in[DAEMON_QP_N_STATES]; /* by state */
	struct daemon_chore prune;         /* flows of those that were attached */
	/* what lies reserved, the oldest first: reserve.h */
	TAILQ_HEAD(, daemon_qp) reserved;
	struct daemon_ending ending;
	uint64_t last_ticket;
	/* Takes what the client's process has sent by way of the daemon, before a queue pair or a
	 * flow of it goes. NULL: nothing comes that way. */
	void (*take_sent)(void *arg, uint32_t client);
	void *take_arg;
	/* A queue pair of that HCA has begun to receive, as in RTR. NULL: nobody asks. */
	void (*begins)(void *arg, uint32_t hca, uint32_t qpn);
	void *begins_arg;
	/* There is a wire to look at (shm_wire_busy). NULL: nobody looks. */
	void (*is_busy)(void *arg);
	void *is_busy_arg;
};

/* 0 or -ENOMEM. */
int daemon_qps_init(struct daemon_qps *all, struct fabric *f, struct daemon_memory *memory,
                    struct daemon_cqs *cqs, struct daemon_srqs *srqs);
/* The queue pairs of holders that end are freed (ending.h). */
void daemon_qps_register(struct daemon_qps *all, struct daemon_endings *endings);

/* A QP of @cq's holder that receives by @cq. 0; -EAGAIN: memory is being freed, the client asks
 * again; -ENOMEM. */
int daemon_qp_new(struct daemon_qps *all, struct daemon_cq *cq,
                  const struct control_create_qp *want, struct daemon_qp **out);

/*
 * The same in two steps: daemon_qp_prepare() does all that can fail, and nobody sees a QP yet; the
 * second step makes it a QP. @shape: the wanted QP's. @want: waits for memory if there is none;
 * NULL: nobody waits, no memory is sought, and the error is -ENOMEM.
 */
int daemon_qp_prepare(struct daemon_qps *all, const struct daemon_holder *holder,
                      const struct control_qp_shape *shape, struct daemon_memory_want *want,
                      struct daemon_qp **out);
void daemon_qp_enter(struct daemon_qps *all, struct daemon_qp *qp, struct daemon_cq *cq,
                     const struct control_create_qp *want);
/* Frees one that was prepared. */
void daemon_qp_give_up(struct daemon_qps *all, struct daemon_qp *qp);
/* The event has happened to it: the next state, as qp_life.h has it. */
void daemon_qp_step(struct daemon_qp *qp, enum daemon_qp_event event);
/* Fills in the facts that its process has to know, from when it was prepared on. */
void daemon_qp_tell(const struct daemon_qps *all, const struct daemon_qp *qp,
                    struct control_create_qp_reply *out);
/* The bytes of shared memory that it has. */
uint64_t daemon_qp_bytes(const struct control_qp_shape *shape);

/* The hidden QP of an HCA with an Ethernet port. 0 or -ENOMEM. */
int daemon_qp_new_roce(struct daemon_qps *all, struct daemon_hca *h, struct daemon_qp **out);

/* Its owner gives the QP up. Nobody can find it any more, and its memory and flows are freed in
 * slices; but an XRC target that others have open becomes one of theirs. */
void daemon_qp_free(struct daemon_qps *all, struct daemon_qp *qp);

/* The holder of @h uses the XRC target, too, or once more. 0; -ENOMEM: so do too many. */
int daemon_qp_open(struct daemon_hca *h, struct daemon_qp *qp);
/* NULL: it does not. */
struct daemon_qp_user *daemon_qp_user_of(const struct daemon_qp *qp,
                                         const struct daemon_holder *holder);
void daemon_qp_close(struct daemon_qp_user *user);

/* The LIVE QP at this index, or NULL; no special one. */
struct daemon_qp *daemon_qp_at(const struct daemon_qps *all, uint32_t index);

/* The QP with this number, or NULL. */
struct daemon_qp *daemon_qp_find(const struct daemon_qps *all, uint32_t qpn);
/* Whether a queue pair has, or had, this number. Numbers of an index come again after 256. */
bool daemon_qp_was(const struct daemon_qps *all, uint32_t qpn);

/* The one at this index, if its process lives; or NULL. */
struct daemon_qp *daemon_qp_live_at(const struct daemon_qps *all, uint32_t index);
struct shm_ring *daemon_qp_ring(const struct daemon_qps *all, const struct daemon_qp *qp);
/* Whether connected queue pairs may have exchanged packets: else the memory of their wires was
 * never used, and stays so. */
bool daemon_qps_have_wires(const struct daemon_qps *all);

/* How many there are that are not hidden. */
unsigned daemon_qps_count(const struct daemon_qps *all);

/* Changes what senders must know of its state. 0 or -EINVAL. */
int daemon_qp_modify(struct daemon_qps *all, struct daemon_qp *qp,
                     const struct control_modify_qp *m);

/* Senders to a queue pair that receives by @cq, now or later, count the arrivals. */
void daemon_qps_count_arrivals(struct daemon_qps *all, struct daemon_cq *cq);
/* The record of a shared receive queue has changed: senders to a queue pair that receives by it
 * look again. */
void daemon_qps_renew(struct daemon_qps *all, const struct daemon_srq *srq);

/* The port's P_Key table has changed: its QPs have what is now where their index points. */
void daemon_qps_follow_pkeys(struct daemon_qps *all, const struct fabric_port *p);

/* The flow of @qp to where @key says, made anew; *@id is its number. 0, -EINVAL, -ENOMEM,
 * -ENOSPC. */
int daemon_qp_flow(struct daemon_qps *all, struct daemon_qp *qp, const struct fabric_flow_key *key,
                   uint32_t *id);

/* Gives one back. 0, or -EINVAL: it is not the QP's. */
int daemon_qp_put_flow(struct daemon_qps *all, struct daemon_qp *qp, uint32_t id);

/* Payload memory, the QP's as long as it lives. 0, -EAGAIN, -ENOMEM as in daemon_qp_new(). */
int daemon_qp_payload(struct daemon_qps *all, struct daemon_qp *qp, uint32_t bytes, uint64_t *off);

/* Fires the event of the CQ, which is its holder's, if it is armed, in @ns; 0: not at all. 0, or
 * -EINVAL: the QP is not connected. */
int daemon_qp_wait(struct daemon_qps *all, struct daemon_qp *qp, uint32_t cq, uint64_t ns);

/* Sends its holder an asynchronous event. */
void daemon_qp_event(struct daemon_qps *all, struct daemon_qp *qp, enum ibv_event_type type);

/* An event of a connected QP that its peer's process has noticed, and marked in shared memory. 0 or
 * -EINVAL. */
int daemon_qp_peer_event(struct daemon_qps *all, uint32_t qpn, uint32_t type);
/* Likewise, that what it began before SQD is done (shm_wire.drains). */
int daemon_qp_drained(struct daemon_qps *all, uint32_t qpn);

/* daemon_srq_limit() of an XRC shared receive queue. */
int daemon_qp_limit(struct daemon_qps *all, uint32_t qpn);

/* Undoes what the QP was doing to another's ring when its process died. True: it is done. */
bool daemon_qp_undo_sending(struct daemon_qps *all, struct daemon_qp *qp, uint32_t *budget);

/* struct daemon_memory_users; @qps: struct daemon_qps. */
bool daemon_qp_may_fill(void *qps, uint16_t index, uint32_t qpn);
struct shm_ring *daemon_qp_next_ring(void *qps, uint32_t *index, uint8_t *shift);
uint32_t daemon_qp_number_of(void *qps, uint32_t index);
uint64_t daemon_qp_revoke(void *qps, uint32_t *index);

#endif
