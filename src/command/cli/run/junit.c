/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reports of tests: see junit.h.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "cli/base/command.h"
#include "cli/run/junit.h"

#define NS_PER_S  1000000000ull
#define MOST_TEXT 4096 /* bytes of one: command lines may be long */

struct cli_junit_property {
	TAILQ_ENTRY(cli_junit_property) entry;
	char *name, *value;
};

struct cli_junit_case {
	TAILQ_ENTRY(cli_junit_case) entry;
	char *class, *name, *message;
	uint64_t ns;
	enum cli_junit_outcome outcome;
};

/* ---- text ---- */

/* The character of UTF-8 at @at, and in *@bytes how many it has; UINT32_MAX: there is none, one
 * byte is to be passed over. */
static uint32_t character_at(const unsigned char *at, size_t *bytes)
{
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
	const unsigned more = *at < 0x80       ? 0
	                      : *at >> 5 == 6  ? 1
	                      : *at >> 4 == 14 ? 2
	                      : *at >> 3 == 30 ? 3
	                                       : 4;
	uint32_t c = more ? *at & (0x3Fu >> more) : *at;

	*bytes = 1;
	if (more == 4)
		return UINT32_MAX;
	for (unsigned i = 1; i <= more; i++) {
		if (at[i] >> 6 != 2)
			return UINT32_MAX;
		c = c << 6 | (at[i] & 0x3F);
	}
	if (c < least[more])
		return UINT32_MAX;
	*bytes = 1 + more;
	return c;
}

static bool is_of_xml(uint32_t c)
{
	return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c < 0xD800) ||
	       (c >= 0xE000 && c < 0xFFFE) || (c >= 0x10000 && c < 0x110000);
}

void cli_junit_escape(FILE *to, const char *text, size_t most)
{
	const unsigned char *at = (const void *)text, *const end = at + strnlen(text, most);
	size_t bytes;

	for (; at < end; at += bytes) {
		const uint32_t c = character_at(at, &bytes);

		if (bytes > (size_t)(end - at)) /* it is cut there */
			break;
		if (!is_of_xml(c))
			fputs("\xEF\xBF\xBD", to);
		else if (strchr("&<>\"'\t\n\r", (int)c) && c < 0x80)
			fprintf(to, "&#%u;", c);
		else
			fwrite(at, 1, bytes, to);
	}
	if (text[strnlen(text, most)])
		fputs("...", to);
}

static void write_attribute(FILE *to, const char *name, const char *value)
{
	fprintf(to, " %s=\"", name);
	cli_junit_escape(to, value, MOST_TEXT);
	fputc('"', to);
}

static void write_time(FILE *to, uint64_t ns)
{
	fprintf(to, " time=\"%llu.%06llu\"", (unsigned long long)(ns / NS_PER_S),
	        (unsigned long long)(ns % NS_PER_S / 1000));
}

/* ---- the report ---- */

static unsigned count(const struct cli_junit *j, enum cli_junit_outcome outcome)
{
	const struct cli_junit_case *c;
	unsigned n = 0;

	TAILQ_FOREACH(c, &j->cases, entry)
	{
		n += c->outcome == outcome;
	}
	return n;
}

static void write_counts(const struct cli_junit *j, uint64_t ns)
{
	const unsigned failures = count(j, CLI_JUNIT_FAILED), errors = count(j, CLI_JUNIT_ERROR);

	fprintf(j->file, " tests=\"%u\" failures=\"%u\" errors=\"%u\" skipped=\"0\"",
	        failures + errors + count(j, CLI_JUNIT_PASSED), failures, errors);
	write_time(j->file, ns);
}

static void write_properties(const struct cli_junit *j)
{
	const struct cli_junit_property *p;

	fputs("    <properties>\n", j->file);
	TAILQ_FOREACH(p, &j->properties, entry)
	{
		fputs("      <property", j->file);
		write_attribute(j->file, "name", p->name);
		write_attribute(j->file, "value", p->value);
		fputs("/>\n", j->file);
	}
	fputs("    </properties>\n", j->file);
}

static void write_case(FILE *to, const struct cli_junit_case *c)
{
	const char *what = c->outcome == CLI_JUNIT_ERROR ? "error" : "failure";

	fputs("    <testcase", to);
	write_attribute(to, "classname", c->class);
	write_attribute(to, "name", c->name);
	write_time(to, c->ns);
	if (c->outcome == CLI_JUNIT_PASSED) {
		fputs("/>\n", to);
		return;
	}
	fprintf(to, ">\n      <%s", what);
	write_attribute(to, "message", c->message);
	write_attribute(to, "type", c->class);
	fputc('>', to); /* GitLab shows what is here */
	cli_junit_escape(to, c->message, MOST_TEXT);
	fprintf(to, "</%s>\n    </testcase>\n", what);
}

