/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waking who sleeps on a completion channel, which is an eventfd: of this process or of another
 * one. A process writes to its own channels by their descriptors. Of other processes' channels it
 * keeps descriptors of some, and of no more than a small part of the descriptors that it may have.
 * Whatever it has no descriptor of, for whatever reason, the daemon wakes: no wake-up is lost, and
 * none waits for a descriptor.
 *
 * Thread-safe, and no cancellation point.
 */
#ifndef HCA_WAKE_H
#define HCA_WAKE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

struct control_client;
struct shm_cq;

/* So many descriptors are kept at most, however many the process may have. */
#define HCA_WAKES_KEPT 256

struct hca_wakes {
	struct control_client *control;
	const struct shm_region *region;
	pthread_mutex_t lock;
	struct hca_wake_fd {
		uint32_t channel;
		uint32_t cq; /* kept until this queue does not wake the channel any more */
		int fd;
		enum { HCA_WAKE_NONE, HCA_WAKE_OWN, HCA_WAKE_KEPT } kind;
	} * by_index;                  /* of channels; NULL: the daemon's, which needs none */
	uint16_t kept[HCA_WAKES_KEPT]; /* indexes of other processes' channels */
	unsigned n_kept, hand;         /* the one that was looked at last, or given up */
	unsigned n_without;            /* wake-ups without a descriptor */
	bool is_short;                 /* the process uses many of its descriptors itself */
};

/* @keeps: whether there are descriptors at all. 0 or -ENOMEM. */
int hca_wakes_init(struct hca_wakes *w, struct control_client *control,
                   const struct shm_region *region, bool keeps);
void hca_wakes_fini(struct hca_wakes *w);

/* How many descriptors of other processes' channels are kept by one that may have @limit. */
unsigned hca_wakes_most(rlim_t limit);

/* Channel @channel is this process's, by descriptor @fd, until hca_wakes_leave(). */
void hca_wakes_enter(struct hca_wakes *w, uint32_t channel, int fd);
void hca_wakes_leave(struct hca_wakes *w, uint32_t channel);

/* Gets a descriptor of the channel @channel that @cq wakes, if one is to be kept. This may wait for
 * the daemon; hca_wake() then does not. */
void hca_wake_prepare(struct hca_wakes *w, const struct shm_cq *cq, uint32_t channel);

/* Adds an event to the eventfd of @channel. */
void hca_wake(struct hca_wakes *w, uint32_t channel);

#endif
