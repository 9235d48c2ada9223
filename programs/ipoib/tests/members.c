/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One group of IP on the port of h2, in whose namespace this runs: members SEED STEPS. Sockets on
 * ib0, identifiers of rdma_cm's IPoIB port space, and programs that send MADs join and leave it in
 * random order. A queue pair is attached to it all the while. It must hear h1 exactly while one of
 * them is a member.
 *
 * On h1 another identifier is a member of the groups, so they stay what they are.
 */
#include <arpa/inet.h>
#include <infiniband/umad.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "property/sa.h"
#include "verbs/lab.h"

#define QKEY     0x0B1B
#define OF_KIND  2
#define PROGRAMS 3
#define FULL     1
#define NON      2
#define REFUSED  0x0200 /* REQ_INVALID */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const addresses[] = { "239.1.2.3", "239.1.2.4" };
enum { GROUP, MARK }; /* all may be in the first, of the second only sockets are members */

struct group {
	uint8_t mgid[16];
	uint16_t mlid;
	struct ibv_ah *ah; /* of h1's */
	struct rdma_cm_id *anchor;
};

static struct group group[2];
static struct lab_end *source, *ear;
static unsigned seed;

/* ---- who may be a member ---- */

static int sockets[OF_KIND]; /* -1: none */
static struct rdma_event_channel *channel;
static struct rdma_cm_id *id[OF_KIND];
static bool joined[OF_KIND];
static struct sa_port program[PROGRAMS];
static uint8_t states[PROGRAMS], left_behind;

static uint8_t expected(void)
{
	uint8_t all = left_behind;

	for (unsigned i = 0; i < OF_KIND; i++)
		all |= (sockets[i] >= 0 || joined[i]) ? FULL : 0;
	for (unsigned i = 0; i < PROGRAMS; i++)
		all |= states[i];
	return all;
}

/* A message is where it goes when it has been sent. */
static bool hears(unsigned g)
{
	struct ibv_wc wc;

	lab_send_text(source, group[g].ah, LAB_MCAST, "?");
	if (!ibv_poll_cq(ear->cq, 1, &wc))
		return false;
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	lab_post(ear, 1);
	return true;
}

static void await(unsigned g, bool member)
{
	const time_t end = time(NULL) + LAB_SECONDS;

	while (hears(g) != member) {
		assert_true(time(NULL) < end);
		poll(NULL, 0, 2);
	}
}

/* ---- sockets ---- */

static void membership(int fd, int option, const char *address)
{
	struct ip_mreq m = { 0 };

	inet_pton(AF_INET, address, &m.imr_multiaddr);
	inet_pton(AF_INET, "192.0.2.2", &m.imr_interface);
	assert_int_equal(setsockopt(fd, IPPROTO_IP, option, &m, sizeof(m)), 0);
}

/* The interface hears of both groups at once, so when it has left one the other is next. */
static void socket_step(unsigned i)
{
	if (sockets[i] >= 0) {
		close(sockets[i]);
		sockets[i] = -1;
	} else {
		sockets[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		assert_true(sockets[i] >= 0);
		for (unsigned g = 0; g < COUNT(addresses); g++)
			membership(sockets[i], IP_ADD_MEMBERSHIP, addresses[g]);
	}
	await(MARK, sockets[0] >= 0 || sockets[1] >= 0);
}

/* ---- rdma_cm ---- */

static struct sockaddr_in ip(const char *address)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	inet_pton(AF_INET, address, &a.sin_addr);
	return a;
}

static struct rdma_cm_id *id_new(const char *address)
{
	struct sockaddr_in own = ip(address);
	struct rdma_cm_id *new;

	assert_int_equal(rdma_create_id(channel, &new, NULL, RDMA_PS_IPOIB), 0);
	assert_int_equal(rdma_bind_addr(new, (struct sockaddr *)&own), 0);
	return new;
}

/* A new subnet administrator may yet have to be asked for the broadcast group. */
static void ask_to_join(struct rdma_cm_id *new, struct sockaddr_in *to, time_t end)
{
	while (rdma_join_multicast(new, (struct sockaddr *)to, NULL)) {
		assert_int_equal(errno, EADDRNOTAVAIL);
		assert_true(time(NULL) < end);
		poll(NULL, 0, 2);
	}
}

