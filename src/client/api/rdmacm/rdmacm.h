/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part that the files of this folder share: the session with the daemon, the devices, and the
 * structs behind the public ones. The library keeps little: the daemon knows the state of an
 * identifier, the process its QP and what it has not acknowledged.
 *
 * Thread safety is that of the original: any thread may use any identifier, but not
 * two the same one at once, except that events may be got, and acknowledged, anywhere.
 */
#ifndef API_RDMACM_RDMACM_H
#define API_RDMACM_RDMACM_H

#include <pthread.h>
#include <stdatomic.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/util.h"
#include "control/client.h"
#include "control/cm_message.h"

struct rdmacm_device {
	LIST_ENTRY(rdmacm_device) entry;
	struct rdmacm_session *session;
	struct ibv_device *dev;
	struct ibv_context *verbs; /* stays open once it is */
	struct ibv_pd *pd;         /* the default one, while identifiers use it */
	struct ibv_xrcd *xrcd;     /* likewise, once one of them has asked for it */
	TAILQ_HEAD(, rdmacm_id) users;
	/* of READs and atomics under way, which a queue pair may have */
	uint8_t max_responder_resources, max_initiator_depth;
};

/*
 * A fabric as this process uses it, from the first channel on. When the fabric has ended, or the
 * process is a child of fork(), the next channel begins another one; what was made in one stays
 * there. Never freed: channels, identifiers and programs point at it and its devices.
 */
struct rdmacm_session {
	struct control_client *client;
	unsigned forks;            /* that had led to its process */
	struct shm_events *events; /* of all identifiers; NULL: none, or no channel yet */
	LIST_HEAD(, rdmacm_device) devices;
	struct ibv_device **listed; /* kept: a device lives as long as the list it is in */
};

/* A datagram of a channel that was received before its turn: see control/cm_message.h. */
struct rdmacm_kept {
	TAILQ_ENTRY(rdmacm_kept) entry;
	TAILQ_ENTRY(rdmacm_kept) of_owner; /* of the identifier's, or of the channel's that ask */
	struct rdmacm_id *id;              /* NULL: the daemon is to be asked for it */
	struct control_cm_got got;
};
TAILQ_HEAD(rdmacm_kept_list, rdmacm_kept);

struct rdmacm_channel {
	struct rdma_event_channel channel;
	struct rdmacm_session *session;
	uint32_t handle;
	unsigned waiters;          /* in rdma_get_cm_event(); session lock */
	bool closed;               /* likewise */
	pthread_mutex_t datagrams; /* held to receive them; guards the lists below, too */
	struct rdmacm_kept_list kept;
	struct rdmacm_kept_list kept_asks;    /* of them */
	LIST_HEAD(, rdmacm_id) to_be_told_of; /* listeners: see requests_told */
};

/*
 * Frees a channel that is closed, but only after 64 others were: a thread of the program may just
 * be about to wait on it.
 */
void rdmacm_session_bury(struct rdmacm_channel *ch);

/* A join, from rdma_join_multicast() to rdma_leave_multicast(). */
struct rdmacm_join {
	LIST_ENTRY(rdmacm_join) entry;
	struct rdmacm_id *id;
	void *context;
	uint32_t handle;
	uint32_t flags;
	uint32_t acked;
	union ibv_gid mgid;
	uint16_t mlid;
	bool joined;
	bool answered; /* its event, or that of its failure, has come */
	union control_cm_addr addr;
};

/* How far an identifier is: the last request about it, and whether its event has come since. */
enum rdmacm_stage {
	RDMACM_UNKNOWN,
	RDMACM_RESOLVING_ADDR,
	RDMACM_ADDR_RESOLVED,
	RDMACM_RESOLVING_ROUTE,
	RDMACM_ROUTE_RESOLVED,
	RDMACM_REQUESTED, /* by a peer; it may accept the request */
};

struct rdmacm_id {
	struct rdma_cm_id id;
	uint32_t handle; /* its number */
	struct rdmacm_session *session;
	bool is_made;     /* the daemon has it */
	bool may_be_made; /* it was asked to make it */
	bool holds_port;  /* one that others may wait for: it was bound, or listens */
	bool sync;        /* its channel is its own, and calls wait for their events */
	struct rdmacm_device *device;
	TAILQ_ENTRY(rdmacm_id) of_device;      /* session lock */
	struct ibv_qp_init_attr *qp_init_attr; /* endpoints: for the QPs of accepted requests */
	void *connect_data;                    /* endpoints: in front of the private data */
	size_t connect_bytes;
	struct ibv_ece local_ece, remote_ece;
	uint8_t responder_resources, initiator_depth;
	struct control_cm_qp_reply qp; /* attributes, as the last event told them */
	bool has_qp;
	bool has_options;    /* that were set after an event may have been sent */
	bool has_connection; /* the daemon has one of it, in whatever state */
	_Atomic enum rdmacm_stage stage;
	struct control_cm_resolve_addr asked; /* the last one, */
	bool is_afresh;                       /* by an identifier that was as it is made */
	bool connect_error; /* the QP could not be connected: later events are not told */

