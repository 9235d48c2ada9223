/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The text form of what programs have: queue pairs, connections, processes, memory regions; see
 * views.h. Called by views.c.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/command.h"
#include "cli/base/json.h"
#include "cli/base/table.h"
#include "cli/show/views.h"

static int print_rows(struct json_object *rows, const struct cli_column *columns, const char *none)
{
	if (cli_json_count(rows))
		return cli_json_print_table(rows, columns, NULL);
	return puts(none) < 0 ? CLI_FAILED : 0;
}

/* "h2 0x000013"; the host is known if it is of this fabric. */
static void add_qp_peer(struct cli_table *t, struct json_object *qp, const char *key)
{
	const char *peer = cli_json_text(qp, key), *host = cli_json_text(qp, "peer_host");

	if (strcmp(host, "-") != 0)
		cli_table_add(t, "%s %s", host, peer);
	else
		cli_table_add(t, "%s", peer);
}

/* Those of the SRQ that it receives by are in brackets. */
static void add_receives(struct cli_table *t, struct json_object *qp, const char *key)
{
	if (json_object_object_get(qp, "srq"))
		cli_table_add(t, "(%s)", cli_json_text(qp, key));
	else
		cli_table_add(t, "%s", cli_json_text(qp, key));
}

int cli_views_qps(struct json_object *qps)
{
	static const struct cli_column columns[] = {
		{ "HOST", "host", cli_add_text, 0 },
		{ "PORT", "port", cli_add_text, 0 },
		{ "QPN", "qpn", cli_add_text, 0 },
		{ "TYPE", "type", cli_add_text, 0 },
		{ "STATE", "state", cli_add_text, 0 },
		{ "PID", "pid", cli_add_text, 0 },
		{ "P_KEY", "pkey", cli_add_text, 0 },
		{ "Q_KEY", "qkey", cli_add_text, 0 },
		{ "RECEIVES", "receives", add_receives, 0 },
		{ "ARRIVED", "arrived", cli_add_text, 0 },
		{ "PEER", "peer", add_qp_peer, 0 },
		{ "WAITING", "waiting", cli_add_text, 0 },
		{ 0 },
	};
	static const struct cli_column packets[] = {
		{ "HOST", "host", cli_add_text, 0 },
		{ "QPN", "qpn", cli_add_text, 0 },
		{ "NEXT PSN", "next_psn", cli_add_text, 0 },
		{ "ACKED", "acked_psn", cli_add_text, 0 },
		{ "EXPECTED", "expected_psn", cli_add_text, 0 },
		{ "MTU", "path_mtu", cli_add_text, 0 },
		{ "RETRIES", "retries", cli_add_text, 0 },
		{ "OF", "retry_cnt", cli_add_text, 0 },
		{ "RNR", "rnr_retries", cli_add_text, 0 },
		{ "OF", "rnr_retry", cli_add_text, 0 },
		{ "SENT AGAIN", "retransmissions", cli_add_text, 0 },
		{ 0 },
	};
	struct json_object *some = json_object_new_array();
	int ret;

	for (size_t i = 0; i < cli_json_count(qps); i++)
		if (json_object_object_get(cli_json_at(qps, i), "next_psn"))
			json_object_array_add(some, json_object_get(cli_json_at(qps, i)));
	ret = print_rows(qps, columns, "no queue pairs");
	if (!ret && cli_json_count(some)) {
		putchar('\n');
		ret = cli_json_print_table(some, packets, NULL);
	}
	json_object_put(some);
	return ret;
}

int cli_views_connections(struct json_object *connections)
{
	static const struct cli_column columns[] = {
		{ "HOST", "host", cli_add_text, 0 },
		{ "PORT", "port", cli_add_text, 0 },
		{ "PID", "pid", cli_add_text, 0 },
		{ "BY", "by", cli_add_text, 0 },
		{ "STATE", "state", cli_add_text, 0 },
		{ "QPN", "qpn", cli_add_text, 0 },
		{ "TYPE", "type", cli_add_text, 0 },
		{ "QP STATE", "qp_state", cli_add_text, 0 },
		{ "PEER", "peer", add_qp_peer, 0 },
		{ "FROM", "source", cli_add_text, 0 },
		{ "TO", "destination", cli_add_text, 0 },
		{ 0 },
	};

	return print_rows(connections, columns, "no connections");
}

/* "h1 h2 h3 ...": a process may be on thousands. */
static void add_hosts(struct cli_table *t, struct json_object *process, const char *key)
{
	const size_t most = 4;
	struct json_object *hosts = cli_json_array(process, key);
	char text[4 * 64 + 8] = "-";

	for (size_t i = 0, n = 0; i < cli_json_count(hosts) && i < most; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.60s", i ? " " : "",
		                      json_object_get_string(cli_json_at(hosts, i)));
	cli_table_add(t, "%s%s", text, cli_json_count(hosts) > most ? " ..." : "");
}

int cli_views_processes(struct json_object *processes)
{
	static const struct cli_column columns[] = {
		{ "PID", "pid", cli_add_text, 0 },
		{ "PROGRAM", "program", cli_add_text, 0 },
		{ "UID", "uid", cli_add_text, 0 },
		{ "USES", "uses", cli_add_text, 0 },
		{ "HOSTS", "hosts", add_hosts, 0 },
		{ "QPS", "qps", cli_add_text, 0 },
		{ "CQS", "cqs", cli_add_text, 0 },
		{ "SRQS", "srqs", cli_add_text, 0 },
		{ "CHANNELS", "channels", cli_add_text, 0 },
		{ "MRS", "mrs", cli_add_text, 0 },
		{ "CM IDS", "cm_ids", cli_add_text, 0 },
		{ "JOINS", "joins", cli_add_text, 0 },
		{ 0 },
	};

	return print_rows(processes, columns, "no processes");
}

/* "local_write,remote_read" */
static void add_access(struct cli_table *t, struct json_object *mr, const char *key)
{
	struct json_object *names = cli_json_array(mr, key);
	char text[256] = "-";

	for (size_t i = 0, n = 0; i < cli_json_count(names) && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? "," : "",
		                      json_object_get_string(cli_json_at(names, i)));
	cli_table_add(t, "%s", text);
}

int cli_views_mrs(struct json_object *mrs)
{
	static const struct cli_column columns[] = {
		{ "PID", "pid", cli_add_text, 0 },         { "KEY", "key", cli_add_text, 0 },
		{ "ADDRESS", "address", cli_add_text, 0 }, { "LENGTH", "length", cli_add_text, 0 },
		{ "IOVA", "iova", cli_add_text, 0 },       { "PD", "pd", cli_add_text, 0 },
		{ "ACCESS", "access", add_access, 0 },     { 0 },
	};

	return print_rows(mrs, columns,
	                  "no memory regions of processes with connected queue pairs");
}
