/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The choices of a weak fabric (base/weak.h) that this process meets, and the thread that goes on
 * with its requests while the program calls nothing. Choices are thread-safe.
 */
#ifndef HCA_PROCESS_WEAK_H
#define HCA_PROCESS_WEAK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/weak.h"

struct hca_process;
struct hca_weak;
struct shm_settings;

/* The weak fabric of a process that has just joined, by its environment and the fabric's settings.
 * @host: NULL if it sees all; it is the @number-th process there. NULL: the fabric is not weak; or
 * there is no memory, which is said. */
struct hca_weak *hca_weak_new(const struct shm_settings *settings, const char *host,
                              uint32_t number);
/* Ends the thread, too. */
void hca_weak_free(struct hca_weak *w);

/* A queue pair, or what else has requests: the number of a new one. */
uint32_t hca_weak_object(struct hca_weak *w);

/* The amount that is chosen for a step of a request; 0: nearly always. */
uint8_t hca_weak_choose(struct hca_weak *w, uint32_t object, uint32_t request,
                        enum base_weak_step step);
/* How long that step is waited for when the program does nothing else, ns. */
uint64_t hca_weak_patience_ns(const struct hca_weak *w, uint32_t object, uint32_t request,
                              enum base_weak_step step);
/* The step came by a time limit: a run with the same seed may differ. */
void hca_weak_by_time(struct hca_weak *w, uint32_t object, uint32_t request,
                      enum base_weak_step step);

/* Takes @bytes of the memory in which messages wait. False: there are too many; hold none. */
bool hca_weak_hold(struct hca_weak *w, uint64_t bytes);
void hca_weak_release(struct hca_weak *w, uint64_t bytes);

/* Starts the thread, if there is none yet: it calls @serve while requests of @p wait. That says in
 * how many ns the next one is due; UINT64_MAX: none waits. The caller holds no lock: those of
 * base/lock.h are empty until a process has a second thread. False: no thread can be made, which is
 * said once. The fabric is strong then, as nothing goes on with requests of a program that calls
 * nothing. */
typedef uint64_t hca_weak_serve(struct hca_process *p);
bool hca_weak_start(struct hca_weak *w, hca_weak_serve *serve, struct hca_process *p);
/* Whether it is there. */
bool hca_weak_has_thread(const struct hca_weak *w);
/* A request waits that may be due before those of which @serve knew. */
void hca_weak_wake(struct hca_weak *w);

/* Whether this is that thread: what waits has waited for long enough. */
bool hca_weak_is_thread(void);

#endif
