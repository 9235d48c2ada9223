/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cards: see card.h.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "checked/card.h"
#include "hca/process/newer_verbs.h"

#define SPACE " \t\r\n"

/* A word of a list, and its bits. */
struct word {
	const char *word;
	uint32_t bits;
};

static const struct word types[] = { { "RC", CHECKED_RC },
	                             { "UC", CHECKED_UC },
	                             { "UD", CHECKED_UD },
	                             { "XRC", CHECKED_XRC },
	                             { 0 } };

#define OPERATION(opcode) (1u << (opcode))
static const struct word operations[] = {
	{ "SEND", OPERATION(IBV_WR_SEND) },
	{ "SEND_WITH_IMM", OPERATION(IBV_WR_SEND_WITH_IMM) },
	{ "SEND_WITH_INV", OPERATION(IBV_WR_SEND_WITH_INV) },
	{ "WRITE", OPERATION(IBV_WR_RDMA_WRITE) },
	{ "WRITE_WITH_IMM", OPERATION(IBV_WR_RDMA_WRITE_WITH_IMM) },
	{ "READ", OPERATION(IBV_WR_RDMA_READ) },
	{ "ATOMIC", OPERATION(IBV_WR_ATOMIC_CMP_AND_SWP) | OPERATION(IBV_WR_ATOMIC_FETCH_AND_ADD) },
	{ "LOCAL_INV", OPERATION(IBV_WR_LOCAL_INV) },
	{ "BIND_MW", OPERATION(IBV_WR_BIND_MW) },
	{ "FLUSH", OPERATION(HCA_WR_FLUSH) },
	{ "ATOMIC_WRITE", OPERATION(HCA_WR_ATOMIC_WRITE) },
	{ 0 },
};

static const struct word features[] = { { "memory_windows", CHECKED_HAS_WINDOWS },
	                                { "on_demand", CHECKED_HAS_ON_DEMAND },
	                                { "wr_api", CHECKED_HAS_WR_API },
	                                { "extended_cq", CHECKED_HAS_CQ_EX },
	                                { 0 } };

#define FLAG(name)                           \
	{                                    \
#name, IBV_WC_EX_WITH_##name \
	}
static const struct word completions[] = {
	FLAG(BYTE_LEN), FLAG(IMM),      FLAG(QP_NUM),         FLAG(SRC_QP),
	FLAG(SLID),     FLAG(SL),       FLAG(DLID_PATH_BITS), FLAG(COMPLETION_TIMESTAMP),
	FLAG(CVLAN),    FLAG(FLOW_TAG), FLAG(TM_INFO),        FLAG(COMPLETION_TIMESTAMP_WALLCLOCK),
	{ 0 }
};

/* The keys: a number, or, with words, a list of these. */
static const struct key {
	const char *name;
	size_t at; /* of a uint32_t in struct checked_card */
	const struct word *words;
	bool may_be_missing;
} keys[] = {
#define LIMIT(name_)                                          \
	{ #name_, offsetof(struct checked_card, name_), NULL, \
	  offsetof(struct checked_card, name_) ==             \
		  offsetof(struct checked_card, max_inline_data_ud) },
	CHECKED_LIMITS(LIMIT)
#undef LIMIT
	        { "qp_types", offsetof(struct checked_card, qp_types), types, false },
	{ "operations", offsetof(struct checked_card, operations), operations, false },
	{ "features", offsetof(struct checked_card, features), features, false },
	{ "completions", offsetof(struct checked_card, wc_flags), completions, true },
};

/* A file that is read. */
struct reading {
	struct checked_card *card;
	const char *name;
	unsigned line;
	uint32_t seen; /* keys, by bits */
	char *why;
	size_t len;
};

static int wrong(const struct reading *r, const char *what, const char *word)
{
	snprintf(r->why, r->len, "%s:%u: %s '%s'", r->name, r->line, what, word);
	return -EINVAL;
}

static int read_words(const struct reading *r, const struct word *words, char *text, uint32_t *bits)
{
	for (char *rest, *word = strtok_r(text, SPACE, &rest); word;
	     word = strtok_r(NULL, SPACE, &rest)) {
		const struct word *w = words;

		while (w->word && strcmp(w->word, word))
			w++;
		if (!w->word)
			return wrong(r, "unknown word", word);
		*bits |= w->bits;
	}
	return 0;
}

