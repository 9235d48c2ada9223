/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdma_cm on Ethernet ports: addresses and GIDs are the same thing, routes say which device, and
 * groups are joined on the network, once however many joins there are.
 */
#include <harness.h>
#include <infiniband/verbs.h>

#include "cm/testing.h"
#include "fabric/plan/ethernet.h"

#define GROUPS 4

/* The host and its network, as the daemon would have them. */
static struct net {
	struct testing *t;
	const char *source; /* the address from which all routes lead; NULL: there are none */
	bool asks_for_any;  /* expected: the route from any address is asked for */
	bool searches;      /* nobody is known */
	struct cm_sought sought;
	unsigned n_searches, n_search_ends;
	int join_fails;
	unsigned n_joins, n_leaves;
	struct ib_gid last;
	struct fabric_port *last_port;
} net;

static int route(void *arg, int host, const union control_cm_addr *dst, union control_cm_addr *src)
{
	bool any = cm_addr_is_zero(src);

	(void)arg;
	(void)host;
	(void)dst;
	if (!net.source)
		return -ENETUNREACH;
	if (any)
		*src = testing_addr(net.source, 0);
	return any == net.asks_for_any ? 0 : -EINVAL;
}

static int search(void *arg, const struct cm_sought *sought, struct cm_search **found)
{
	(void)arg;
	if (!net.searches)
		return 0;
	net.sought = *sought;
	net.n_searches++;
	*found = (struct cm_search *)&net;
	return -EINPROGRESS;
}

static void search_end(struct cm_search *s)
{
	assert_ptr_equal(s, &net);
	net.n_search_ends++;
}

static int join(void *arg, struct fabric_port *port, const struct ib_gid *mgid)
{
	(void)arg;
	net.last = *mgid;
	net.last_port = port;
	if (!net.join_fails)
		net.n_joins++;
	return net.join_fails;
}

static void leave(void *arg, struct fabric_port *port, const struct ib_gid *mgid)
{
	(void)arg;
	net.last = *mgid;
	net.last_port = port;
	net.n_leaves++;
}

static struct ib_gid gid(const char *text)
{
	struct ib_gid g;

	assert_int_equal(inet_pton(AF_INET6, text, g.raw), 1);
	return g;
}

static void device_up(struct testing *t, unsigned port, const char *const address[3])
{
	struct fabric_ethernet e = { .ifindex = 2 + port, .up = true };

	for (unsigned i = 0; i < 3; i++)
		e.gid[i] = gid(address[i]);
	inet_pton(AF_INET, address[1] + strlen("::ffff:"), &e.ipv4);
	memcpy(e.ipv6, e.gid[2].raw, sizeof(e.ipv6));
	fabric_ethernet_set(t->f, t->f->hca_port[port], &e, IBV_MTU_1024);
}

static int setup(void **state)
{
	static const char *const first[3] = { "fe80::1", "::ffff:10.0.0.1", "2001:db8::1" };
	static const char *const second[3] = { "fe80::2", "::ffff:10.0.1.1", "2001:db8:1::1" };
	const struct cm_ops ops = { .route = route,
		                    .search = search,
		                    .search_end = search_end,
		                    .join = join,
		                    .leave = leave };
	struct fabric_plan plan;
	struct testing *t;
	char why[64];
	int node;

	fabric_plan_init(&plan);
	if (fabric_plan_add_host(&plan, NULL) || fabric_plan_add_ethernet(&plan, 0, "eth0") ||
	    fabric_plan_add_ethernet(&plan, 0, "eth1") != 1 ||
	    fabric_plan_finish(&plan, &node, why, sizeof(why)) || testing_begin(state, &plan, ops))
		return -1;
	t = *state;
	net = (struct net){ .t = t, .source = "10.0.1.1", .asks_for_any = true };
	device_up(t, 0, first);
	device_up(t, 1, second);
	return 0;
}

static void assert_gid(const struct ib_gid *g, const char *text)
{
	char got[INET6_ADDRSTRLEN];

	assert_non_null(inet_ntop(AF_INET6, g->raw, got, sizeof(got)));
	assert_string_equal(got, text);
}

