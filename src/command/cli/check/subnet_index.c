/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The holders of GUIDs and names in a subnet: see subnet.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/util.h"
#include "cli/base/command.h"
#include "cli/check/subnet.h"
#include "fabric/plan/shape.h"

struct entry {
	struct base_hash_node node;
	struct cli_subnet_end end;
	uint64_t guid;
	const char *name;
};

static int add(struct base_hash *to, const struct entry *what, uint64_t hash)
{
	struct entry *e = malloc(sizeof(*e));

	if (e) {
		*e = *what;
		if (!base_hash_add(to, &e->node, hash))
			return 0;
	}
	free(e);
	return cli_no_memory();
}

static uint64_t guid_hash(uint64_t guid)
{
	return base_hash_of(&guid, sizeof(guid), 0);
}

int cli_subnet_add_guid(struct cli_subnet *s, uint64_t guid, struct cli_subnet_end end)
{
	return add(&s->guids, &(struct entry){ .end = end, .guid = guid }, guid_hash(guid));
}

int cli_subnet_add_name(struct cli_subnet *s, const char *name, struct cli_subnet_end end)
{
	return add(&s->names, &(struct entry){ .end = end, .name = name },
	           base_hash_of(name, strlen(name), 0));
}

static const struct entry *entry_at(const struct base_hash_node *n)
{
	return container_of(n, struct entry, node);
}

const struct cli_subnet_end *cli_subnet_by_guid(const struct cli_subnet *s, uint64_t guid)
{
	struct base_hash_node *n = base_hash_first(&s->guids, guid_hash(guid));

	while (n && entry_at(n)->guid != guid)
		n = base_hash_next(n);
	return n ? &entry_at(n)->end : NULL;
}

const struct cli_subnet_end *cli_subnet_by_name(const struct cli_subnet *s, const char *name)
{
	struct base_hash_node *n = base_hash_first(&s->names, base_hash_of(name, strlen(name), 0));

	while (n && strcmp(entry_at(n)->name, name) != 0)
		n = base_hash_next(n);
	return n ? &entry_at(n)->end : NULL;
}

const char *cli_subnet_port_name(struct cli_subnet *s, const char *node, unsigned port)
{
	char *text;

	if (base_array_reserve(&s->text, &s->texts_room, (size_t)s->n_texts + 1) ||
	    asprintf(&text, "%s:%u", node, port) < 0) {
		base_log("%s", strerror(ENOMEM));
		return NULL;
	}
	s->text[s->n_texts++] = text;
	return text;
}

void cli_subnet_fini(struct cli_subnet *s)
{
	check_net_fini(&s->net);
	base_hash_free(&s->guids, offsetof(struct entry, node));
	base_hash_free(&s->names, offsetof(struct entry, node));
	for (uint32_t i = 0; i < s->n_texts; i++)
		free(s->text[i]);
	free(s->text);
	for (size_t i = 0; i < ARRAY_SIZE(s->kept); i++)
		json_object_put(s->kept[i]);
	if (s->plan)
		fabric_plan_fini(s->plan);
	free(s->plan);
}
