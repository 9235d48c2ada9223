/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An HCA that a program has open: see context.h.
 */
#include <errno.h>

#include "base/reason.h"
#include "hca/process/context.h"

int hca_port(struct hca_context *ctx, unsigned num, struct shm_port *port)
{
	const struct shm_hca *h = shm_hca_at(&ctx->process->region, ctx->hca);

	if (num < 1 || num > h->n_ports)
		return base_because(-EINVAL, "there is no port %u: %.32s has %u", num, h->name,
		                    h->n_ports);
	shm_port_read(&ctx->process->region, h->first_port + num - 1, port);
	return 0;
}
