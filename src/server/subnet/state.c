/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The text of a subnet manager's state: see state.h. A line is a word, then values separated by
 * blanks. The last one is "end", so that a text that was cut is known as one.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/array.h"
#include "base/complain.h"
#include "base/util.h"
#include "fabric/plan/guids.h"
#include "shm/layout.h"
#include "subnet/state.h"
#include "wire/rate.h"
#include "wire/text.h"

#define FIRST_LINE "umbel-state 1"
#define WORD_MAX   40
#define LINE_ROOM  256 /* bytes of the longest line that is written */

struct parser {
	const char *name;
	const char *at, *end; /* of the line */
	const char *text_end;
	uint32_t line;
	bool ended;
	char *why;
	size_t why_len;
	struct subnet_state *s;
	uint64_t lids[IB_LID_MCAST_FIRST / 64]; /* that lines have named */
};

void subnet_state_init(struct subnet_state *s)
{
	*s = (struct subnet_state){ 0 };
}

void subnet_state_fini(struct subnet_state *s)
{
	free(s->port);
	free(s->alias);
	free(s->pkey);
	free(s->group);
	subnet_state_init(s);
}

/* ---- complaints ---- */

static int complain(const struct parser *p, uint32_t line, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* Writes the message to @why. Returns -EINVAL. */
static int complain(const struct parser *p, uint32_t line, const char *format, ...)
{
	const struct base_place place = { p->name, line };
	va_list args;

	va_start(args, format);
	base_complain(p->why, p->why_len, &place, format, args);
	va_end(args);
	return -EINVAL;
}

/* The line is not as it should be from @at on. */
static int expected(const struct parser *p, const char *what, const char *at)
{
	char found[WORD_MAX];
	size_t n = 0;

	while (at + n < p->end && n < sizeof(found) - 1) {
		found[n] = at[n];
		if (found[n] < ' ' || found[n] > '~')
			found[n] = '?';
		n++;
	}
	found[n] = '\0';
	if (!n)
		return complain(p, p->line, "expected %s, found the end of the line", what);
	return complain(p, p->line, "expected %s, found '%s%s'", what, found,
	                at + n < p->end ? "..." : "");
}

/* ---- words ---- */

/* Makes the next line the present one. False: there is none. */
static bool next_line(struct parser *p, const char **at)
{
	const char *end;

	if (*at == p->text_end)
		return false;
	end = memchr(*at, '\n', (size_t)(p->text_end - *at));
	p->at = *at;
	p->end = end ? end : p->text_end;
	*at = end ? end + 1 : p->text_end;
	if (p->end > p->at && p->end[-1] == '\r')
		p->end--;
	p->line++;
	return true;
}

static void skip_blanks(struct parser *p)
{
	while (p->at < p->end && (*p->at == ' ' || *p->at == '\t'))
		p->at++;
}

/* Copies the next word, which is then behind us. False: there is none that is so short. */
static bool take_word(struct parser *p, char word[static WORD_MAX])
{
	size_t n = 0;

	skip_blanks(p);
	while (p->at + n < p->end && p->at[n] != ' ' && p->at[n] != '\t' && p->at[n])
		n++;
	if (!n || n >= WORD_MAX)
		return false;
	memcpy(word, p->at, n);
	word[n] = '\0';
	p->at += n;
	return true;
}

static int end_line(struct parser *p)
{
	skip_blanks(p);
	return p->at == p->end ? 0 : expected(p, "the end of the line", p->at);
}

/* A number as C writes it, decimal or hexadecimal. */
static bool is_number(const char *word, uint64_t *value)
{
	const bool hex = word[0] == '0' && word[1] == 'x';
	char *end;

	word += hex ? 2 : 0;
	if (!*word || word[strspn(word, hex ? "0123456789abcdefABCDEF" : "0123456789")])
		return false;
	errno = 0;
	*value = strtoull(word, &end, hex ? 16 : 10);
	return !errno && !*end;
}

/* The next word, a number from @min to @max, which @what describes. */
static int read_number(struct parser *p, const char *what, uint64_t min, uint64_t max,
                       uint64_t *value)
{
	char word[WORD_MAX];
	const char *at;

	skip_blanks(p);
	at = p->at;
	if (!take_word(p, word) || !is_number(word, value) || *value < min || *value > max)
		return expected(p, what, at);
	return 0;
}

static int read_guid(struct parser *p, uint64_t *guid)
{
	return read_number(p, "a port's GUID", 1, UINT64_MAX, guid);
}

/* ---- lines ---- */

static int read_lid(struct parser *p)
{
	struct subnet_state *s = p->s;
	uint64_t guid, lid;
	int ret = read_guid(p, &guid);

	if (!ret)
		ret = read_number(p, "a LID from 1 to 49151", 1, IB_LID_MCAST_FIRST - 1, &lid);
	if (ret)
		return ret;
	if (p->lids[lid / 64] >> (lid % 64) & 1)
		return complain(p, p->line, "an earlier line has LID %u, too", (unsigned)lid);
	p->lids[lid / 64] |= 1ull << (lid % 64);
	ret = base_array_reserve(&s->port, &s->port_room, (size_t)s->n_ports + 1);
	if (!ret)
		s->port[s->n_ports++] =
		        (struct state_port){ guid, .line = p->line, .lid = (uint16_t)lid };
	return ret;
}

/* "GUID INDEX VALUE" of a table. */
static int read_entry(struct parser *p, uint32_t last, const char *what, uint64_t max,
                      struct state_entry *e)
{
	uint64_t index = 0;
	int ret = read_guid(p, &e->guid);

	e->line = p->line;
	if (!ret)
		ret = read_number(p, "an index of the table", 0, last, &index);
	e->index = (uint32_t)index;
	return ret ? ret : read_number(p, what, 1, max, &e->value);
}

static int add_entry(struct state_entry **table, uint32_t *n, uint32_t *room,
                     const struct state_entry *e)
{
	int ret = base_array_reserve(table, room, (size_t)*n + 1);

	if (!ret)
		(*table)[(*n)++] = *e;
	return ret;
}

static int read_alias(struct parser *p)
{
	struct subnet_state *s = p->s;
	struct state_entry e;
	int ret = read_entry(p, SHM_IB_GIDS - 1, "another GUID of the port", UINT64_MAX, &e);

	return ret ? ret : add_entry(&s->alias, &s->n_aliases, &s->alias_room, &e);
}

static int read_pkey(struct parser *p)
{
	struct subnet_state *s = p->s;
	struct state_entry e;
	int ret = read_entry(p, SHM_PKEYS - 1, "a P_Key", UINT16_MAX, &e);

	return ret ? ret : add_entry(&s->pkey, &s->n_pkeys, &s->pkey_room, &e);
}

/* The values of a group, in the order in which they are written. */
#define GROUP_VALUE(name, member, min, max, hex)                                   \
	{                                                                          \
		name, offsetof(struct wire_mcmember, member),                      \
		        sizeof(((struct wire_mcmember *)0)->member), min, max, hex \
	}
static const struct group_value {
	const char *name;
	size_t offset, bytes;
	uint64_t min, max;
	bool hex;
} group_values[] = {
	GROUP_VALUE("mlid", mlid, IB_LID_MCAST_FIRST, IB_LID_MCAST_LAST, true),
	GROUP_VALUE("pkey", pkey, 1, UINT16_MAX, true),
	GROUP_VALUE("qkey", qkey, 0, UINT32_MAX, true),
	GROUP_VALUE("mtu", mtu, IBV_MTU_256, IBV_MTU_4096, false),
	GROUP_VALUE("rate", rate, 0, UINT8_MAX, false),
	GROUP_VALUE("sl", sl, 0, IB_SLS - 1, false),
	GROUP_VALUE("tclass", tclass, 0, UINT8_MAX, false),
	GROUP_VALUE("flow_label", flow_label, 0, 0xFFFFF, false),
	GROUP_VALUE("hop_limit", hop_limit, 0, UINT8_MAX, false),
	GROUP_VALUE("life", life, 0, 0x3F, false),
};

static void set_value(struct wire_mcmember *rec, const struct group_value *v, uint64_t value)
{
	char *to = (char *)rec + v->offset;

	if (v->bytes == sizeof(uint8_t))
		*(uint8_t *)to = (uint8_t)value;
	else if (v->bytes == sizeof(uint16_t))
		*(uint16_t *)to = (uint16_t)value;
	else
		*(uint32_t *)to = (uint32_t)value;
}

static uint32_t get_value(const struct wire_mcmember *rec, const struct group_value *v)
{
	const char *from = (const char *)rec + v->offset;

	if (v->bytes == sizeof(uint8_t))
		return *(const uint8_t *)from;
	if (v->bytes == sizeof(uint16_t))
		return *(const uint16_t *)from;
	return *(const uint32_t *)from;
}

static int read_mgid(struct parser *p, struct ib_gid *mgid)
{
	char word[WORD_MAX];
	const char *at;

	skip_blanks(p);
	at = p->at;
	if (!take_word(p, word) || !wire_mgid_parse(word, mgid))
		return expected(p, "a multicast GID", at);
	return 0;
}

/* "mtu 4" and so on. */
static int read_value(struct parser *p, const struct group_value *v, struct wire_mcmember *rec)
{
	char word[WORD_MAX], what[64];
	const char *at;
	uint64_t value;
	int ret;

	skip_blanks(p);
	at = p->at;
	if (!take_word(p, word) || strcmp(word, v->name) != 0)
		return expected(p, v->name, at);
	snprintf(what, sizeof(what), v->hex ? "%s from 0x%llx to 0x%llx" : "%s from %llu to %llu",
	         v->name, (unsigned long long)v->min, (unsigned long long)v->max);
	ret = read_number(p, what, v->min, v->max, &value);
	if (!ret)
		set_value(rec, v, value);
	return ret;
}

static int read_group(struct parser *p)
{
	struct state_group g = { .line = p->line };
	struct subnet_state *s = p->s;
	int ret = read_mgid(p, &g.rec.mgid);

	for (size_t i = 0; i < ARRAY_SIZE(group_values) && !ret; i++)
		ret = read_value(p, &group_values[i], &g.rec);
	if (!ret && !wire_rate_find(g.rec.rate))
		ret = complain(p, p->line, "expected an encoded rate (3: 10 Gb/s), found %u",
		               g.rec.rate);
	g.rec.scope = g.rec.mgid.raw[1] & 0xF;
	if (!ret)
		ret = base_array_reserve(&s->group, &s->group_room, (size_t)s->n_groups + 1);
	if (!ret)
		s->group[s->n_groups++] = g;
	return ret;
}

static int read_end(struct parser *p)
{
	p->ended = true;
	return 0;
}

static int read_line(struct parser *p)
{
	static const struct {
		const char *word;
		int (*read)(struct parser *p);
	} kinds[] = { { "lid", read_lid },
		      { "guid", read_alias },
		      { "pkey", read_pkey },
		      { "group", read_group },
		      { "end", read_end } };
	char word[WORD_MAX];
	const char *at;

	skip_blanks(p);
	at = p->at;
	if (at == p->end || *at == '#')
		return 0;
	if (p->ended)
		return expected(p, "nothing behind 'end'", at);
	if (!take_word(p, word))
		return expected(p, "lid, guid, pkey, group or end", at);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(word, kinds[i].word)) {
			int ret = kinds[i].read(p);

			return ret ? ret : end_line(p);
		}
	return expected(p, "lid, guid, pkey, group or end", at);
}

