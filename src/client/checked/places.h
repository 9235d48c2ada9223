/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Places in the program: call stacks, by number. The stack of a place is walked once for each
 * return address in the program; later calls from there have the same number. Functions and lines
 * are looked up by DWARF when a place is printed. With the lock of the checker held, but for those
 * that say otherwise.
 */
#ifndef CHECKED_PLACES_H
#define CHECKED_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#define CHECKED_FRAMES 12 /* of a stack */

/* A return address, in words. */
struct checked_frame {
	char function[160]; /* "": not known */
	char file[256];     /* "": not known */
	int line;
	char module[256]; /* the file of the program or library */
	uint64_t offset;  /* in that */
};

/* The place of this return address; NULL: that of whoever calls our libraries now. 0: not known. */
uint32_t checked_place(const void *caller);

/* Whether the address is one of our libraries'; whether the library of this name is loaded. Safe
 * from any thread. */
bool checked_place_is_ours(const void *address);
bool checked_place_has_library(const char *name);

/* Whether this thread runs a handler of a signal in the middle of a call of our libraries. Safe
 * from any thread. */
bool checked_place_is_interrupted(void);

/* Whether two places are one for their reader: the program calls from the same instruction. */
uint64_t checked_place_key(uint32_t place);

/* The return addresses of a place, from the innermost of the program on, and how many. They stay.
 */
unsigned checked_place_stack(uint32_t place, void *const **stack);

/* The frames of such a stack, in words: how many. Without the lock, in one thread at a time: it
 * takes long, and waits for the program's allocator. It may have the lock of the layer, so it does
 * not wait for the dynamic linker, below whose lock constructors post. */
unsigned checked_place_frames(void *const *stack, unsigned n_stack, struct checked_frame *frame,
                              unsigned most);

/* Where our own libraries are: their frames are left out. Call it once. */
void checked_places_start(void);

#endif
