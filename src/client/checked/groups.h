/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Multicast groups: what the program does with them, held against what the daemon knows of its
 * ports' memberships. The daemon is asked without the lock of the checker, in between of two calls
 * of this module: the first says what there is to ask, the second judges the answer. With the lock
 * held.
 *
 * A program may attach first and join later. So attachments are judged when they end, or the
 * program does, and sends when they are posted.
 */
#ifndef CHECKED_GROUPS_H
#define CHECKED_GROUPS_H

#include "checked/objects.h"

struct checked_question {
	struct checked_group_key of;
	uint16_t mlid, pkey_index;
	bool is_answered;
	struct checked_membership m;
};

/* Whether the send goes to a group: then what to ask of it. */
bool checked_group_of_send(const struct hca_record *r, struct checked_question *q);
/* The question about a group that the queue pair is, or was, attached to. False: there is no
 * memory. */
bool checked_group_of_attached(const struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid,
                               struct checked_question *q);
/* Whether it was answered a moment ago: then the answer is in *@q. */
bool checked_group_is_known(struct checked_question *q);

void checked_group_sent(const struct hca_record *r, const struct checked_question *q);
void checked_group_attached(const struct ibv_qp *qp, const struct checked_question *q);
void checked_group_detached(const struct ibv_qp *qp, const struct checked_question *q);
/* The queue pair has another port now than when it was attached: nothing is known of it. */
void checked_groups_moved(const struct ibv_qp *qp);
/* How many groups the queue pair is attached to, and where it was attached to one of them. */
uint32_t checked_groups_of(const struct ibv_qp *qp, uint32_t *place);

/* By rdma_cm. */
void checked_group_joined(const struct checked_group_key *of, bool sends_only);
void checked_group_left(const struct checked_group_key *of);

/* Memberships may have changed. */
void checked_groups_changed(void);

/* A group of the context, or of any if that is NULL, which is about to end: what to ask. Call it
 * until it is false, and checked_group_ends() with each answer. */
bool checked_group_next(const struct ibv_context *context, struct checked_question *q);
void checked_group_ends(const struct checked_question *q);

/* The process is a child of fork(): none is its own. */
void checked_groups_forget(void);

#endif
