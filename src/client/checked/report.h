/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reports of what a program does wrong: to standard error for its reader, and a line of JSON each
 * to a file of the process in the folder of UMBEL_CHECKED_DIR, for the command that runs it. Each
 * is written before the call of the program returns that it is about, and whole, so that it is
 * there however the program ends. A mistake is reported once for each pair of places. With the lock
 * of the checker held, but for checked_report_tell().
 *
 * A report is made with the lock held, and told when the thread releases it: to tell takes long,
 * and waits for the program's allocator, below whose lock other threads may register memory. One
 * thread at a time tells, what others have made meanwhile, too.
 */
#ifndef CHECKED_REPORT_H
#define CHECKED_REPORT_H

#include "checked/rules.h"
#include "hca/queue/record.h"

struct checked_report {
	enum checked_rule rule;
	/* a place each, and what the program did there; "": there is none. Of rules where the first
	 * one is any of many, the second one alone makes it another mistake */
	struct {
		const char *is;
		uint32_t place;
		/* it is the call that goes on: its stack is walked anew, as that of the place is
		 * the first call's from there */
		bool is_here;
	} at[2];
	const struct hca_record *record; /* whose times are told; or NULL */
};

/* Whether it was reported before: then there is no need to find out more. */
bool checked_report_is_old(const struct checked_report *r);

/* @format: one sentence, what exactly is wrong. */
void checked_report(const struct checked_report *r, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/* Something that cannot be checked, said once for each text, which stays. */
void checked_say(const char *text);

/* The next report that waits to be told; NULL: there is none, or another thread tells. It is told
 * without the lock, and then done with. */
struct checked_words *checked_report_take(void);
void checked_report_tell(struct checked_words *w);
void checked_report_told(struct checked_words *w);

/* Whether another thread tells. */
bool checked_report_is_told(void);

/* The process is a child of fork(): what waits is its parent's. */
void checked_reports_forget(void);

/* The process uses verbs: makes its file, which is empty if nothing is wrong. */
void checked_report_process(void);

/* Reads the suppressions, and looks what standard error is. Call it once. */
void checked_report_start(void);

#endif
