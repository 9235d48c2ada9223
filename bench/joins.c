/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Measures how fast a subnet administrator, ours or another, lets ports join. One port makes the
 * groups. Then others join them and leave them again, each in its own name: one after the other,
 * until the member's switch leads to it; and all at the same time, as fast as answers come.
 * MCMemberRecord and MulticastForwardingTable by libibumad.
 *
 * joins --groups N --hosts N [--seconds S]
 *
 * Prints a line of JSON; bench/run.py calls it. Hosts are h1 and on, of one HCA each, on switches.
 */
#include "common/util.h"

#include <endian.h>
#include <getopt.h>

#include <infiniband/umad.h>
#include <infiniband/umad_sa_mcm.h>
#include <infiniband/umad_sm.h>
#include <infiniband/umad_types.h>

#define WINDOW      64 /* requests under way; ports that join */
#define MAX_SINGLE  2000
#define TIMEOUT_MS  1000
#define RETRIES     10
#define MLID_FIRST  0xC000
#define BLOCK_MLIDS 32
#define MASK_PORTS  16
#define CREATE_MASK                                                                               \
	(UMAD_SA_MCM_COMP_MASK_MGID | UMAD_SA_MCM_COMP_MASK_PORT_GID |                            \
	 UMAD_SA_MCM_COMP_MASK_QKEY | UMAD_SA_MCM_COMP_MASK_TCLASS | UMAD_SA_MCM_COMP_MASK_PKEY | \
	 UMAD_SA_MCM_COMP_MASK_SL | UMAD_SA_MCM_COMP_MASK_FLOW_LABEL |                            \
	 UMAD_SA_MCM_COMP_MASK_JOIN_STATE)
#define JOIN_MASK                                                      \
	(UMAD_SA_MCM_COMP_MASK_MGID | UMAD_SA_MCM_COMP_MASK_PORT_GID | \
	 UMAD_SA_MCM_COMP_MASK_JOIN_STATE)

/* A port that asks. */
struct asker {
	int fd, sa, sm; /* agents of the latter two classes */
	uint16_t sm_lid;
	uint8_t gid[16];
	unsigned switch_port; /* that it is on */
	unsigned group;       /* that its last request was about */
	bool leaving;
};

/* A MAD in its buffer. */
struct packet {
	struct ib_user_mad umad;
	union {
		struct umad_sa_packet sa;
		struct umad_smp smp;
	};
};

static void send_packet(const struct asker *a, int agent, struct packet *p)
{
	int ret = umad_send(a->fd, agent, p, sizeof(p->sa), TIMEOUT_MS, RETRIES);

	if (ret)
		errx(EXIT_FAILURE, "umad_send: %s", strerror(-ret));
}

/* The answer to one request has come. */
static void take(const struct asker *a, struct packet *p)
{
	int length = sizeof(p->sa), ret = umad_recv(a->fd, p, &length, -1);

	if (ret < 0)
		errx(EXIT_FAILURE, "umad_recv: %s", strerror(-ret));
	if (umad_status(p))
		errx(EXIT_FAILURE, "no answer: %s", strerror(umad_status(p)));
	if (p->sa.mad_hdr.status & htobe16((uint16_t)~UMAD_SMP_DIRECTION))
		errx(EXIT_FAILURE, "an answer with status 0x%04x", be16toh(p->sa.mad_hdr.status));
}

/* ---- the subnet manager's side of it: what the port's switch says */

static void ask_switch(const struct asker *a, uint16_t attribute, uint32_t modifier,
                       struct packet *p)
{
	static uint32_t tid;

	memset(p, 0, sizeof(*p));
	p->smp.base_version = UMAD_BASE_VERSION;
	p->smp.mgmt_class = UMAD_CLASS_SUBN_DIRECTED_ROUTE;
	p->smp.class_version = 1;
	p->smp.method = UMAD_METHOD_GET;
	p->smp.attr_id = htobe16(attribute);
	p->smp.attr_mod = htobe32(modifier);
	p->smp.tid = htobe64(++tid);
	p->smp.hop_cnt = 1;
	p->smp.initial_path[1] = 1;
	p->smp.dr_slid = p->smp.dr_dlid = 0xFFFF;
	umad_set_addr(p, 0xFFFF, 0, 0, 0);
	send_packet(a, a->sm, p);
	take(a, p);
}

