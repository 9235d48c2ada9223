/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading a partitions.conf: see partitions.h.
 *
 * A definition is a header that ends with ':', then members separated by commas, on any number of
 * lines, then ';'. A member "mgid=..." is a group; its flags follow up to the end of the line or
 * ';'.
 */
#define _GNU_SOURCE /* qsort_r() */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/array.h"
#include "base/util.h"
#include "subnet/partitions.h"
#include "wire/mgid.h"
#include "wire/rate.h"
#include "wire/text.h"

#define DEFAULT_PKEY 0x7FFF
#define WORD_MAX     256
#define SCOPES       16

/* A part of the text. */
struct piece {
	const char *at;
	size_t len;
};

#define PIECE_ARG(p) (int)((p).len < WORD_MAX ? (p).len : WORD_MAX), (p).at

/* "name" or "name=value". */
struct item {
	struct piece name, value;
	bool has_value;
};

struct group_flags {
	uint8_t mtu, rate, sl, tclass;
	uint32_t qkey, flow_label;
	uint32_t scopes; /* a bit for each scope; 0: none given */
};

struct parser {
	struct partitions *p;
	const char *file;
	const char *at, *end;
	unsigned line;
	char *why;
	size_t why_len;
	/* the present definition */
	unsigned partition;
	bool is_ipoib, index0;
	enum partition_membership membership;
	struct group_flags flags;
};

