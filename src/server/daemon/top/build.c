/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fabric as the options say: see build.h.
 */
#include <errno.h>
#include <stdio.h>

#include "daemon/top/build.h"
#include "fabric/model/routers.h"
#include "fabric/plan/build.h"

static int plan_fabric(const struct daemon_build *b, struct fabric_plan *plan, char *why,
                       size_t len)
{
	const struct fabric_shape *shape = b->shape;
	bool only_roce = b->roce && !shape->topology && !shape->levels && !shape->hosts;
	int ret = only_roce ? 0 : fabric_shape_plan(shape, plan, why, len);

	return ret || !b->roce ? ret : daemon_roce_plan(b->roce, plan, why, len);
}

static int set_routers(const struct fabric_shape *shape, struct fabric_plan *plan, char *why,
                       size_t len)
{
	const char *name;
	size_t n;
	int ret = fabric_plan_set_routers(plan, shape->routers, &name, &n);

	if (ret)
		snprintf(why, len, "no router '%.*s': %s", (int)n, name,
		         ret == -ENOENT ? "there is no such host" : "it is on Ethernet");
	return ret;
}

int daemon_build_fabric(struct fabric **f, const struct daemon_build *b, char *why, size_t len)
{
	struct fabric_plan plan;
	int ret;

	fabric_plan_init(&plan);
	plan.device_names = b->shape->device_names;
	ret = plan_fabric(b, &plan, why, len);
	if (!ret && b->shape->routers)
		ret = set_routers(b->shape, &plan, why, len);
	if (!ret)
		ret = fabric_new(f, &plan, b->settings);
	if (!ret && b->shape->prefix)
		fabric_set_prefix(*f, b->shape->prefix);
	if (!ret)
		ret = fabric_shape_check_lids(*f, why, len);
	fabric_plan_fini(&plan);
	return ret;
}
