/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A sanitizer in the program takes the place of memcpy() and of other functions of the C library,
 * in every library. It would blame the program for what libibverbs copies as a card does: so here
 * libibverbs gets the C library's own functions back. The table of its own calls is changed
 * (Linux's "global offset table"), no instruction. In any thread.
 */
#ifndef CHECKED_REBIND_H
#define CHECKED_REBIND_H

/* @within: a function of the library. */
void checked_rebind(const void *within);

#endif