static int join_group(struct cm_client *c, uint32_t id, const char *addr, uint32_t flags,
                      uint32_t *handle)
{
	union control_cm_addr a = testing_addr(addr, 0);

	return testing_join_flags(c, id, &a, flags, handle);
}

/* ---- addresses ---- */

CASE_WITH(each_address_of_a_device_can_be_bound_and_is_a_gid, setup, testing_teardown)
{
	static const char *const address[] = { "10.0.0.1", "2001:db8::1", "10.0.1.1" };
	static const char *const as_gid[] = { "::ffff:10.0.0.1", "2001:db8::1", "::ffff:10.0.1.1" };
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);

	for (unsigned i = 0; EACH_ROW(i, address); i++) {
		uint32_t id = testing_id(c, RDMA_PS_UDP, 1);
		struct control_cm_id_reply r;

		assert_int_equal(testing_bind(c, id, address[i], 0), 0);
		r = testing_query(c, id);
		assert_gid(&r.sgid, as_gid[i]);
		assert_string_equal(r.hca, i == 2 ? "umbel_eth1" : "umbel_eth0");
	}
	assert_int_equal(testing_bind(c, testing_id(c, RDMA_PS_UDP, 1), "10.0.0.9", 0),
	                 -EADDRNOTAVAIL);
	cm_client_free(t->cm, c);
}

CASE_WITH(the_hosts_route_says_device_and_source, setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);
	struct control_cm_id_reply r;

	assert_int_equal(testing_resolve(c, id, "192.0.2.7", 5), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	r = testing_query(c, id);
	assert_string_equal(r.hca, "umbel_eth1");
	assert_gid(&r.sgid, "::ffff:10.0.1.1");
	assert_gid(&r.dgid, "::ffff:192.0.2.7");
	assert_int_equal(r.src.in.sin_addr.s_addr, testing_addr("10.0.1.1", 0).in.sin_addr.s_addr);
	assert_int_not_equal(r.src.in.sin_port, 0);
	cm_client_free(t->cm, c);
}

CASE_WITH(by_a_loopback_address_the_gids_are_the_device_s, setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_TCP, 1);
	struct control_cm_id_reply r;

	assert_int_equal(testing_resolve(c, id, "127.0.0.1", 5), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	r = testing_query(c, id);
	assert_int_equal(r.src.in.sin_addr.s_addr, testing_addr("127.0.0.1", 0).in.sin_addr.s_addr);
	assert_int_not_equal(r.src.in.sin_port, 0);
	assert_gid(&r.sgid, "::ffff:10.0.0.1");
	assert_gid(&r.dgid, "::ffff:10.0.0.1");
	cm_client_free(t->cm, c);
}

CASE_WITH(a_bound_identifier_keeps_its_device, setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);
	struct control_cm_id_reply r;

	net.asks_for_any = false;
	assert_int_equal(testing_bind(c, id, "10.0.0.1", 0), 0);
	assert_int_equal(testing_resolve(c, id, "192.0.2.7", 5), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	r = testing_query(c, id);
	assert_string_equal(r.hca, "umbel_eth0");
	assert_gid(&r.sgid, "::ffff:10.0.0.1");
	cm_client_free(t->cm, c);
}

CASE_WITH(without_a_route_the_call_fails_and_may_be_made_again, setup, testing_teardown)
{
	static const char *const dst[] = { "192.0.2.7", "239.1.1.1", "2001:db8:9::7" };
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);

	for (unsigned i = 0; EACH_ROW(i, dst); i++) {
		uint32_t id = testing_id(c, RDMA_PS_UDP, 1);

		net.source = NULL;
		assert_int_equal(testing_resolve(c, id, dst[i], 5), -ENETUNREACH);
		net.source = i == 2 ? "2001:db8:1::1" : "10.0.1.1";
		assert_int_equal(testing_resolve(c, id, dst[i], 5), 0);
		testing_expect(c, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
		assert_string_equal(testing_query(c, id).hca, "umbel_eth1");
	}
	cm_client_free(t->cm, c);
}

