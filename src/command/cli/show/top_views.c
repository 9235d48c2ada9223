/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The views of `umbel top`: their columns, which fit 80 characters, with more to the right for
 * wider terminals. See top_data.h.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "cli/base/json.h"
#include "cli/picture/legend.h"
#include "cli/show/top_data.h"

static void add_number(struct json_object *o, const char *key, int64_t number)
{
	json_object_object_add(o, key, json_object_new_int64(number));
}

/* ---- ports ---- */

static int64_t losses_of(struct json_object *port, struct json_object *texts)
{
	int64_t n = 0;

	json_object_object_foreach(texts, of, table)
	{
		(void)of;
		if (!cli_legend_fits(port, table))
			continue;
		json_object_object_foreach(table, counter, text)
		{
			(void)text;
			/* these are counted as xmit_discards already */
			if (strcmp(counter, "xmit_mtu") != 0)
				n += cli_json_number(port, counter);
		}
	}
	return n;
}

/* "drops": all that counts losses; @texts: which counters do. */
static void add_drops(struct json_object *ports, struct json_object *texts)
{
	for (size_t i = 0; i < cli_json_count(ports); i++)
		add_number(cli_json_at(ports, i), "drops", losses_of(cli_json_at(ports, i), texts));
}

/* ---- groups ---- */

static void count_members(struct json_object *groups, struct json_object *more)
{
	(void)more;
	for (size_t i = 0; i < cli_json_count(groups); i++) {
		struct json_object *g = cli_json_at(groups, i);

		add_number(g, "n_members", (int64_t)cli_json_count(cli_json_array(g, "members")));
		add_number(g, "n_attached", (int64_t)cli_json_count(cli_json_array(g, "attached")));
	}
}

/* ---- queue pairs and connections ---- */

static void name_peers(struct json_object *rows, struct json_object *more)
{
	char text[64];

	(void)more;
	for (size_t i = 0; i < cli_json_count(rows); i++) {
		const char *host = cli_json_text(cli_json_at(rows, i), "peer_host");

		snprintf(text, sizeof(text), "%.32s%s%.16s", strcmp(host, "-") != 0 ? host : "",
		         strcmp(host, "-") != 0 ? " " : "",
		         cli_json_text(cli_json_at(rows, i), "peer"));
		json_object_object_add(cli_json_at(rows, i), "to", json_object_new_string(text));
	}
}

/* ---- processes ---- */

static void add_to(struct json_object *sums, const char *pid, struct json_object *qp)
{
	struct json_object *sum = json_object_object_get(sums, pid);

	if (!sum) {
		sum = json_object_new_object();
		json_object_object_add(sums, pid, sum);
	}
	add_number(sum, "sent_packets",
	           cli_json_number(sum, "sent_packets") + cli_json_number(qp, "sent_packets"));
	add_number(sum, "sent_bytes",
	           cli_json_number(sum, "sent_bytes") + cli_json_number(qp, "sent_bytes"));
}

static void name_hosts(struct json_object *process)
{
	struct json_object *hosts = cli_json_array(process, "hosts");
	char text[CLI_TOP_CELL] = "-";

	if (cli_json_count(hosts) == 1)
		snprintf(text, sizeof(text), "%s", json_object_get_string(cli_json_at(hosts, 0)));
	else if (cli_json_count(hosts))
		snprintf(text, sizeof(text), "%.40s +%zu",
		         json_object_get_string(cli_json_at(hosts, 0)), cli_json_count(hosts) - 1);
	json_object_object_add(process, "on", json_object_new_string(text));
}

/* A process has sent what its queue pairs have. */
static void add_up_qps(struct json_object *processes, struct json_object *qps)
{
	struct json_object *sums = json_object_new_object();

	for (size_t i = 0; i < cli_json_count(qps); i++)
		add_to(sums, cli_json_text(cli_json_at(qps, i), "pid"), cli_json_at(qps, i));
	for (size_t i = 0; i < cli_json_count(processes); i++) {
		struct json_object *p = cli_json_at(processes, i);
		struct json_object *sum = json_object_object_get(sums, cli_json_text(p, "pid"));

		name_hosts(p);
		if (strcmp(cli_json_text(p, "uses"), "verbs") != 0)
			continue;
		add_number(p, "sent_packets", sum ? cli_json_number(sum, "sent_packets") : 0);
		add_number(p, "sent_bytes", sum ? cli_json_number(sum, "sent_bytes") : 0);
	}
	json_object_put(sums);
}

