/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An HCA that is closed with many protection domains: it and they are gone at once, for any look,
 * and are freed in slices. And the modules that have objects of a holder that ends: their order.
 */
#include <harness.h>
#include <ctype.h>

#include "daemon/clients/objects.h"

#define PDS 16384 /* as many as a process may have */

struct lab {
	struct daemon_loop loop;
	struct daemon_objects o;
	struct daemon_holder *holder;
};

static int setup(void **state)
{
	struct lab *l = calloc(1, sizeof(*l));

	*state = l;
	if (daemon_loop_init(&l->loop))
		return -1;
	daemon_chores_init(&l->o.chores, &l->loop.timers);
	daemon_hcas_init(&l->o.hcas, &l->loop, &l->o.memory, &l->o.endings);
	daemon_pds_init(&l->o.pds, &l->o.hcas, &l->o.endings);
	l->o.memory.unowned.chores = &l->o.chores; /* the only thing of memory that is used */
	l->holder = daemon_objects_holder(&l->o, 7, 0);
	return 0;
}

static int teardown(void **state)
{
	struct lab *l = *state;

	base_timer_stop(&l->o.memory.unowned.timer);
	daemon_chores_fini(&l->o.chores);
	base_idtable_fini(&l->o.pds.ids);
	base_idtable_fini(&l->o.hcas.ids);
	base_hash_fini(&l->o.pds.domains);
	free(l->holder);
	daemon_loop_fini(&l->loop);
	free(l);
	return 0;
}

static struct daemon_hca *open_hca(struct lab *l)
{
	struct daemon_hca *h;
	int fd;

	assert_int_equal(daemon_hca_open(&l->o.hcas, l->holder, 0, &h, &fd), 0);
	close(fd);
	return h;
}

static void make_pds(struct lab *l, struct daemon_hca *h, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(daemon_pd_new(&l->o.pds, h, first + i), 0);
}

CASE_WITH(domains_go_in_slices, setup, teardown)
{
	struct lab *l = *state;
	struct daemon_hca *h = open_hca(l), *other = open_hca(l);
	uint32_t handle = h->handle;
	unsigned slices = 0;

	make_pds(l, other, PDS, 10);
	make_pds(l, h, 0, PDS - 10);
	daemon_objects_close_hca(&l->o, h);
	assert_null(daemon_hca_of(&l->o.hcas, l->holder, handle));
	assert_null(daemon_pd_of(&l->o.pds, l->holder, 0));
	for (uint32_t before = l->o.pds.ids.used; daemon_chores_wait(&l->o.chores); slices++) {
		daemon_chores_slice(&l->o.chores);
		assert_true(before - l->o.pds.ids.used <= DAEMON_SLICE);
		before = l->o.pds.ids.used;
	}
	assert_true(slices >= PDS / DAEMON_SLICE - 1);
	/* another HCA keeps its own */
	assert_int_equal(l->o.pds.ids.used, 10);
	assert_int_equal(l->holder->n_pds, 10);
	assert_non_null(daemon_pd_of(&l->o.pds, l->holder, PDS));
	daemon_objects_close_hca(&l->o, other);
	assert_int_equal(l->o.pds.ids.used, 0); /* few go at once */
}

CASE_WITH(a_number_can_be_had_again_meanwhile, setup, teardown)
{
	struct lab *l = *state;
	struct daemon_hca *h = open_hca(l), *next = open_hca(l);

	make_pds(l, h, 0, PDS - 1);
	daemon_objects_close_hca(&l->o, h);
	assert_true(daemon_chores_wait(&l->o.chores));
	make_pds(l, next, 0, 1);
	assert_ptr_equal(daemon_pd_of(&l->o.pds, l->holder, 0)->hca, next);
	daemon_objects_close_hca(&l->o, next);
	while (daemon_chores_wait(&l->o.chores))
		daemon_chores_slice(&l->o.chores);
	assert_int_equal(l->o.pds.ids.used, 0);
}

/* A module with objects of the holder; their number, and what happens to them, by its letter. */
struct module {
	struct daemon_ending ending;
	char letter;
	unsigned objects;
	char *done; /* all modules' */
};

static void note(struct module *m, char letter)
{
	const size_t n = strlen(m->done);

	if (!n || m->done[n - 1] != letter) {
		m->done[n] = letter;
		m->done[n + 1] = '\0';
	}
}

static void module_gone(void *arg, struct daemon_holder *holder)
{
	struct module *m = arg;

	assert_false(holder->dead);
	note(m, (char)toupper(m->letter));
}

static bool module_free(void *arg, struct daemon_holder *holder, uint32_t *budget)
{
	struct module *m = arg;

	assert_true(holder->dead);
	while (m->objects && daemon_chore_spend(budget, 1)) {
		note(m, m->letter);
		m->objects--;
	}
	return !m->objects;
}

CASE_WITH(the_module_that_registered_last_frees_first, setup, teardown)
{
	struct lab *l = *state;
	static char done[64];
	static struct module m[] = { { .letter = 'a', .objects = 3, .done = done },
		                     { .letter = 'b', .objects = 2 * DAEMON_SLICE, .done = done },
		                     { .letter = 'c', .done = done },
		                     { .letter = 'd', .objects = DAEMON_SLICE / 2, .done = done } };

	for (unsigned i = 0; i < 4; i++) {
		m[i].ending.gone = module_gone;
		daemon_ending_register(&l->o.endings, &m[i].ending, module_free, &m[i]);
	}
	make_pds(l, open_hca(l), 0, 3);
	daemon_objects_release(&l->o, l->holder);
	l->holder = NULL;
	assert_string_equal(done, "DCBAdb"); /* the budget is used up within b */
	assert_in_range(m[1].objects, DAEMON_SLICE, 2 * DAEMON_SLICE - 1);
	assert_int_equal(l->o.pds.ids.used, 3);
	daemon_chores_slice(&l->o.chores);
	assert_string_equal(done, "DCBAdb");
	assert_true(daemon_chores_wait(&l->o.chores));
	daemon_chores_slice(&l->o.chores);
	assert_string_equal(done, "DCBAdba");
	assert_int_equal(l->o.pds.ids.used, 0); /* which registered before all */
	assert_int_equal(l->o.hcas.ids.used, 0);
	assert_false(daemon_chores_wait(&l->o.chores));
}