CASE_WITH(with_a_source_only_a_host_needs_a_route, setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);

	net.source = NULL;
	assert_int_equal(testing_bind(c, id, "10.0.0.1", 0), 0);
	assert_int_equal(testing_resolve(c, id, "192.0.2.7", 5), -ENETUNREACH);
	assert_int_equal(testing_resolve(c, id, "239.1.1.1", 5), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_string_equal(testing_query(c, id).hca, "umbel_eth0");
	cm_client_free(t->cm, c);
}

CASE_WITH(a_route_by_a_device_without_hca_is_an_error, setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);

	net.source = "198.51.100.1";
	assert_int_equal(testing_resolve(c, id, "192.0.2.7", 5), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
	cm_client_free(t->cm, c);
}

CASE_WITH(whoever_has_the_address_has_to_answer, setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_TCP, 1);
	struct control_cm_event e;

	net.searches = true;
	assert_int_equal(testing_resolve(c, id, "192.0.2.7", 5), 0);
	assert_int_equal(testing_event(c, id, &e), -EAGAIN);
	assert_gid(&net.sought.sgid, "::ffff:10.0.1.1");
	assert_gid(&net.sought.dgid, "::ffff:192.0.2.7");
	assert_int_equal(testing_resolve(c, id, "192.0.2.8", 5), -EINVAL);
	net.sought.done(net.sought.arg, 0);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_string_equal(testing_query(c, id).hca, "umbel_eth1");
	cm_client_free(t->cm, c);
	assert_int_equal(net.n_search_ends, 0);
}

CASE_WITH(if_nobody_answers_another_address_may_be_tried, setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_TCP, 1);

	net.searches = true;
	assert_int_equal(testing_resolve(c, id, "192.0.2.7", 5), 0);
	net.sought.done(net.sought.arg, -ETIMEDOUT);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	assert_string_equal(testing_query(c, id).hca, "");
	net.source = "10.0.0.1";
	assert_int_equal(testing_resolve(c, id, "203.0.113.7", 5), 0);
	net.sought.done(net.sought.arg, 0);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_string_equal(testing_query(c, id).hca, "umbel_eth0");
	cm_client_free(t->cm, c);
}

CASE_WITH(what_needs_nobody_is_not_searched_for, setup, testing_teardown)
{
	static const char *const dst[] = { "239.1.1.1", "127.0.0.1", "ff15::1" };
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);

	net.searches = true;
	for (unsigned i = 0; i < ARRAY_SIZE(dst); i++) {
		uint32_t id = testing_id(c, RDMA_PS_UDP, 1);

		net.source = i == 2 ? "2001:db8:1::1" : "10.0.1.1";
		assert_int_equal(testing_resolve(c, id, dst[i], 5), 0);
		testing_expect(c, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	}
	assert_int_equal(net.n_searches, 0);
	cm_client_free(t->cm, c);
}

CASE_WITH(an_identifier_that_goes_ends_its_search, setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	struct control_cm_read destroy = { .id = testing_id(c, RDMA_PS_TCP, 1) };
	struct control_cm_events_reply reply;

	net.searches = true;
	assert_int_equal(testing_resolve(c, destroy.id, "192.0.2.7", 5), 0);
	assert_int_equal(REQUEST(c, DESTROY_ID, destroy, &reply), 0);
	assert_int_equal(net.n_search_ends, 1);
	assert_int_equal(testing_resolve(c, testing_id(c, RDMA_PS_TCP, 2), "192.0.2.7", 5), 0);
	cm_client_free(t->cm, c);
	assert_int_equal(net.n_search_ends, 2);
}

CASE_WITH(the_ipoib_port_space_is_not_for_ethernet, setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_IPOIB, 1);

	assert_int_equal(testing_bind(c, id, "10.0.0.1", 0), -EINVAL);
	assert_int_equal(testing_resolve(c, id, "192.0.2.7", 5), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_ERROR, -EINVAL);
	cm_client_free(t->cm, c);
}

