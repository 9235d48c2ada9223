/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The list of transports: see transport.h.
 */
#include <errno.h>

#include "base/reason.h"
#include "base/util.h"
#include "hca/queue/transport.h"

static const struct hca_transport *const transports[] = {
	&hca_ud,
	&hca_rc,
	&hca_uc,
	&hca_xrc_send,
};

/* Types that verbs knows, and that no transport here serves. */
static const struct {
	enum ibv_qp_type type;
	const char *name;
} not_supported[] = {
	{ IBV_QPT_RAW_PACKET, "raw packet" },
	{ IBV_QPT_DRIVER, "driver" },
};

int hca_transport_get(enum ibv_qp_type type, const struct hca_transport **t)
{
	for (size_t i = 0; i < ARRAY_SIZE(transports); i++) {
		if (transports[i]->type == type) {
			*t = transports[i];
			return 0;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(not_supported); i++) {
		if (not_supported[i].type != type)
			continue;
		return base_because(-EOPNOTSUPP, "%s queue pairs are not supported",
		                    not_supported[i].name);
	}
	return base_because(-EINVAL, "qp_type %d is none, or needs ibv_create_qp_ex()", (int)type);
}
