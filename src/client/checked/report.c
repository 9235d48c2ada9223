/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reports: see report.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/util.h"
#include "checked/places.h"
#include "checked/report.h"
#include "checked/settings.h"

#define MOST 200        /* reports of a process: more are not read */
#define ROOM (64 << 10) /* bytes of a report */

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

/* A report that waits to be told, or a thing that is said: that has no rule. */
struct checked_words {
	STAILQ_ENTRY(checked_words) entry;
	enum checked_rule rule;
	char text[512];
	const char *is[2]; /* as in struct checked_report */
	void *const *stack[2];
	unsigned n_stack[2];
	uint64_t at_ns[HCA_N_STEPS + 1]; /* of its request, and now; 0: there is none */
	/* while it is told */
	unsigned n[2];
	struct checked_frame frame[2][CHECKED_FRAMES];
	bool is_read; /* standard error has it */
};

STAILQ_HEAD(waiting, checked_words);

static struct {
	struct base_hash seen;
	unsigned n; /* that were told: of the thread that tells */
	struct suppression *suppressions;
	struct waiting waiting;
	bool is_told; /* one of them: a thread is about to */
	struct stat stderr_was;
	bool has_stderr;
} all = { .waiting = STAILQ_HEAD_INITIALIZER(all.waiting) };

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

static bool fits_any(const char *pattern, const struct checked_words *w)
{
	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < w->n[i]; k++)
			if (fits(pattern, &w->frame[i][k]))
				return true;
	return false;
}

static bool is_suppressed(const struct checked_words *w)
{
	const char *rule = checked_rules[w->rule].name;

	for (const struct suppression *s = all.suppressions; s; s = s->next) {
		if (fnmatch(s->rule, rule, 0))
			continue;
		if (!*s->pattern || fits_any(s->pattern, w))
			return true;
	}
	return false;
}

/* ---- once for each pair of places ---- */

/* As a mistake: the hash of its key. */
static uint64_t key_of(const struct checked_report *r, uint64_t key[2])
{
	/* of requests that overlap any two may meet, and of many objects one that is left is told
	 */
	const bool one = r->rule == CHECKED_RULE_OVERLAP || r->rule == CHECKED_RULE_DESTROY_ORDER;

	key[0] = one ? 0 : checked_place_key(r->at[0].place);
	key[1] = checked_place_key(r->at[1].place);
	return base_hash_of(key, 2 * sizeof(*key), (uint64_t)r->rule);
}

bool checked_report_is_old(const struct checked_report *r)
{
	uint64_t key[2];
	const struct seen *s;

	BASE_HASH_FOREACH(s, &all.seen, key_of(r, key), node)
		if (s->rule == r->rule && !memcmp(s->key, key, sizeof(key)))
			return true;
	return false;
}

