/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls by which test programs with cmocka report to their harness (harness.c).
 */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include "posix.h"

#include <cmocka.h>

/*
 * A case of the program: CASE(name) { ... }. It is registered where it stands, and the cases run in
 * their order. CASE_WITH() has functions to run before and behind it (cmocka), or NULL. A program
 * that needs no main() of its own has the harness's, which runs all cases.
 */
#define CASE(name) CASE_WITH(name, NULL, NULL)
#define CASE_WITH(name, set_up, tear_down) \
	CASE_AS(name, harness_add(#name, name, set_up, tear_down, NULL))
/* @adds: calls harness_add(), once for each way in which the case runs. */
#define CASE_AS(name, adds)                                            \
	static void name(void **state);                                \
	__attribute__((constructor)) static void register_##name(void) \
	{                                                              \
		adds;                                                  \
	}                                                              \
	static void name(void **state __attribute__((unused)))

/* @state: the case finds it in *state. */
void harness_add(const char *name, void (*test)(void **state), int (*set_up)(void **state),
                 int (*tear_down)(void **state), void *state);

/* Runs all cases between these two, or NULL; the result is main()'s. */
int harness_run(int (*set_up)(void **state), int (*tear_down)(void **state));

/* For a child that the program forks and that runs cases of its own for those of its parent: all of
 * them run, whatever CMOCKA_TEST_FILTER says, and for as long as the parent's. */
void harness_serve(void);

/* Waits for a child, which must end with status 0. */
#define harness_expect_success(child) harness_expect_success_at(child, __FILE__, __LINE__)
void harness_expect_success_at(pid_t child, const char *file, int line);

/* How many descriptors the process has open. */
unsigned harness_descriptors(void);

/* Says in which functions and lines of the program the caller is, from inside out. */
void harness_say_where(void);

/* The condition of a loop over a table: for (size_t i = 0; EACH_ROW(i, table); i++). A case that
 * fails within says at which row. */
#define EACH_ROW(i, table) harness_row(#table, i, HARNESS_ROWS(table), NULL)
/* The same over a table whose rows have a text, the member @name: the failure says that, too. */
#define EACH_NAMED(i, table, name) \
	harness_row(#table, i, HARNESS_ROWS(table), i < HARNESS_ROWS(table) ? table[i].name : NULL)
#define HARNESS_ROWS(table) (sizeof(table) / sizeof((table)[0]))
bool harness_row(const char *table, size_t i, size_t n, const char *name);

#endif
