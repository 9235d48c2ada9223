/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Protection domains: see pd.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "daemon/clients/pd.h"

#define MAX_PDS        (1u << 18)
#define MAX_HOLDER_PDS 16384

/* Units of work (chores.h). */
#define FREE_COST  1
#define CLOSE_COST 16

static uint64_t hash_of(const struct daemon_holder *holder, uint32_t domain)
{
	const uint32_t key[] = { holder->client, domain };

	return base_hash_of(key, sizeof(key), 0);
}

struct daemon_pd *daemon_pd_of(const struct daemon_pds *all, const struct daemon_holder *holder,
                               uint32_t domain)
{
	struct daemon_pd *pd;

	BASE_HASH_FOREACH(pd, &all->domains, hash_of(holder, domain), node)
		if (pd->hca->holder == holder && pd->domain == domain &&
		    daemon_hca_is_open(pd->hca))
			return pd;
	return NULL;
}

int daemon_pd_new(struct daemon_pds *all, struct daemon_hca *h, uint32_t domain)
{
	struct daemon_holder *holder = h->holder;
	struct daemon_pd *pd;
	int ret;

	if (daemon_pd_of(all, holder, domain))
		return -EEXIST;
	if (holder->n_pds == MAX_HOLDER_PDS)
		return -ENOSPC;
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return -ENOMEM;
	pd->hca = h;
	pd->domain = domain;
	ret = base_idtable_add(&all->ids, pd, &pd->id);
	if (ret)
		goto err_free;
	ret = base_hash_add(&all->domains, &pd->node, hash_of(holder, domain));
	if (ret)
		goto err_id;
	LIST_INSERT_HEAD(&h->pds, pd, entry);
	holder->n_pds++;
	return 0;
err_id:
	base_idtable_remove(&all->ids, pd->id);
err_free:
	free(pd);
	return ret;
}

void daemon_pd_free(struct daemon_pds *all, struct daemon_pd *pd)
{
	LIST_REMOVE(pd, entry);
	pd->hca->holder->n_pds--;
	base_hash_remove(&all->domains, &pd->node);
	base_idtable_remove(&all->ids, pd->id);
	free(pd);
}

bool daemon_pds_free(struct daemon_pds *all, struct daemon_hca *h, uint32_t *budget)
{
	struct daemon_pd *pd;

	while ((pd = LIST_FIRST(&h->pds)) && daemon_chore_spend(budget, FREE_COST))
		daemon_pd_free(all, pd);
	return !pd;
}

/* ---- all ---- */

/* Its HCAs, each with its domains. */
static bool free_of_holder(void *arg, struct daemon_holder *holder, uint32_t *budget)
{
	struct daemon_pds *all = arg;
	struct daemon_hca *hca;

	while ((hca = LIST_FIRST(&holder->hcas)) && daemon_pds_free(all, hca, budget) &&
	       daemon_chore_spend(budget, CLOSE_COST)) {
		daemon_hca_close(all->hcas, hca);
		free(hca);
	}
	return !hca;
}

void daemon_pds_init(struct daemon_pds *all, struct daemon_hcas *hcas,
                     struct daemon_endings *endings)
{
	all->hcas = hcas;
	base_idtable_init(&all->ids, MAX_PDS);
	daemon_ending_register(endings, &all->ending, free_of_holder, all);
}
