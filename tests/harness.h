/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls by which test programs with cmocka report to their harness (harness.c).
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include <stdbool.h>
#include <stddef.h>

/* For a child that the program forks and that runs cases of its own for those of its parent: all of
 * them run, whatever CMOCKA_TEST_FILTER says, and for as long as the parent's. */
void harness_serve(void);

/* How many descriptors the process has open. */
unsigned harness_descriptors(void);

/* Says in which functions and lines of the program the caller is, from inside out. */
void harness_say_where(void);

/* The condition of a loop over a table: for (size_t i = 0; EACH_ROW(i, table); i++). A case that
 * fails within says at which row. */
#define EACH_ROW(i, table) harness_row(#table, i, sizeof(table) / sizeof((table)[0]))
bool harness_row(const char *table, size_t i, size_t n);

#endif
