/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The settings of a fabric: one table has their names, limits and defaults.
 */
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "base/util.h"
#include "base/weak.h"
#include "fabric/model/fabric.h"

static const char *const routings[] = { "minhop", "updn", "ftree", "dfsssp" }; /* enum sm_routing */
static const char *const ipoib_modes[] = { "datagram", "connected" };

static const struct setting {
	const char *key;
	size_t offset;
	uint32_t initial, min, max;
	bool live;                /* may change while the fabric is up */
	const char *const *names; /* of its values, from 0; NULL: its values are numbers */
} settings[] = {
#define SETTING(name, ...)                                                               \
	{                                                                                \
		.key = #name, .offset = offsetof(struct shm_settings, name), __VA_ARGS__ \
	}
	SETTING(max_mcast_grp, 8192, 0, 1u << 20, false),
	SETTING(max_mcast_qp_attach, 1024, 0, SHM_MAX_QPS, false),
	SETTING(max_total_mcast_qp_attach, 1u << 20, 0, 1u << 30, false),
	SETTING(mtu, IBV_MTU_4096, IBV_MTU_256, IBV_MTU_4096, false),
	SETTING(max_qp_wr, 16384, 1, 32768, false),
	SETTING(max_sge, 32, 1, 256, false),
	SETTING(max_cqe, 1u << 22, 1, 1u << 24, false),
	SETTING(arm_fires, 1, 0, 1, false),
	SETTING(exact_sizes, 0, 0, 1, false),
	SETTING(sa_send_only, 1, 0, 1, true),
	SETTING(block_loopback_host, 0, 0, 1, false),
	SETTING(mft_delay_ms, 0, 0, 60000, true),
	SETTING(mft_capacity, 16383, 1, 16383, false),
	SETTING(sm_embedded, 1, 0, 1, false),
	SETTING(sm_priority, 1, 0, 15, true),
	SETTING(sm_poll_ms, 1000, 10, 60000, true),
	SETTING(routing, 0, 0, ARRAY_SIZE(routings) - 1, false, routings),
	SETTING(routing_lanes, 8, 1, 8, false),
	SETTING(lmc, 0, 0, 7, false),
	SETTING(mlid_sharing, 0, 0, 1, true),
	SETTING(keep_groups, 1, 0, 1, true),
	SETTING(roce_attach_joins, 1, 0, 1, false),
	SETTING(roce_segments, 1, 0, 1, false),
	SETTING(roce_ecn, 0, 0, 1, false),
	SETTING(roce_adp_retrans, 1, 0, 1, true),
	SETTING(roce_selective_repeat, 1, 0, 1, true),
	SETTING(roce_rxe_flush, 0, 0, 1, false),
	SETTING(host_cpus, 0, 0, 8192, false),
	SETTING(adopt, 1, 0, 1, true),
	SETTING(checked, 0, 0, 1, true),
	SETTING(weak, 0, 0, (1u << BASE_WEAK_KINDS) - 1, true),
	SETTING(weak_seed, 0, 0, UINT32_MAX, true),
	SETTING(ud_wait_us, 0, 0, 60000000, true),
	SETTING(ipoib_mode, 0, 0, ARRAY_SIZE(ipoib_modes) - 1, false, ipoib_modes),
#undef SETTING
};

static uint32_t *field(struct shm_settings *s, const struct setting *def)
{
	return (uint32_t *)((char *)s + def->offset);
}

void fabric_settings_default(struct shm_settings *s)
{
	memset(s, 0, sizeof(*s));
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		*field(s, &settings[i]) = settings[i].initial;
}

void fabric_settings_fit(struct shm_settings *s)
{
	uint64_t most = (uint64_t)s->max_mcast_grp * s->max_mcast_qp_attach;

	if (s->max_total_mcast_qp_attach > most)
		s->max_total_mcast_qp_attach = (uint32_t)most;
}

/* Users write MTUs in bytes. */
static int parse_mtu(const char *value, uint32_t *mtu)
{
	long bytes;
	int ret = base_parse_number(value, 256, 4096, &bytes);

	if (ret)
		return ret;
	for (uint32_t m = IBV_MTU_256; m <= IBV_MTU_4096; m++) {
		if (IB_MTU_BYTES(m) == bytes) {
			*mtu = m;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_name(const struct setting *def, const char *name, uint32_t *value)
{
	for (uint32_t v = 0; v <= def->max; v++) {
		if (!strcmp(def->names[v], name)) {
			*value = v;
			return 0;
		}
	}
	return -EINVAL;
}

int fabric_settings_set(struct shm_settings *s, const char *key, const char *value, bool live)
{
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		const struct setting *def = &settings[i];
		long v;
		int ret;

		if (strcmp(def->key, key))
			continue;
		if (live && !def->live)
			return -EPERM;
		if (!strcmp(key, "mtu"))
			return parse_mtu(value, &s->mtu);
		if (def->names)
			return parse_name(def, value, field(s, def));
		ret = base_parse_number(value, def->min, def->max, &v);
		if (!ret)
			*field(s, def) = (uint32_t)v;
		return ret;
	}
	return -ENOENT;
}

bool fabric_settings_get(const struct shm_settings *s, unsigned i, const char **key,
                         uint32_t *value)
{
	if (i >= ARRAY_SIZE(settings))
		return false;
	*key = settings[i].key;
	*value = *field((struct shm_settings *)s, &settings[i]);
	if (!strcmp(*key, "mtu"))
		*value = IB_MTU_BYTES(*value);
	return true;
}

const char *fabric_settings_name(const struct shm_settings *s, unsigned i)
{
	const struct setting *def = &settings[i];

	return def->names ? def->names[*field((struct shm_settings *)s, def)] : NULL;
}

const char *fabric_routing_name(unsigned routing)
{
	return routing < ARRAY_SIZE(routings) ? routings[routing] : NULL;
}

const char *fabric_settings_instead(const char *key, const char *value)
{
	/* OpenSM's engines, and what promises as much: docs/engines.md */
	static const struct {
		const char *theirs, *ours;
	} engines[] = {
		{ "lash", "dfsssp" }, { "dor", "dfsssp" },  { "torus-2QoS", "dfsssp" },
		{ "nue", "dfsssp" },  { "sssp", "dfsssp" }, { "dnup", "updn" },
	};

	for (size_t i = 0; !strcmp(key, "routing") && i < ARRAY_SIZE(engines); i++)
		if (!strcmp(value, engines[i].theirs))
			return engines[i].ours;
	return NULL;
}

const char *fabric_settings_want(const char *key)
{
	if (!strcmp(key, "mtu"))
		return "256, 512, 1024, 2048 or 4096";
	if (!strcmp(key, "routing"))
		return "minhop, updn, ftree or dfsssp";
	return "a number";
}
