/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waking by descriptors of eventfds, and by the daemon: no wake-up is lost, few descriptors are
 * kept, none of a channel that is gone. The daemon is this program's own.
 */
#include <harness.h>
#include <sys/eventfd.h>

#include "base/util.h"
#include "control/client.h"
#include "control/socket.h"
#include "hca/process/wake.h"
#include "shm/region.h"

#define CHANNELS 1024
#define LIMIT    1024 /* of descriptors */

struct lab {
	struct hca_wakes w;
	struct control_client *control;
	struct shm_region region;
	int own[CHANNELS];    /* the eventfd of a channel of another process; -1 */
	unsigned gets, wakes; /* that the daemon was asked for */
	uint32_t woken;       /* the channel of the last one */
	bool has_none;        /* the daemon gives no descriptor */
	struct rlimit limit;  /* before */
};

/* ---- the daemon ---- */

static void serve(void *arg, struct control_packet *p)
{
	struct lab *l = arg;
	const uint32_t channel = ((const struct control_get_channel *)p->body)->channel;
	const int fd = l->own[channel % CHANNELS];

	p->header.bytes = 0;
	if (p->header.type == CONTROL_WAKE) {
		l->wakes++;
		l->woken = channel;
		return;
	}
	assert_int_equal(p->header.type, CONTROL_GET_CHANNEL);
	l->gets++;
	p->header.status = l->has_none || fd < 0 ? -EINVAL : 0;
	if (!p->header.status) {
		p->fd[0] = dup(fd);
		p->n_fds = 1;
	}
}

static int begin(void **state)
{
	struct lab *l = aligned_alloc(128, base_align_up(sizeof(*l), 128));
	struct rlimit limit;

	assert_non_null(l);
	memset((void *)l, 0, sizeof(*l));
	*state = l;
	memset(l->own, -1, sizeof(l->own));
	if (getrlimit(RLIMIT_NOFILE, &l->limit))
		return -1;
	limit = (struct rlimit){ LIMIT, l->limit.rlim_max };
	return setrlimit(RLIMIT_NOFILE, &limit) || shm_region_create(&l->region, 1, 2) ||
	       control_local(&l->control, serve, l) ||
	       hca_wakes_init(&l->w, l->control, &l->region, true);
}

static int end(void **state)
{
	struct lab *l = *state;

	while (l->w.n_kept)
		close(l->w.by_index[l->w.kept[--l->w.n_kept]].fd);
	hca_wakes_fini(&l->w);
	for (unsigned i = 0; i < CHANNELS; i++)
		if (l->own[i] >= 0)
			close(l->own[i]);
	control_close(l->control);
	shm_region_unmap(&l->region);
	setrlimit(RLIMIT_NOFILE, &l->limit);
	free(l);
	return 0;
}

/* A channel of another process; queue @number wakes it. */
static const struct shm_cq *make(struct lab *l, uint32_t number, uint32_t channel)
{
	struct shm_cq *cq = shm_cq_at(&l->region, number);

	if (l->own[channel % CHANNELS] < 0)
		l->own[channel % CHANNELS] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	assert_true(l->own[channel % CHANNELS] >= 0);
	atomic_store_explicit(&cq->channel, channel, memory_order_relaxed);
	return cq;
}

/* How often the channel was woken by its descriptor since the last look. */
static uint64_t woken(struct lab *l, uint32_t channel)
{
	uint64_t n = 0;

	return read(l->own[channel % CHANNELS], &n, sizeof(n)) == sizeof(n) ? n : 0;
}

/* ---- */

CASE_WITH(a_channel_of_the_process_is_woken_by_its_descriptor, begin, end)
{
	struct lab *l = *state;

	l->own[5] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	hca_wakes_enter(&l->w, 5, l->own[5]);
	hca_wake(&l->w, 5);
	hca_wake(&l->w, 5);
	assert_int_equal(woken(l, 5), 2);
	assert_int_equal(l->wakes + l->gets, 0);
	/* another channel that had the index before, or has it now */
	hca_wake(&l->w, (SHM_CHANNEL_INDEX + 1) | 5);
	assert_int_equal(woken(l, 5), 0);
	assert_int_equal(l->wakes, 1);
	assert_int_equal(l->woken, (SHM_CHANNEL_INDEX + 1) | 5);
	hca_wakes_leave(&l->w, 5);
	hca_wake(&l->w, 5);
	assert_int_equal(l->wakes, 2);
	assert_true(fcntl(l->own[5], F_GETFD) >= 0); /* it stays its owner's */
}

CASE_WITH(a_descriptor_is_asked_for_once, begin, end)
{
	struct lab *l = *state;
	const struct shm_cq *cq = make(l, 1, 7);

	hca_wake(&l->w, 7);
	assert_int_equal(l->wakes, 1); /* nobody has prepared it */
	for (unsigned i = 0; i < 10; i++) {
		hca_wake_prepare(&l->w, cq, 7);
		hca_wake(&l->w, 7);
	}
	assert_int_equal(l->gets, 1);
	assert_int_equal(l->wakes, 1);
	assert_int_equal(woken(l, 7), 10);
}

