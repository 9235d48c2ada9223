/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All objects that processes hold, and their end when their process dies at any instruction:
 *
 *  - what it had claimed in somebody's ring is voided: its shm_sender record says whose ring
 *    that is (qp.c);
 *  - its own rings are closed, and its payload memory stays while an arrival lies in it
 *    (memory.c).
 *
 * That is done in slices (chores.h), so however much a process held, others are served.
 */
#ifndef DAEMON_OBJECTS_H
#define DAEMON_OBJECTS_H

#include "daemon/clients/channel.h"
#include "daemon/clients/cq.h"
#include "daemon/clients/hca.h"
#include "daemon/clients/memory.h"
#include "daemon/clients/pd.h"
#include "daemon/clients/qp.h"
#include "daemon/clients/xrc.h"
#include "daemon/core/chores.h"

struct daemon_objects {
	struct daemon_loop *loop;
	struct daemon_chores chores;
	struct daemon_hcas hcas;
	struct daemon_pds pds;
	struct daemon_channels channels;
	struct daemon_cqs cqs;
	struct daemon_memory memory;
	struct daemon_qps qps;
	struct daemon_srqs srqs;
	struct daemon_xrcds xrcds;
	struct daemon_endings endings;
	struct daemon_ending keys_ending, reserve_ending;
};

/* 0 or -ENOMEM. */
int daemon_objects_init(struct daemon_objects *o, struct fabric *f, struct daemon_loop *loop);

/* The daemon ends: shared memory is left to those that have it mapped. */
void daemon_objects_stop(struct daemon_objects *o);

/* A holder of objects, or NULL; daemon_objects_release() frees it. @client: its number. */
struct daemon_holder *daemon_objects_holder(struct daemon_objects *o, uint32_t client, pid_t pid);

/* The process is dead, though somebody holds its connection: undoes what it was doing to
 * others. */
void daemon_objects_undo(struct daemon_objects *o, struct daemon_holder *holder);

/* Closes an HCA that nothing but domains uses: it is gone at once, and they go in slices. */
void daemon_objects_close_hca(struct daemon_objects *o, struct daemon_hca *h);

/* Frees all that @holder holds, and it, in slices. The process is dead, or as good as. */
void daemon_objects_release(struct daemon_objects *o, struct daemon_holder *holder);

#endif