	/* its channel's lock: */
	uint32_t events_got; /* that were sent whole */
	uint32_t asks_got;   /* that were asked for */
	bool removal_told;   /* that the device has gone, or it is destroyed */
	/* a listener's: the requests among them; of how many the daemon knows that; by how many
	 * that may lag behind */
	uint32_t requests_got, requests_told, requests_slack;
	LIST_ENTRY(rdmacm_id) to_be_told_of; /* while not of all */
	struct rdmacm_kept_list kept;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t acked_more;
	uint32_t acked;
	LIST_HEAD(, rdmacm_join) joins; /* newest first */
};

struct rdmacm_event {
	struct rdma_cm_event event;
	struct rdmacm_id *id; /* whose acknowledgement it is */
	struct rdmacm_join *join;
	uint8_t private_data[CONTROL_CM_PRIVATE];
};

static inline struct rdmacm_id *rdmacm_id(struct rdma_cm_id *id)
{
	return container_of(id, struct rdmacm_id, id);
}

/*
 * The library's dialect, for the exported function in which it stands: 0 for 0; for -errno (or
 * +errno, as verbs has it) -1 and errno, and the log says why (base/reason.h). All errors leave by
 * this, so that none is silent.
 */
#define rdmacm_return(err) rdmacm_return_of(__func__, err)
int rdmacm_return_of(const char *name, int err);
/* The same of calls that return a pointer: NULL. */
#define rdmacm_null(err) (rdmacm_return_of(__func__, err), NULL)

/* ---- session.c ---- */

/* The session of what is made now; with the lock held. 0 or -errno; -ENODEV: there is no fabric. */
int rdmacm_session_current(struct rdmacm_session **s);

/* One request. 0 or -errno; -EIO: its daemon has gone; -EINVAL: it is the session of the parent. */
int rdmacm_session_call(struct rdmacm_session *s, enum control_cm_type type, const void *request,
                        uint32_t bytes, void *reply, uint32_t reply_bytes);

/* A request that nobody waits for: the daemon serves it before later requests. */
int rdmacm_session_post(struct rdmacm_session *s, enum control_cm_type type, const void *request,
                        uint32_t bytes);

/* A batch of what this thread asks, by libibverbs too (control/client.h). Its end: 0, or -EIO: the
 * daemon has gone. */
struct rdmacm_batch {
	struct control_client *client; /* NULL: it is the parent's */
	struct control_batch batch;
};
void rdmacm_batch_begin(struct rdmacm_session *s, struct rdmacm_batch *b);
int rdmacm_batch_end(struct rdmacm_batch *b);

/* Whether it is one of the parent's: this process is a child of fork(). */
bool rdmacm_session_is_parents(const struct rdmacm_session *s);

/* A number for an identifier that the process makes. 0 or -errno; -EIO: the daemon has gone. */
int rdmacm_session_number(struct rdmacm_id *id, uint32_t *number);
void rdmacm_session_number_free(uint32_t number);

/* The identifier's word of shm/events.h; NULL: it has none, or is the parent's. */
_Atomic uint32_t *rdmacm_session_word(const struct rdmacm_id *id);

/* CREATE_CHANNEL: the session, the handle and the descriptor. */
int rdmacm_session_channel(struct rdmacm_channel *ch);

/* Guards waiters of channels, and devices. */
void rdmacm_session_lock(void);
void rdmacm_session_unlock(void);

/* ---- device.c ---- */

/* Binds @id to the device named @name: verbs, pd. 0 or -errno. */
int rdmacm_device_use(struct rdmacm_id *id, const char *name);
void rdmacm_device_release(struct rdmacm_id *id);

/*
 * The daemon has gone, and with it all devices: an identifier of the channel that is bound to one
 * and has not been told so. NULL: there is none. With the channel's lock held.
 */
struct rdmacm_id *rdmacm_device_removed(const struct rdmacm_channel *ch);

/* Whether its port is one of InfiniBand, ACTIVE, and knows where the SA is. */
bool rdmacm_device_is_ready(const struct rdmacm_id *id);
bool rdmacm_port_is_ready(struct ibv_context *verbs, uint8_t port_num);

