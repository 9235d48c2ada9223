/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waking who sleeps on a completion channel: see wake.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/signals.h"
#include "control/client.h"
#include "hca/process/wake.h"
#include "shm/region.h"

/* A process that may have fewer keeps none: it counts on having them. */
#define FEWEST 256
/* One of so many descriptors is for this. */
#define PART 16
/* Once all are in use, one of so many wake-ups by the daemon gives up a descriptor for another one:
 * a channel that is used much comes to have one. */
#define TURNS 16

int hca_wakes_init(struct hca_wakes *w, struct control_client *control,
                   const struct shm_region *region, bool keeps)
{
	w->control = control;
	w->region = region;
	pthread_mutex_init(&w->lock, NULL);
	if (!keeps)
		return 0;
	w->by_index = calloc(SHM_MAX_CHANNELS + 1, sizeof(*w->by_index));
	return w->by_index ? 0 : -ENOMEM;
}

void hca_wakes_fini(struct hca_wakes *w)
{
	pthread_mutex_destroy(&w->lock);
	free(w->by_index);
}

unsigned hca_wakes_most(rlim_t limit)
{
	if (limit < FEWEST)
		return 0;
	return limit / PART < HCA_WAKES_KEPT ? (unsigned)(limit / PART) : HCA_WAKES_KEPT;
}

static rlim_t descriptor_limit(void)
{
	struct rlimit r;

	return getrlimit(RLIMIT_NOFILE, &r) ? 0 : r.rlim_cur;
}

/* ---- descriptors: with the lock held ---- */

static struct hca_wake_fd *entry_of(struct hca_wakes *w, uint32_t channel)
{
	return &w->by_index[channel & SHM_CHANNEL_INDEX];
}

/* The descriptor, or -1. */
static int descriptor_of(struct hca_wakes *w, uint32_t channel)
{
	const struct hca_wake_fd *e = w->by_index ? entry_of(w, channel) : NULL;

	return e && e->kind != HCA_WAKE_NONE && e->channel == channel ? e->fd : -1;
}

/* Gives up the one at @place among those that are kept. */
static void give_up(struct hca_wakes *w, unsigned place)
{
	struct hca_wake_fd *e = &w->by_index[w->kept[place]];

	close(e->fd);
	e->kind = HCA_WAKE_NONE;
	w->kept[place] = w->kept[--w->n_kept];
}

/* Keeps no more than @most. */
static void give_up_beyond(struct hca_wakes *w, unsigned most)
{
	while (w->n_kept > most)
		give_up(w, w->n_kept - 1);
}

/* Gives up the one of a channel that had the index of @channel before. */
static void replace(struct hca_wakes *w, uint32_t channel)
{
	if (entry_of(w, channel)->kind != HCA_WAKE_KEPT)
		return;
	for (unsigned place = 0; place < w->n_kept; place++)
		if (w->kept[place] == (channel & SHM_CHANNEL_INDEX)) {
			give_up(w, place);
			return;
		}
}

/* Whether the queue that a descriptor was got for still wakes that channel. */
static bool is_alive(const struct hca_wakes *w, unsigned place)
{
	const struct hca_wake_fd *e = &w->by_index[w->kept[place]];

	return atomic_load_explicit(&shm_cq_at(w->region, e->cq)->channel, memory_order_relaxed) ==
	       e->channel;
}

/* Looks at the next @n, and gives up those whose channels may be gone. */
static void look_around(struct hca_wakes *w, unsigned n)
{
	for (; n && w->n_kept; n--) {
		w->hand = (w->hand + 1) % w->n_kept;
		if (!is_alive(w, w->hand))
			give_up(w, w->hand);
	}
}

/* Whether there is to be one descriptor more; makes room for it. */
static bool make_room(struct hca_wakes *w)
{
	const unsigned most = hca_wakes_most(descriptor_limit());
	const bool is_turn = ++w->n_without % TURNS == 0;

	look_around(w, w->n_kept);
	give_up_beyond(w, most);
	if (!most || ((w->is_short || w->n_kept == most) && !is_turn))
		return false;
	if (w->n_kept == most)
		give_up(w, ++w->hand % w->n_kept);
	return true;
}

/* Keeps it, unless the program uses so many descriptors that it may need all: the lowest number is
 * given first, so about @fd are in use. */
static void keep(struct hca_wakes *w, const struct shm_cq *cq, uint32_t channel, int fd)
{
	w->is_short = (rlim_t)fd >= descriptor_limit() / 2;
	if (w->is_short) {
		close(fd);
		give_up_beyond(w, 0);
		return;
	}
	replace(w, channel);
	*entry_of(w, channel) = (struct hca_wake_fd){ .channel = channel,
		                                      .cq = shm_cq_number(w->region, cq),
		                                      .fd = fd,
		                                      .kind = HCA_WAKE_KEPT };
	w->kept[w->n_kept++] = (uint16_t)(channel & SHM_CHANNEL_INDEX);
}

/* Asks the daemon for it. If that fails the daemon wakes. */
static void get(struct hca_wakes *w, const struct shm_cq *cq, uint32_t channel)
{
	struct control_get_channel req = { .channel = channel };
	int fd;

	if (!control_call(w->control, &(struct control_call){ .type = CONTROL_GET_CHANNEL,
	                                                      .request = &req,
	                                                      .request_bytes = sizeof(req),
	                                                      .fd = &fd }))
		keep(w, cq, channel, fd);
}

/* ---- channels ---- */

void hca_wakes_enter(struct hca_wakes *w, uint32_t channel, int fd)
{
	int cancel_state = base_cancel_off(); /* close() with the lock held */

	pthread_mutex_lock(&w->lock);
	replace(w, channel);
	*entry_of(w, channel) =
	        (struct hca_wake_fd){ .channel = channel, .fd = fd, .kind = HCA_WAKE_OWN };
	pthread_mutex_unlock(&w->lock);
	base_cancel_restore(cancel_state);
}

void hca_wakes_leave(struct hca_wakes *w, uint32_t channel)
{
	int cancel_state = base_cancel_off();

	pthread_mutex_lock(&w->lock);
	entry_of(w, channel)->kind = HCA_WAKE_NONE;
	look_around(w, w->n_kept);
	pthread_mutex_unlock(&w->lock);
	base_cancel_restore(cancel_state);
}

void hca_wake_prepare(struct hca_wakes *w, const struct shm_cq *cq, uint32_t channel)
{
	int cancel_state;

	if (!w->by_index)
		return;
	cancel_state = base_cancel_off(); /* close() with the lock held */
	pthread_mutex_lock(&w->lock);
	if (descriptor_of(w, channel) >= 0)
		look_around(w, 1);
	else if (make_room(w))
		get(w, cq, channel);
	pthread_mutex_unlock(&w->lock);
	base_cancel_restore(cancel_state);
}

void hca_wake(struct hca_wakes *w, uint32_t channel)
{
	const struct control_get_channel req = { .channel = channel };
	int cancel_state = base_cancel_off(); /* write() with the lock held */
	const uint64_t one = 1;
	int fd;

	pthread_mutex_lock(&w->lock);
	fd = descriptor_of(w, channel);
	if (fd >= 0)
		while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
			;
	pthread_mutex_unlock(&w->lock);
	if (fd < 0)
		control_post_now(w->control, CONTROL_WAKE, &req, sizeof(req));
	base_cancel_restore(cancel_state);
}
