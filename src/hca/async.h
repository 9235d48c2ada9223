/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asynchronous events. One datagram arrives on the context's descriptor for each, so poll() and
 * O_NONBLOCK work as they do on the original's device file. An object that is destroyed takes its
 * events along. Those of others that were received on the way are kept, and the daemon sends as
 * many empty datagrams: as many as there are events that nobody has got must be there whenever no
 * call is under way.
 *
 * Thread-safe.
 */
#ifndef HCA_ASYNC_H
#define HCA_ASYNC_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "control/message.h"

struct hca_context;
struct hca_async_event;
TAILQ_HEAD(hca_async_events, hca_async_event);

/* A context's part. */
struct hca_async {
	pthread_mutex_t lock;
	struct hca_async_events kept;
	bool fatal_told;
	bool closed; /* the descriptor is closed, or another file's by now */
};

/* An object's part. */
struct hca_async_source {
	struct hca_async_events kept;
	uint32_t n_got; /* that the program got */
};

void hca_async_init(struct hca_async *a);
/* The descriptor is about to be closed. */
void hca_async_close(struct hca_async *a);
void hca_async_source_init(struct hca_async_source *s);

/* The next event. Waits for it, unless the descriptor is non-blocking: a cancellation point.
 * -EAGAIN; -EINTR; -EIO once the device is dead and that has been told. */
int hca_async_get(struct hca_context *ctx, struct ibv_async_event *event);

/*
 * Destroys the object of @s in the daemon by request @type with @handle, and withdraws its events,
 * before the object cannot be found any more. The status; the events are there if it is -EBUSY.
 * @word (shm/events.h) is NULL, or that of an object that nobody has to wait for unless an event is
 * on its way.
 */
int hca_async_end(struct hca_context *ctx, struct hca_async_source *s, enum control_type type,
                  uint32_t handle, _Atomic uint32_t *word);

#endif
