/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The keys of this process's memory, where the processes of connected queue pairs look them up
 * (shm/connection.h). A process without connected queue pairs has none there, and its registrations
 * cost nothing for it.
 *
 * With the lock of the table of regions held (struct hca_mr_table), but for hca_keys_open().
 */
#ifndef HCA_KEYS_H
#define HCA_KEYS_H

#include "hca/process/process.h"
#include "shm/connection.h"

struct shm_reach;

/* From now on keys are published: there are none yet. 0, -ENOMEM or -EIO. */
int hca_keys_open(struct hca_process *p);

/* Publishes @key, if keys are published. 0 or -ENOMEM. */
int hca_keys_put(struct hca_process *p, uint32_t key, const struct shm_reach *reach);

/* Nobody finds @key any more; @users: the queue pairs that may have (shm_key_join()), for
 * hca_process.wait_for_users(). */
void hca_keys_remove(struct hca_process *p, uint32_t key, uint32_t users[SHM_KEY_USERS]);

#endif
