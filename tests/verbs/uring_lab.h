/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An io_uring with one registered buffer, whose pages the kernel has pinned: what it reads from
 * files goes to them, wherever the process has its memory. Calls that should not fail fail the
 * test.
 */
#ifndef TESTS_VERBS_URING_LAB_H
#define TESTS_VERBS_URING_LAB_H

#include <stdbool.h>
#include <stddef.h>

#include <linux/io_uring.h>

struct lab_uring {
	int fd;
	struct io_uring_params params;
	char *sq, *cq;
	struct io_uring_sqe *sqe;
	size_t ring_bytes, cq_bytes, sqe_bytes;
	unsigned n_threads; /* of the process, before */
};

/* Whether this kernel has io_uring, and the process may use it. */
bool lab_uring_is_there(void);

/* Likewise, and it takes a buffer of which a part lies in a file: Linux 6.5. */
bool lab_uring_takes_parts_of_files(void);

void lab_uring_open(struct lab_uring *r, void *buffer, size_t bytes);
/* Reads @bytes of a pattern from a file to @to, in the registered buffer. */
void lab_uring_read(struct lab_uring *r, void *to, size_t bytes, unsigned seed);
void lab_uring_close(struct lab_uring *r);

#endif
