/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A subnet manager's state, taken from a fabric and given to another one: see state.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "fabric/plan/guids.h"
#include "subnet/sa_state.h"
#include "subnet/state.h"

/* ---- taking ---- */

/* Adds the entries of a port's tables but for its own GUID. */
static int add_tables(struct subnet_state *s, const struct fabric_port *p)
{
	if (base_array_reserve(&s->alias, &s->alias_room, (size_t)s->n_aliases + SHM_IB_GIDS) ||
	    base_array_reserve(&s->pkey, &s->pkey_room, (size_t)s->n_pkeys + SHM_PKEYS))
		return -ENOMEM;
	for (uint32_t i = 1; p->alias && i < SHM_IB_GIDS; i++)
		if (p->alias[i].guid)
			s->alias[s->n_aliases++] = (struct state_entry){ .guid = p->guid,
				                                         .value = p->alias[i].guid,
				                                         .index = i };
	for (uint32_t i = 0; i < SHM_PKEYS; i++)
		if (p->pkey[i] && (i || p->pkey[i] != IB_PKEY_DEFAULT))
			s->pkey[s->n_pkeys++] = (struct state_entry){ .guid = p->guid,
				                                      .value = p->pkey[i],
				                                      .index = i };
	return 0;
}

static int add_port(struct subnet_state *s, const struct fabric_port *p)
{
	if (base_array_reserve(&s->port, &s->port_room, (size_t)s->n_ports + 1))
		return -ENOMEM;
	s->port[s->n_ports++] = (struct state_port){ .guid = p->guid, .lid = p->lid };
	return add_tables(s, p);
}

/* End port number @i, or NULL: a place without one. */
static struct fabric_port *end_port(const struct fabric *f, unsigned i)
{
	if (i < f->n_ib_ports)
		return f->hca_port[i];
	i -= f->n_ib_ports;
	return f->node[i]->type == FABRIC_SWITCH ? &f->node[i]->port[0] : NULL;
}

static unsigned n_ends(const struct fabric *f)
{
	return f->n_ib_ports + f->n_nodes;
}

int subnet_state_add_ports(struct subnet_state *s, const struct fabric *f, unsigned *at, unsigned n)
{
	const unsigned last = n_ends(f);

	for (; n && *at < last; n--, ++*at) {
		const struct fabric_port *p = end_port(f, *at);

		if (p && add_port(s, p))
			return -ENOMEM;
	}
	return *at == last;
}

int subnet_state_add_groups(struct subnet_state *s, const struct sa *sa)
{
	for (uint32_t i = 0; i < sa->mlids.size; i++) {
		const struct sa_mlid *m = base_idtable_get(&sa->mlids, i);
		const struct sa_group *g;

		for (g = m ? TAILQ_FIRST(&m->groups) : NULL; g; g = TAILQ_NEXT(g, of_mlid)) {
			if (base_array_reserve(&s->group, &s->group_room, (size_t)s->n_groups + 1))
				return -ENOMEM;
			s->group[s->n_groups++] = (struct state_group){ .rec = g->rec };
		}
	}
	return 0;
}

/* ---- giving ---- */

void subnet_state_note_misfit(struct subnet_state_misfits *m, uint32_t line)
{
	if (!m->n++ || line < m->line)
		m->line = line;
}

/* The end ports by their GUIDs. 0 or -ENOMEM; fabric_guids_fini() is due in any case. */
static int index_ends(const struct fabric *f, struct fabric_guids *ends)
{
	int ret = fabric_guids_init(ends, n_ends(f));

	for (unsigned i = 0; i < n_ends(f) && !ret; i++) {
		const struct fabric_port *p = end_port(f, i);

		if (p)
			fabric_guids_add(ends, p->guid, i, NULL);
	}
	return ret;
}

static struct fabric_port *find_end(const struct fabric *f, const struct fabric_guids *ends,
                                    uint64_t guid)
{
	uint32_t i;

	return fabric_guids_find(ends, guid, &i) ? end_port(f, i) : NULL;
}

/* Another port may have the GUID. */
static bool can_have_alias(struct fabric *f, const struct fabric_port *p,
                           const struct state_entry *e)
{
	struct ib_gid gid;

	fabric_gid_make(f, e->value, &gid);
	return p && p->node->type == FABRIC_HCA && e->index && !fabric_port_by_gid(f, &gid);
}

static int restore_alias(struct fabric *f, struct fabric_port *p, const struct state_entry *e)
{
	int ret = fabric_port_set_guid(f, p, e->index, e->value);

	if (!ret)
		fabric_port_publish(f, p);
	return ret;
}

/* The sweep publishes what changes here, and drops LIDs that cannot be. */
static void restore_lids(const struct subnet_state *s, const struct fabric *f,
                         const struct fabric_guids *ends)
{
	for (uint32_t i = 0; i < s->n_ports; i++) {
		struct fabric_port *p = find_end(f, ends, s->port[i].guid);

		if (p && !p->lid)
			p->lid = s->port[i].lid;
	}
}

static void restore_pkeys(const struct subnet_state *s, const struct fabric *f,
                          const struct fabric_guids *ends, struct subnet_state_misfits *misfits)
{
	for (uint32_t i = 0; i < s->n_pkeys; i++) {
		const struct state_entry *e = &s->pkey[i];
		struct fabric_port *p = find_end(f, ends, e->guid);

		if (p)
			p->pkey[e->index] = (uint16_t)e->value;
		else
			subnet_state_note_misfit(misfits, e->line);
	}
}

int subnet_state_restore_ports(const struct subnet_state *s, struct fabric *f, bool has_partitions,
                               struct subnet_state_misfits *misfits)
{
	struct fabric_guids ends;
	int ret;

	if (!s->n_ports && !s->n_aliases && !s->n_pkeys)
		return 0;
	ret = index_ends(f, &ends);
	if (!ret)
		restore_lids(s, f, &ends);
	if (!ret && has_partitions)
		restore_pkeys(s, f, &ends, misfits);
	for (uint32_t i = 0; i < s->n_aliases && !ret; i++) {
		const struct state_entry *e = &s->alias[i];
		struct fabric_port *p = find_end(f, &ends, e->guid);

		if (can_have_alias(f, p, e))
			ret = restore_alias(f, p, e);
		else
			subnet_state_note_misfit(misfits, e->line);
	}
	fabric_guids_fini(&ends);
	return ret;
}

int subnet_state_check_lids(const struct subnet_state *s, const struct fabric *f,
                            struct subnet_state_misfits *misfits)
{
	struct fabric_guids ends;
	int ret;

	if (!s->n_ports)
		return 0;
	ret = index_ends(f, &ends);
	for (uint32_t i = 0; i < s->n_ports && !ret; i++) {
		const struct fabric_port *p = find_end(f, &ends, s->port[i].guid);

		if (!p || p->lid != s->port[i].lid)
			subnet_state_note_misfit(misfits, s->port[i].line);
	}
	fabric_guids_fini(&ends);
	return ret;
}