/* 0, or what rdma_connect() to the address by that type fails with. */
static int connect_to(struct cm_client *c, const char *address, enum ibv_qp_type type)
{
	uint32_t id = testing_id(c, RDMA_PS_TCP, 1);
	struct control_cm_resolve_route route = { .id = id, .timeout_ms = 1000 };
	struct control_cm_connect connect = { .id = id };

	assert_int_equal(testing_resolve(c, id, address, 5), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(REQUEST(c, RESOLVE_ROUTE, route, NULL), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	cm_id_at(c, id)->qp_type = (uint8_t)type;
	return REQUEST(c, CONNECT, connect, NULL);
}

CASE_WITH(connections_leave_the_fabric_but_not_by_xrc, setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);

	assert_int_equal(testing_listen(c, testing_id(c, RDMA_PS_TCP, 1), 0), 0);
	assert_int_equal(connect_to(c, "192.0.2.7", IBV_QPT_RC), 0);
	assert_int_equal(connect_to(c, "192.0.2.7", IBV_QPT_XRC_SEND), -EOPNOTSUPP);
	assert_int_equal(connect_to(c, "10.0.0.1", IBV_QPT_RC), 0);
	assert_int_equal(connect_to(c, "10.0.0.1", IBV_QPT_XRC_SEND), 0);
	cm_client_free(t->cm, c);
}

CASE_WITH(a_path_needs_nobody_to_be_asked, setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);
	struct control_cm_resolve_route request = { .id = id, .timeout_ms = 1 };
	struct control_cm_id_reply r;

	assert_int_equal(testing_resolve(c, id, "192.0.2.7", 5), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(REQUEST(c, RESOLVE_ROUTE, request, NULL), 0);
	testing_expect(c, id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	r = testing_query(c, id);
	assert_int_equal(r.num_paths, 1);
	assert_int_equal(r.path.dlid, 0);
	assert_int_equal(r.path.hop_limit, 64);
	assert_int_equal(r.path.mtu, IBV_MTU_1024);
	assert_gid(&r.path.dgid, "::ffff:192.0.2.7");
	assert_int_equal(t->n_sent, 0);
	cm_client_free(t->cm, c);
}

/* ---- groups ---- */

CASE_WITH(a_join_says_what_a_sender_needs, setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1), handle;
	struct control_cm_event e;

	assert_int_equal(testing_bind(c, id, "10.0.1.1", 0), 0);
	assert_int_equal(join_group(c, id, "239.1.1.1", RDMA_MC_JOIN_FLAG_FULLMEMBER, &handle), 0);
	e = testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_gid(&e.ah.dgid, "::ffff:239.1.1.1");
	assert_int_equal(e.ah.dlid, 0);
	assert_int_equal(e.ah.is_global, 1);
	assert_int_equal(e.ah.hop_limit, 64);
	assert_int_equal(e.ah.sgid_index, 1);
	assert_int_equal(e.qkey, 0x01234567);
	assert_int_equal(e.qp_num, 0xFFFFFF);
	assert_ptr_equal(net.last_port, t->f->hca_port[1]);
	assert_gid(&net.last, "::ffff:239.1.1.1");
	cm_client_free(t->cm, c);
}

CASE_WITH(an_ipv6_group_is_its_own_mgid, setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1), handle;
	struct control_cm_event e;

	assert_int_equal(testing_bind(c, id, "2001:db8::1", 0), 0);
	assert_int_equal(join_group(c, id, "ff15::7", RDMA_MC_JOIN_FLAG_FULLMEMBER, &handle), 0);
	e = testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_gid(&e.ah.dgid, "ff15::7");
	assert_int_equal(e.ah.sgid_index, 2);
	cm_client_free(t->cm, c);
}

