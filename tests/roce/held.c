// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Addresses that go while handles, queue pairs and identifiers of rdma_cm send from them: no other
 * address gets their place in the GID table, so nothing is sent from another one's. held.sh runs
 * it, on hosts r1 and r2.
 */
#include "verbs/lab.h"
#include "../qp_states.h"
#include "attributes.h"

#include <netinet/ip.h>
#include <rdma/rdma_cma.h>

#define SECONDS    20
#define LAST_PLACE 31

static union ibv_gid gid(const char *ipv4)
{
	union ibv_gid g = { .raw = { [10] = 0xFF, [11] = 0xFF } };

	assert_int_equal(inet_pton(AF_INET, ipv4, g.raw + 12), 1);
	return g;
}

/* The place of an address of r1's, or -1. */
static int place(const char *ipv4)
{
	static struct ibv_context *context;
	union ibv_gid want = gid(ipv4), g;

	if (!context)
		context = ibv_open_device(lab_device(1));
	assert_non_null(context);
	for (int i = 0; i <= LAST_PLACE && !ibv_query_gid(context, 1, i, &g); i++)
		if (!memcmp(&g, &want, sizeof(g)))
			return i;
	return -1;
}

/* Waits until the table of GIDs says that it is there, or not. Its place, or -1. */
static int await_place(const char *ipv4, bool there)
{
	for (int i = 0; (place(ipv4) >= 0) != there; i++) {
		if (i == SECONDS * 100)
			fail_msg("%s is %s, and the GID table does not say so", ipv4,
			         there ? "there" : "gone");
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	return place(ipv4);
}

/* Adds addresses to r1, or deletes them: 172.16.9.@first and so on. */
static void addresses(const char *verb, unsigned first, unsigned last)
{
	char command[256];

	snprintf(command, sizeof(command),
	         "for i in $(seq %u %u); do echo address %s 172.16.9.$i/16 dev eth0; done | "
	         "umbel exec r1 -- ip -batch -",
	         first, last, verb);
	assert_int_equal(system(command), 0);
}

/* One of them, and waits until the table has followed. Its place, or -1. */
static int address(const char *verb, unsigned number)
{
	char text[INET_ADDRSTRLEN];

	addresses(verb, number, number);
	snprintf(text, sizeof(text), "172.16.9.%u", number);
	return await_place(text, !strcmp(verb, "add"));
}

static struct ibv_ah_attr attr_from(int index, const char *to)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };

	attr.grh.dgid = gid(to);
	attr.grh.sgid_index = (uint8_t)index;
	attr.grh.hop_limit = 64;
	return attr;
}

static struct ibv_ah *handle(struct lab_end *e, int index, const char *to)
{
	struct ibv_ah_attr attr = attr_from(index, to);
	struct ibv_ah *ah = ibv_create_ah(e->pd, &attr);

	assert_non_null(ah);
	return ah;
}

/* The next message that comes is from there. */
static void expect_from(struct lab_end *to, const char *ipv4, const char *text)
{
	struct lab_message m = lab_receive(to);
	char source[INET_ADDRSTRLEN];
	struct iphdr ip;

	memcpy(&ip, m.grh + 20, sizeof(ip));
	inet_ntop(AF_INET, &ip.saddr, source, sizeof(source));
	assert_string_equal(m.data, text);
	assert_string_equal(source, ipv4);
}

static void send_by(struct lab_end *from, struct ibv_ah *ah, struct lab_end *to, const char *text)
{
	lab_post(to, 1);
	lab_send(from, ah, to->qp->qp_num, text, (uint32_t)strlen(text) + 1);
}

LAB_CASE(a_handle_sends_from_its_address_or_not_at_all)
{
	struct lab_end *from = lab_end(1), *to = lab_end(2);
	int own = address("add", 1), other;
	struct ibv_ah *ah = handle(from, own, "172.16.0.2"), *by_other;

	send_by(from, ah, to, "here");
	expect_from(to, "172.16.9.1", "here");
	address("del", 1);
	assert_int_not_equal(other = address("add", 2), own);
	by_other = handle(from, other, "172.16.0.2");
	send_by(from, ah, to, "gone");
	send_by(from, by_other, to, "other");
	expect_from(to, "172.16.9.2", "other");
	/* it comes back, and the handle sends again */
	assert_int_equal(address("add", 1), own);
	send_by(from, ah, to, "again");
	expect_from(to, "172.16.9.1", "again");
	address("del", 1);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(address("add", 3), own);
	assert_int_equal(ibv_destroy_ah(by_other), 0);
	address("del", 2);
	address("del", 3);
}

/* On one host messages go by memory. */
LAB_CASE(what_has_arrived_is_from_where_it_was_sent)
{
	struct lab_end *from = lab_end(1), *to = lab_end(1);
	int own = address("add", 1);
	struct ibv_ah *ah = handle(from, own, "172.16.0.1");

	send_by(from, ah, to, "first");
	address("del", 1);
	expect_from(to, "172.16.9.1", "first");
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* Moves it to RTR, from there. */
static void connect_from(struct ibv_qp *qp, int index)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	assert_int_equal(qp_to_init(qp, &attr), 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
		                     .path_mtu = IBV_MTU_256,
		                     .dest_qp_num = 17,
		                     .ah_attr = attr_from(index, "172.16.0.2") };
	assert_int_equal(qp_to_rtr(qp, &attr), 0);
}

