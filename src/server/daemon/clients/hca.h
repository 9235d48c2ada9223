/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * HCAs that processes have open. Each is an outbox for the asynchronous events of the HCA.
 */
#ifndef DAEMON_HCA_H
#define DAEMON_HCA_H

#include <infiniband/verbs.h>

#include "base/idtable.h"
#include "daemon/clients/ending.h"
#include "daemon/clients/holder.h"
#include "daemon/core/chores.h"
#include "daemon/core/loop.h"
#include "daemon/core/outbox.h"

struct daemon_hca {
	LIST_ENTRY(daemon_hca) entry;
	struct daemon_holder *holder;
	uint32_t handle;
	uint32_t hca; /* index in the shared memory's table */
	struct cm_outbox *events;
	LIST_HEAD(, daemon_pd) pds;
	unsigned n_users;              /* queue pairs, queues, and XRC targets that it has open */
	struct daemon_qp *roce_sender; /* one of those, which is hidden; or NULL */
	struct daemon_chore end;       /* it is closed, and its domains are being freed */
};

/* Memory in which a process counts the users of an Ethernet port's GIDs. It stays as long as the
 * process, whose handles may outlive the open HCA. */
struct daemon_gid_users {
	LIST_ENTRY(daemon_gid_users) entry, of_holder;
	uint32_t hca;
	uint64_t off; /* struct shm_gid_users */
};

struct daemon_hcas {
	struct daemon_loop *loop;
	struct base_idtable ids;
	LIST_HEAD(, daemon_gid_users) gid_users;
	struct daemon_memory *memory; /* of these */
	struct daemon_ending ending;
};

void daemon_hcas_init(struct daemon_hcas *all, struct daemon_loop *loop,
                      struct daemon_memory *memory, struct daemon_endings *endings);

/* Opens HCA @hca for @holder. *@fd: the process's end of the events, the caller's to close. 0 or
 * -errno. */
int daemon_hca_open(struct daemon_hcas *all, struct daemon_holder *holder, uint32_t hca,
                    struct daemon_hca **out, int *fd);
/* Nobody finds it any more, and nothing of it is open: free() is left to do, when it has no
 * domains.
 */
void daemon_hca_close(struct daemon_hcas *all, struct daemon_hca *h);
bool daemon_hca_is_open(const struct daemon_hca *h);

/* The open HCA with this handle if it is @holder's, or NULL. */
struct daemon_hca *daemon_hca_of(const struct daemon_hcas *all, const struct daemon_holder *holder,
                                 uint32_t handle);

/* Where @holder counts the users of the GIDs of @h, which is on Ethernet. 0 and *@off, or -errno.
 */
int daemon_hca_count_gids(struct daemon_hcas *all, struct daemon_memory *m,
                          const struct daemon_hca *h, uint64_t *off);
/* The places in the GID table of HCA @hca that somebody uses: a bit for each. */
uint32_t daemon_hcas_used_gids(const struct daemon_hcas *all, const struct daemon_memory *m,
                               uint32_t hca);

/* Sends an asynchronous event to the process that has @h open. False: it is lost. */
bool daemon_hca_event(struct daemon_hca *h, enum ibv_event_type type, uint32_t element);

/* Sends one to every process that has HCA @hca open. */
void daemon_hcas_event(struct daemon_hcas *all, uint32_t hca, enum ibv_event_type type,
                       uint32_t element);

#endif
