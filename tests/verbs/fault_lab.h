/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules of faults (`umbel fault`) for the tests of this folder, on InfiniBand and on RoCE: hosts
 * are @1 to @4 in the text of a rule. A test with rules is
 * FAULT_CASE(name) { ... }.
 */
#ifndef TESTS_FAULT_LAB_H
#define TESTS_FAULT_LAB_H

#include "peer_lab.h"

/* A case with rules; with its second peer here, and with that elsewhere. */
#define FAULT_CASE(name) CASE_WITH(name, NULL, fault_lab_clean_up)
#define FAULT_CASE_BOTH(name)                                                    \
	CASE_AS(name, harness_add(#name, name, NULL, fault_lab_clean_up, NULL);  \
	        harness_add(#name "__elsewhere", name, NULL, fault_lab_clean_up, \
	                    (void *)(uintptr_t)lab_open))

bool fault_lab_on_roce(void);

/* The exit status of `umbel fault add TEXT`. */
int fault_lab_try(const char *text);
/* The same, which must be 0. */
void fault_lab_add(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* lab_clean_up(), and there are no rules. */
int fault_lab_clean_up(void **state);

/* A number that `umbel fault show` has of rule @i, in the order of adding. */
uint64_t fault_lab_shown(size_t i, const char *name);
/* How often it has fired. */
uint64_t fault_lab_fired(size_t i);

#endif
