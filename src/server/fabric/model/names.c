/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Unique names: see names.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "fabric/model/names.h"

struct entry {
	struct base_hash_node node;
	char name[FABRIC_NAME];
	unsigned next; /* the number to try first, so that a thousand equal names are quick */
};

void fabric_names_fini(struct fabric_names *names)
{
	base_hash_free(&names->reserved, offsetof(struct entry, node));
}

static uint64_t hash_of(const char *name)
{
	return base_hash_of(name, strlen(name), 0);
}

static struct entry *find(const struct fabric_names *names, const char *name)
{
	struct entry *e;

	BASE_HASH_FOREACH(e, &names->reserved, hash_of(name), node)
		if (!strcmp(e->name, name))
			return e;
	return NULL;
}

static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Copies the characters of @want that a name may have; it begins with a letter or a digit. */
static void clean(const char *want, char name[FABRIC_NAME])
{
	size_t n = 0;

	for (; *want && n < FABRIC_NAME - 1; want++) {
		if (is_alnum(*want))
			name[n++] = *want;
		else if (n && strchr("._-", *want))
			name[n++] = *want;
		else if (n && name[n - 1] != '-')
			name[n++] = '-';
	}
	while (n && name[n - 1] == '-')
		n--;
	name[n] = '\0';
}

/* Appends a number to @name that makes it unique; cuts its end if it becomes too long. */
static void number(struct fabric_names *names, struct entry *base, char name[FABRIC_NAME])
{
	do {
		char suffix[16];
		size_t room = FABRIC_NAME - 1 -
		              (size_t)snprintf(suffix, sizeof(suffix), "-%u", base->next++);

		snprintf(name, FABRIC_NAME, "%.*s%s", (int)room, base->name, suffix);
	} while (find(names, name));
}

int fabric_names_reserve(struct fabric_names *names, const char *want, char name[FABRIC_NAME])
{
	struct entry *e, *base;

	clean(want, name);
	if (!*name)
		return -EINVAL;
	base = find(names, name);
	if (base)
		number(names, base, name);
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->next = 2;
	memcpy(e->name, name, FABRIC_NAME);
	if (base_hash_add(&names->reserved, &e->node, hash_of(name))) {
		free(e);
		return -ENOMEM;
	}
	return 0;
}