CASE_WITH(many_joins_are_one_and_the_last_takes_it_back, setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c[2] = { testing_client(t, 0), testing_client(t, 0) };
	uint32_t handle[GROUPS];

	for (unsigned i = 0; i < GROUPS; i++) {
		uint32_t id = testing_id(c[i % 2], RDMA_PS_UDP, 1);

		assert_int_equal(testing_bind(c[i % 2], id, "10.0.0.1", 0), 0);
		assert_int_equal(join_group(c[i % 2], id, "239.1.1.1", RDMA_MC_JOIN_FLAG_FULLMEMBER,
		                            &handle[i]),
		                 0);
		testing_expect(c[i % 2], id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	}
	assert_int_equal(net.n_joins, 1);
	assert_int_equal(testing_leave(c[0], handle[0]), 0);
	assert_int_equal(testing_leave(c[1], handle[1]), 0);
	assert_int_equal(testing_leave(c[0], handle[2]), 0);
	assert_int_equal(net.n_leaves, 0);
	cm_client_free(t->cm, c[1]); /* it dies */
	assert_int_equal(net.n_leaves, 1);
	cm_client_free(t->cm, c[0]);
	assert_int_equal(net.n_leaves, 1);
}

CASE_WITH(who_only_sends_is_nothing_to_the_network, setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1), handle = 0;

	assert_int_equal(testing_bind(c, id, "10.0.0.1", 0), 0);
	assert_int_equal(
	        join_group(c, id, "239.1.1.1", RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, &handle), 0);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(testing_leave(c, handle), 0);
	assert_int_equal(net.n_joins + net.n_leaves, 0);
	cm_client_free(t->cm, c);
}

CASE_WITH(what_is_no_group_is_refused, setup, testing_teardown)
{
	static const char *const address[] = { "0.0.0.0", "10.0.0.7", "2001:db8::7" };
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1), handle;

	assert_int_equal(testing_bind(c, id, "10.0.0.1", 0), 0);
	for (unsigned i = 0; EACH_ROW(i, address); i++)
		assert_int_equal(
		        join_group(c, id, address[i], RDMA_MC_JOIN_FLAG_FULLMEMBER, &handle),
		        -EINVAL);
	cm_client_free(t->cm, c);
}

CASE_WITH(what_the_kernel_refuses_is_told, setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1), handle;

	net.join_fails = -ENOBUFS;
	assert_int_equal(testing_bind(c, id, "10.0.0.1", 0), 0);
	assert_int_equal(join_group(c, id, "239.1.1.1", RDMA_MC_JOIN_FLAG_FULLMEMBER, &handle), 0);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_ERROR, -ENOBUFS);
	cm_client_free(t->cm, c);
	assert_int_equal(net.n_leaves, 0);
}

CASE_WITH(a_link_that_flaps_takes_nobody_out_of_a_group, setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1), handle;
	struct control_cm_event e;

	assert_int_equal(testing_bind(c, id, "10.0.0.1", 0), 0);
	assert_int_equal(join_group(c, id, "239.1.1.1", RDMA_MC_JOIN_FLAG_FULLMEMBER, &handle), 0);
	testing_expect(c, id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	cm_port_changed(t->cm, t->f->hca_port[0]);
	assert_int_equal(testing_event(c, id, &e), -EAGAIN);
	assert_int_equal(net.n_leaves, 0);
	cm_client_free(t->cm, c);
	assert_int_equal(net.n_leaves, 1);
}

/* As in Linux: a GID as an address (AF_IB) is found on InfiniBand only. */
CASE_WITH(af_ib_leads_nowhere, setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	struct control_cm_bind_addr bind = { .id = testing_id(c, RDMA_PS_UDP, 1) };
	struct control_cm_resolve_addr to = { .id = testing_id(c, RDMA_PS_UDP, 2) };
	struct control_cm_resolve_route route = { .id = to.id, .timeout_ms = 1000 };
	struct ib_gid own = gid("::ffff:10.0.0.1");
	struct control_cm_id_reply reply;

	bind.addr.ib.sib_family = to.dst.ib.sib_family = AF_IB;
	memcpy(bind.addr.ib.sib_addr.sib_raw, own.raw, 16);
	memcpy(to.dst.ib.sib_addr.sib_raw, own.raw, 16);
	assert_int_equal(REQUEST(c, BIND_ADDR, bind, &reply), -ENODEV);
	assert_int_equal(REQUEST(c, RESOLVE_ADDR, to, NULL), 0);
	testing_expect(c, to.id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(REQUEST(c, RESOLVE_ROUTE, route, NULL), -ENODEV);
	cm_client_free(t->cm, c);
}
