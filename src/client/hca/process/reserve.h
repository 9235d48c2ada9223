/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers and memory of queue pairs that the daemon has reserved for this process. A program that
 * makes one or two queue pairs gets none. For one that goes on with more of the same size, the
 * daemon is asked for several at once, more each time; it waits for that, and not for each queue
 * pair.
 *
 * Thread-safe. A child that was forked, and goes on with its parent's connection, has the same
 * ones: their tickets say who comes first (struct shm_sender).
 */
#ifndef HCA_RESERVE_H
#define HCA_RESERVE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "control/message.h"

struct control_client;
struct shm_region;

#define HCA_RESERVE_SHAPES 4

struct hca_reserve {
	struct control_client *control;
	const struct shm_region *region;
	pthread_mutex_t lock;
	uint64_t uses; /* the last hca_reserve_of.use */
	struct hca_reserve_of {
		struct control_qp_shape shape;
		uint64_t use;     /* the least recently used makes room for another shape */
		int made;         /* queue pairs that were asked for one by one, lately */
		uint32_t n_asked; /* how many were to be reserved the last time */
		uint32_t next, n; /* of ->of: the first one that is left, and behind the last */
		struct control_reserved_qp of[CONTROL_MAX_RESERVED];
	} of[HCA_RESERVE_SHAPES];
};

/* Takes what lies reserved for a queue pair of this shape, of which *@out tells; asks the daemon
 * for more if the process makes many. False: the queue pair has to be asked for. */
bool hca_reserve_get(struct hca_reserve *r, const struct control_qp_shape *shape,
                     struct control_create_qp_reply *out);

#endif
