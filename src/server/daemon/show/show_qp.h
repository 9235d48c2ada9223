/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A queue pair in several views: show_qps.c has these. Much of it lies where any program may have
 * written.
 */
#ifndef DAEMON_SHOW_QP_H
#define DAEMON_SHOW_QP_H

#include "daemon/show/views.h"

/* The queue pair with this index, if it is shown; NULL: there is none. The cost of the look is
 * added to @at->work. */
const struct daemon_qp *show_qp_at(const struct daemon_show *s, struct show_at *at, uint32_t index);

const char *show_qp_type(const struct shm_qp *q);
/* As its owner has it. */
enum ibv_qp_state show_qp_own_state(const struct daemon_show *s, const struct shm_qp *q);
/* Likewise, from when it is in INIT; 0: none yet. */
uint8_t show_qp_own_port(const struct daemon_show *s, const struct daemon_qp *qp);
const char *show_qp_state(const struct daemon_show *s, const struct shm_qp *q);

/* The wire by which it exchanges packets; NULL: it exchanges none. */
const struct shm_wire *show_wire_of(const struct daemon_show *s, const struct shm_qp *q);

/* How many requests it has room for, if it is of a connected type, and how many receives; or the
 * shared receive queue. */
void show_add_room(struct show_json *o, const struct shm_qp *q);

/* Adds the counts of its messages to destinations that it still sends to. */
void show_add_sent(const struct daemon_show *s, struct show_at *at, struct show_json *o,
                   const struct daemon_qp *qp);

#endif