/* 0 or -errno. */
static int write_report(const struct cli_junit *j)
{
	const uint64_t ns = base_now_ns() - j->begun_ns;
	const struct cli_junit_case *c;
	char text[64];
	struct tm tm;

	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites", j->file);
	write_counts(j, ns);
	fputs(">\n  <testsuite", j->file);
	write_attribute(j->file, "name", j->suite);
	write_counts(j, ns);
	gmtime_r(&j->begun.tv_sec, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	write_attribute(j->file, "timestamp", text);
	if (gethostname(text, sizeof(text)))
		text[0] = '\0';
	text[sizeof(text) - 1] = '\0';
	write_attribute(j->file, "hostname", text);
	fputs(">\n", j->file);
	write_properties(j);
	TAILQ_FOREACH(c, &j->cases, entry)
	{
		write_case(j->file, c);
	}
	fputs("  </testsuite>\n</testsuites>\n", j->file);
	return fflush(j->file) || ferror(j->file) ? -errno : 0;
}

/* ---- what it says ---- */

static void free_property(struct cli_junit *j, struct cli_junit_property *p)
{
	TAILQ_REMOVE(&j->properties, p, entry);
	free(p->name);
	free(p->value);
	free(p);
}

static void free_case(struct cli_junit *j, struct cli_junit_case *c)
{
	TAILQ_REMOVE(&j->cases, c, entry);
	free(c->class);
	free(c->name);
	free(c->message);
	free(c);
}

static void free_all(struct cli_junit *j)
{
	struct cli_junit_property *p;
	struct cli_junit_case *c;

	while ((c = TAILQ_FIRST(&j->cases)))
		free_case(j, c);
	while ((p = TAILQ_FIRST(&j->properties)))
		free_property(j, p);
}

void cli_junit_property(struct cli_junit *j, const char *name, const char *value)
{
	struct cli_junit_property *p;

	if (!j->file)
		return;
	p = calloc(1, sizeof(*p));
	if (!p) {
		j->error = -ENOMEM;
		return;
	}
	TAILQ_INSERT_TAIL(&j->properties, p, entry);
	p->name = strdup(name);
	p->value = strdup(value);
	if (!p->name || !p->value) {
		free_property(j, p);
		j->error = -ENOMEM;
	}
}

void cli_junit_case(struct cli_junit *j, const char *class, const char *name, uint64_t ns,
                    enum cli_junit_outcome outcome, const char *message)
{
	struct cli_junit_case *c;

	if (!j->file)
		return;
	c = calloc(1, sizeof(*c));
	if (!c) {
		j->error = -ENOMEM;
		return;
	}
	TAILQ_INSERT_TAIL(&j->cases, c, entry);
	c->class = strdup(class);
	c->name = strdup(name);
	c->message = strdup(message);
	c->ns = ns;
	c->outcome = outcome;
	if (!c->class || !c->name || !c->message) {
		free_case(j, c);
		j->error = -ENOMEM;
	}
}

/* ---- begin and end ---- */

static int failed(const struct cli_junit *j, int error)
{
	errno = error;
	return cli_cannot("write", j->path);
}

/* The report that is left if nobody writes the rest. A pipe gets the end alone. */
static int write_beginning(struct cli_junit *j)
{
	struct stat st;
	int ret;

	if (fstat(fileno(j->file), &st) || !S_ISREG(st.st_mode))
		return 0;
	cli_junit_case(j, j->suite, j->suite, 0, CLI_JUNIT_ERROR, "it was killed before it ended");
	ret = j->error ? j->error : write_report(j);
	free_all(j);
	return ret;
}

int cli_junit_begin(struct cli_junit *j, const char *path, const char *suite)
{
	int ret;

	*j = (struct cli_junit){ .path = path, .suite = suite, .begun_ns = base_now_ns() };
	TAILQ_INIT(&j->cases);
	TAILQ_INIT(&j->properties);
	clock_gettime(CLOCK_REALTIME, &j->begun);
	j->file = fopen(path, "we");
	if (!j->file)
		return failed(j, errno);
	ret = write_beginning(j);
	if (!ret)
		return 0;
	fclose(j->file);
	j->file = NULL;
	return failed(j, -ret);
}

int cli_junit_end(struct cli_junit *j)
{
	int ret = j->error;

	if (!j->file)
		return 0;
	rewind(j->file); /* of a pipe it fails */
	if (ftruncate(fileno(j->file), 0) && errno != EINVAL)
		ret = -errno;
	if (!ret)
		ret = write_report(j);
	if (fclose(j->file) && !ret)
		ret = -errno;
	j->file = NULL;
	free_all(j);
	return ret ? failed(j, -ret) : 0;
}
