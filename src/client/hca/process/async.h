/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asynchronous events. One datagram arrives on the context's descriptor for each, so poll() and
 * O_NONBLOCK work as they do on the original's device file. An object that is destroyed takes its
 * events along. Events of other objects that were received on the way are kept, and the daemon
 * sends an empty datagram for each: whenever no call is under way, the socket has one datagram for
 * each event that nobody has got.
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

struct control_client;
struct hca_async_event;
TAILQ_HEAD(hca_async_events, hca_async_event);

/* Objects that have events. */
enum hca_async_kind {
	HCA_ASYNC_CQ,
	HCA_ASYNC_QP,
	HCA_ASYNC_SRQ,
	HCA_ASYNC_XRC_SRQ,
	HCA_ASYNC_KINDS,
};

/* Where events of an object are kept. */
struct hca_async_source {
	struct hca_async_events kept;
	uint32_t n_got; /* that the program got */
};

/* An object's part. */
struct hca_async_object {
	enum hca_async_kind kind;
	uint32_t number;               /* by which events name it */
	void *element;                 /* struct ibv_cq, ibv_qp or ibv_srq */
	void (*notice)(void *element); /* the program got an event of it; or NULL */
	struct hca_async_source
	        *source; /* its own; an XRC shared receive queue's is its QP's too */
	struct hca_async_source own;
	uint32_t n_got; /* that the program is to acknowledge: the number of those that it got */
};

/* A context's part. */
struct hca_async {
	struct control_client *control;
	uint32_t handle; /* of the HCA that it has open */
	int fd;
	pthread_mutex_t lock;
	struct hca_async_events kept;
	bool fatal_told;
	bool closed;                  /* the descriptor is closed, or another file's by now */
	pthread_mutex_t objects_lock; /* may be taken with the other one held */
	struct hca_async_object **objects[HCA_ASYNC_KINDS]; /* by number */
};

/* 0 or -ENOMEM; hca_async_fini() in any case. */
int hca_async_init(struct hca_async *a);
void hca_async_open(struct hca_async *a, struct control_client *control, uint32_t handle, int fd);
/* The descriptor is about to be closed. */
void hca_async_close(struct hca_async *a);
void hca_async_fini(struct hca_async *a);

void hca_async_object_init(struct hca_async_object *o, enum hca_async_kind kind, void *element);
/* From now on, or no more, it is found by the number that its events have. */
void hca_async_enter(struct hca_async *a, struct hca_async_object *o, uint32_t number);
void hca_async_leave(struct hca_async *a, struct hca_async_object *o);

/* The next event. Waits for it, unless the descriptor is non-blocking: a cancellation point.
 * -EAGAIN; -EINTR; -EIO once the device is dead and that has been told. */
int hca_async_get(struct hca_async *a, struct ibv_async_event *event);

/*
 * Destroys the object of @s in the daemon by request @type with @handle, and withdraws its events,
 * before the object cannot be found any more. The status; the events are there if it is -EBUSY.
 * @word (shm/events.h) is NULL, or that of an object that nobody has to wait for unless an event is
 * on its way.
 */
int hca_async_end(struct hca_async *a, struct hca_async_source *s, enum control_type type,
                  uint32_t handle, _Atomic uint32_t *word);

#endif
