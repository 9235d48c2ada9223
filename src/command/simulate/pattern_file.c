/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Traffic patterns out of files: see pattern.h.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"
#include "fabric/model/fabric.h"
#include "simulate/pattern.h"

#define WORD 80 /* bytes of a name with its port, and a zero byte; no longer name is a host's */

/* A name that stands for an HCA: its own, or its host's. */
struct name {
	struct base_hash_node by_text;
	const char *text;
	const struct fabric_node *hca;
	bool several; /* HCAs of that host */
};

struct reader {
	const struct simulate_pattern_file *file;
	const char *at, *end;
	unsigned line;
	const struct fabric *f;
	struct simulate_pattern *p;
	struct name *name;
	struct base_hash names;
	uint32_t *member_of; /* by host: the last group it was added to, from 1 */
	char *why;
	size_t len;
};

/* ---- names ---- */

static struct name *find_name(const struct reader *r, const char *text)
{
	struct base_hash_node *n = base_hash_first(&r->names, base_hash_of(text, strlen(text), 0));

	while (n && strcmp(container_of(n, struct name, by_text)->text, text))
		n = base_hash_next(n);
	return n ? container_of(n, struct name, by_text) : NULL;
}

static int add_name(struct reader *r, struct name *n, const char *text,
                    const struct fabric_node *hca)
{
	struct name *old = find_name(r, text);

	if (old) { /* HCAs' own names come first, and are unique */
		old->several |= strcmp(old->hca->name, text) != 0;
		return 0;
	}
	*n = (struct name){ .text = text, .hca = hca };
	return base_hash_add(&r->names, &n->by_text, base_hash_of(text, strlen(text), 0));
}

static int read_names(struct reader *r)
{
	const struct fabric *f = r->f;
	struct name *next;
	int ret = 0;

	next = r->name = calloc((size_t)f->n_nodes * 2 + 1, sizeof(*r->name));
	r->member_of = calloc((size_t)f->n_ib_ports + 1, sizeof(*r->member_of));
	if (!r->name || !r->member_of)
		return -ENOMEM;
	for (unsigned i = 0; i < f->n_nodes && !ret; i++)
		if (f->node[i]->type == FABRIC_HCA)
			ret = add_name(r, next++, f->node[i]->name, f->node[i]);
	for (unsigned i = 0; i < f->n_nodes && !ret; i++)
		if (f->node[i]->type == FABRIC_HCA)
			ret = add_name(r, next++, shm_hca_at(f->region, f->node[i]->hca)->host,
			               f->node[i]);
	return ret;
}

/* ---- words ---- */

static int refuse(const struct reader *r, const char *what, const char *word)
{
	char shown[WORD];
	size_t n = 0;

	for (; word[n] && n + 1 < sizeof(shown); n++)
		shown[n] = isprint((unsigned char)word[n]) ? word[n] : '?';
	shown[n] = '\0';
	snprintf(r->why, r->len, "%s:%u: %s '%s'", r->file->name, r->line, what, shown);
	return -EINVAL;
}

/* The next word of the line, cut if it is long; "": there is none. */
static const char *next_word(struct reader *r, char word[static WORD])
{
	size_t n = 0;

	while (r->at < r->end && *r->at != '\n' && isspace((unsigned char)*r->at))
		r->at++;
	while (r->at < r->end && *r->at == '#' && memchr(r->at, '\n', (size_t)(r->end - r->at)))
		r->at = memchr(r->at, '\n', (size_t)(r->end - r->at));
	if (r->at < r->end && *r->at == '#') /* in the last line */
		r->at = r->end;
	for (; r->at < r->end && !isspace((unsigned char)*r->at); r->at++)
		if (n + 1 < WORD)
			word[n++] = *r->at ? *r->at : '?';
	word[n] = '\0';
	return word;
}

/* The host that @word names. 0 or -EINVAL. */
static int read_host(struct reader *r, char word[static WORD], uint32_t *host)
{
	char *colon = strrchr(word, ':');
	const struct name *n;
	long port = 0;

	if (colon && base_parse_number(colon + 1, 1, UINT8_MAX, &port))
		return refuse(r, "no port", word);
	if (colon)
		*colon = '\0';
	n = find_name(r, word);
	if (!n)
		return refuse(r, "no host", word);
	if (n->several)
		return refuse(r, "there are several HCAs of host", word);
	if (!port && n->hca->n_ports > 1)
		return refuse(r, "write NODE:PORT: there are several ports of", word);
	if (port > (long)n->hca->n_ports)
		return refuse(r, "there are fewer ports of", word);
	*host = n->hca->port[port ? port : 1].index;
	return 0;
}

/* ---- lines ---- */

static int read_unicast(struct reader *r)
{
	char word[WORD];
	uint32_t from, to;
	int ret;

	if (!*next_word(r, word))
		return refuse(r, "who sends?", "unicast");
	ret = read_host(r, word, &from);
	while (!ret && *next_word(r, word)) {
		ret = read_host(r, word, &to);
		if (!ret)
			ret = simulate_pattern_add_pair(r->p, from, to);
	}
	return ret;
}

static int read_group(struct reader *r)
{
	int ret = simulate_pattern_add_group(r->p);
	char word[WORD];
	uint32_t host;

	while (!ret && *next_word(r, word)) {
		ret = read_host(r, word, &host);
		if (ret || r->member_of[host] == r->p->n_groups)
			continue;
		r->member_of[host] = r->p->n_groups;
		ret = simulate_list_add(&r->p->group[r->p->n_groups - 1].members, host);
	}
	return ret;
}

static int read_multicast(struct reader *r)
{
	struct simulate_group *g = r->p->n_groups ? &r->p->group[r->p->n_groups - 1] : NULL;
	char word[WORD];
	uint32_t host;
	int ret = 0;

	if (!g)
		return refuse(r, "a line 'group' must come before", "multicast");
	g->has_senders = true;
	while (!ret && *next_word(r, word)) {
		ret = read_host(r, word, &host);
		if (!ret)
			ret = simulate_list_add(&g->senders, host);
	}
	return ret;
}

static int read_sl(struct reader *r)
{
	char word[WORD];
	long sl;

	if (base_parse_number(next_word(r, word), 0, IB_SLS - 1, &sl))
		return refuse(r, "no service level", word);
	if (*next_word(r, word))
		return refuse(r, "one service level, without", word);
	r->p->sl = (uint8_t)sl;
	return 0;
}

static int read_line(struct reader *r)
{
	char word[WORD];

	next_word(r, word);
	if (!*word)
		return 0;
	if (!strcmp(word, "unicast"))
		return read_unicast(r);
	if (!strcmp(word, "group"))
		return read_group(r);
	if (!strcmp(word, "multicast"))
		return read_multicast(r);
	if (!strcmp(word, "sl"))
		return read_sl(r);
	return refuse(r, "want unicast, group, multicast or sl, not", word);
}

int simulate_pattern_read(struct simulate_pattern *p, const struct fabric *f,
                          const struct simulate_pattern_file *file, char *why, size_t len)
{
	struct reader r = {
		.file = file, .at = file->text, .f = f, .p = p, .why = why, .len = len
	};
	int ret = read_names(&r);

	r.end = file->text + file->bytes;
	for (r.line = 1; r.at < r.end && !ret; r.line++) {
		ret = read_line(&r);
		r.at += r.at < r.end; /* the end of the line */
	}
	base_hash_fini(&r.names);
	free(r.name);
	free(r.member_of);
	return ret;
}