static int complain(const struct parser *r, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/* Writes the message to @why. Returns -EINVAL. */
static int complain(const struct parser *r, const char *format, ...)
{
	char what[3 * WORD_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	for (char *c = what; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
	snprintf(r->why, r->why_len, "%s:%u: %s", r->file, r->line, what);
	return -EINVAL;
}

/* ---- pieces ---- */

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct piece trim(struct piece p)
{
	while (p.len && is_space(*p.at)) {
		p.at++;
		p.len--;
	}
	while (p.len && is_space(p.at[p.len - 1]))
		p.len--;
	return p;
}

/* The text up to one of @ends, without it. A comment ends with its line and is not part of it. */
static struct piece parse_until(struct parser *r, const char *ends)
{
	struct piece p = { r->at, 0 };

	while (r->at < r->end && *r->at != '#' && (!*r->at || !strchr(ends, *r->at)))
		r->at++;
	p.len = (size_t)(r->at - p.at);
	return trim(p);
}

/* Skips white space, comments and ends of lines. */
static void skip(struct parser *r)
{
	for (; r->at < r->end; r->at++) {
		if (*r->at == '#')
			while (r->at < r->end && *r->at != '\n')
				r->at++;
		if (r->at == r->end)
			return;
		if (!is_space(*r->at))
			return;
		if (*r->at == '\n')
			r->line++;
	}
}

static bool is_next(const struct parser *r, char c)
{
	return r->at < r->end && *r->at == c;
}

static struct item split(struct piece p)
{
	const char *equals = p.len ? memchr(p.at, '=', p.len) : NULL;
	struct item item = { .name = p };

	if (!equals)
		return item;
	item.has_value = true;
	item.name.len = (size_t)(equals - p.at);
	item.value = (struct piece){ equals + 1, p.len - item.name.len - 1 };
	item.name = trim(item.name);
	item.value = trim(item.value);
	return item;
}

/* Whether @p is @word or a beginning of it, as OpenSM allows. */
static bool begins(struct piece p, const char *word)
{
	return p.len && p.len <= strlen(word) && !memcmp(p.at, word, p.len);
}

static bool is_word(struct piece p, const char *word)
{
	return p.len == strlen(word) && !memcmp(p.at, word, p.len);
}

/* A number as C writes it, at most @max. */
static bool is_number(struct piece p, uint64_t max, uint64_t *number)
{
	char text[32], *end;

	if (!p.len || p.len >= sizeof(text) || !isdigit((unsigned char)*p.at))
		return false;
	memcpy(text, p.at, p.len);
	text[p.len] = '\0';
	errno = 0;
	*number = strtoull(text, &end, 0);
	return end == text + p.len && !errno && *number <= max;
}

/* ---- lists that grow ---- */

static int add_rule(struct parser *r, const struct partition_rule *rule)
{
	int ret = base_array_reserve(&r->p->rule, &r->p->rule_room, (size_t)r->p->n_rules + 1);

	if (!ret)
		r->p->rule[r->p->n_rules++] = *rule;
	return ret;
}

static int add_group(struct parser *r, const struct partition_group *group)
{
	int ret;

	for (unsigned i = 0; i < r->p->n_groups; i++)
		if (ib_gid_equal(&r->p->group[i].mgid, &group->mgid))
			return 0; /* the first definition of a group holds */
	ret = base_array_reserve(&r->p->group, &r->p->group_room, (size_t)r->p->n_groups + 1);
	if (!ret)
		r->p->group[r->p->n_groups++] = *group;
	return ret;
}

static int add_partition(struct partitions *p, struct piece name, uint16_t pkey)
{
	int ret = base_array_reserve(&p->partition, &p->room, (size_t)p->n + 1);
	char *copy = ret ? NULL : strndup(name.at, name.len);

	if (!copy)
		return -ENOMEM;
	p->partition[p->n++] = (struct partition){ .name = copy, .pkey = pkey };
	return 0;
}

/* ---- groups ---- */

static int parse_mtu(const struct parser *r, const struct item *item, struct group_flags *f)
{
	uint64_t v;

	if (!is_number(item->value, IBV_MTU_4096, &v) || v < IBV_MTU_256)
		return complain(r, "expected mtu=1 to mtu=5 (256 to 4096 bytes), found '%.*s'",
		                PIECE_ARG(item->value));
	f->mtu = (uint8_t)v;
	return 0;
}

static int parse_rate(const struct parser *r, const struct item *item, struct group_flags *f)
{
	uint64_t v;

	if (!is_number(item->value, UINT8_MAX, &v) || !wire_rate_find((unsigned)v))
		return complain(r, "expected rate= and an encoded rate (3: 10 Gb/s), found '%.*s'",
		                PIECE_ARG(item->value));
	f->rate = (uint8_t)v;
	return 0;
}

static int parse_scope(const struct parser *r, const struct item *item, struct group_flags *f)
{
	uint64_t v;

	if (!is_number(item->value, SCOPES - 1, &v) || !v)
		return complain(r, "expected scope=1 to scope=15, found '%.*s'",
		                PIECE_ARG(item->value));
	f->scopes |= 1u << v;
	return 0;
}

static int parse_sl(const struct parser *r, const struct item *item, struct group_flags *f)
{
	uint64_t v;

	if (!is_number(item->value, 15, &v))
		return complain(r, "expected sl=0 to sl=15, found '%.*s'", PIECE_ARG(item->value));
	f->sl = (uint8_t)v;
	return 0;
}

static int parse_qkey(const struct parser *r, const struct item *item, struct group_flags *f)
{
	uint64_t v;

	if (!is_number(item->value, UINT32_MAX, &v))
		return complain(r, "expected Q_Key= and 32 bits, found '%.*s'",
		                PIECE_ARG(item->value));
	f->qkey = (uint32_t)v;
	return 0;
}

static int parse_tclass(const struct parser *r, const struct item *item, struct group_flags *f)
{
	uint64_t v;

	if (!is_number(item->value, UINT8_MAX, &v))
		return complain(r, "expected TClass=0 to TClass=255, found '%.*s'",
		                PIECE_ARG(item->value));
	f->tclass = (uint8_t)v;
	return 0;
}

static int parse_flow_label(const struct parser *r, const struct item *item, struct group_flags *f)
{
	uint64_t v;

	if (!is_number(item->value, 0xFFFFF, &v))
		return complain(r, "expected FlowLabel= and 20 bits, found '%.*s'",
		                PIECE_ARG(item->value));
	f->flow_label = (uint32_t)v;
	return 0;
}

/* A beginning of a word stands for the first flag here that it matches. */
static const struct group_flag {
	const char *word;
	int (*parse)(const struct parser *r, const struct item *item, struct group_flags *f);
} group_flags[] = {
	{ "mtu", parse_mtu },
	{ "rate", parse_rate },
	{ "scope", parse_scope },
	{ "Q_Key", parse_qkey },
	{ "TClass", parse_tclass },
	{ "sl", parse_sl },
	{ "FlowLabel", parse_flow_label },
};

static const struct group_flag *find_group_flag(const struct item *item)
{
	for (size_t i = 0; i < ARRAY_SIZE(group_flags); i++)
		if (begins(item->name, group_flags[i].word))
			return &group_flags[i];
	return NULL;
}

/* Adds a group for each scope given; link-local if none is. */
static int add_groups(struct parser *r, const struct ib_gid *mgid, const struct group_flags *f)
{
	struct partition_group g = {
		.mgid = *mgid,
		.pkey = r->p->partition[r->partition].pkey | IB_PKEY_FULL_MEMBER,
		.qkey = f->qkey,
		.mtu = f->mtu,
		.rate = f->rate,
		.sl = f->sl,
		.tclass = f->tclass,
		.flow_label = f->flow_label,
	};
	uint32_t scopes = f->scopes ? f->scopes : 1u << WIRE_SCOPE_LINK;
	int ret = 0;

	for (unsigned scope = 1; scope < SCOPES && !ret; scope++) {
		if (!(scopes >> scope & 1))
			continue;
		g.mgid.raw[1] = (uint8_t)((g.mgid.raw[1] & 0xF0) | scope);
		ret = add_group(r, &g);
	}
	return ret;
}

static int add_broadcast(struct parser *r)
{
	struct group_flags f = r->flags;
	struct ib_gid mgid;

	if (!f.qkey)
		f.qkey = IPOIB_QKEY;
	wire_mgid_broadcast(&mgid, r->p->partition[r->partition].pkey | IB_PKEY_FULL_MEMBER);
	return add_groups(r, &mgid, &f);
}

/* An IP group gets the partition's P_Key in its MGID, and the partition's MTU and rate. */
static int settle_ip_group(const struct parser *r, struct ib_gid *mgid, struct group_flags *f)
{
	uint16_t signature = (uint16_t)(mgid->raw[2] << 8 | mgid->raw[3]);
	uint16_t pkey = (uint16_t)(mgid->raw[4] << 8 | mgid->raw[5]);
	uint16_t own = r->p->partition[r->partition].pkey | IB_PKEY_FULL_MEMBER;

	if (signature != WIRE_SIGNATURE_IPV4 && signature != WIRE_SIGNATURE_IPV6)
		return 0;
	if (pkey && pkey != own)
		return complain(r, "expected the P_Key 0x%04x, or none, in the MGID, found 0x%04x",
		                own, pkey);
	if (f->mtu != r->flags.mtu || f->rate != r->flags.rate)
		return complain(r,
		                "expected the MTU and rate of the partition, %u and %u, found %u "
		                "and %u",
		                r->flags.mtu, r->flags.rate, f->mtu, f->rate);
	mgid->raw[4] = (uint8_t)(own >> 8);
	mgid->raw[5] = (uint8_t)own;
	if (!f->qkey)
		f->qkey = IPOIB_QKEY;
	return 0;
}

static bool is_mgid(struct piece p, struct ib_gid *mgid)
{
	char text[INET6_ADDRSTRLEN];

	if (!p.len || p.len >= sizeof(text))
		return false;
	memcpy(text, p.at, p.len);
	text[p.len] = '\0';
	return wire_mgid_parse(text, mgid);
}

/* Parses the flags after "mgid=...", which is parsed already, up to the end of its line. */
static int read_group(struct parser *r, const struct item *mgid)
{
	struct group_flags f = r->flags;
	struct ib_gid gid;
	int ret = 0;

	f.tclass = 0;
	if (!is_mgid(mgid->value, &gid))
		return complain(r, "expected mgid= and a multicast GID, found '%.*s'",
		                PIECE_ARG(mgid->value));
	while (!ret && is_next(r, ',')) {
		const struct group_flag *flag;
		struct item item;

		r->at++;
		item = split(parse_until(r, ",;\n"));
		flag = find_group_flag(&item);
		if (flag)
			ret = flag->parse(r, &item, &f);
		else
			ret = complain(r,
			               "expected rate=, mtu=, sl=, scope=, Q_Key=, TClass= or "
			               "FlowLabel= of a group, found '%.*s'",
			               PIECE_ARG(item.name));
	}
	if (!ret)
		ret = settle_ip_group(r, &gid, &f);
	return ret ? ret : add_groups(r, &gid, &f);
}

/* ---- members ---- */

static int parse_membership(const struct parser *r, struct piece p,
                            enum partition_membership *membership)
{
	if (begins(p, "full"))
		*membership = PARTITION_FULL;
	else if (begins(p, "limited"))
		*membership = PARTITION_LIMITED;
	else if (begins(p, "both"))
		*membership = PARTITION_BOTH;
	else
		return complain(r, "expected full, limited or both, found '%.*s'", PIECE_ARG(p));
	return 0;
}

static int parse_ports(const struct parser *r, struct piece p, struct partition_rule *rule)
{
	static const struct {
		const char *word;
		enum partition_ports ports;
	} words[] = {
		{ "ALL", PARTITION_ALL },
		{ "ALL_CAS", PARTITION_ALL_CAS },
		{ "ALL_SWITCHES", PARTITION_ALL_SWITCHES },
		{ "ALL_ROUTERS", PARTITION_ALL_ROUTERS },
		{ "SELF", PARTITION_SELF },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (begins(p, words[i].word)) {
			rule->ports = words[i].ports;
			return 0;
		}
	}
	rule->ports = PARTITION_PORT;
	if (is_number(p, UINT64_MAX, &rule->guid) && rule->guid)
		return 0;
	return complain(r,
	                "expected a port's GUID, ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS, SELF or "
	                "mgid=, found '%.*s'",
	                PIECE_ARG(p));
}

static int read_member(struct parser *r, const struct item *item)
{
	struct partition_rule rule = { .partition = r->partition,
		                       .membership = r->membership,
		                       .index0 = r->index0 };
	int ret;

	if (begins(item->name, "NONE"))
		return 0;
	ret = parse_ports(r, item->name, &rule);
	if (!ret && item->has_value)
		ret = parse_membership(r, item->value, &rule.membership);
	return ret ? ret : add_rule(r, &rule);
}

/* Parses the members between ':' and ';'. */
static int read_members(struct parser *r)
{
	for (;;) {
		struct item item;
		int ret = 0;

		skip(r);
		if (r->at == r->end)
			return 0; /* the last ';' is optional, as in OpenSM */
		if (is_next(r, ';') || is_next(r, ',')) {
			if (*r->at++ == ';')
				return 0;
			continue;
		}
		item = split(parse_until(r, ",;\n"));
		if (is_word(item.name, "mgid"))
			ret = read_group(r, &item);
		else
			ret = read_member(r, &item);
		if (ret)
			return ret;
	}
}

/* ---- headers ---- */

static int parse_flag(struct parser *r, const struct item *item)
{
	const struct group_flag *flag = find_group_flag(item);

	if (flag)
		return flag->parse(r, item, &r->flags);
	if (begins(item->name, "ipoib"))
		r->is_ipoib = true;
	else if (begins(item->name, "defmember"))
		return parse_membership(r, item->value, &r->membership);
	else if (is_word(item->name, "indx0"))
		r->index0 = true;
	else
		return complain(r,
		                "expected indx0, ipoib, defmember=, rate=, mtu=, sl=, scope=, "
		                "Q_Key=, TClass=, FlowLabel= or ':', found '%.*s'",
		                PIECE_ARG(item->name));
	return 0;
}

static bool is_used(const struct partitions *p, uint16_t pkey, unsigned *number)
{
	for (*number = 0; *number < p->n; ++*number)
		if (p->partition[*number].pkey == pkey)
			return true;
	return false;
}

/* Finds the P_Key of a partition whose header gives none, by its name; or chooses a free one. */
static int find_or_make_up(struct parser *r, struct piece name, uint16_t *pkey)
{
	unsigned number;

	for (unsigned i = 0; name.len && i < r->p->n; i++) {
		if (is_word(name, r->p->partition[i].name)) {
			*pkey = r->p->partition[i].pkey;
			return 0;
		}
	}
	for (*pkey = 1; *pkey < DEFAULT_PKEY; ++*pkey)
		if (!is_used(r->p, *pkey, &number))
			return 0;
	return complain(r, "there is no P_Key left for '%.*s'", PIECE_ARG(name));
}

/* "name", "name=pkey", "=pkey" or "pkey". */
static int parse_name(struct parser *r, struct piece header)
{
	struct item item = split(header);
	uint64_t v = 0;
	uint16_t pkey;
	int ret = 0;

	if (!item.has_value && item.name.len && isdigit((unsigned char)*item.name.at)) {
		item.value = item.name;
		item.name.len = 0;
		item.has_value = true;
	}
	if (item.has_value && !is_number(item.value, UINT16_MAX, &v))
		return complain(r, "expected a P_Key of 16 bits, found '%.*s'",
		                PIECE_ARG(item.value));
	pkey = v & IB_PKEY_BASE_MASK;
	if (!pkey)
		ret = find_or_make_up(r, item.name, &pkey);
	if (ret || is_used(r->p, pkey, &r->partition))
		return ret;
	return add_partition(r->p, item.name, pkey);
}

static int read_header(struct parser *r)
{
	struct piece name = parse_until(r, ",:;\n");
	int ret = 0;

	while (!ret && is_next(r, ',')) {
		struct item item;

		r->at++;
		item = split(parse_until(r, ",:;\n"));
		ret = parse_flag(r, &item);
	}
	if (!ret && !is_next(r, ':'))
		ret = complain(r, "expected ':' behind '%.*s', found the end of the %s",
		               PIECE_ARG(name), is_next(r, ';') ? "definition" : "line");
	if (!ret)
		ret = parse_name(r, name);
	r->at++;
	return ret;
}

static int read_definition(struct parser *r)
{
	int ret;

	r->is_ipoib = r->index0 = false;
	r->membership = PARTITION_LIMITED;
	r->flags = (struct group_flags){ .mtu = IBV_MTU_2048, .rate = IBV_RATE_10_GBPS };
	ret = read_header(r);
	if (!ret && r->flags.sl)
		r->p->partition[r->partition].sl = r->flags.sl;
	if (!ret && r->is_ipoib)
		ret = add_broadcast(r);
	return ret ? ret : read_members(r);
}

/* The rule before the first line: all ports are limited members of the default partition. */
static int add_default(struct parser *r)
{
	static const struct partition_rule rules[] = {
		{ .ports = PARTITION_ALL, .membership = PARTITION_LIMITED },
		{ .ports = PARTITION_SELF, .membership = PARTITION_FULL },
	};
	int ret = add_partition(r->p, (struct piece){ "Default", 7 }, DEFAULT_PKEY);

	for (size_t i = 0; i < ARRAY_SIZE(rules) && !ret; i++)
		ret = add_rule(r, &rules[i]);
	return ret;
}

static int by_guid(const void *a, const void *b, void *rules)
{
	const unsigned *i = a, *k = b;
	const struct partition_rule *r = &((const struct partition_rule *)rules)[*i];
	const struct partition_rule *s = &((const struct partition_rule *)rules)[*k];

	if (r->guid != s->guid)
		return r->guid < s->guid ? -1 : 1;
	return *i < *k ? -1 : *i > *k;
}

/* Makes the lists by which a port finds its rules: there may be a rule for each port. 0 or
 * -ENOMEM. */
static int index_rules(struct partitions *p)
{
	p->by_guid = calloc(p->n_rules + 1, sizeof(*p->by_guid));
	p->general = calloc(p->n_rules + 1, sizeof(*p->general));
	if (!p->by_guid || !p->general)
		return -ENOMEM;
	for (unsigned i = 0; i < p->n_rules; i++) {
		if (p->rule[i].ports == PARTITION_PORT)
			p->by_guid[p->n_by_guid++] = i;
		else
			p->general[p->n_general++] = i;
	}
	qsort_r(p->by_guid, p->n_by_guid, sizeof(*p->by_guid), by_guid, p->rule);
	return 0;
}

unsigned partitions_rules_of(const struct partitions *p, uint64_t guid)
{
	unsigned low = 0, high = p->n_by_guid;

	while (low < high) {
		unsigned mid = low + (high - low) / 2;

		if (p->rule[p->by_guid[mid]].guid < guid)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

int partitions_parse(struct partitions **out, const struct partitions_file *file, char *why,
                     size_t len)
{
	struct parser r = { .p = calloc(1, sizeof(*r.p)),
		            .file = file->name,
		            .at = file->text,
		            .end = file->text + file->bytes,
		            .line = 1,
		            .why = why,
		            .why_len = len };
	int ret;

	if (!r.p)
		return -ENOMEM;
	ret = add_default(&r);
	skip(&r);
	while (!ret && r.at < r.end) {
		ret = read_definition(&r);
		skip(&r);
	}
	if (!ret)
		ret = index_rules(r.p);
	if (ret) {
		partitions_free(r.p);
		return ret;
	}
	*out = r.p;
	return 0;
}

void partitions_free(struct partitions *p)
{
	for (unsigned i = 0; i < p->n; i++)
		free(p->partition[i].name);
	free(p->partition);
	free(p->rule);
	free(p->by_guid);
	free(p->general);
	free(p->group);
	free(p);
}
