/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples of views, rates and order: see top_data.h. Called by top.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cli/base/json.h"
#include "cli/show/top_data.h"
#include "control/client.h"

#define NS_PER_S 1e9

/* The values that a row had. */
struct cli_top_known {
	struct base_hash_node node;
	double total[CLI_TOP_COLUMNS];
	char id[];
};

static struct cli_top_known *find_known(const struct cli_top_history *h, const char *id)
{
	struct cli_top_known *k;

	BASE_HASH_FOREACH(k, &h->known, base_hash_of(id, strlen(id), 0), node)
		if (!strcmp(k->id, id))
			return k;
	return NULL;
}

/* Without memory the next rates of the row are not known. */
static void add_known(struct cli_top_history *h, const char *id, const double *total)
{
	struct cli_top_known *k = calloc(1, sizeof(*k) + strlen(id) + 1);

	if (!k)
		return;
	strcpy(k->id, id);
	memcpy(k->total, total, sizeof(k->total));
	if (base_hash_add(&h->known, &k->node, base_hash_of(id, strlen(id), 0)))
		free(k);
}

void cli_top_history_fini(struct cli_top_history *h)
{
	base_hash_free(&h->known, offsetof(struct cli_top_known, node));
	*h = (struct cli_top_history){ 0 };
}

/* "sw1/3/" */
static void name_row(const struct cli_top_view *view, struct json_object *o, char *id, size_t size)
{
	size_t n = 0;

	*id = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(view->id) && view->id[i] && n < size; i++)
		n += (size_t)snprintf(id + n, size - n, "%s/", cli_json_text(o, view->id[i]));
}

static double total_of(struct json_object *o, const struct cli_top_column *c)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, c->key, &v) || !json_object_is_type(v, json_type_int))
		return NAN;
	return (double)json_object_get_int64(v);
}

/* By what it has grown in a second. A total that became less began anew: nobody knows when. */
static double rate_of(double total, double before, double seconds)
{
	if (seconds <= 0)
		return NAN;
	return total < before ? 0 : (total - before) / seconds;
}

struct context {
	const struct cli_top_view *view;
	const struct cli_top_history *old;
	struct cli_top_history *new;
	double seconds; /* 0: there was no sample before */
};

static void fill_row(struct cli_top_row *row, struct json_object *o, const struct context *c)
{
	const unsigned n = cli_top_n_columns(c->view);
	const struct cli_top_known *known;
	double total[CLI_TOP_COLUMNS] = { 0 };
	char id[256];

	row->o = o;
	name_row(c->view, o, id, sizeof(id));
	known = find_known(c->old, id);
	for (unsigned i = 0; i < n; i++) {
		const struct cli_top_column *column = &c->view->columns[i];

		row->number[i] = NAN;
		if (column->kind == CLI_TOP_TEXT)
			continue;
		row->number[i] = total[i] = total_of(o, column);
		if (column->kind == CLI_TOP_RATE)
			row->number[i] =
			        known ? rate_of(total[i], known->total[i], c->seconds) : NAN;
	}
	add_known(c->new, id, total);
}

struct cli_top_sample *cli_top_sample_new(const struct cli_top_view *view, struct json_object *rows,
                                          struct json_object *more, struct cli_top_history *history,
                                          uint64_t now_ns)
{
	struct cli_top_history new = { .at_ns = now_ns };
	struct context c = { view, history, &new,
		             history->at_ns ? (double)(now_ns - history->at_ns) / NS_PER_S : 0 };
	struct cli_top_sample *s = calloc(1, sizeof(*s));

	if (!s)
		goto err_rows;
	s->n = json_object_array_length(rows);
	s->row = calloc(s->n + 1, sizeof(*s->row));
	if (!s->row)
		goto err_sample;
	s->view = view;
	s->root = rows;
	if (view->prepare)
		view->prepare(rows, more);
	for (size_t i = 0; i < s->n; i++)
		fill_row(&s->row[i], json_object_array_get_idx(rows, i), &c);
	cli_top_history_fini(history);
	*history = new;
	return s;
err_sample:
	free(s);
err_rows:
	json_object_put(rows);
	return NULL;
}

void cli_top_sample_free(struct cli_top_sample *s)
{
	if (!s)
		return;
	json_object_put(s->root);
	json_object_put(s->status);
	free(s->row);
	free(s);
}

/* ---- from the daemon ---- */

/* A view, to be put. 0 or -errno. Prints nothing, as there is a screen. */
static int ask(struct control_client *client, const char *what, struct json_object **reply)
{
	char *text;
	int ret = control_show(client, what, &text);

	if (ret)
		return ret;
	*reply = json_tokener_parse(text);
	free(text);
	return *reply ? 0 : -EPROTO;
}

