/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading the list of mappings: see maps.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hca/process/direct.h"
#include "hca/process/maps.h"

bool hca_maps_open(struct hca_maps *m, const char *file)
{
	return hca_maps_open_at(m, AT_FDCWD, file);
}

bool hca_maps_open_at(struct hca_maps *m, int dir, const char *file)
{
	m->fd = hca_direct_open(dir, file, O_RDONLY);
	m->at = m->end = 0;
	m->cut = false;
	return m->fd >= 0;
}

void hca_maps_close(struct hca_maps *m)
{
	hca_direct_close(m->fd);
}

/* Reads on, behind what is left. False: the file has ended. */
static bool fill(struct hca_maps *m)
{
	ssize_t n;

	memmove(m->text, m->text + m->at, m->end - m->at);
	m->end -= m->at;
	m->at = 0;
	do
		n = hca_direct_read(m->fd, m->text + m->end, sizeof(m->text) - 1 - m->end);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	m->end += (unsigned)n;
	return true;
}

char *hca_maps_line(struct hca_maps *m)
{
	for (;;) {
		char *line = m->text + m->at;
		char *end = memchr(line, '\n', m->end - m->at);
		bool rest = m->cut;

		if (end) {
			*end = '\0';
			m->at += (unsigned)(end + 1 - line);
			m->cut = false;
			if (!rest)
				return line;
		} else if (m->end - m->at == sizeof(m->text) - 1) {
			line[sizeof(m->text) - 1] = '\0';
			m->at = m->end;
			m->cut = true;
			if (!rest)
				return line;
		} else if (!fill(m)) {
			return NULL;
		}
	}
}

bool hca_maps_parse(const char *line, struct hca_vma *v)
{
	struct hca_vma next = { 0 };
	unsigned major, minor;
	char may[5];

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %47[^\n]",
	           &next.from, &next.to, may, &next.offset, &major, &minor, &next.inode,
	           next.name) < 7)
		return false;
	next.device = (uint64_t)major << 32 | minor;
	*v = next;
	v->prot = (may[0] == 'r' ? PROT_READ : 0) | (may[1] == 'w' ? PROT_WRITE : 0) |
	          (may[2] == 'x' ? PROT_EXEC : 0);
	v->shared = may[3] == 's';
	return true;
}

bool hca_maps_next(struct hca_maps *m, struct hca_vma *v)
{
	const char *line;

	while ((line = hca_maps_line(m)))
		if (hca_maps_parse(line, v))
			return true;
	return false;
}

bool hca_maps_find(uint64_t at, struct hca_vma *v)
{
	struct hca_maps m;
	bool found = false;

	if (!hca_maps_open(&m, "/proc/self/maps"))
		return false;
	while (!found && hca_maps_next(&m, v) && v->from <= at)
		found = at < v->to;
	hca_maps_close(&m);
	return found;
}

bool hca_maps_has_flag(uint64_t from, const char flag[3])
{
	struct hca_vma v = { 0 };
	struct hca_maps m;
	const char *line;
	bool has = true;

	if (!hca_maps_open(&m, "/proc/self/smaps"))
		return true;
	while ((line = hca_maps_line(&m))) {
		if (hca_maps_parse(line, &v) || v.from != from || strncmp(line, "VmFlags:", 8))
			continue;
		has = strstr(line, flag) != NULL;
		break;
	}
	hca_maps_close(&m);
	return has;
}
