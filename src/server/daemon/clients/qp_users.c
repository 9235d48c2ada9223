/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes that have an XRC target open beside its owner: see qp.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "daemon/clients/holder.h"
#include "daemon/clients/qp.h"

#define MAX_USERS 256 /* of an XRC target */

int daemon_qp_open(struct daemon_hca *h, struct daemon_qp *qp)
{
	struct daemon_qp_user *user = qp->n_users < MAX_USERS ? calloc(1, sizeof(*user)) : NULL;

	if (!user)
		return -ENOMEM;
	qp->n_users++;
	h->n_users++;
	user->hca = h;
	user->qp = qp;
	LIST_INSERT_HEAD(&qp->users, user, of_qp);
	LIST_INSERT_HEAD(&h->holder->used_qps, user, of_holder);
	return 0;
}

struct daemon_qp_user *daemon_qp_user_of(const struct daemon_qp *qp,
                                         const struct daemon_holder *holder)
{
	struct daemon_qp_user *user;

	LIST_FOREACH(user, &qp->users, of_qp)
	if (user->hca->holder == holder)
		return user;
	return NULL;
}

void daemon_qp_close(struct daemon_qp_user *user)
{
	user->qp->n_users--;
	user->hca->n_users--;
	LIST_REMOVE(user, of_qp);
	LIST_REMOVE(user, of_holder);
	free(user);
}
