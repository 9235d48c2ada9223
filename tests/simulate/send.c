/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sends the messages of a pattern file of `umbel simulate`, with queue pairs: a datagram for each
 * message. counters.sh compares the ports' counters with the simulation's. In the environment:
 *
 *	PATTERN		the file; its hosts are h1, h2 and so on
 *	BEFORE		a command that is run when groups have been joined, before anything is sent
 *	AFTER		a command that is run when all has been sent
 *	ARRIVE		how many messages must arrive
 */
#include "verbs/lab.h"

#define HOSTS  64
#define GROUPS 16

struct group {
	char address[32];
	bool member[HOSTS + 1];
	struct lab_group *joined[HOSTS + 1];
};

static struct lab_end *end[HOSTS + 1];
static struct group group[GROUPS + 1];
static unsigned n_groups, own_copies;

static struct lab_end *end_of(int host)
{
	assert_in_range(host, 1, HOSTS);
	if (end[host])
		return end[host];
	end[host] = lab_end(host);
	lab_post(end[host], LAB_SLOTS);
	return end[host];
}

static bool is_up(int host)
{
	struct ibv_port_attr attr;

	assert_int_equal(ibv_query_port(end_of(host)->context, 1, &attr), 0);
	return attr.state == IBV_PORT_ACTIVE;
}

static void join(int host, bool receives)
{
	struct group *g = &group[n_groups];
	struct lab_end *e = end_of(host);

	if (g->joined[host])
		return;
	g->member[host] = receives;
	g->joined[host] =
	        receives ? lab_join(host, g->address) : lab_join_send_only(host, g->address);
	if (receives)
		lab_attach(e->qp, &g->joined[host]->mgid, g->joined[host]->mlid);
}

static void send_to_group(int host)
{
	struct lab_end *e = end_of(host);
	struct group *g = &group[n_groups];

	if (!is_up(host))
		return;
	lab_send_text(e, lab_ah_group(e, g->joined[host]), LAB_MCAST, "to the group");
	own_copies += g->member[host];
}

static void send_to_host(int from, int to)
{
	struct lab_end *e = end_of(from);

	if (is_up(from))
		lab_send_text(e, lab_ah_to(e, end_of(to)), end_of(to)->qp->qp_num, "to a host");
}

/* Reads the file and does what its lines say: only what of it is joining, or the rest. */
static void walk_file(bool joining)
{
	FILE *f = fopen(getenv("PATTERN"), "r");
	char line[4096], *word, *at;

	assert_non_null(f);
	n_groups = 0;
	while (fgets(line, sizeof(line), f)) {
		char *what = strtok_r(line, " \n", &at);
		int from = 0;

		n_groups += what && !strcmp(what, "group");
		assert_in_range(n_groups, 0, GROUPS);
		snprintf(group[n_groups].address, sizeof(group[n_groups].address), "239.7.0.%u",
		         n_groups);
		while (what && (word = strtok_r(NULL, " \n", &at))) {
			int host = atoi(word + 1);

			if (!strcmp(what, "unicast") && from && !joining)
				send_to_host(from, host);
			from = from ? from : host;
			if (joining && strcmp(what, "unicast"))
				join(host, !strcmp(what, "group"));
			if (!joining && !strcmp(what, "multicast"))
				send_to_group(host);
		}
	}
	fclose(f);
}

/* Joins that a real host makes are not sent by this process, so all that is counted is ours. */
LAB_CASE(messages_of_the_pattern_are_sent)
{
	unsigned arrived = 0;
	struct ibv_wc wc;

	walk_file(true);
	assert_int_equal(system(getenv("BEFORE")), 0);
	walk_file(false);
	assert_int_equal(system(getenv("AFTER")), 0);
	for (int host = 1; host <= HOSTS; host++)
		while (end[host] && ibv_poll_cq(end[host]->cq, 1, &wc) == 1) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			arrived++;
		}
	assert_int_equal(arrived - own_copies, atoi(getenv("ARRIVE")));
}
