/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lists of the machine's directories: see listing.h.
 */
#define _GNU_SOURCE
#include "sysfs/listing.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sysfs/tree.h"

#define MAX_LISTS 16 /* open at the same time; a program that has more sees less */

/* The registry. An entry with a directory belongs to the thread that uses that. */
static struct listing {
	_Atomic(DIR *) dir;
	struct sysfs_node node;
	unsigned next;
	struct dirent entry;
} listings[MAX_LISTS];
static atomic_uint n_listings;

static struct listing *find(const DIR *dir)
{
	if (!atomic_load_explicit(&n_listings, memory_order_relaxed))
		return NULL;
	for (size_t i = 0; i < MAX_LISTS; i++)
		if (atomic_load_explicit(&listings[i].dir, memory_order_relaxed) == dir)
			return &listings[i];
	return NULL;
}

void sysfs_listing_add(DIR *dir, const struct sysfs_node *node)
{
	for (size_t i = 0; i < MAX_LISTS; i++) {
		DIR *none = NULL;

		if (!atomic_compare_exchange_strong(&listings[i].dir, &none, dir))
			continue;
		listings[i].node = *node;
		listings[i].next = 0;
		atomic_fetch_add(&n_listings, 1);
		return;
	}
}

void sysfs_listing_rewind(DIR *dir)
{
	struct listing *l = find(dir);

	if (l)
		l->next = 0;
}

void sysfs_listing_remove(DIR *dir)
{
	struct listing *l = find(dir);

	if (!l)
		return;
	atomic_fetch_sub(&n_listings, 1);
	atomic_store(&l->dir, NULL);
}

/* ---- the entries */

struct search {
	struct listing *l;
	unsigned n; /* candidates so far */
};

/* Of type sysfs_each_child. The machine has listed its own entries already. */
static int pick(void *arg, const char *name, const struct sysfs_node *child)
{
	static const unsigned char types[] = { [SYSFS_DIR] = DT_DIR,
		                               [SYSFS_LINK] = DT_LNK,
		                               [SYSFS_FILE] = DT_REG,
		                               [SYSFS_DEVICE] = DT_CHR };
	struct search *s = arg;
	struct dirent *e = &s->l->entry;

	if (s->n++ < s->l->next || sysfs_kind(child) == SYSFS_OUTSIDE ||
	    sysfs_machine_has(&s->l->node, name))
		return 0;
	e->d_ino = sysfs_pack(child);
	e->d_off = s->n;
	e->d_type = types[sysfs_kind(child)];
	e->d_reclen = (unsigned short)(offsetof(struct dirent, d_name) + strlen(name) + 1);
	strcpy(e->d_name, name);
	return 1;
}

struct dirent *sysfs_listing_next(DIR *dir)
{
	struct search s = { .l = find(dir) };
	int error = errno;
	bool found = s.l && sysfs_list(&s.l->node, pick, &s);

	errno = error;
	if (!found)
		return NULL;
	s.l->next = s.n;
	return &s.l->entry;
}
