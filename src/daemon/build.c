/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fabric as the options say: see build.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/build.h"
#include "fabric/plan.h"
#include "fabric/topology_file.h"

static void explain_setting(const char *setting, const char *key, int error, char *why, size_t len)
{
	if (error == -ENOENT)
		snprintf(why, len, "setting '%s': there is no such setting", setting);
	else if (error == -ERANGE)
		snprintf(why, len, "setting '%s': the value is out of range", setting);
	else
		snprintf(why, len, "setting '%s': want key=value, the value %s", setting,
		         fabric_settings_want(key));
}

int daemon_build_settings(struct shm_settings *s, const struct daemon_options *o, char *why,
                          size_t len)
{
	fabric_settings_default(s);
	for (unsigned i = 0; i < o->n_settings; i++) {
		char key[64] = "";
		const char *eq = strchr(o->settings[i], '=');
		int ret = -EINVAL;

		if (eq && (size_t)(eq - o->settings[i]) < sizeof(key)) {
			memcpy(key, o->settings[i], eq - o->settings[i]);
			key[eq - o->settings[i]] = '\0';
			ret = fabric_settings_set(s, key, eq + 1, false);
		}
		if (ret) {
			explain_setting(o->settings[i], key, ret, why, len);
			return ret;
		}
	}
	return 0;
}

/* The part of InfiniBand. */
static int plan_subnet(const struct daemon_build *b, struct fabric_plan *plan, char *why,
                       size_t len)
{
	const struct daemon_shape *shape = b->shape;
	const struct fabric_topology_file file = { shape->topology, shape->text, shape->text_bytes,
		                                   b->notes, b->notes_len };
	const struct fabric_fat_tree tree = { shape->levels, shape->radix, shape->hosts };
	int ret;

	if (shape->topology)
		return fabric_topology_parse(plan, &file, why, len);
	if (shape->levels)
		return fabric_plan_fat_tree(plan, &tree, why, len);
	ret = fabric_plan_tree(plan, shape->hosts);
	if (ret == -ERANGE)
		snprintf(why, len,
		         "%u hosts and their switches need more than the %d LIDs of a fabric",
		         shape->hosts, FABRIC_MAX_LIDS);
	return ret;
}

static int plan_fabric(const struct daemon_build *b, struct fabric_plan *plan, char *why,
                       size_t len)
{
	const struct daemon_shape *shape = b->shape;
	bool only_roce = b->roce && !shape->topology && !shape->levels && !shape->hosts;
	int ret = only_roce ? 0 : plan_subnet(b, plan, why, len);

	return ret || !b->roce ? ret : daemon_roce_plan(b->roce, plan, why, len);
}

/* The subnet manager would find out, too, but then the fabric would be up already. */
static int check_lids(const struct fabric *f, char *why, size_t len)
{
	unsigned long need = ((unsigned long)f->n_ib_ports << f->settings.lmc) + f->n_switches;

	if (need <= FABRIC_MAX_LIDS)
		return 0;
	snprintf(why, len, "with lmc=%u this fabric needs %lu LIDs; there are %d", f->settings.lmc,
	         need, FABRIC_MAX_LIDS);
	return -ENOSPC;
}

int daemon_build_fabric(struct fabric **f, const struct daemon_build *b, char *why, size_t len)
{
	struct fabric_plan plan;
	int ret;

	fabric_plan_init(&plan);
	ret = plan_fabric(b, &plan, why, len);
	if (!ret)
		ret = fabric_new(f, &plan, b->settings);
	if (!ret)
		ret = check_lids(*f, why, len);
	fabric_plan_fini(&plan);
	return ret;
}
