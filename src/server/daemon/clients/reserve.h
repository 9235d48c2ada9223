/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers and memory, which queue pairs may lack, reserved for a process that is likely to make
 * queue pairs soon. It then makes one by a request that cannot fail, and does not wait for the
 * daemon.
 *
 * A reserved place is a struct daemon_qp without a holder: no queue pair, for anybody. It belongs
 * to its process as long as that does not use it and nobody lacks it. Which of the two comes first,
 * the use or the end, a word in shared memory decides (struct shm_sender.ticket), as the daemon
 * does not know of a use before the request comes.
 */
#ifndef DAEMON_RESERVE_H
#define DAEMON_RESERVE_H

#include "daemon/clients/qp.h"

/* Reserves for @holder what @want says, or less: none at all if numbers or memory are scarce. */
void daemon_reserve(struct daemon_qps *all, struct daemon_holder *holder,
                    const struct control_reserve_qps *want, struct control_reserve_qps_reply *out);

/* Takes what lies reserved for @holder under @qpn, to make a queue pair of it, or to give it up.
 * NULL: nothing does. */
struct daemon_qp *daemon_reserve_take(struct daemon_qps *all, const struct daemon_holder *holder,
                                      uint32_t qpn);

/* @ending: registered by it, to free what lies reserved for holders that end. */
void daemon_reserve_init(struct daemon_qps *all, struct daemon_ending *ending,
                         struct daemon_endings *endings);

/* struct daemon_memory_users; @qps: struct daemon_qps. */
bool daemon_reserve_take_back(void *qps);

#endif
