/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reports: see report.h.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/signals.h"
#include "base/util.h"
#include "checked/places.h"
#include "checked/report.h"
#include "checked/settings.h"

#define MOST 200 /* reports of a process: more are not read */

/* A pair of places with a mistake that was reported. */
struct seen {
	struct base_hash_node node;
	enum checked_rule rule;
	uint64_t key[2];
};

/* A line of the file of suppressions. */
struct suppression {
	struct suppression *next;
	char rule[64], pattern[256];
};

/* A report with the words of its places. */
struct words {
	const struct checked_report *r;
	const char *text;
	unsigned n[2];
	struct checked_frame frame[2][CHECKED_FRAMES];
};

static struct {
	struct base_hash seen;
	unsigned n;
	struct suppression *suppressions;
} all;

/* ---- suppressions ---- */

static void add_suppression(const char *line)
{
	struct suppression *s = calloc(1, sizeof(*s));
	size_t n;

	if (!s || sscanf(line, " %63[^ \t:\n#] : %255[^\n]", s->rule, s->pattern) < 1) {
		free(s);
		return;
	}
	for (n = strlen(s->pattern); n && strchr(" \t\r", s->pattern[n - 1]); n--)
		s->pattern[n - 1] = 0;
	s->next = all.suppressions;
	all.suppressions = s;
}

static bool fits(const char *pattern, const struct checked_frame *f)
{
	const char *names[] = { f->function, f->file, basename(f->file), f->module,
		                basename(f->module) };

	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		if (*names[i] && !fnmatch(pattern, names[i], 0))
			return true;
	return false;
}

static bool fits_any(const char *pattern, const struct words *w)
{
	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < w->n[i]; k++)
			if (fits(pattern, &w->frame[i][k]))
				return true;
	return false;
}

static bool is_suppressed(const struct words *w)
{
	const char *rule = checked_rules[w->r->rule].name;

	for (const struct suppression *s = all.suppressions; s; s = s->next) {
		if (fnmatch(s->rule, rule, 0))
			continue;
		if (!*s->pattern || fits_any(s->pattern, w))
			return true;
	}
	return false;
}

/* ---- once for each pair of places ---- */

static bool is_new(const struct checked_report *r)
{
	/* of requests that overlap any two may meet: the later one's place is enough */
	const bool one = r->rule == CHECKED_RULE_OVERLAP;
	const uint64_t key[2] = { one ? 0 : checked_place_key(r->at[0].place),
		                  checked_place_key(r->at[1].place) };
	const uint64_t hash = base_hash_of(key, sizeof(key), (uint64_t)r->rule);
	struct base_hash_node *node = base_hash_first(&all.seen, hash);
	struct seen *s;

	for (; node; node = base_hash_next(node)) {
		s = container_of(node, struct seen, node);
		if (s->rule == r->rule && !memcmp(s->key, key, sizeof(key)))
			return false;
	}
	s = malloc(sizeof(*s));
	if (!s)
		return false;
	s->rule = r->rule;
	memcpy(s->key, key, sizeof(key));
	if (base_hash_add(&all.seen, &s->node, hash))
		free(s);
	return true;
}

/* ---- for people ---- */

static void print_frame(FILE *to, const char *label, const struct checked_frame *f)
{
	fprintf(to, "  %-10s ", label);
	if (*f->function)
		fprintf(to, "%s() ", f->function);
	if (*f->file)
		fprintf(to, "at %s:%d\n", f->file, f->line);
	else
		fprintf(to, "in %s+0x%llx\n", basename(f->module), (unsigned long long)f->offset);
}

static void print_place(FILE *to, const struct words *w, unsigned i)
{
	char label[32];

	snprintf(label, sizeof(label), "%s:", w->r->at[i].is);
	if (!w->n[i])
		fprintf(to, "  %-10s (the place is not known)\n", label);
	for (unsigned k = 0; k < w->n[i]; k++)
		print_frame(to, k ? "" : label, &w->frame[i][k]);
}

static void print_times(FILE *to, const struct hca_record *r)
{
	static const char *const steps[] = { "posted", "gathered", "placed", "completed",
		                             "polled" };
	const char *comma = "";

	fprintf(to, "  %-10s ", "times:");
	for (unsigned i = 0; i < HCA_N_STEPS; i++) {
		if (!r->at_ns[i])
			continue;
		fprintf(to, "%s%s at %.3f ms", comma, steps[i],
		        (double)(r->at_ns[i] - r->at_ns[HCA_POSTED]) / 1e6);
		comma = ", ";
	}
	fprintf(to, "%stold at %.3f ms\n", comma,
	        (double)(base_now_ns() - r->at_ns[HCA_POSTED]) / 1e6);
}

/* @text in lines of at most 76 columns behind a label. */
static void print_folded(FILE *to, const char *label, const char *text)
{
	unsigned column = 13;

	fprintf(to, "  %-10s", label);
	while (*text) {
		const size_t n = strcspn(text, " ");

		if (column + n > 92 && column > 13) {
			fprintf(to, "\n%12s", "");
			column = 13;
		}
		fprintf(to, " %.*s", (int)n, text);
		column += (unsigned)n + 1;
		text += n + strspn(text + n, " ");
	}
	fputc('\n', to);
}

static void print(FILE *to, const struct words *w)
{
	const struct checked_rule_text *rule = &checked_rules[w->r->rule];

	fprintf(to, "umbel: %s: %s [%s]\n", checked_levels[rule->level], rule->headline,
	        rule->name);
	print_folded(to, "what:", w->text);
	for (unsigned i = 0; i < 2; i++)
		if (*w->r->at[i].is)
			print_place(to, w, i);
	if (w->r->record)
		print_times(to, w->r->record);
	print_folded(to, "rule:", rule->source);
	print_folded(to, "do:", rule->advice);
}

