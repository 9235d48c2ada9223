/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lines of /proc/PID/maps and smaps, and this process's own mappings by them.
 */
#include <harness.h>

#include "hca/process/maps.h"
#include "hca/process/plain.h"

CASE(a_line_of_maps_says_what_is_mapped)
{
	static const struct {
		const char *line;
		struct hca_vma v;
	} lines[] = {
		{ "7f0000000000-7f0000003000 rw-p 00000000 00:00 0 ",
		  { .from = 0x7f0000000000,
		    .to = 0x7f0000003000,
		    .prot = PROT_READ | PROT_WRITE } },
		{ "55d0c0000000-55d0c0021000 r-xp 00002000 fe:01 1234567    /usr/bin/some thing",
		  { .from = 0x55d0c0000000,
		    .to = 0x55d0c0021000,
		    .offset = 0x2000,
		    .inode = 1234567,
		    .prot = PROT_READ | PROT_EXEC,
		    .name = "/usr/bin/some thing" } },
		{ "7f0000000000-7f0000001000 -w-s 800000001000 00:05 77   /SYSV00000000 (deleted)",
		  { .from = 0x7f0000000000,
		    .to = 0x7f0000001000,
		    .offset = 0x800000001000,
		    .inode = 77,
		    .prot = PROT_WRITE,
		    .shared = true,
		    .name = "/SYSV00000000 (deleted)" } },
		{ "00400000-00401000 ---p 00000000 00:00 0          [heap]",
		  { .from = 0x400000, .to = 0x401000, .name = "[heap]" } },
	};

	for (size_t i = 0; EACH_NAMED(i, lines, line); i++) {
		struct hca_vma v = { 0 };

		assert_true(hca_maps_parse(lines[i].line, &v));
		assert_int_equal(v.from, lines[i].v.from);
		assert_int_equal(v.to, lines[i].v.to);
		assert_int_equal(v.offset, lines[i].v.offset);
		assert_int_equal(v.inode, lines[i].v.inode);
		assert_int_equal(v.prot, lines[i].v.prot);
		assert_int_equal(v.shared, lines[i].v.shared);
		assert_string_equal(v.name, lines[i].v.name);
	}
}

CASE(other_lines_begin_no_mapping)
{
	static const char *const lines[] = { "", "Size:                  4 kB",
		                             "VmFlags: rd wr mr mw me ac sd ",
		                             "Anonymous:             0 kB",
		                             "THPeligible:           0" };

	for (size_t i = 0; EACH_ROW(i, lines); i++) {
		struct hca_vma v;

		assert_false(hca_maps_parse(lines[i], &v));
	}
}

CASE(a_long_name_is_cut_and_the_next_line_is_whole)
{
	char name[4000] = "/tmp/umbel-maps-", path[sizeof(name) + 64];
	struct hca_maps m;
	int fd = memfd_create("maps", MFD_CLOEXEC);
	struct hca_vma v;
	int n;

	memset(name + strlen(name), 'x', sizeof(name) - strlen(name) - 1);
	dprintf(fd, "1000-2000 r--p 00000000 fe:01 5 %s\n3000-4000 rw-s 00001000 fe:01 6 /b\n",
	        name);
	n = snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_true(n > 0);
	assert_true(hca_maps_open(&m, path));
	assert_true(hca_maps_next(&m, &v));
	assert_int_equal(v.to, 0x2000);
	assert_int_equal(strncmp(v.name, name, strlen(v.name)), 0);
	assert_true(hca_maps_next(&m, &v));
	assert_int_equal(v.from, 0x3000);
	assert_true(v.shared);
	assert_string_equal(v.name, "/b");
	assert_false(hca_maps_next(&m, &v));
	hca_maps_close(&m);
	close(fd);
}

CASE(a_mapping_is_found_by_any_address_in_it)
{
	int fd = memfd_create("found", MFD_CLOEXEC);
	struct hca_vma v;
	struct stat s;
	uint64_t from;
	void *at;

	assert_true(fd >= 0 && !ftruncate(fd, 8 * HCA_PAGE) && !fstat(fd, &s));
	at = mmap(NULL, 3 * HCA_PAGE, PROT_READ, MAP_SHARED, fd, (off_t)HCA_PAGE);
	assert_true(at != MAP_FAILED);
	from = (uintptr_t)at;
	for (uint64_t look = from; look < from + 3 * HCA_PAGE; look += HCA_PAGE - 1) {
		assert_true(hca_maps_find(look, &v));
		assert_int_equal(v.from, from);
		assert_int_equal(v.to, from + 3 * HCA_PAGE);
		assert_int_equal(v.offset, HCA_PAGE);
		assert_int_equal(v.inode, s.st_ino);
		assert_true(v.shared);
		assert_non_null(strstr(v.name, "found"));
	}
	assert_int_equal(munmap(at, 3 * HCA_PAGE), 0);
	if (hca_maps_find(from, &v)) /* another mapping may be there by now */
		assert_int_not_equal(v.inode, s.st_ino);
	close(fd);
}

CASE(flags_of_a_mapping_are_those_that_were_asked_for)
{
	char *room = mmap(NULL, 3 * HCA_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = room + HCA_PAGE; /* a mapping of its own, whatever lies beside the room */

	assert_true(room != MAP_FAILED);
	assert_int_equal(mprotect(at, HCA_PAGE, PROT_READ | PROT_WRITE), 0);
	assert_true(hca_maps_has_flag((uintptr_t)at, "wr"));
	assert_false(hca_maps_has_flag((uintptr_t)at, "dc"));
	assert_int_equal(madvise(at, HCA_PAGE, MADV_DONTFORK), 0);
	assert_true(hca_maps_has_flag((uintptr_t)at, "dc"));
	/* of a mapping that there is not nobody can tell */
	assert_true(hca_maps_has_flag(HCA_PAGE, "wr"));
}