CASE_WITH(where_the_daemon_gives_none_it_wakes, begin, end)
{
	struct lab *l = *state;
	const struct shm_cq *cq = make(l, 1, 7);

	l->has_none = true;
	for (unsigned i = 1; i <= 10; i++) {
		hca_wake_prepare(&l->w, cq, 7);
		hca_wake(&l->w, 7);
		assert_int_equal(l->wakes, i);
	}
	assert_int_equal(l->w.n_kept, 0);
}

CASE_WITH(no_more_than_a_part_of_the_descriptors_is_kept, begin, end)
{
	struct lab *l = *state;
	const unsigned most = hca_wakes_most(LIMIT);

	for (uint32_t i = 0; i < 4 * most; i++) {
		hca_wake_prepare(&l->w, make(l, 1 + i, i), i);
		assert_true(l->w.n_kept <= most);
		hca_wake(&l->w, i);
		/* by either way, once */
		assert_int_equal(l->wakes + (unsigned)woken(l, i), 1);
		l->wakes = 0;
	}
	assert_int_equal(l->w.n_kept, most);
}

/* One that is used often comes to have a descriptor, though all are in use. */
CASE_WITH(a_channel_that_is_woken_much_gets_a_descriptor, begin, end)
{
	struct lab *l = *state;
	const unsigned most = hca_wakes_most(LIMIT);
	const struct shm_cq *cq = make(l, 900, 900);
	unsigned n = 0;

	for (uint32_t i = 0; i < most; i++)
		hca_wake_prepare(&l->w, make(l, 1 + i, i), i);
	l->wakes = 0;
	do {
		hca_wake_prepare(&l->w, cq, 900);
		hca_wake(&l->w, 900);
	} while (!woken(l, 900) && ++n < 1000);
	assert_in_range(n, 1, 100);
	assert_int_equal(l->wakes, n);
}

CASE_WITH(descriptors_of_channels_that_are_gone_are_given_up, begin, end)
{
	struct lab *l = *state;

	for (uint32_t i = 0; i < 20; i++)
		hca_wake_prepare(&l->w, make(l, 1 + i, i), i);
	assert_int_equal(l->w.n_kept, 20);
	for (uint32_t i = 0; i < 19; i++) /* their queues wake others now */
		make(l, 1 + i, 500);
	for (unsigned i = 0; i < 60; i++) /* a look at one each time */
		hca_wake_prepare(&l->w, shm_cq_at(&l->region, 20), 19);
	assert_int_equal(l->w.n_kept, 1);
	hca_wake(&l->w, 19);
	assert_int_equal(woken(l, 19), 1);
}

/* The new channel at an index is not woken by the descriptor of the old one. */
CASE_WITH(a_channel_with_the_index_of_another_is_another, begin, end)
{
	struct lab *l = *state;
	const uint32_t next = (SHM_CHANNEL_INDEX + 1) | 7;

	hca_wake_prepare(&l->w, make(l, 1, 7), 7);
	hca_wake_prepare(&l->w, make(l, 2, next), next);
	assert_int_equal(l->gets, 2);
	assert_int_equal(l->w.n_kept, 1);
	hca_wake(&l->w, 7);
	assert_int_equal(l->wakes, 1);
	hca_wake(&l->w, next);
	assert_int_equal(l->wakes, 1);
}

CASE_WITH(a_program_that_has_few_descriptors_keeps_all, begin, end)
{
	struct lab *l = *state;
	struct rlimit few = { 64, l->limit.rlim_max };
	int fds[600];

	assert_int_equal(hca_wakes_most(64), 0);
	assert_int_equal(hca_wakes_most(RLIM_INFINITY), HCA_WAKES_KEPT);
	hca_wake_prepare(&l->w, make(l, 1, 1), 1);
	assert_int_equal(l->w.n_kept, 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	hca_wake_prepare(&l->w, make(l, 2, 2), 2);
	assert_int_equal(l->w.n_kept, 0);
	few.rlim_cur = LIMIT;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	/* or uses many itself */
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = dup(l->own[1]);
	for (unsigned i = 0; i < 40; i++)
		hca_wake_prepare(&l->w, shm_cq_at(&l->region, 1), 1);
	assert_int_equal(l->w.n_kept, 0);
	hca_wake(&l->w, 1);
	assert_int_equal(l->wakes, 1);
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
}

/* The daemon's own half: it has no table of descriptors. */
CASE_WITH(the_daemon_keeps_no_descriptors, begin, end)
{
	struct lab *l = *state;
	struct hca_wakes w = { 0 };

	assert_int_equal(hca_wakes_init(&w, l->control, &l->region, false), 0);
	hca_wake_prepare(&w, make(l, 1, 1), 1);
	hca_wake(&w, 1);
	assert_int_equal(l->gets, 0);
	assert_int_equal(l->wakes, 1);
	hca_wakes_fini(&w);
}
