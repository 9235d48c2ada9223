/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The views that `umbel explain` looks at, and its findings (explain_say.c): explain.c is the
 * command, explain_path.c follows links and tables, explain_qp.c looks at queue pairs,
 * explain_rkey.c at keys, explain_wc.c at statuses. Single-threaded. All that is read are the
 * daemon's views (json.h).
 */
#ifndef CLI_EXPLAIN_H
#define CLI_EXPLAIN_H

#include <stdbool.h>

#include "cli/base/command.h"
#include "cli/base/options.h"

struct control_client;
struct json_object;

enum cli_verdict {
	CLI_HOLDS,
	CLI_FAILS,
	CLI_LOST, /* it has failed: counters say so */
};

struct cli_explain {
	struct control_client *client;
	/* views; NULL: not asked for */
	struct json_object *hosts, *topology, *ports, *counters, *texts, *qps, *groups;
	struct json_object *places; /* the view "key": the key's place in each process */
	/* elements of these by what names them, as groups may have many members: hosts; nodes of
	 * the topology and of the view "ports"; queue pairs; counters, by "NODE:PORT" */
	struct json_object *by_host, *by_node, *keys_by_node, *by_qpn, *by_port;
	struct json_object *findings;
	unsigned n_failed;
	bool quiet;         /* a finding that holds is not worth a line */
	bool silent;        /* nothing is */
	bool broken;        /* a view did not come */
	const char *status; /* of a completion: a request would fail with it; or NULL */
};

/* A port of a host. */
struct cli_end {
	const char *host;
	const char *node; /* its HCA */
	long port;
	struct json_object *link, *keys; /* the port in the topology, and in the view "ports" */
};

/* ---- explain_say.c ---- */

/* Adds a finding about @about, a word; @todo: what to do about it, or NULL. */
void cli_explain_say(struct cli_explain *e, enum cli_verdict verdict, const char *about,
                     const char *todo, const char *format, ...)
        __attribute__((format(printf, 5, 6)));

/* ---- explain_path.c ---- */

/* Finds the port "HOST" or "HOST:PORT". False: there is none, and a finding says so. */
bool cli_explain_end(struct cli_explain *e, const char *text, struct cli_end *end);
/* Whether its link is up. */
bool cli_explain_link(struct cli_explain *e, const struct cli_end *end);
/* Follows the tables from one port to the LID of the other one. The smallest MTU on the way; 0: it
 * does not arrive. */
long cli_explain_route(struct cli_explain *e, const struct cli_end *from, const struct cli_end *to);
/* Whether both are in a partition, one of them as full member. */
bool cli_explain_pkeys(struct cli_explain *e, const struct cli_end *from, const struct cli_end *to);
/* The same of a group's P_Key. */
void cli_explain_group_pkey(struct cli_explain *e, const struct cli_end *end, long pkey);
/* Follows a group's tree from @from. By name, the HCAs that it reaches: to be put. */
struct json_object *cli_explain_tree(struct cli_explain *e, const struct cli_end *from,
                                     struct json_object *group);
/* That the tree does not reach @to, and where it ends. */
void cli_explain_unreached(struct cli_explain *e, const struct cli_end *to,
                           struct json_object *group);
/* Finds the losses at the port by the counters that @names lists, which ends with NULL. */
void cli_explain_losses(struct cli_explain *e, const struct cli_end *end, const char *const *names);
long cli_explain_counter(struct cli_explain *e, const struct cli_end *end, const char *name);

struct cli_command;

/* ---- explain_wc.c ---- */

/* Prints what the status @text of a completion means, by name or number. An exit status. */
int cli_explain_wc(const char *text, bool json);
/* Likewise, with its causes judged by the queue pair "HOST:QPN", the likely ones first. */
int cli_explain_wc_qp(struct cli_explain *e, const char *text, const char *qp, bool json);

/* ---- explain_qp.c ---- */

/* The queue pair of that number, as views write it; NULL: there is none. */
struct json_object *cli_explain_find_qp(struct cli_explain *e, const char *qpn);
/* One that is attached to a group: as that one has its keys. */
void cli_explain_attached(struct cli_explain *e, struct json_object *qp, struct json_object *group);
/* "h3 QP 0x000012". In one of four buffers. */
const char *cli_explain_name_qp(struct json_object *qp);
/* Whether its state lets it receive. */
bool cli_explain_receives(struct json_object *qp);
/* The queue pair "HOST:QPN". NULL: there is none, and a finding says so. */
struct json_object *cli_explain_get_qp(struct cli_explain *e, const char *text);
/* All that can be said of "HOST:QPN". */
void cli_explain_qp(struct cli_explain *e, const char *text);
/* Queue pairs of both: connections between them, and those of @to that receive datagrams. */
void cli_explain_between(struct cli_explain *e, const struct cli_end *from,
                         const struct cli_end *to);
/* The last packet at the port whose Q_Key was wrong, if it still would be. */
void cli_explain_bad_qkey(struct cli_explain *e, const struct cli_end *to);

/* ---- explain_rkey.c ---- */

/* A question about a key, as given. */
struct cli_explain_rkey {
	const char *rkey, *host, *from, *to, *qp, *op, *address, *length;
};

/* 0, or CLI_USAGE. */
int cli_explain_rkey_check(const struct cli_command *self, const struct cli_explain_rkey *x);
/* The region or window that the key names, and whether a request by it would be carried out. */
void cli_explain_rkey(struct cli_explain *e, const struct cli_explain_rkey *x);

/* 'rule' and a name, or all of them: what rules of checked programs say
 * (src/client/checked/rules.def). The exit status. */
int cli_explain_rule(const struct cli_command *self, const struct cli_list *words, bool json);

#endif
