/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The list of networks: see link.h.
 */
#include "base/util.h"
#include "hca/process/link.h"

static const struct hca_network *const networks[] = {
	&hca_network_roce,
};

int hca_network_open(struct hca_process *p, uint8_t link_layer, uint32_t hca, uint32_t handle,
                     struct hca_link **link)
{
	for (size_t i = 0; i < ARRAY_SIZE(networks); i++)
		if (networks[i]->link_layer == link_layer)
			return networks[i]->open(p, hca, handle, link);
	return 0;
}
