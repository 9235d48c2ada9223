/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fabrics and settings as options say them: see shape.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fabric/plan/shape.h"
#include "fabric/plan/topology_file.h"

static void explain_setting(const char *setting, const char *key, int error, char *why, size_t len)
{
	const char *eq = strchr(setting, '=');
	const char *instead = eq ? fabric_settings_instead(key, eq + 1) : NULL;

	if (instead)
		snprintf(why, len,
		         "setting '%s': that is an engine of OpenSM's; take routing=%s, or --sm "
		         "none and run 'opensm -R %s' on a host",
		         setting, instead, eq + 1);
	else if (error == -ENOENT)
		snprintf(why, len, "setting '%s': there is no such setting", setting);
	else if (error == -ERANGE)
		snprintf(why, len, "setting '%s': the value is out of range", setting);
	else
		snprintf(why, len, "setting '%s': want key=value, the value %s", setting,
		         fabric_settings_want(key));
}

int fabric_shape_settings(struct shm_settings *s, const char **given, unsigned n, char *why,
                          size_t len)
{
	fabric_settings_default(s);
	for (unsigned i = 0; i < n; i++) {
		char key[64] = "";
		const char *eq = strchr(given[i], '=');
		int ret = -EINVAL;

		if (eq && (size_t)(eq - given[i]) < sizeof(key)) {
			memcpy(key, given[i], eq - given[i]);
			key[eq - given[i]] = '\0';
			ret = fabric_settings_set(s, key, eq + 1, false);
		}
		if (ret) {
			explain_setting(given[i], key, ret, why, len);
			return ret;
		}
	}
	return 0;
}

int fabric_shape_plan(const struct fabric_shape *shape, struct fabric_plan *plan, char *why,
                      size_t len)
{
	const struct fabric_topology_file file = { shape->topology, shape->text, shape->text_bytes,
		                                   shape->notes, shape->notes_len };
	const struct fabric_fat_tree tree = { shape->levels, shape->radix, shape->hosts };
	int ret;

	plan->hcas = shape->hcas;
	if (shape->topology)
		return fabric_topology_parse(plan, &file, why, len);
	if (shape->levels)
		return fabric_plan_fat_tree(plan, &tree, why, len);
	ret = fabric_plan_tree(plan, shape->hosts);
	if (ret == -ERANGE)
		snprintf(why, len,
		         "%u hosts%s and their switches need more than the %d LIDs of a fabric",
		         shape->hosts, shape->hcas > 1 ? ", their HCAs" : "", FABRIC_MAX_LIDS);
	return ret;
}

int fabric_shape_check_lids(const struct fabric *f, char *why, size_t len)
{
	unsigned long need = ((unsigned long)f->n_ib_ports << f->settings.lmc) + f->n_switches;

	if (need <= FABRIC_MAX_LIDS)
		return 0;
	snprintf(why, len, "with lmc=%u this fabric needs %lu LIDs; there are %d", f->settings.lmc,
	         need, FABRIC_MAX_LIDS);
	return -ENOSPC;
}