/* ---- all ---- */

#define TEXT(title, key, width)                        \
	{                                              \
		title, key, CLI_TOP_TEXT, width, false \
	}
#define NUMBER(title, key, width)                        \
	{                                                \
		title, key, CLI_TOP_NUMBER, width, false \
	}
#define RATE(title, key, width)                        \
	{                                              \
		title, key, CLI_TOP_RATE, width, false \
	}
#define LOST(kind, title, key, width)         \
	{                                     \
		title, key, kind, width, true \
	}

/* clang-format off */
const struct cli_top_view cli_top_views[CLI_TOP_VIEWS] = {
	{ .name = "ports", .what = "counters", .id = { "node", "port" },
	  .prepare = add_drops, .more = "loss_texts", .sort = 2, .stretch = 0,
	  .columns = { TEXT("NODE", "node", 16), TEXT("PORT", "port", 4),
	               RATE("SENT B/s", "xmit_bytes", 9), RATE("RCVD B/s", "rcv_bytes", 9),
	               RATE("SENT P/s", "xmit_pkts", 9), RATE("RCVD P/s", "rcv_pkts", 9),
	               LOST(CLI_TOP_NUMBER, "DROPS", "drops", 8),
	               LOST(CLI_TOP_RATE, "DROPS/s", "drops", 8),
	               NUMBER("SENT P", "xmit_pkts", 9), NUMBER("RCVD P", "rcv_pkts", 9) } },
	{ .name = "groups", .what = "groups", .id = { "mgid", "mlid", "hca" },
	  .prepare = count_members, .sort = 4, .stretch = 0,
	  .columns = { TEXT("MGID", "mgid", 28), TEXT("MLID", "mlid", 6),
	               NUMBER("MEMBERS", "n_members", 7), NUMBER("ATTACHED", "n_attached", 8),
	               RATE("SENT B/s", "sent_bytes", 8), RATE("SENT P/s", "sent_packets", 8),
	               NUMBER("SENT P", "sent_packets", 8) } },
	{ .name = "connections", .what = "connections", .id = { "host", "qpn", "source" },
	  .prepare = name_peers, .sort = 6, .stretch = 0,
	  .columns = { TEXT("HOST", "host", 8), TEXT("PID", "pid", 7), TEXT("BY", "by", 7),
	               TEXT("STATE", "state", 12), TEXT("QPN", "qpn", 8), TEXT("PEER", "to", 14),
	               RATE("SENT B/s", "sent_bytes", 8), RATE("SENT P/s", "sent_packets", 8),
	               TEXT("FROM", "source", 21), TEXT("TO", "destination", 21) } },
	{ .name = "qps", .what = "qps", .id = { "qpn" },
	  .prepare = name_peers, .sort = 8, .stretch = 0,
	  .columns = { TEXT("HOST", "host", 8), TEXT("QPN", "qpn", 8), TEXT("TYPE", "type", 8),
	               TEXT("STATE", "state", 5), TEXT("PID", "pid", 7),
	               NUMBER("RECVS", "receives", 5), NUMBER("UNREAD", "arrived", 6),
	               NUMBER("WAITING", "waiting", 7), RATE("SENT B/s", "sent_bytes", 8),
	               RATE("SENT P/s", "sent_packets", 8), TEXT("PEER", "to", 14) } },
	{ .name = "processes", .what = "processes", .id = { "pid", "uses", "program" },
	  .prepare = add_up_qps, .more = "qps", .sort = 8, .stretch = 2,
	  .columns = { TEXT("PID", "pid", 7), TEXT("PROGRAM", "program", 15), TEXT("HOST", "on", 8),
	               NUMBER("QPS", "qps", 5), NUMBER("CQS", "cqs", 5), NUMBER("MRS", "mrs", 5),
	               NUMBER("IDS", "cm_ids", 5), NUMBER("JOINS", "joins", 5),
	               RATE("SENT B/s", "sent_bytes", 8), RATE("SENT P/s", "sent_packets", 8),
	               TEXT("UID", "uid", 6), TEXT("USES", "uses", 5) } },
};
/* clang-format on */

unsigned cli_top_n_columns(const struct cli_top_view *view)
{
	unsigned n = 0;

	while (n < CLI_TOP_COLUMNS && view->columns[n].title)
		n++;
	return n;
}

int cli_top_find(const char *name)
{
	for (int i = 0; i < CLI_TOP_VIEWS; i++)
		if (!strcmp(cli_top_views[i].name, name))
			return i;
	return -1;
}
