/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Mistakes of the program that its own calls find: it waits for a completion that cannot come; it
 * destroys an object whose events it has not acknowledged; it fills a send queue with requests of
 * which no completion tells. The log has them as warnings, and in a checked program the checker
 * hears them, too (checked/watcher.h): so each is looked for once, and in one way.
 */
#ifndef HCA_PROCESS_HEARER_H
#define HCA_PROCESS_HEARER_H

#include "base/log.h"
#include "hca/process/process.h"

/* @text: one sentence, what is wrong. Called in the thread of the program's call, which goes on. */
struct hca_hearer {
	/* @cq: NULL if the call waits for none. */
	void (*in_vain)(const struct ibv_cq *cq, const char *text);
	/* @object: the queue or queue pair that is about to be destroyed. */
	void (*events_kept)(const void *object, const char *text);
	void (*async_events_kept)(const void *object, const char *text);
	void (*never_signaled)(const char *text);
};

/* Whether anybody hears: otherwise nobody looks. */
static inline bool hca_is_heard(const struct hca_process *p)
{
	return p->hearer || base_log_on(verbs, BASE_LOG_WARNING);
}

#endif