/* NodeInfo:LocalPortNum is where the question came in. */
static unsigned find_switch_port(const struct asker *a)
{
	struct packet p;

	ask_switch(a, UMAD_SM_ATTR_NODE_INFO, 0, &p);
	return p.smp.data[36];
}

static bool is_forwarded(const struct asker *a, uint16_t mlid)
{
	unsigned row = mlid - MLID_FIRST, position = a->switch_port / MASK_PORTS;
	struct packet p;
	uint16_t mask;

	ask_switch(a, UMAD_SM_ATTR_MCAST_FT, row / BLOCK_MLIDS | position << 28, &p);
	memcpy(&mask, p.smp.data + row % BLOCK_MLIDS * sizeof(mask), sizeof(mask));
	return be16toh(mask) >> (a->switch_port % MASK_PORTS) & 1;
}

/* ---- the subnet administrator's */

/* Group @group is joined, created if need be, or left. */
static void ask(const struct asker *a, unsigned group, bool leave)
{
	struct packet p = { .sa = { .mad_hdr = { .base_version = UMAD_BASE_VERSION,
		                                 .mgmt_class = UMAD_CLASS_SUBN_ADM,
		                                 .class_version = UMAD_SA_CLASS_VERSION } } };
	struct umad_sa_mcmember_record rec = { .mgid = { 0xFF, 0x12, 0xBE, 0x4C } };
	uint32_t number = htonl(group);

	memcpy(rec.mgid + 12, &number, sizeof(number));
	memcpy(rec.portgid, a->gid, sizeof(rec.portgid));
	rec.qkey = htobe32(0x11111111);
	rec.pkey = htobe16(0xFFFF);
	rec.scope_state = UMAD_SA_MCM_JOIN_STATE_FULL_MEMBER;
	memcpy(p.sa.data, &rec, sizeof(rec));
	p.sa.mad_hdr.method = leave ? UMAD_SA_METHOD_DELETE : UMAD_METHOD_SET;
	p.sa.mad_hdr.attr_id = htobe16(UMAD_SA_ATTR_MCMEMBER_REC);
	p.sa.mad_hdr.tid = htobe64(group + 1ull);
	p.sa.comp_mask = htobe64(leave ? JOIN_MASK : CREATE_MASK);
	umad_set_addr(&p, a->sm_lid, 1, 0, (int)UMAD_QKEY);
	send_packet(a, a->sa, &p);
}

/* Makes groups 0 to n - 1. */
static void create(const struct asker *a, unsigned n)
{
	struct packet p;
	unsigned sent = 0;

	for (unsigned done = 0; done < n; done++) {
		while (sent < n && sent < done + WINDOW)
			ask(a, sent++, false);
		take(a, &p);
	}
}

static void open_port(struct asker *a, unsigned host)
{
	char name[UMAD_CA_NAME_LEN];
	umad_port_t port;

	snprintf(name, sizeof(name), "umbel_h%u_0", host);
	if (umad_get_port(name, 1, &port))
		errx(EXIT_FAILURE, "there is no %s", name);
	a->sm_lid = (uint16_t)port.sm_lid;
	memcpy(a->gid, &port.gid_prefix, 8);
	memcpy(a->gid + 8, &port.port_guid, 8);
	umad_release_port(&port);
	a->fd = umad_open_port(name, 1);
	if (a->fd < 0)
		errx(EXIT_FAILURE, "umad_open_port %s: %s", name, strerror(-a->fd));
	a->sa = umad_register(a->fd, UMAD_CLASS_SUBN_ADM, UMAD_SA_CLASS_VERSION, UMAD_RMPP_VERSION,
	                      NULL);
	a->sm = umad_register(a->fd, UMAD_CLASS_SUBN_DIRECTED_ROUTE, 1, 0, NULL);
	if (a->sa < 0 || a->sm < 0)
		errx(EXIT_FAILURE, "umad_register: %s", strerror(-(a->sa < 0 ? a->sa : a->sm)));
	a->switch_port = find_switch_port(a);
}