static int read_number(const struct reading *r, char *text, uint32_t *number)
{
	char *end;
	unsigned long long n;

	text[strcspn(text, SPACE)] = 0;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (*end || end == text || *text == '-' || errno || n > UINT32_MAX)
		return wrong(r, "this is no number:", text);
	*number = (uint32_t)n;
	return 0;
}

static int read_line(struct reading *r, char *line)
{
	char *name, *value;
	unsigned i = 0;

	line[strcspn(line, "#\n")] = 0;
	name = line + strspn(line, SPACE);
	if (!*name)
		return 0;
	value = name + strcspn(name, SPACE);
	if (*value)
		*value++ = 0;
	value += strspn(value, SPACE);
	if (!strcmp(name, "title")) {
		snprintf(r->card->title, sizeof(r->card->title), "%s", value);
		return 0;
	}
	while (i < ARRAY_SIZE(keys) && strcmp(keys[i].name, name))
		i++;
	if (i == ARRAY_SIZE(keys))
		return wrong(r, "unknown key", name);
	if (r->seen & 1u << i)
		return wrong(r, "once more", name);
	r->seen |= 1u << i;
	uint32_t *to = (uint32_t *)((char *)r->card + keys[i].at);

	return keys[i].words ? read_words(r, keys[i].words, value, to) : read_number(r, value, to);
}

static int read_lines(struct reading *r, FILE *from)
{
	char line[512];
	int ret = 0;

	while (!ret && fgets(line, sizeof(line), from)) {
		r->line++;
		ret = strlen(line) + 1 < sizeof(line) ? read_line(r, line)
		                                      : wrong(r, "the line is too long:", "...");
	}
	if (!ret && ferror(from)) {
		snprintf(r->why, r->len, "%s: it cannot be read", r->name);
		ret = -EIO;
	}
	for (unsigned i = 0; !ret && i < ARRAY_SIZE(keys); i++)
		if (!(r->seen & 1u << i) && !keys[i].may_be_missing)
			ret = wrong(r, "there is no", keys[i].name);
	if (!r->card->max_inline_data_ud)
		r->card->max_inline_data_ud = r->card->max_inline_data;
	return ret;
}

/* ---- where it is ---- */

/* The folder that this code's file is in, as text that ends with a slash. */
static bool find_own(char own[PATH_MAX])
{
	Dl_info self;
	ssize_t n;

	if (dladdr((void *)checked_card_read, &self) && *self.dli_fname == '/') {
		snprintf(own, PATH_MAX, "%s", self.dli_fname);
	} else { /* the program's own file may be known by the name that it was called by */
		n = readlink("/proc/self/exe", own, PATH_MAX - 1);
		if (n < 0)
			return false;
		own[n] = 0;
	}
	if (!strrchr(own, '/'))
		return false;
	strrchr(own, '/')[1] = 0;
	return true;
}

/* The command is in bin/, the checker's library in lib/umbel/, or on Debian in the folder of an
 * architecture. */
static bool find_known(const char *name, char path[PATH_MAX])
{
	static const char *const ways[] = { "../share/umbel/cards", "../../share/umbel/cards",
		                            "../../../share/umbel/cards" };
	char own[PATH_MAX], at[2 * PATH_MAX];

	if (!find_own(own))
		return false;
	for (unsigned i = 0; i < ARRAY_SIZE(ways); i++) {
		if (snprintf(at, sizeof(at), "%s%s/%s", own, ways[i], name) < (int)sizeof(at) &&
		    realpath(at, path))
			return true;
	}
	return false;
}

int checked_card_read(const char *name, struct checked_card *card, char *why, size_t len)
{
	struct reading r = { .card = card, .name = name, .why = why, .len = len };
	FILE *from;
	int ret;

	*card = (struct checked_card){ .title = "" };
	if (strchr(name, '/') ? !realpath(name, card->path)
	                      : !*name || !find_known(name, card->path)) {
		snprintf(why, len,
		         "there is no card '%s'; known are connectx-6, e810 and rxe, and "
		         "a name with a slash is a file's",
		         name);
		return -ENOENT;
	}
	from = fopen(card->path, "re");
	if (!from) {
		ret = -errno;
		snprintf(why, len, "%s: %s", card->path, strerror(-ret));
		return ret;
	}
	ret = read_lines(&r, from);
	fclose(from);
	if (!*card->title)
		snprintf(card->title, sizeof(card->title), "%.63s", name);
	return ret;
}
