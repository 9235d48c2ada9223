/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Members of groups: see members.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "check/members.h"

static int add(struct check_members *m, const struct check_member *one)
{
	if (base_array_reserve(&m->member, &m->room, (size_t)m->n + 1))
		return -ENOMEM;
	m->member[m->n++] = *one;
	return 0;
}

static int by_host(const void *a, const void *b)
{
	const struct check_member *x = a, *y = b;

	return x->host < y->host ? -1 : x->host > y->host;
}

/* Puts the entries of one host together. */
static void merge(struct check_members *m)
{
	uint32_t n = 0;

	if (m->n)
		qsort(m->member, m->n, sizeof(*m->member), by_host);
	for (uint32_t i = 0; i < m->n; i++) {
		if (!n || m->member[n - 1].host != m->member[i].host) {
			m->member[n++] = m->member[i];
			continue;
		}
		m->member[n - 1].sends |= m->member[i].sends;
		m->member[n - 1].receives |= m->member[i].receives;
	}
	m->n = n;
}

/* The hosts that a row leads to. */
static int add_hosts(struct check_members *m, const struct check_net *net,
                     const struct check_row *row)
{
	const struct check_switch *sw = &net->sw[row->sw];
	int ret = 0;

	for (unsigned k = 1; k <= sw->n_ports && !ret; k++) {
		const struct check_member one = { sw->port[k].to, true, true };

		if (check_row_has(row, k) && sw->port[k].end == CHECK_TO_HOST)
			ret = add(m, &one);
	}
	return ret;
}

int check_members_of(struct check_members *m, const struct check_net *net, uint16_t mlid)
{
	int ret = 0;

	m->mlid = mlid;
	m->tree = check_tree_of(net, mlid);
	m->group = NULL;
	m->n = m->sls = 0;
	m->is_open = true;
	for (uint32_t i = 0; i < net->n_groups; i++) {
		const struct check_group *g = &net->group[i];

		if (g->mlid != mlid)
			continue;
		m->group = m->group ? m->group : g;
		m->sls |= (uint16_t)(1u << g->sl);
		m->is_open = m->is_open && g->is_open;
		for (uint32_t k = 0; k < g->n && !ret; k++)
			ret = add(m, &g->member[k]);
	}
	for (uint32_t i = 0; m->tree && m->is_open && i < m->tree->n && !ret; i++)
		ret = add_hosts(m, net, &m->tree->row[i]);
	m->sls = m->sls ? m->sls : 1;
	snprintf(m->text, sizeof(m->text), "0x%04x", mlid);
	m->name = m->group && m->group->name ? m->group->name : m->text;
	merge(m);
	return ret;
}

void check_members_fini(struct check_members *m)
{
	free(m->member);
}

int check_each_mlid(const struct check_net *net, int (*each)(void *arg, struct check_members *m),
                    void *arg)
{
	struct check_members m = { 0 };
	bool *known = calloc(CHECK_MLIDS, sizeof(*known));
	int ret = known ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < net->n_trees && !ret; i++)
		known[net->tree[i].mlid - CHECK_MLID] = true;
	for (uint32_t i = 0; i < net->n_groups && !ret; i++)
		known[net->group[i].mlid - CHECK_MLID] = true;
	for (unsigned i = 0; i < CHECK_MLIDS && !ret; i++) {
		if (!known[i])
			continue;
		ret = check_members_of(&m, net, (uint16_t)(CHECK_MLID + i));
		if (!ret)
			ret = each(arg, &m);
	}
	free(known);
	check_members_fini(&m);
	return ret;
}