/* ---- measurements */

/* Milliseconds from the request to join until the switch leads to the member; the median. */
static double measure_single(struct asker *asker, unsigned n, unsigned groups, double seconds)
{
	static double ms[MAX_SINGLE];
	uint64_t end = bench_now() + (uint64_t)(seconds * 1e9), begin;
	unsigned joins = 0;

	while (joins < MAX_SINGLE && (begin = bench_now()) < end) {
		struct asker *a = &asker[joins % n];
		struct umad_sa_mcmember_record rec;
		struct packet p;

		ask(a, joins % groups, false);
		take(a, &p);
		memcpy(&rec, p.sa.data, sizeof(rec));
		while (!is_forwarded(a, be16toh(rec.mlid)))
			;
		ms[joins] = (double)(bench_now() - begin) / 1e6;
		ask(a, joins++ % groups, true);
		take(a, &p);
	}
	bench_sort(ms, joins);
	return bench_quantile(ms, joins, 0.5);
}

/* A port that has an answer sends its next request: to leave the group that it joined, to join
 * another. */
static unsigned go_on(struct asker *a, unsigned groups, unsigned step)
{
	struct packet p;

	take(a, &p);
	a->leaving = !a->leaving;
	if (!a->leaving)
		a->group = (a->group + step) % groups;
	ask(a, a->group, a->leaving);
	return a->leaving;
}

/* Joins a second, each followed by its leave, all askers at the same time. */
static double measure_rate(struct asker *asker, unsigned n, unsigned groups, double seconds)
{
	struct pollfd fds[WINDOW];
	uint64_t begin = bench_now(), end = begin + (uint64_t)(seconds * 1e9), now;
	unsigned joins = 0;

	for (unsigned i = 0; i < n; i++) {
		fds[i] = (struct pollfd){ .fd = umad_get_fd(asker[i].fd), .events = POLLIN };
		asker[i].group = i % groups;
		ask(&asker[i], asker[i].group, false);
	}
	while ((now = bench_now()) < end) {
		bench_must(poll(fds, n, -1) >= 0, "poll");
		for (unsigned i = 0; i < n; i++)
			if (fds[i].revents)
				joins += go_on(&asker[i], groups, n);
	}
	return joins / ((double)(now - begin) / 1e9);
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "groups", required_argument, NULL, 'g' },
		                                 { "hosts", required_argument, NULL, 'o' },
		                                 { "seconds", required_argument, NULL, 's' },
		                                 { NULL, 0, NULL, 0 } };
	static struct asker asker[WINDOW + 1];
	unsigned groups = 1, hosts = 4, n;
	double seconds = 0.5, ms;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'g')
			groups = (unsigned)atoi(optarg);
		else if (c == 'o')
			hosts = (unsigned)atoi(optarg);
		else if (c == 's')
			seconds = atof(optarg);
		else
			exit(2);
	}
	if (!groups || hosts < 2)
		errx(2, "at least a group and two hosts");
	if (umad_init())
		errx(EXIT_FAILURE, "umad_init");
	n = hosts - 1 < WINDOW ? hosts - 1 : WINDOW;
	open_port(&asker[n], 1);
	for (unsigned i = 0; i < n; i++) /* from all corners of the fabric */
		open_port(&asker[i], 2 + i * (hosts - 1) / n);
	create(&asker[n], groups);
	ms = measure_single(asker, n, groups, seconds);
	printf("{\"measure\": \"joins\", \"groups\": %u, \"ms\": %.4f, \"rate\": %.0f}\n", groups,
	       ms, measure_rate(asker, n, groups, seconds));
	return 0;
}
