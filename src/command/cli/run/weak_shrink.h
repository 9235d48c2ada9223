/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which choices of a weak fabric a failure needs: delta debugging over those that the processes of
 * the failing run have noted. Single-threaded.
 */
#ifndef CLI_WEAK_SHRINK_H
#define CLI_WEAK_SHRINK_H

#include <stdint.h>

struct cli_weak_shrink {
	const char *dir;  /* with the notes of the failing run (base/weak.h) */
	const char *save; /* where the choices go that are needed */
	uint32_t seed;
	int status; /* of the failing run */
	/* runs the program with the choices of this file: its status */
	int (*run)(void *arg, const char *path);
	void *arg;
};

/* Tells what is needed, and writes it. */
void cli_weak_shrink(const struct cli_weak_shrink *s);

/* Removes the notes of a run. */
void cli_weak_forget_notes(const char *dir);

#endif
