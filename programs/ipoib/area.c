/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registered memory: see area.h.
 */
#include <errno.h>
#include <sys/mman.h>

#include "ipoib/area.h"

int ipoib_area_make(struct ipoib_area *area, struct ibv_pd *pd, size_t bytes)
{
	void *memory =
	        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;
	int ret;

	if (memory == MAP_FAILED)
		return -errno;
	mr = ibv_reg_mr(pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!mr) {
		ret = -errno;
		munmap(memory, bytes);
		return ret;
	}
	*area = (struct ipoib_area){ .memory = memory, .bytes = bytes, .mr = mr };
	return 0;
}

void ipoib_area_free(struct ipoib_area *area)
{
	if (!area->memory)
		return;
	ibv_dereg_mr(area->mr);
	munmap(area->memory, area->bytes);
	area->memory = NULL;
}
