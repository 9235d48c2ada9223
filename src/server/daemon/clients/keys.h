/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory for the keys of a process that has connected queue pairs (shm/connection.h), and the
 * descriptor by which the processes of their peers reach its memory. Both live as long as the
 * process's connection.
 */
#ifndef DAEMON_KEYS_H
#define DAEMON_KEYS_H

#include "daemon/clients/ending.h"
#include "daemon/clients/holder.h"

/* *@off: of the holder's keys, which are made if there are none. 0, -EAGAIN or -ENOMEM. */
int daemon_keys_open(struct daemon_memory *m, struct daemon_holder *holder, uint64_t *off);

/* Adds a chunk. 0, -EINVAL, -EEXIST, -EAGAIN or -ENOMEM. */
int daemon_keys_add(struct daemon_memory *m, struct daemon_holder *holder, uint32_t chunk,
                    uint64_t *off);

/* Keeps a duplicate of @fd as the descriptor of the holder's memory, of @kind (enum
 * control_memory_kind). 0 or -errno. */
int daemon_keys_offer(struct daemon_holder *holder, uint32_t kind, int fd);

/* @ending: registered by it, to free the keys of holders that end. */
void daemon_keys_init(struct daemon_memory *m, struct daemon_ending *ending,
                      struct daemon_endings *endings);

#endif