static int read_lines(struct parser *p, const char *at)
{
	int ret = 0;

	next_line(p, &at);
	if ((size_t)(p->end - p->at) != strlen(FIRST_LINE) ||
	    memcmp(p->at, FIRST_LINE, strlen(FIRST_LINE)) != 0)
		return expected(p, "'" FIRST_LINE "'", p->at);
	while (!ret && next_line(p, &at))
		ret = read_line(p);
	if (!ret && !p->ended)
		ret = complain(p, p->line + 1,
		               "expected 'end', found the end of the file: the file was cut");
	return ret;
}

/* No port has two lines. */
static int check_guids(const struct parser *p)
{
	const struct subnet_state *s = p->s;
	struct fabric_guid_clash clash;
	struct fabric_guids set;
	int ret = fabric_guids_init(&set, s->n_ports);

	for (uint32_t i = 0; i < s->n_ports && !ret; i++)
		ret = fabric_guids_add(&set, s->port[i].guid, s->port[i].line, &clash);
	if (ret == -EEXIST)
		ret = complain(p, clash.second, "line %u has a LID of GUID 0x%016llx, too",
		               clash.first, (unsigned long long)clash.guid);
	fabric_guids_fini(&set);
	return ret;
}

int subnet_state_parse(struct subnet_state *s, const struct subnet_state_text *from, char *why,
                       size_t len)
{
	struct parser p = { .name = from->name,
		            .text_end = from->text + from->bytes,
		            .why = why,
		            .why_len = len,
		            .s = s };
	int ret;

	subnet_state_init(s);
	if (!from->bytes)
		return 0;
	ret = read_lines(&p, from->text);
	return ret ? ret : check_guids(&p);
}

