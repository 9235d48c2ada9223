/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any MADs whatever, sent by libibumad to a fabric that is up: through the daemon's agents,
 * its subnet manager and administrator, its RMPP both ways, and back. They may do anything to the
 * fabric: the daemon goes on serving.
 *
 * UMBEL_FUZZ_SECONDS=N goes on for so long, else there is a number of MADs that takes about a
 * second. UMBEL_FUZZ_SEED=N begins elsewhere; the seed is printed.
 */
#include "harness.h"

#include <infiniband/umad.h>

#include "wire/testing_mad_fuzz.h"

#define N_MADS   20000
#define HOSTS    4
#define RADIX    8
#define MAX_MAD  (1 << 20)
#define LONGEST  (2 * MAD_BYTES)
#define DRAIN_AT 64 /* MADs, until what has come is taken */

static const struct {
	uint8_t mgmt_class, version, rmpp_version;
	uint64_t methods;
} agents[] = {
	{ MAD_CLASS_SUBN_LID, 1, 0, 0 },
	{ MAD_CLASS_SUBN_DIRECTED, 1, 0, 0 },
	{ MAD_CLASS_SUBN_ADM, 2, 1, 1 << MAD_REPORT },
	{ MAD_CLASS_SUBN_ADM, 2, 0, 0 },
	{ MAD_CLASS_PERF, 1, 0, 0 },
	{ MAD_CLASS_DEV_MGT, 1, 1, 0xFFFFFFFF },
	{ MAD_CLASS_BM, 1, 0, 0xFFFFFFFF },
};

struct port {
	char name[UMAD_CA_NAME_LEN];
	int fd;
	int agent[ARRAY_SIZE(agents)];
};

static struct port ports[HOSTS];
static struct fuzz_world world;
static struct fuzz fuzz = { .world = &world };

static void open_ports(void)
{
	for (int i = 0; i < HOSTS; i++) {
		struct port *p = &ports[i];

		snprintf(p->name, sizeof(p->name), "umbel_h%d_0", i + 1);
		p->fd = umad_open_port(p->name, 1);
		assert_true(p->fd >= 0);
		for (size_t k = 0; k < ARRAY_SIZE(agents); k++) {
			struct umad_reg_attr attr = { .mgmt_class = agents[k].mgmt_class,
				                      .mgmt_class_version = agents[k].version,
				                      .rmpp_version = agents[k].rmpp_version,
				                      .method_mask = { agents[k].methods } };
			uint32_t id;

			assert_int_equal(umad_register2(p->fd, &attr, &id), 0);
			p->agent[k] = (int)id;
		}
	}
}

static void see_world(void)
{
	umad_port_t port;

	world.n_ports = RADIX;
	for (int i = 0; i < HOSTS; i++) {
		assert_int_equal(umad_get_port(ports[i].name, 1, &port), 0);
		world.lid[world.n_lids++] = (uint16_t)port.base_lid;
		memcpy(world.gid[world.n_gids].raw, &port.gid_prefix, 8);
		memcpy(world.gid[world.n_gids++].raw + 8, &port.port_guid, 8);
		umad_release_port(&port);
	}
	world.lid[world.n_lids++] = HOSTS + 1; /* of the switch */
	world.lid[world.n_lids++] = IB_LID_PERMISSIVE;
}

/* Takes the MADs that have come, without waiting for more. */
static void drain(void *buffer)
{
	for (int i = 0; i < HOSTS; i++) {
		int bytes = MAX_MAD;

		while (umad_recv(ports[i].fd, buffer, &bytes, 0) >= 0)
			bytes = MAX_MAD;
	}
}

/* An agent of the MAD's class; sometimes of another class, or one that does not exist. */
static int choose_agent(const struct port *p, uint8_t mgmt_class)
{
	unsigned first = fuzz_below(&fuzz, ARRAY_SIZE(agents));

	if (fuzz_chance(&fuzz, 3))
		return (int)fuzz_below(&fuzz, UMAD_CA_MAX_AGENTS);
	for (unsigned i = 0; i < ARRAY_SIZE(agents); i++) {
		unsigned k = (first + i) % ARRAY_SIZE(agents);

		if (agents[k].mgmt_class == mgmt_class)
			return p->agent[k];
	}
	return p->agent[first];
}

static void send_one(struct ib_user_mad *umad)
{
	struct port *p = &ports[fuzz_below(&fuzz, HOSTS)];
	struct fuzz_mad mad;
	int agent;

	fuzz_make(&fuzz, &mad);
	memset(umad, 0, sizeof(*umad) + LONGEST);
	memcpy(umad->data, mad.data, sizeof(mad.data));
	umad_set_addr(umad, mad.dlid, (int)mad.dest_qpn, mad.sl, (int)IB_QKEY_GSI);
	umad_set_pkey(umad, mad.pkey_index);
	if (mad.has_grh)
		umad_set_grh(umad, &(ib_mad_addr_t){ .hop_limit = 1 });
	memcpy(umad->addr.gid, mad.dgid.raw, sizeof(umad->addr.gid));
	agent = choose_agent(p, mad.data[1]);
	/* it may be refused: that is an answer */
	umad_send(p->fd, agent, umad, (int)mad.bytes,
	          fuzz_chance(&fuzz, 70) ? (int)fuzz_below(&fuzz, 20) : 0,
	          (int)fuzz_below(&fuzz, 3));
}

/* A port can be asked about, opened, used and closed as before. */
static void expect_daemon_serves(void)
{
	struct umad_reg_attr attr = {
		.mgmt_class = 0x31, .mgmt_class_version = 1, .oui = 0x123456, .method_mask = { 2 }
	};
	umad_port_t port;
	uint32_t id;

	for (int i = 0; i < HOSTS; i++) {
		int fd = umad_open_port(ports[i].name, 1);

		assert_true(fd >= 0);
		assert_int_equal(umad_register2(fd, &attr, &id), 0);
		assert_int_equal(umad_unregister(fd, (int)id), 0);
		assert_int_equal(umad_close_port(fd), 0);
		assert_int_equal(umad_get_port(ports[i].name, 1, &port), 0);
		umad_release_port(&port);
	}
}

CASE(the_daemon_goes_on_whatever_is_sent)
{
	struct ib_user_mad *umad = umad_alloc(1, umad_size() + LONGEST);
	void *buffer = umad_alloc(1, umad_size() + MAX_MAD);
	uint64_t end;

	assert_non_null(umad);
	assert_non_null(buffer);
	fuzz.seed = fuzz_seed();
	fprintf(stderr, "UMBEL_FUZZ_SEED=%llu\n", (unsigned long long)fuzz.seed);
	open_ports();
	see_world();
	end = fuzz_end();
	for (uint64_t n = 0; n < N_MADS || base_now_ns() < end; n++) {
		send_one(umad);
		if (n % DRAIN_AT == 0)
			drain(buffer);
		if (n % N_MADS == 0)
			expect_daemon_serves();
	}
	drain(buffer);
	expect_daemon_serves();
	for (int i = 0; i < HOSTS; i++)
		umad_close_port(ports[i].fd);
	umad_free(umad);
	umad_free(buffer);
}