/* ---- for programs ---- */

/* How many bytes the character of UTF-8 at @text has; 0: it is none. */
static unsigned character(const char *text)
{
	const unsigned char first = (unsigned char)*text;
	const unsigned n = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;

	if (first < 0x80)
		return 1;
	if (first < 0xC2 || first > 0xF4)
		return 0;
	for (unsigned i = 1; i < n; i++)
		if (((unsigned char)text[i] & 0xC0) != 0x80)
			return 0;
	return n;
}

static void put_text(FILE *to, const char *name, const char *text)
{
	fprintf(to, "\"%s\": \"", name);
	for (unsigned n; *text; text += n ? n : 1) {
		n = character(text);
		if (!n)
			fputs("\\ufffd", to);
		else if (*text == '"' || *text == '\\')
			fprintf(to, "\\%c", *text);
		else if (n == 1 && (unsigned char)*text < ' ')
			fprintf(to, "\\u%04x", (unsigned char)*text);
		else
			fwrite(text, 1, n, to);
	}
	fputc('"', to);
}

static void put_place(FILE *to, const struct words *w, unsigned i)
{
	fprintf(to, "{");
	put_text(to, "what", w->r->at[i].is);
	fprintf(to, ", \"frames\": [");
	for (unsigned k = 0; k < w->n[i]; k++) {
		const struct checked_frame *f = &w->frame[i][k];

		fprintf(to, "%s{", k ? ", " : "");
		put_text(to, "function", f->function);
		fprintf(to, ", ");
		put_text(to, "file", f->file);
		fprintf(to, ", \"line\": %d, ", f->line);
		put_text(to, "module", f->module);
		fprintf(to, ", \"offset\": %llu}", (unsigned long long)f->offset);
	}
	fprintf(to, "]}");
}

static void put(FILE *to, const struct words *w)
{
	const struct checked_rule_text *rule = &checked_rules[w->r->rule];

	fprintf(to, "{\"pid\": %d, ", (int)getpid());
	put_text(to, "program", program_invocation_name);
	fprintf(to, ", ");
	put_text(to, "level", checked_levels[rule->level]);
	fprintf(to, ", ");
	put_text(to, "rule", rule->name);
	fprintf(to, ", ");
	put_text(to, "headline", rule->headline);
	fprintf(to, ", ");
	put_text(to, "text", w->text);
	fprintf(to, ", ");
	put_text(to, "source", rule->source);
	fprintf(to, ", \"places\": [");
	for (unsigned i = 0, n = 0; i < 2; i++) {
		if (!*w->r->at[i].is)
			continue;
		fprintf(to, "%s", n++ ? ", " : "");
		put_place(to, w, i);
	}
	fprintf(to, "]}\n");
}

/* ---- writing ---- */

/* Opened anew each time: programs close descriptors that they do not know. -1: there is no folder.
 */
static int open_file(void)
{
	const char *dir = secure_getenv(CHECKED_FOLDER);
	char path[PATH_MAX];

	if (!dir || !*dir ||
	    snprintf(path, sizeof(path), "%s/%d.json", dir, (int)getpid()) >= (int)sizeof(path))
		return -1;
	return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* In one piece, as other processes write there, too. */
static void write_words(int fd, const struct words *w, void (*how)(FILE *, const struct words *))
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&text, &bytes);
	ssize_t n;

	if (!to)
		return;
	how(to, w);
	if (fclose(to))
		bytes = 0;
	for (size_t done = 0; done < bytes; done += (size_t)n) {
		n = write(fd, text + done, bytes - done);
		if (n <= 0)
			break;
	}
	free(text);
}

/* The checker's lock is held: no system call here is a cancellation point. */
static void tell(const struct words *w)
{
	const int state = base_cancel_off();
	int file = open_file();

	write_words(STDERR_FILENO, w, print);
	if (file >= 0) {
		write_words(file, w, put);
		close(file);
	} else if (secure_getenv(CHECKED_FOLDER)) {
		checked_say("what is told here does not count: the folder of reports cannot be "
		            "written");
	}
	base_cancel_restore(state);
}

void checked_report(const struct checked_report *r, const char *format, ...)
{
	struct words *w;
	char text[512];
	va_list args;

	if (!is_new(r))
		return;
	w = calloc(1, sizeof(*w));
	if (!w)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	w->r = r;
	w->text = text;
	for (unsigned i = 0; i < 2; i++)
		w->n[i] = checked_place_frames(r->at[i].place, w->frame[i], CHECKED_FRAMES);
	if (!is_suppressed(w) && all.n++ < MOST)
		tell(w);
	else if (all.n > MOST)
		checked_say("what comes behind 200 mistakes of the process");
	free(w);
}

void checked_say(const char *text)
{
	static const char *said[16];
	unsigned i = 0;

	while (i < ARRAY_SIZE(said) && said[i] && said[i] != text)
		i++;
	if (i == ARRAY_SIZE(said) || said[i])
		return;
	said[i] = text;
	dprintf(STDERR_FILENO, "umbel: not checked: %s\n", text);
}

void checked_report_start(void)
{
	const char *path = secure_getenv(CHECKED_SUPPRESSIONS);
	FILE *from = path && *path ? fopen(path, "re") : NULL;
	char line[400];

	while (from && fgets(line, sizeof(line), from))
		add_suppression(line);
	if (from)
		fclose(from);
}

void checked_report_process(void)
{
	int file = open_file();

	if (file >= 0)
		close(file);
}