LAB_CASE(a_queue_pair_keeps_the_place_until_it_has_no_path)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_cq *cq = lab_cq(context, 8, NULL);
	struct ibv_qp_init_attr init = init_of(IBV_QPT_RC, cq, 4, 4);
	struct ibv_qp *qp = lab_qp(lab_pd(context), &init);
	struct ibv_qp_attr attr;
	int own = address("add", 1);

	connect_from(qp, own);
	address("del", 1);
	assert_int_not_equal(address("add", 2), own);
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_AV, &init), 0);
	assert_int_equal(attr.ah_attr.grh.sgid_index, own);
	lab_to(qp, IBV_QPS_RESET);
	assert_int_equal(address("add", 3), own);
	address("del", 2);
	address("del", 3);
}

static struct sockaddr_in ip(const char *ipv4)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	assert_int_equal(inet_pton(AF_INET, ipv4, &a.sin_addr), 1);
	return a;
}

static struct rdma_cm_id *identifier(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;

	assert_non_null(ch);
	assert_int_equal(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP), 0);
	return id;
}

static struct rdma_cm_id *bound(const char *from)
{
	struct rdma_cm_id *id = identifier();
	struct sockaddr_in a = ip(from);

	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&a), 0);
	return id;
}

static struct rdma_cm_id *resolved(const char *from)
{
	struct rdma_cm_id *id = identifier();
	struct sockaddr_in src = ip(from), dst = ip("172.16.0.2");
	struct rdma_cm_event *event;

	assert_int_equal(rdma_resolve_addr(id, (struct sockaddr *)&src, (struct sockaddr *)&dst,
	                                   SECONDS * 1000),
	                 0);
	assert_int_equal(rdma_get_cm_event(id->channel, &event), 0);
	assert_string_equal(rdma_event_str(event->event), "RDMA_CM_EVENT_ADDR_RESOLVED");
	rdma_ack_cm_event(event);
	return id;
}

static void end(struct rdma_cm_id *id)
{
	struct rdma_event_channel *ch = id->channel;

	assert_int_equal(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
}

static void an_identifier_keeps_the_place(struct rdma_cm_id *make(const char *from))
{
	int own = address("add", 1), other;
	struct rdma_cm_id *first = make("172.16.9.1"), *second = make("172.16.9.1");

	address("del", 1);
	assert_int_not_equal(other = address("add", 2), own);
	end(first);
	address("del", 2);
	assert_int_equal(address("add", 3), other); /* the second one has it still */
	end(second);
	assert_int_equal(address("add", 4), own);
	address("del", 3);
	address("del", 4);
}

LAB_CASE(an_identifier_that_is_bound_keeps_the_place)
{
	an_identifier_keeps_the_place(bound);
}

LAB_CASE(an_identifier_that_is_resolved_keeps_the_place)
{
	an_identifier_keeps_the_place(resolved);
}

/* A process that has what hold() makes of @what. */
static pid_t start_holder(const char *what)
{
	int said[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(said), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(said[1], STDOUT_FILENO);
		execl("/proc/self/exe", "held", what, NULL);
		_exit(1);
	}
	close(said[1]);
	assert_int_equal(read(said[0], &byte, 1), 1);
	close(said[0]);
	return pid;
}

/* Not even its connection ends in time: the daemon frees the place when it does. */
static void a_dead_process_keeps_no_place(int own, const char *what)
{
	pid_t pid = start_holder(what);
	int other, got = -1;

	address("del", 1);
	other = address("add", 2);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_not_equal(other, own);
	for (int i = 0; got != own; i++) {
		if (i == SECONDS * 10)
			fail_msg("place %d is free, and 172.16.9.3 gets %d", own, got);
		got = address("add", 3);
		address("del", 3);
	}
	address("del", 2);
}

LAB_CASE(a_process_that_is_killed_keeps_no_place)
{
	int own = address("add", 1);
	char index[8];

	snprintf(index, sizeof(index), "%d", own);
	a_dead_process_keeps_no_place(own, index);
	a_dead_process_keeps_no_place(address("add", 1), "172.16.9.1");
}

/* All places are in use, by handles with addresses that have gone. */
LAB_CASE(an_address_without_a_place_gets_the_first_that_is_free)
{
	struct lab_end *e = lab_end(1);
	struct ibv_ah *ah[LAST_PLACE + 1];
	int first = address("add", 1), last = 1 + LAST_PLACE - first;

	addresses("add", 2, (unsigned)last);
	for (int i = first; i <= LAST_PLACE; i++) {
		char text[INET_ADDRSTRLEN];

		snprintf(text, sizeof(text), "172.16.9.%d", 1 + i - first);
		assert_int_equal(await_place(text, true), i);
		ah[i] = handle(e, i, "172.16.0.2");
	}
	addresses("del", 1, (unsigned)last);
	await_place("172.16.9.1", false);
	addresses("add", 100, 100);
	address("add", 1); /* it gets its own again: the other one has been looked at */
	assert_int_equal(place("172.16.9.100"), -1);
	assert_int_equal(ibv_destroy_ah(ah[LAST_PLACE]), 0);
	assert_int_equal(await_place("172.16.9.100", true), LAST_PLACE);
	for (int i = first; i < LAST_PLACE; i++)
		assert_int_equal(ibv_destroy_ah(ah[i]), 0);
	addresses("del", 1, 1);
	addresses("del", 100, 100);
}

/* The process that is killed above: has a handle or an identifier, says so, and waits. */
static int hold(const char *what)
{
	if (strchr(what, '.'))
		bound(what);
	else
		handle(lab_end(1), atoi(what), "172.16.0.2");
	if (write(STDOUT_FILENO, "", 1) != 1)
		return 1;
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	return argc > 1 ? hold(argv[1]) : harness_run(NULL, NULL);
}