static bool is_new(const struct checked_report *r)
{
	struct seen *s = checked_report_is_old(r) ? NULL : malloc(sizeof(*s));

	if (!s)
		return false;
	s->rule = r->rule;
	if (base_hash_add(&all.seen, &s->node, key_of(r, s->key)))
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

static void print_place(FILE *to, const struct checked_words *w, unsigned i)
{
	char label[32];

	snprintf(label, sizeof(label), "%s:", w->is[i]);
	if (!w->n[i])
		fprintf(to, "  %-10s (the place is not known)\n", label);
	for (unsigned k = 0; k < w->n[i]; k++)
		print_frame(to, k ? "" : label, &w->frame[i][k]);
}

static void print_times(FILE *to, const uint64_t *at_ns)
{
	static const char *const steps[] = { "posted", "gathered", "placed", "completed",
		                             "polled" };
	const char *comma = "";

	fprintf(to, "  %-10s ", "times:");
	for (unsigned i = 0; i < HCA_N_STEPS; i++) {
		if (!at_ns[i])
			continue;
		fprintf(to, "%s%s at %.3f ms", comma, steps[i],
		        (double)(at_ns[i] - at_ns[HCA_POSTED]) / 1e6);
		comma = ", ";
	}
	fprintf(to, "%stold at %.3f ms\n", comma,
	        (double)(at_ns[HCA_N_STEPS] - at_ns[HCA_POSTED]) / 1e6);
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

static void print(FILE *to, const struct checked_words *w)
{
	const struct checked_rule_text *rule = &checked_rules[w->rule];

	fprintf(to, "umbel: %s: %s [%s]\n", checked_levels[rule->level], rule->headline,
	        rule->name);
	print_folded(to, "what:", w->text);
	for (unsigned i = 0; i < 2; i++)
		if (*w->is[i])
			print_place(to, w, i);
	if (w->at_ns[HCA_POSTED])
		print_times(to, w->at_ns);
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

static void put_place(FILE *to, const struct checked_words *w, unsigned i)
{
	fprintf(to, "{");
	put_text(to, "what", w->is[i]);
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

static void put(FILE *to, const struct checked_words *w)
{
	const struct checked_rule_text *rule = &checked_rules[w->rule];

	fprintf(to, "{\"pid\": %d, \"read\": %s, ", (int)getpid(), w->is_read ? "true" : "false");
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
		if (!*w->is[i])
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

/* The descriptor may be another file by now: a program has closed standard error, and writes its
 * data there. */
static bool has_stderr(void)
{
	struct stat now;

	return all.has_stderr && !fstat(STDERR_FILENO, &now) &&
	       now.st_dev == all.stderr_was.st_dev && now.st_ino == all.stderr_was.st_ino &&
	       now.st_rdev == all.stderr_was.st_rdev;
}

/* Whether all of it was. In one piece, as other processes write there, too. */
static bool write_text(int fd, const char *text, size_t bytes)
{
	ssize_t n = 1;

	for (size_t done = 0; done < bytes && n > 0; done += (size_t)n) {
		do
			n = write(fd, text + done, bytes - done);
		while (n < 0 && errno == EINTR);
		if (n <= 0)
			return false;
	}
	return true;
}

static bool write_words(int fd, const struct checked_words *w,
                        void (*how)(FILE *, const struct checked_words *))
{
	char *text = malloc(ROOM);
	FILE *to = text ? fmemopen(text, ROOM, "w") : NULL;
	long bytes = 0;
	bool is_written;

	if (to) {
		how(to, w);
		bytes = ftell(to);
		fclose(to);
	}
	is_written = bytes > 0 && write_text(fd, text, (size_t)bytes);
	free(text);
	return is_written;
}

static void say(FILE *to, const struct checked_words *w)
{
	fprintf(to, "umbel: not checked: %s\n", w->text);
}

/* A reader that has gone is no signal for the program. */
static void begin_pipe(sigset_t *old, bool *was_pending)
{
	sigset_t pipe;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, old);
	sigpending(&pipe);
	*was_pending = sigismember(&pipe, SIGPIPE);
}

static void end_pipe(const sigset_t *old, bool was_pending)
{
	const struct timespec none = { 0 };
	sigset_t pipe;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	if (!was_pending)
		sigtimedwait(&pipe, NULL, &none);
	pthread_sigmask(SIG_SETMASK, old, NULL);
}

static void write_out(struct checked_words *w)
{
	const bool is_said = w->rule == CHECKED_N_RULES;
	int file = is_said ? -1 : open_file();
	bool was_pending;
	sigset_t old;

	begin_pipe(&old, &was_pending);
	w->is_read = has_stderr() && write_words(STDERR_FILENO, w, is_said ? say : print);
	end_pipe(&old, was_pending);
	if (file < 0)
		return;
	write_words(file, w, put);
	close(file);
}

void checked_report_tell(struct checked_words *w)
{
	for (unsigned i = 0; i < 2; i++)
		w->n[i] = checked_place_frames(w->stack[i], w->n_stack[i], w->frame[i],
		                               CHECKED_FRAMES);
	if (w->rule == CHECKED_N_RULES || (!is_suppressed(w) && all.n++ < MOST))
		write_out(w);
}

struct checked_words *checked_report_take(void)
{
	struct checked_words *w = STAILQ_FIRST(&all.waiting);

	if (!w || all.is_told)
		return NULL;
	STAILQ_REMOVE_HEAD(&all.waiting, entry);
	all.is_told = true;
	return w;
}

void checked_report_told(struct checked_words *w)
{
	const char *dir = secure_getenv(CHECKED_FOLDER);

	all.is_told = false;
	free(w);
	if (all.n > MOST)
		checked_say("what comes behind 200 mistakes of the process");
	if (dir && access(dir, W_OK))
		checked_say("what is told here does not count: the folder of reports cannot be "
		            "written");
}

bool checked_report_is_told(void)
{
	return all.is_told;
}

void checked_reports_forget(void)
{
	STAILQ_INIT(&all.waiting);
	all.is_told = false;
}

void checked_report(const struct checked_report *r, const char *format, ...)
{
	struct checked_words *w = is_new(r) ? calloc(1, sizeof(*w)) : NULL;
	va_list args;

	if (!w)
		return;
	w->rule = r->rule;
	va_start(args, format);
	vsnprintf(w->text, sizeof(w->text), format, args);
	va_end(args);
	for (unsigned i = 0; i < 2; i++) {
		w->is[i] = r->at[i].is;
		w->n_stack[i] = checked_place_stack(
		        r->at[i].is_here ? checked_place(NULL) : r->at[i].place, &w->stack[i]);
	}
	if (r->record)
		memcpy(w->at_ns, r->record->at_ns, sizeof(r->record->at_ns));
	w->at_ns[HCA_N_STEPS] = base_now_ns();
	STAILQ_INSERT_TAIL(&all.waiting, w, entry);
}

void checked_say(const char *text)
{
	static const char *said[16];
	struct checked_words *w;
	unsigned i = 0;

	while (i < ARRAY_SIZE(said) && said[i] && said[i] != text)
		i++;
	w = i == ARRAY_SIZE(said) || said[i] ? NULL : calloc(1, sizeof(*w));
	if (!w)
		return;
	said[i] = text;
	w->rule = CHECKED_N_RULES;
	snprintf(w->text, sizeof(w->text), "%s", text);
	STAILQ_INSERT_TAIL(&all.waiting, w, entry);
}

void checked_report_start(void)
{
	const char *path = secure_getenv(CHECKED_SUPPRESSIONS);
	FILE *from = path && *path ? fopen(path, "re") : NULL;
	char line[400];

	all.has_stderr = !fstat(STDERR_FILENO, &all.stderr_was);
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
