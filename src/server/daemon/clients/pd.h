/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Protection domains of processes, for views: the processes check which objects may be used
 * together. A process posts that it has made one, by a number of its own; one that there is no room
 * for is not shown.
 */
#ifndef DAEMON_PD_H
#define DAEMON_PD_H

#include "base/hash.h"
#include "base/idtable.h"
#include "daemon/clients/hca.h"

struct daemon_pd {
	LIST_ENTRY(daemon_pd) entry; /* of the HCA */
	struct base_hash_node node;
	struct daemon_hca *hca;
	uint32_t domain; /* what its process calls it */
	uint32_t id;
};

struct daemon_pds {
	struct base_idtable ids;
	struct base_hash domains; /* by holder and domain */
	struct daemon_hcas *hcas;
	struct daemon_ending ending;
};

void daemon_pds_init(struct daemon_pds *all, struct daemon_hcas *hcas,
                     struct daemon_endings *endings);

/* A domain of @h's holder. 0; -EEXIST; -ENOSPC: there are too many; -ENOMEM. */
int daemon_pd_new(struct daemon_pds *all, struct daemon_hca *h, uint32_t domain);
void daemon_pd_free(struct daemon_pds *all, struct daemon_pd *pd);

/* Frees all domains of the HCA. False: the budget was used up before (chores.h). */
bool daemon_pds_free(struct daemon_pds *all, struct daemon_hca *h, uint32_t *budget);

/* The one of an open HCA that the holder calls so; NULL: there is none. */
struct daemon_pd *daemon_pd_of(const struct daemon_pds *all, const struct daemon_holder *holder,
                               uint32_t domain);

#endif