/* ---- writing ---- */

struct writer {
	char *text;
	uint32_t room;
	size_t bytes;
	bool failed;
};

static void add_line(struct writer *w, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

static void add_line(struct writer *w, const char *format, ...)
{
	va_list args;

	w->failed = w->failed || base_array_reserve(&w->text, &w->room, w->bytes + LINE_ROOM);
	if (w->failed)
		return;
	va_start(args, format);
	w->bytes += (size_t)vsnprintf(w->text + w->bytes, LINE_ROOM - 1, format, args);
	va_end(args);
	w->text[w->bytes++] = '\n';
}

static void add_entries(struct writer *w, const char *word, const struct state_entry *e, uint32_t n,
                        int digits)
{
	for (; n; n--, e++)
		add_line(w, "%s 0x%016llx %u 0x%0*llx", word, (unsigned long long)e->guid, e->index,
		         digits, (unsigned long long)e->value);
}

static void add_group(struct writer *w, const struct wire_mcmember *rec)
{
	char line[LINE_ROOM];
	int n = snprintf(line, sizeof(line), "group %s", wire_gid_text(&rec->mgid));

	for (size_t i = 0; i < ARRAY_SIZE(group_values); i++) {
		const struct group_value *v = &group_values[i];

		n += snprintf(line + n, sizeof(line) - (size_t)n, v->hex ? " %s 0x%0*x" : " %s %*u",
		              v->name, v->hex ? 2 * (int)v->bytes : 1, get_value(rec, v));
	}
	add_line(w, "%s", line);
}

int subnet_state_format(const struct subnet_state *s, char **text, size_t *bytes)
{
	struct writer w = { 0 };

	add_line(&w, FIRST_LINE);
	for (uint32_t i = 0; i < s->n_ports; i++)
		if (s->port[i].lid)
			add_line(&w, "lid 0x%016llx %u", (unsigned long long)s->port[i].guid,
			         s->port[i].lid);
	add_entries(&w, "guid", s->alias, s->n_aliases, 16);
	add_entries(&w, "pkey", s->pkey, s->n_pkeys, 4);
	for (uint32_t i = 0; i < s->n_groups; i++)
		add_group(&w, &s->group[i].rec);
	add_line(&w, "end");
	if (w.failed) {
		free(w.text);
		return -ENOMEM;
	}
	*text = w.text;
	*bytes = w.bytes;
	return 0;
}
