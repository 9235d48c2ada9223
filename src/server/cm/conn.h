/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections: the state machine of sections 12.9.5 to 12.9.7 of the specification, volume 1, as
 * Linux has it for rdma_cm (one path, no LAP). conn.c has the life of a connection and what
 * programs ask for, conn_mad.c the messages that are sent, conn_input.c those that are received.
 *
 * A message is sent again until the answer comes. An answer is not: a peer that asks twice gets it
 * twice. Two states end with a message that is sent only if somebody asks again (MRA), since a
 * program usually goes on at once.
 */
#ifndef CM_CONN_H
#define CM_CONN_H

#include "cm/state.h"

/* The kernel's settings. */
#define CM_CONN_RESPONSE_TIMEOUT 20 /* 4.096 us << 20: for an answer */
#define CM_CONN_RETRIES          15
#define CM_CONN_MRA_TIMEOUT      24 /* for the program's decision */
#define CM_CONN_ACK_DELAY        15 /* as ibv_query_device() tells it */

enum cm_conn_state {
	CM_CONN_IDLE, /* it has been refused, or nobody answered */
	CM_CONN_REQ_SENT,
	CM_CONN_MRA_REQ_RCVD, /* the peer's program thinks about it */
	CM_CONN_MRA_REQ_SENT, /* our program does */
	CM_CONN_REP_SENT,
	CM_CONN_MRA_REP_RCVD,
	CM_CONN_MRA_REP_SENT,
	CM_CONN_ESTABLISHED,
	CM_CONN_DREQ_SENT,
	CM_CONN_DREQ_RCVD,
	CM_CONN_TIMEWAIT, /* packets of it may still be on their way */
};

struct cm_conn {
	struct base_hash_node by_id, by_peer, by_qpn; /* cm->conns, conn_peers, conn_qpns */
	bool has_peer;                                /* it is in the last two */
	struct cm_id *id;
	enum cm_conn_state state;
	uint32_t local_id, remote_id; /* communication IDs; remote: 0 if it is not known yet */
	uint64_t remote_guid;
	uint32_t local_qpn, remote_qpn;
	uint32_t local_psn; /* at which the peer begins */
	uint32_t remote_psn;
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry_count;
	uint8_t ack_timeout;
	uint64_t tid; /* of the message that answers refer to */
	uint64_t try_ms;
	unsigned tries;
	struct cm_peer peer;
	struct cm_transaction *sent; /* what is being repeated; or NULL */
	struct base_timer timewait;
};

/* 4.096 us << @code in ms, as Linux rounds it. */
static inline uint64_t cm_conn_ms(uint8_t code)
{
	return code > 8 ? 1ull << (code - 8) : 1;
}

/* ---- conn.c ---- */

/* A connection of @id, which has a port and a path. NULL: no memory. */
struct cm_conn *cm_conn_new(struct cm_id *id);

/* The one at @port's host with these communication IDs. @remote_id 0: the peer's is not known yet.
 */
struct cm_conn *cm_conn_find(const struct cm *cm, const struct fabric_port *port, uint32_t local_id,
                             uint32_t remote_id);

/* The connection whose peer has that ID, or that queue pair. */
struct cm_conn *cm_conn_find_peer(const struct cm *cm, const struct fabric_port *port,
                                  uint64_t guid, uint32_t remote_id);
struct cm_conn *cm_conn_find_qpn(const struct cm *cm, const struct fabric_port *port, uint64_t guid,
                                 uint32_t qpn);

/* The peer's IDs are known: it can be found by them. 0 or -ENOMEM. */
int cm_conn_add_peer(struct cm_conn *c);

/* Ends the connection: at once, or by TIMEWAIT, in which its numbers are not used again. */
void cm_conn_reset(struct cm_conn *c);
void cm_conn_enter_timewait(struct cm_conn *c);

/* The local ACK timeout for a path, if the peer needs @delay for an ACK. */
uint8_t cm_conn_ack_timeout(uint8_t delay, uint8_t life);

/* Tells the program. @from: the other members of the event, or NULL. Nothing is told before
 * accept. */
void cm_conn_tell(struct cm_conn *c, enum rdma_cm_event_type type, int status,
                  const struct control_cm_event *from);

/* Sends a DREQ, again and again. 0; -EINVAL: it is not connected; -ENOMEM. */
int cm_conn_send_dreq(struct cm_conn *c);

/* Refuses in a state in which that is possible; otherwise -EINVAL. @data: private data. */
struct cm_conn_refusal {
	uint16_t reason;
	const void *info;
	uint8_t info_bytes;
	const void *data;
	uint32_t bytes;
};
int cm_conn_refuse(struct cm_conn *c, const struct cm_conn_refusal *refusal);

/* ---- conn_mad.c ---- */

void cm_conn_make_req(struct cm_conn *c, const struct control_cm_connect *from,
                      struct fabric_mad *mad);
void cm_conn_make_rep(struct cm_conn *c, const struct control_cm_connect *from,
                      struct fabric_mad *mad);
void cm_conn_make_dreq(struct cm_conn *c, struct fabric_mad *mad);
void cm_conn_send_rtu(const struct cm_conn *c);
void cm_conn_send_mra(const struct cm_conn *c, enum cm_message about);
void cm_conn_send_drep(const struct cm_conn *c);
void cm_conn_send_rej(const struct cm_conn *c, enum cm_message about,
                      const struct cm_conn_refusal *refusal);

/* Messages for a peer that is known by its own message @mad alone. */
void cm_conn_issue_rej(const struct cm *cm, struct fabric_port *port, const struct fabric_mad *mad,
                       enum cm_message about, uint16_t reason);
void cm_conn_issue_drep(const struct cm *cm, struct fabric_port *port,
                        const struct fabric_mad *mad);

#endif