/* The XRC domain of identifiers that name none: this process's. NULL: errno. */
struct ibv_xrcd *rdmacm_device_xrcd(const struct rdmacm_id *id);

/* ---- known.c ---- */

/* Whether another identifier, as fresh, has resolved the same with success, to a port that is
 * ready. */
bool rdmacm_known(const struct rdmacm_id *id, const struct control_cm_resolve_addr *request);

/* @id has; and has its device. */
void rdmacm_known_add(const struct rdmacm_id *id, const struct control_cm_resolve_addr *request);

/* ---- channel.c ---- */

/* As rdma_create_event_channel(), but tells -errno. */
int rdmacm_channel_open(struct rdmacm_channel **channel);
void rdmacm_channel_close(struct rdmacm_channel *channel);

/*
 * A request by which events are withdrawn. Removes them from the channel. 0 and how many events the
 * process has got so far; or -errno.
 */
int rdmacm_channel_destroy_id(struct rdmacm_id *id, uint32_t *got);
int rdmacm_channel_leave(struct rdmacm_join *join, uint32_t *got);

/* ... from its channel, to @channel, which is the identifier's from now on. */
int rdmacm_channel_migrate_id(struct rdmacm_id *id, struct rdma_event_channel *channel,
                              uint32_t *got);

/* ---- id.c ---- */

/* An identifier without handle; @channel NULL: a synchronous one. 0 or -errno. */
int rdmacm_id_new(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
                  enum ibv_qp_type qp_type, struct rdmacm_id **id);
int rdmacm_id_create(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
                     enum ibv_qp_type qp_type, struct rdmacm_id **id);
void rdmacm_id_free(struct rdmacm_id *id);

/* A request about the identifier, which the first one makes. 0 or -errno. */
int rdmacm_id_call(struct rdmacm_id *id, enum control_cm_type type, const void *request,
                   uint32_t bytes, void *reply, uint32_t reply_bytes);

/*
 * A request about it whose outcome is an event. If @cannot_fail, at once that is, nobody waits for
 * the daemon; should it fail all the same, an event says so. 0 or -errno.
 */
int rdmacm_id_begin(struct rdmacm_id *id, bool cannot_fail, enum control_cm_type type,
                    const void *request, uint32_t bytes);

bool rdmacm_id_is_at(const struct rdmacm_id *id, enum rdmacm_stage stage);

/* An event ends @stage, after which comes @next; unless something else was asked for since. */
void rdmacm_id_end_stage(struct rdmacm_id *id, enum rdmacm_stage stage, enum rdmacm_stage next);

/* Brings what the process sees of the identifier up to date. 0 or -errno. */
int rdmacm_id_update(struct rdmacm_id *id, const struct control_cm_id_reply *info);

/* Synchronous identifiers: waits for the event of the call, whose status it returns (0 or
 * -errno). Others: 0. */
int rdmacm_id_complete(struct rdmacm_id *id);

/* The event has been acknowledged. */
void rdmacm_id_ack(struct rdmacm_id *id, struct rdmacm_join *join);

/* The address as messages have it; -EINVAL for a family that rdma_cm does not know. */
int rdmacm_addr_copy(const struct sockaddr *addr, union control_cm_addr *copy);
socklen_t rdmacm_addr_bytes(const struct sockaddr *addr);

/* ---- multicast.c ---- */

/* A JOIN event is got: attaches the QP. 0 or -errno. */
int rdmacm_multicast_joined(struct rdmacm_join *join, const struct rdma_ud_param *ud);

/* ---- qp.c ---- */

int rdmacm_qp_to_error(struct rdmacm_id *id);

/* Moves the QP of a connection, if the identifier has one, to RTR and RTS. The numbers of READs and
 * atomics: as the peer has it if they are RDMA_MAX_RESP_RES and RDMA_MAX_INIT_DEPTH. 0 or -errno.
 */
int rdmacm_qp_connect(struct rdmacm_id *id, uint8_t responder_resources, uint8_t initiator_depth);

void rdmacm_ah_attr(const struct control_cm_ah *ah, struct ibv_ah_attr *attr);

/* ---- failure.c ---- */

/* An event is got; if it tells of a failure, one line in the log says which, and why. */
void rdmacm_failure_log(const struct rdma_cm_event *event);

/* ---- connect.c ---- */

/* A CONNECT_RESPONSE event is got: connects the QP, and tells the peer. 0 or -errno. */
int rdmacm_connect_respond(struct rdmacm_id *id);

#endif