/* The array of rows in a reply; "counters" has several. */
static struct json_object *rows_of(struct json_object *reply)
{
	struct json_object *rows = NULL;

	if (json_object_is_type(reply, json_type_array))
		rows = json_object_get(reply);
	else if (json_object_is_type(reply, json_type_object))
		rows = json_object_get(cli_json_array(reply, "ports"));
	json_object_put(reply);
	return rows;
}

/* Asks for the data that the view wants beside its rows; the texts are asked for once. */
static int ask_more(struct control_client *client, const struct cli_top_view *view,
                    struct json_object **texts, struct json_object **more)
{
	int ret = 0;

	*more = NULL;
	if (!view->more)
		return 0;
	if (strcmp(view->more, "loss_texts") != 0)
		return ask(client, view->more, more);
	if (!*texts)
		ret = ask(client, view->more, texts);
	*more = json_object_get(*texts);
	return ret;
}

int cli_top_sample_take(struct control_client *client, const struct cli_top_view *view,
                        struct cli_top_history *history, struct json_object **texts,
                        struct cli_top_sample **out)
{
	struct json_object *reply = NULL, *more = NULL, *status = NULL;
	struct cli_top_sample *s = NULL;
	int ret = ask(client, "status", &status);

	if (!ret)
		ret = ask_more(client, view, texts, &more);
	if (!ret)
		ret = ask(client, view->what, &reply);
	if (ret)
		goto out;
	reply = rows_of(reply);
	s = reply ? cli_top_sample_new(view, reply, more, history, base_now_ns()) : NULL;
	ret = s ? 0 : -ENOMEM;
out:
	json_object_put(more);
	if (s)
		s->status = status;
	else
		json_object_put(status);
	*out = s;
	return ret;
}

/* ---- order ---- */

static const char *human(double v, char *text, size_t size)
{
	static const char units[] = " KMGTPE";
	unsigned unit = 0;

	/* 999.5 would be written as 1000 */
	for (; v >= 999.5 && unit < sizeof(units) - 2; v /= 1000)
		unit++;
	if (!unit)
		snprintf(text, size, "%.0f", v);
	else
		snprintf(text, size,
		         v < 9.995   ? "%.2f%c"
		         : v < 99.95 ? "%.1f%c"
		                     : "%.0f%c",
		         v, units[unit]);
	return text;
}

const char *cli_top_cell(const struct cli_top_sample *s, const struct cli_top_row *row,
                         unsigned column, char text[static CLI_TOP_CELL])
{
	const struct cli_top_column *c = &s->view->columns[column];

	if (c->kind == CLI_TOP_TEXT)
		return cli_json_text(row->o, c->key);
	if (isnan(row->number[column]))
		return "-";
	if (c->kind == CLI_TOP_NUMBER && row->number[column] < 100000) {
		snprintf(text, CLI_TOP_CELL, "%.0f", row->number[column]);
		return text;
	}
	return human(row->number[column], text, CLI_TOP_CELL);
}

static bool fits(const struct cli_top_sample *s, const struct cli_top_row *row, const char *filter)
{
	const unsigned n = cli_top_n_columns(s->view);

	for (unsigned i = 0; i < n; i++)
		if (s->view->columns[i].kind == CLI_TOP_TEXT &&
		    strcasestr(cli_json_text(row->o, s->view->columns[i].key), filter))
			return true;
	return false;
}

struct comparing {
	const struct cli_top_sample *s;
	const struct cli_top_order *order;
};

/* Unknown numbers are last, whichever way the others are. */
static int compare_numbers(double m, double n, bool reverse)
{
	if (isnan(m) || isnan(n))
		return !!isnan(m) - !!isnan(n);
	return (m > n ? -1 : m < n) * (reverse ? -1 : 1);
}

static int compare(const void *a, const void *b, void *arg)
{
	const struct comparing *c = arg;
	const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct cli_top_row *m = &c->s->row[i], *n = &c->s->row[k];
	const struct cli_top_column *column = &c->s->view->columns[c->order->column];
	const bool reverse = c->order->reverse;
	int ret;

	if (column->kind == CLI_TOP_TEXT)
		ret = strverscmp(cli_json_text((reverse ? n : m)->o, column->key),
		                 cli_json_text((reverse ? m : n)->o, column->key));
	else
		ret = compare_numbers(m->number[c->order->column], n->number[c->order->column],
		                      reverse);
	if (!ret) /* as the daemon has them */
		ret = i < k ? -1 : i > k;
	return ret;
}

size_t cli_top_order(const struct cli_top_sample *s, const struct cli_top_order *order,
                     uint32_t *which)
{
	struct comparing c = { s, order };
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		if (!*order->filter || fits(s, &s->row[i], order->filter))
			which[n++] = (uint32_t)i;
	qsort_r(which, n, sizeof(*which), compare, &c);
	return n;
}