/* Again, if a busy subnet administrator does not respond for as long as rdma_cm asks it. */
static void join(struct rdma_cm_id *new, const char *address, struct ibv_ah_attr *attr)
{
	const time_t end = time(NULL) + LAB_SECONDS;
	struct sockaddr_in to = ip(address);
	struct rdma_cm_event *e;

	ask_to_join(new, &to, end);
	assert_int_equal(rdma_get_cm_event(channel, &e), 0);
	while (e->event == RDMA_CM_EVENT_MULTICAST_ERROR && e->status == -ETIMEDOUT) {
		rdma_ack_cm_event(e);
		assert_true(time(NULL) < end);
		ask_to_join(new, &to, end);
		assert_int_equal(rdma_get_cm_event(channel, &e), 0);
	}
	assert_int_equal(e->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	assert_int_equal(e->param.ud.qkey, QKEY);
	*attr = e->param.ud.ah_attr;
	rdma_ack_cm_event(e);
}

static void rdmacm_step(unsigned i)
{
	struct sockaddr_in to = ip(addresses[GROUP]);
	struct ibv_ah_attr attr;

	if (joined[i] && rand_r(&seed) % 2) {
		assert_int_equal(rdma_leave_multicast(id[i], (struct sockaddr *)&to), 0);
		joined[i] = false;
	} else if (joined[i]) {
		assert_int_equal(rdma_destroy_id(id[i]), 0);
		id[i] = id_new("10.0.0.2");
		joined[i] = false;
	} else {
		join(id[i], addresses[GROUP], &attr);
		assert_int_equal(attr.dlid, group[GROUP].mlid);
		joined[i] = true;
	}
}

/* ---- programs ---- */

static void program_open(unsigned i)
{
	sa_open(&program[i], ibv_get_device_name(lab_device(2)), 1);
	program[i].qkey = QKEY;
	program[i].retries = 2 * LAB_SECONDS;
}

static void program_step(unsigned i)
{
	const uint8_t which = 1 + rand_r(&seed) % (FULL | NON);
	uint16_t mlid;
	int status;

	switch (rand_r(&seed) % 5) {
	case 0: /* what it has joined, it leaves behind */
		umad_close_port(program[i].fd);
		left_behind |= states[i];
		states[i] = 0;
		program_open(i);
		break;
	case 1:
	case 2:
		assert_int_equal(sa_join(&program[i], group[GROUP].mgid, which, &mlid), 0);
		assert_int_equal(mlid, group[GROUP].mlid);
		states[i] |= which;
		left_behind &= (uint8_t)~which;
		break;
	default:
		status = sa_leave(&program[i], group[GROUP].mgid, which);
		if (which & ~(states[i] | left_behind)) {
			assert_int_equal(status, REFUSED);
			break;
		}
		assert_int_equal(status, 0);
		states[i] &= (uint8_t)~which;
		left_behind &= (uint8_t)~which;
	}
}

/* ---- start and end ---- */

static void group_init(unsigned g)
{
	struct ibv_ah_attr attr;

	group[g].anchor = id_new("10.0.0.1");
	join(group[g].anchor, addresses[g], &attr);
	group[g].mlid = attr.dlid;
	memcpy(group[g].mgid, attr.grh.dgid.raw, sizeof(group[g].mgid));
	group[g].ah = lab_ah(source->pd, &attr);
	lab_attach(ear->qp, &attr.grh.dgid, attr.dlid);
}

static void init(void)
{
	source = lab_end_with(&(struct lab_options){ .host = 1, .qkey = QKEY });
	ear = lab_end_with(&(struct lab_options){ .host = 2, .qkey = QKEY });
	lab_post(ear, 8);
	channel = rdma_create_event_channel();
	assert_non_null(channel);
	for (unsigned g = 0; g < COUNT(group); g++)
		group_init(g);
	for (unsigned i = 0; i < OF_KIND; i++) {
		sockets[i] = -1;
		id[i] = id_new("10.0.0.2");
	}
	for (unsigned i = 0; i < PROGRAMS; i++)
		program_open(i);
}

/* Nobody stays a member. */
static void fini(void)
{
	for (unsigned i = 0; i < OF_KIND; i++) {
		if (sockets[i] >= 0)
			socket_step(i);
		rdma_destroy_id(id[i]);
		joined[i] = false;
	}
	for (unsigned i = 0; i < PROGRAMS; i++) {
		const uint8_t own = states[i] | left_behind;

		if (own)
			assert_int_equal(sa_leave(&program[i], group[GROUP].mgid, own), 0);
		states[i] = left_behind = 0;
		umad_close_port(program[i].fd);
	}
	await(GROUP, false);
	for (unsigned g = 0; g < COUNT(group); g++)
		rdma_destroy_id(group[g].anchor);
	rdma_destroy_event_channel(channel);
}

static unsigned steps;

static void the_port_is_a_member_exactly_while_somebody_is(void **state)
{
	(void)state;
	init();
	for (unsigned n = 0; n < steps; n++) {
		const unsigned i = (unsigned)rand_r(&seed) % OF_KIND;

		assert_int_equal(hears(GROUP), expected() != 0); /* still */
		switch (rand_r(&seed) % 4) {
		case 0:
			socket_step(i);
			break;
		case 1:
			rdmacm_step(i);
			break;
		default:
			program_step((unsigned)rand_r(&seed) % PROGRAMS);
		}
		await(GROUP, expected() != 0);
	}
	fini();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		LAB_TEST(the_port_is_a_member_exactly_while_somebody_is),
	};

	if (argc != 3)
		return 2;
	seed = (unsigned)atoi(argv[1]);
	steps = (unsigned)atoi(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
