/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UD connect, listen, accept and reject; synchronous identifiers and endpoints; QPs.
 * Nothing leaks.
 */
#include "common.h"

#include <rdma/rdma_verbs.h>

#define PORT        7174
#define SIDR_NO_ONE 1
#define SIDR_REJECT 2

static struct node listener(unsigned host, int backlog)
{
	struct node n = node_open(RDMA_PS_UDP);

	node_bind(&n, host, PORT);
	assert_int_equal(rdma_listen(n.id, backlog), 0);
	return n;
}

static struct node asker(unsigned from, unsigned to)
{
	struct node n = node_open(RDMA_PS_UDP);

	node_bind(&n, from, 0);
	node_resolve(&n, to, PORT);
	return n;
}

static int ask(struct node *n, const char *text)
{
	struct rdma_conn_param param = { .private_data = text,
		                         .private_data_len = (uint8_t)(strlen(text) + 1) };

	return rdma_connect(n->id, &param);
}

/* The request's identifier; acknowledges its event. */
static struct rdma_cm_id *wait_request(struct node *l)
{
	struct rdma_cm_event *e = next_event(l);
	struct rdma_cm_id *id = e->id;

	assert_event(e, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	return id;
}

static void expect_unreachable(struct node *n, int status)
{
	struct rdma_cm_event *e = next_event(n);

	assert_event(e, RDMA_CM_EVENT_UNREACHABLE, status);
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

CASE(a_request_is_an_identifier_of_its_own)
{
	struct node CLOSED l = listener(2, 0), a = asker(1, 2);
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	l.id->context = &l;
	assert_int_equal(ask(&a, "hello"), 0);
	e = next_event(&l);
	assert_event(e, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	id = e->id;
	assert_ptr_equal(e->listen_id, l.id);
	assert_ptr_not_equal(id, l.id);
	assert_ptr_equal(id->channel, l.channel);
	assert_ptr_equal(id->context, &l);
	assert_non_null(id->verbs);
	assert_int_equal(id->port_num, 1);
	assert_int_equal(id->route.addr.dst_sin.sin_addr.s_addr, inet_addr("10.0.0.1"));
	assert_int_equal(rdma_get_src_port(id), htons(PORT));
	assert_int_equal(rdma_get_dst_port(id), rdma_get_src_port(a.id));
	assert_string_equal(e->param.ud.private_data, "hello");
	assert_int_equal(e->param.ud.private_data_len, 180);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	expect_unreachable(&a, SIDR_REJECT);
}

CASE(accept_says_where_to_send_to)
{
	struct node CLOSED l = listener(2, 0), a = asker(1, 2);
	struct node accepted = { .channel = l.channel };
	struct rdma_conn_param param = { .private_data = "welcome", .private_data_len = 8 };
	struct rdma_cm_event *e;

	node_qp(&a, 0);
	assert_int_equal(ask(&a, ""), 0);
	accepted.id = wait_request(&l);
	node_qp(&accepted, 0);
	assert_int_equal(rdma_accept(accepted.id, &param), 0);
	e = next_event(&a);
	assert_event(e, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(e->param.ud.qp_num, accepted.id->qp->qp_num);
	assert_int_equal(e->param.ud.qkey, UDP_QKEY);
	assert_string_equal(e->param.ud.private_data, "welcome");
	assert_int_equal(e->param.ud.private_data_len, 136);
	send_to(&a, &e->param.ud, "unicast");
	assert_received(&accepted, "unicast");
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(rdma_disconnect(a.id), 0);
	rdma_destroy_qp(accepted.id);
	assert_int_equal(ibv_dereg_mr(accepted.mr), 0);
	assert_int_equal(ibv_destroy_cq(accepted.cq), 0);
	free(accepted.buffer);
	assert_int_equal(rdma_destroy_id(accepted.id), 0);
}

static void assert_ends(struct rdma_cm_id *id, const char *text)
{
	const union address a = address(text, 0);
	struct sockaddr *end[] = { rdma_get_local_addr(id), rdma_get_peer_addr(id) };

	for (int i = 0; i < 2; i++) {
		const union address *b = (const union address *)(void *)end[i];

		assert_int_equal(b->sa.sa_family, a.sa.sa_family);
		if (a.sa.sa_family == AF_INET)
			assert_int_equal(b->in.sin_addr.s_addr, a.in.sin_addr.s_addr);
		else
			assert_memory_equal(&b->in6.sin6_addr, &a.in6.sin6_addr, 16);
	}
}

/* A listener at @bound of the host is asked by way of @to. */
static void ask_oneself(enum rdma_port_space ps, const char *bound, const char *to)
{
	struct rdma_conn_param param = { .qp_num = 5 };
	struct node CLOSED l = node_open(ps), a = node_open(ps);
	union address at = address(bound, PORT), dst = address(to, PORT);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_bind_addr(l.id, &at.sa), 0);
	assert_int_equal(rdma_listen(l.id, 0), 0);
	assert_int_equal(rdma_resolve_addr(a.id, NULL, &dst.sa, 1000), 0);
	expect_event(&a, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_ends(a.id, to);
	assert_int_equal(rdma_resolve_route(a.id, 1000), 0);
	expect_event(&a, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(rdma_connect(a.id, &param), 0);
	id = wait_request(&l);
	assert_ends(id, to);
	assert_memory_equal(&id->route.addr.addr.ibaddr, &a.id->route.addr.addr.ibaddr,
	                    sizeof(id->route.addr.addr.ibaddr));
	param.qp_num++;
	assert_int_equal(rdma_accept(id, &param), 0);
	if (ps == RDMA_PS_UDP)
		expect_event(&a, RDMA_CM_EVENT_ESTABLISHED);
	else
		expect_event(&a, RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(rdma_destroy_id(id), 0);
}

CASE(by_a_loopback_address_both_ends_have_it)
{
	ask_oneself(RDMA_PS_UDP, "127.0.0.1", "127.0.0.1");
	ask_oneself(RDMA_PS_UDP, "::", "::1");
	ask_oneself(RDMA_PS_TCP, "0.0.0.0", "127.0.0.1");
	ask_oneself(RDMA_PS_TCP, "::1", "::1");
}

CASE(accept_needs_a_qp_number_and_a_request)
{
	struct node CLOSED l = listener(2, 0), a = asker(1, 2);
	struct rdma_conn_param param = { .qp_num = 5 };
	struct rdma_cm_id *id;

	assert_int_equal(ask(&a, ""), 0);
	id = wait_request(&l);
	assert_fails(rdma_accept(id, NULL), EINVAL);
	assert_fails(rdma_accept(l.id, &param), EINVAL);
	assert_int_equal(rdma_accept(id, &param), 0);
	assert_fails(rdma_accept(id, &param), EINVAL);
	expect_event(&a, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(rdma_destroy_id(id), 0);
}

CASE(reject_says_no)
{
	struct node CLOSED l = listener(2, 0), a = asker(1, 2);
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	assert_int_equal(ask(&a, ""), 0);
	id = wait_request(&l);
	assert_int_equal(rdma_reject(id, "busy", 5), 0);
	e = next_event(&a);
	assert_event(e, RDMA_CM_EVENT_UNREACHABLE, SIDR_REJECT);
	assert_string_equal(e->param.ud.private_data, "busy");
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

CASE(where_nobody_listens_it_is_unreachable)
{
	struct node CLOSED a = asker(1, 2);

	assert_int_equal(ask(&a, ""), 0);
	expect_unreachable(&a, SIDR_NO_ONE);
}

CASE(private_data_have_a_limit)
{
	struct node CLOSED a = asker(1, 2);
	char data[255] = { 0 };
	struct rdma_conn_param param = { .private_data = data, .private_data_len = 181 };

	assert_fails(rdma_connect(a.id, &param), EINVAL);
	param.private_data_len = 255;
	assert_fails(rdma_connect(a.id, &param), EINVAL);
	param.private_data_len = 180;
	assert_int_equal(rdma_connect(a.id, &param), 0);
	expect_unreachable(&a, SIDR_NO_ONE); /* and not later, by the next case's listener */
}

CASE(connect_needs_a_route)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);

	assert_fails(ask(&n, ""), EINVAL);
	node_bind(&n, 1, 0);
	assert_fails(ask(&n, ""), EINVAL);
	assert_fails(rdma_disconnect(n.id), EINVAL);
}

CASE(a_full_backlog_rejects)
{
	struct node l = listener(2, 1), a = asker(1, 2), b = asker(1, 2);

	assert_int_equal(ask(&a, ""), 0);
	assert_int_equal(ask(&b, ""), 0);
	expect_unreachable(&b, SIDR_REJECT);
	node_close(&l); /* with a request that nobody took */
	expect_unreachable(&a, SIDR_REJECT);
	node_close(&a);
	node_close(&b);
}

CASE(a_wildcard_listener_hears_all_hosts_of_its_process)
{
	struct node CLOSED l = node_open(RDMA_PS_UDP);
	union address any = address("0.0.0.0", PORT);

	assert_int_equal(rdma_bind_addr(l.id, &any.sa), 0);
	assert_int_equal(rdma_listen(l.id, 0), 0);
	for (unsigned host = 2; host <= 4; host++) {
		struct node a = asker(1, host);
		struct rdma_cm_id *id;

		assert_int_equal(ask(&a, ""), 0);
		id = wait_request(&l);
		assert_int_equal(ntohl(id->route.addr.src_sin.sin_addr.s_addr), 0x0A000000 | host);
		assert_int_equal(rdma_destroy_id(id), 0);
		expect_unreachable(&a, SIDR_REJECT);
		node_close(&a);
	}
}

CASE(a_dead_listener_rejects)
{
	struct node a = asker(1, 2);
	int pipefd[2], status;
	pid_t child;
	char byte;

	assert_int_equal(pipe(pipefd), 0);
	child = fork();
	if (!child) {
		struct node l = listener(2, 0);

		if (write(pipefd[1], "", 1) != 1)
			_exit(1);
		wait_request(&l);
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(read(pipefd[0], &byte, 1), 1);
	assert_int_equal(ask(&a, ""), 0);
	expect_unreachable(&a, SIDR_REJECT);
	assert_int_equal(waitpid(child, &status, 0), child);
	node_close(&a);
	close(pipefd[0]);
	close(pipefd[1]);
}

/* ---- synchronous identifiers ---- */

static void *ask_in_thread(void *arg)
{
	struct rdma_cm_id *id;
	union address src = host_address(1, 0), dst = host_address(2, PORT);

	(void)arg;
	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_resolve_addr(id, &src.sa, &dst.sa, 1000), 0);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	assert_int_equal(rdma_connect(id, NULL), 0);
	assert_event(id->event, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(id->event->param.ud.qp_num, 77);
	assert_int_equal(rdma_destroy_id(id), 0);
	return NULL;
}

CASE(synchronous_calls_wait_for_their_events)
{
	struct rdma_conn_param param = { .qp_num = 77 };
	union address addr = host_address(2, PORT);
	struct rdma_cm_id *l, *id;
	pthread_t thread;

	assert_int_equal(rdma_create_id(NULL, &l, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_bind_addr(l, &addr.sa), 0);
	assert_int_equal(rdma_listen(l, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, ask_in_thread, NULL), 0);
	assert_int_equal(rdma_get_request(l, &id), 0);
	assert_event(id->event, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_ptr_not_equal(id->channel, l->channel);
	assert_int_equal(rdma_accept(id, &param), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	assert_int_equal(rdma_destroy_id(l), 0);
}

CASE(a_synchronous_call_fails_with_the_event_s_status)
{
	union address dst = address("10.9.9.9", 0);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP), 0);
	assert_fails(rdma_resolve_addr(id, NULL, &dst.sa, 1000), EHOSTUNREACH);
	assert_event(id->event, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
	assert_int_equal(rdma_destroy_id(id), 0);
}

CASE(a_synchronous_identifier_joins_and_leaves)
{
	union address addr = host_address(1, 0), group = address("239.3.3.3", 0);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_bind_addr(id, &addr.sa), 0);
	assert_int_equal(rdma_join_multicast(id, &group.sa, NULL), 0);
	assert_event(id->event, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(rdma_leave_multicast(id, &group.sa), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

CASE(get_request_needs_a_synchronous_listener)
{
	struct node CLOSED l = listener(2, 0);
	struct rdma_cm_id *id;

	assert_fails(rdma_get_request(l.id, &id), EINVAL);
}

/* ---- endpoints ---- */

static struct rdma_addrinfo *look_up(const char *node, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags | RAI_NUMERICHOST,
		                       .ai_port_space = RDMA_PS_UDP,
		                       .ai_qp_type = IBV_QPT_UD };
	struct rdma_addrinfo *res;

	assert_int_equal(rdma_getaddrinfo(node, "7175", &hints, &res), 0);
	return res;
}

static struct ibv_qp_init_attr small_qp(void)
{
	return (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = 2, .max_recv_wr = 3, .max_send_sge = 1, .max_recv_sge = 1 }
	};
}

static void *endpoint_in_thread(void *arg)
{
	struct rdma_addrinfo *res = look_up("10.0.0.2", 0);
	struct ibv_qp_init_attr attr = small_qp();
	struct rdma_cm_id *id;

	(void)arg;
	assert_int_equal(rdma_create_ep(&id, res, NULL, &attr), 0);
	assert_non_null(id->qp);
	assert_non_null(id->send_cq);
	assert_non_null(id->recv_cq_channel);
	assert_int_equal(rdma_connect(id, NULL), 0);
	assert_event(id->event, RDMA_CM_EVENT_ESTABLISHED, 0);
	rdma_destroy_ep(id);
	rdma_freeaddrinfo(res);
	return NULL;
}

CASE(endpoints_meet)
{
	struct rdma_addrinfo *res = look_up("10.0.0.2", RAI_PASSIVE);
	struct ibv_qp_init_attr attr = small_qp();
	struct rdma_cm_id *l, *id;
	pthread_t thread;

	assert_int_equal(rdma_create_ep(&l, res, NULL, &attr), 0);
	assert_null(l->qp);
	assert_int_equal(rdma_listen(l, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, endpoint_in_thread, NULL), 0);
	assert_int_equal(rdma_get_request(l, &id), 0);
	assert_non_null(id->qp);
	assert_int_equal(rdma_accept(id, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	rdma_destroy_ep(id);
	rdma_destroy_ep(l);
	rdma_freeaddrinfo(res);
}

/* ---- QPs ---- */

CASE(a_ud_qp_is_ready_when_it_is_made)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	node_bind(&n, 1, 0);
	node_qp(&n, 0);
	assert_int_equal(ibv_query_qp(n.id->qp, &attr, IBV_QP_STATE | IBV_QP_QKEY, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.qkey, UDP_QKEY);
	assert_fails(rdma_create_qp(n.id, NULL, &init), EINVAL); /* one is enough */
}

CASE(an_ipoib_qp_has_the_broadcast_group_s_qkey)
{
	struct node CLOSED n = node_open(RDMA_PS_IPOIB);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	node_bind(&n, 1, 0);
	node_qp(&n, 0);
	assert_int_equal(ibv_query_qp(n.id->qp, &attr, IBV_QP_QKEY, &init), 0);
	assert_int_equal(attr.qkey, 0x0B1B);
}

CASE(a_qp_brings_queues_and_channels_if_it_has_none)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	struct ibv_qp_init_attr attr = small_qp();

	attr.qp_type = IBV_QPT_UD;
	node_bind(&n, 1, 0);
	assert_int_equal(rdma_create_qp(n.id, NULL, &attr), 0);
	assert_non_null(n.id->send_cq);
	assert_non_null(n.id->recv_cq);
	assert_ptr_equal(n.id->recv_cq->channel, n.id->recv_cq_channel);
	assert_ptr_equal(n.id->qp->recv_cq, n.id->recv_cq);
	rdma_destroy_qp(n.id);
	assert_null(n.id->qp);
	assert_null(n.id->recv_cq);
}

CASE(a_qp_needs_a_device_and_its_pd)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP), other = node_open(RDMA_PS_UDP);
	struct ibv_qp_init_attr attr = small_qp();

	attr.qp_type = IBV_QPT_UD;
	assert_fails(rdma_create_qp(n.id, NULL, &attr), EINVAL);
	node_bind(&n, 1, 0);
	node_bind(&other, 2, 0);
	assert_fails(rdma_create_qp(n.id, other.id->pd, &attr), EINVAL);
}

CASE(qp_attributes_are_told)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	assert_fails(rdma_init_qp_attr(n.id, &attr, &mask), EINVAL);
	node_bind(&n, 1, 0);
	assert_int_equal(rdma_init_qp_attr(n.id, &attr, &mask), 0);
	assert_int_equal(mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(attr.qkey, UDP_QKEY);
	attr.qp_state = IBV_QPS_ERR + 1;
	assert_fails(rdma_init_qp_attr(n.id, &attr, &mask), EINVAL);
}

CASE(what_only_reliable_connections_have_is_refused)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	struct ibv_ece ece = { .vendor_id = 1 };

	node_bind(&n, 1, 0);
	assert_fails(rdma_establish(n.id), EINVAL);
	assert_fails(rdma_notify(n.id, IBV_EVENT_COMM_EST), EINVAL);
	assert_int_equal(rdma_set_local_ece(n.id, &ece), 0);
	assert_int_equal(rdma_get_remote_ece(n.id, &ece), 0);
	assert_int_equal(ece.vendor_id, 0);
	assert_fails(rdma_set_local_ece(n.id, &ece), EINVAL);
	assert_fails(rdma_get_remote_ece(n.id, NULL), EINVAL);
}
