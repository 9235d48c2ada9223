/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * This process's mappings, as /proc/self/maps and /proc/self/smaps list them (proc(5)). Nothing is
 * allocated, so it can be read in a signal handler, and where memory is just being moved.
 *
 * A struct hca_maps belongs to one thread.
 */
#ifndef HCA_MAPS_H
#define HCA_MAPS_H

#include <stdbool.h>
#include <stdint.h>

struct hca_maps {
	int fd;
	bool cut; /* the line before was longer than @text: its rest is skipped */
	unsigned at, end;
	char text[2048];
};

/* A mapping. */
struct hca_vma {
	uint64_t from, to;
	uint64_t offset; /* in its file */
	uint64_t inode;  /* of that; 0: it has no file */
	uint64_t device; /* on which that is */
	int prot;        /* PROT_READ ... */
	bool shared;
	char name[48]; /* its beginning; "" if it has none */
};

/* @file: "/proc/self/maps" or "/proc/self/smaps". False: it cannot be read. */
bool hca_maps_open(struct hca_maps *m, const char *file);
/* Likewise below the directory @dir (openat(2)). */
bool hca_maps_open_at(struct hca_maps *m, int dir, const char *file);
void hca_maps_close(struct hca_maps *m);

/* The next line, which stands until the next call; NULL: there is none. */
char *hca_maps_line(struct hca_maps *m);

/* Whether the line begins a mapping, which is *@v then. */
bool hca_maps_parse(const char *line, struct hca_vma *v);

/* *@v: the next mapping. False: there is none. */
bool hca_maps_next(struct hca_maps *m, struct hca_vma *v);

/* *@v: the mapping that @at lies in. False: none. */
bool hca_maps_find(uint64_t at, struct hca_vma *v);

/* Whether the mapping that begins at @from has this of VmFlags; true if nobody can tell. */
bool hca_maps_has_flag(uint64_t from, const char flag[3]);

#endif
