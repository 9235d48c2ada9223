/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Addresses: binding to them, resolving them, routes, port numbers, options, what
 * rdma_getaddrinfo() makes of names, devices.
 * Nothing leaks.
 */
#include "common.h"

CASE(binding_gives_device_port_and_gid)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	union ibv_gid gid;

	node_bind(&n, 3, 7174);
	assert_non_null(n.id->verbs);
	assert_non_null(n.id->pd);
	assert_int_equal(n.id->port_num, 1);
	assert_int_equal(ibv_query_gid(n.id->verbs, 1, 0, &gid), 0);
	assert_memory_equal(&n.id->route.addr.addr.ibaddr.sgid, &gid, sizeof(gid));
	assert_int_equal(n.id->route.addr.addr.ibaddr.pkey, htobe16(0xFFFF));
	assert_int_equal(n.id->route.addr.src_sin.sin_addr.s_addr, inet_addr("10.0.0.3"));
	assert_int_equal(ntohs(rdma_get_src_port(n.id)), 7174);
}

CASE(identifiers_of_a_device_share_context_and_pd)
{
	struct node CLOSED a = node_open(RDMA_PS_UDP), b = node_open(RDMA_PS_UDP);

	node_bind(&a, 1, 0);
	node_bind(&b, 1, 0);
	assert_ptr_equal(a.id->verbs, b.id->verbs);
	assert_ptr_equal(a.id->pd, b.id->pd);
}

CASE(a_foreign_address_is_not_available)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	union address a = address("192.0.2.1", 0);

	assert_fails(rdma_bind_addr(n.id, &a.sa), EADDRNOTAVAIL);
	assert_null(n.id->verbs);
	node_bind(&n, 1, 0); /* and it may be tried again */
}

CASE(a_wildcard_binds_to_no_device)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	union address a = address("::", 0);

	assert_int_equal(rdma_bind_addr(n.id, &a.sa), 0);
	assert_null(n.id->verbs);
	assert_true(ntohs(rdma_get_src_port(n.id)) >= 32768);
}

CASE(a_port_in_use_is_refused_unless_it_is_shared)
{
	struct node CLOSED a = node_open(RDMA_PS_UDP), b = node_open(RDMA_PS_UDP);
	struct node CLOSED c = node_open(RDMA_PS_UDP), d = node_open(RDMA_PS_UDP);
	union address addr = host_address(1, 5000);
	int on = 1;

	assert_int_equal(rdma_bind_addr(a.id, &addr.sa), 0);
	assert_fails(rdma_bind_addr(b.id, &addr.sa), EADDRINUSE);
	addr = host_address(1, 5001);
	assert_int_equal(
	        rdma_set_option(c.id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)),
	        0);
	assert_int_equal(
	        rdma_set_option(d.id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)),
	        0);
	assert_int_equal(rdma_bind_addr(c.id, &addr.sa), 0);
	assert_int_equal(rdma_bind_addr(d.id, &addr.sa), 0);
}

CASE(bad_addresses_are_refused)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	union address a = { .sa = { .sa_family = AF_UNIX } }, host = host_address(2, 0);

	assert_fails(rdma_bind_addr(n.id, NULL), EINVAL);
	assert_fails(rdma_bind_addr(n.id, &a.sa), EINVAL);
	assert_fails(rdma_bind_addr(NULL, &a.sa), EINVAL);
	assert_fails(rdma_resolve_addr(n.id, NULL, NULL, 1000), EINVAL);
	assert_fails(rdma_resolve_addr(n.id, NULL, &a.sa, 1000), EINVAL);
	assert_fails(rdma_resolve_addr(n.id, &a.sa, &host.sa, 1000), EINVAL);
	assert_fails(rdma_resolve_route(n.id, 1000), EINVAL);
}

/* ---- resolving ---- */

CASE(resolving_binds_too)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	union address src = host_address(2, 0), dst = host_address(4, 77);

	assert_int_equal(rdma_resolve_addr(n.id, &src.sa, &dst.sa, 1000), 0);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_non_null(n.id->verbs);
	assert_int_equal(n.id->route.addr.src_sin.sin_addr.s_addr, inet_addr("10.0.0.2"));
	assert_int_equal(n.id->route.addr.dst_sin.sin_addr.s_addr, inet_addr("10.0.0.4"));
	assert_int_equal(ntohs(rdma_get_dst_port(n.id)), 77);
	assert_true(ntohs(rdma_get_src_port(n.id)) >= 32768);
}

CASE(a_multicast_address_needs_no_host)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	union address dst = address("239.1.1.1", 0);

	assert_int_equal(rdma_resolve_addr(n.id, NULL, &dst.sa, 1000), 0);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_non_null(n.id->verbs);
}

CASE(an_address_of_no_host_is_an_error_event)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	union address dst = address("10.9.9.9", 0);
	struct rdma_cm_event *e;

	assert_int_equal(rdma_resolve_addr(n.id, NULL, &dst.sa, 1000), 0);
	e = next_event(&n);
	assert_event(e, RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH);
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

CASE(a_route_has_a_path_record)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	struct ibv_port_attr port;
	const struct ibv_sa_path_rec *path;

	node_bind(&n, 1, 0);
	node_resolve(&n, 2, 77);
	assert_int_equal(n.id->route.num_paths, 1);
	path = n.id->route.path_rec;
	assert_int_equal(ibv_query_port(n.id->verbs, 1, &port), 0);
	assert_int_equal(path->slid, htobe16(port.lid));
	assert_int_not_equal(path->dlid, 0);
	assert_int_equal(path->pkey, htobe16(0xFFFF));
	assert_int_equal(path->mtu, port.active_mtu);
	assert_int_equal(path->reversible, 1);
	assert_memory_equal(&path->dgid, &n.id->route.addr.addr.ibaddr.dgid, 16);
}

/* ---- options ---- */

CASE(options_are_checked)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	uint8_t tos = 4;
	int on = 1;

	assert_int_equal(rdma_set_option(n.id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1), 0);
	assert_int_equal(rdma_set_option(n.id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, 4), 0);
	/* which UD has not */
	assert_fails(rdma_set_option(n.id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &tos, 1),
	             EINVAL);
	assert_fails(rdma_set_option(n.id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &on, 4), EINVAL);
	assert_fails(rdma_set_option(n.id, RDMA_OPTION_ID, 99, &on, 4), ENOSYS);
	assert_fails(rdma_set_option(n.id, 99, RDMA_OPTION_ID_TOS, &tos, 1), ENOSYS);
	assert_fails(rdma_set_option(n.id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 1), EINVAL);
	assert_fails(rdma_set_option(n.id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1 << 20),
	             EINVAL);
}

/* Of those of XRC, whose two ends have types of their own. */
CASE(who_asks_by_xrc_may_say_how_long_it_waits)
{
	static const struct {
		enum ibv_qp_type type;
		int flags, error;
	} row[] = { { IBV_QPT_XRC_SEND, RAI_NUMERICHOST, 0 },
		    { IBV_QPT_XRC_RECV, RAI_NUMERICHOST | RAI_PASSIVE, EINVAL } };
	uint8_t timeout = 14;

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct rdma_addrinfo *res, hints = { .ai_flags = row[i].flags,
			                             .ai_port_space = RDMA_PS_IB,
			                             .ai_qp_type = (int)row[i].type };
		struct rdma_cm_id *id;
		int ret;

		assert_int_equal(rdma_getaddrinfo("10.0.0.1", "7500", &hints, &res), 0);
		assert_int_equal(rdma_create_ep(&id, res, NULL, NULL), 0);
		ret = rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1);
		assert_int_equal(ret ? errno : 0, row[i].error);
		rdma_destroy_ep(id);
		rdma_freeaddrinfo(res);
	}
}

/* ---- names ---- */

CASE(numeric_addresses_become_destinations)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST, .ai_port_space = RDMA_PS_UDP };
	struct rdma_addrinfo *res;
	const struct sockaddr_in *in;

	assert_int_equal(rdma_getaddrinfo("10.0.0.2", "7174", &hints, &res), 0);
	in = (const struct sockaddr_in *)res->ai_dst_addr;
	assert_int_equal(res->ai_family, AF_INET);
	assert_int_equal(res->ai_dst_len, sizeof(*in));
	assert_int_equal(in->sin_addr.s_addr, inet_addr("10.0.0.2"));
	assert_int_equal(ntohs(in->sin_port), 7174);
	assert_int_equal(res->ai_port_space, RDMA_PS_UDP);
	assert_int_equal(res->ai_qp_type, IBV_QPT_UD);
	assert_null(res->ai_src_addr);
	rdma_freeaddrinfo(res);
}

CASE(passive_addresses_become_sources)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *res;

	assert_int_equal(rdma_getaddrinfo(NULL, "7174", &hints, &res), 0);
	assert_non_null(res->ai_src_addr);
	assert_null(res->ai_dst_addr);
	assert_true(res->ai_flags & RAI_PASSIVE);
	assert_int_equal(res->ai_qp_type, IBV_QPT_RC);
	rdma_freeaddrinfo(res);
}

CASE(gids_become_af_ib_addresses)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST | RAI_FAMILY,
		                       .ai_family = AF_IB,
		                       .ai_port_space = RDMA_PS_UDP };
	struct rdma_addrinfo *res;
	const struct sockaddr_ib *ib;

	assert_int_equal(rdma_getaddrinfo("fe80::2", "7174", &hints, &res), 0);
	ib = (const struct sockaddr_ib *)res->ai_dst_addr;
	assert_int_equal(res->ai_family, AF_IB);
	assert_int_equal(ib->sib_family, AF_IB);
	assert_int_equal(be64toh(ib->sib_sid), (uint64_t)RDMA_PS_UDP << 16 | 7174);
	assert_int_equal(be64toh(ib->sib_sid_mask), UINT64_MAX);
	rdma_freeaddrinfo(res);
}

CASE(without_a_name_it_is_any_gid)
{
	static const uint8_t none[16];
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE | RAI_NUMERICHOST | RAI_FAMILY,
		                       .ai_family = AF_IB,
		                       .ai_port_space = RDMA_PS_TCP };
	const struct sockaddr_ib *ib;
	struct rdma_addrinfo *res;

	assert_int_equal(rdma_getaddrinfo(NULL, "7471", &hints, &res), 0);
	ib = (const struct sockaddr_ib *)res->ai_src_addr;
	assert_int_equal(res->ai_family, AF_IB);
	assert_int_equal(res->ai_src_len, sizeof(*ib));
	assert_int_equal(ib->sib_family, AF_IB);
	assert_memory_equal(&ib->sib_addr, none, sizeof(none));
	assert_int_equal(be64toh(ib->sib_sid), (uint64_t)RDMA_PS_TCP << 16 | 7471);
	assert_int_equal(be64toh(ib->sib_sid_mask), UINT64_MAX);
	rdma_freeaddrinfo(res);
}

CASE(what_is_no_gid_is_refused)
{
	static const char *const name[] = { "10.0.0.1", "h1", "fe80::1::2", "", "fe80:" };
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST | RAI_FAMILY,
		                       .ai_family = AF_IB,
		                       .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *res;

	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++)
		assert_int_not_equal(rdma_getaddrinfo(name[i], "1", &hints, &res), 0);
	hints.ai_family = 12345;
	assert_int_not_equal(rdma_getaddrinfo("fe80::1", "1", &hints, &res), 0);
}

CASE(addresses_in_hints_are_copied)
{
	union address src = host_address(1, 1), dst = host_address(2, 2);
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_UDP,
		                       .ai_src_addr = &src.sa,
		                       .ai_src_len = sizeof(src.in),
		                       .ai_dst_addr = &dst.sa,
		                       .ai_dst_len = sizeof(dst.in) };
	struct rdma_addrinfo *res;

	assert_int_equal(rdma_getaddrinfo(NULL, NULL, &hints, &res), 0);
	assert_memory_equal(res->ai_src_addr, &src, sizeof(src.in));
	assert_memory_equal(res->ai_dst_addr, &dst, sizeof(dst.in));
	rdma_freeaddrinfo(res);
}

CASE(bad_names_are_refused)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST }, *res;

	assert_int_not_equal(rdma_getaddrinfo("no.such.number", NULL, &hints, &res), 0);
	assert_fails(rdma_getaddrinfo(NULL, NULL, NULL, &res), EINVAL);
	rdma_freeaddrinfo(NULL);
}

/* ---- devices ---- */

CASE(all_devices_are_listed_and_open)
{
	struct ibv_context **list;
	struct ibv_device_attr attr;
	int n;

	assert_non_null(list = rdma_get_devices(&n));
	assert_int_equal(n, 4);
	for (int i = 0; i < n; i++)
		assert_int_equal(ibv_query_device(list[i], &attr), 0);
	assert_null(list[n]);
	rdma_free_devices(list);
}

CASE(a_process_of_a_host_sees_its_device_alone)
{
	pid_t child = fork();
	int status, n;

	if (!child) {
		char *self = realpath("/proc/self/exe", NULL);

		setenv("ONE_DEVICE", "1", 1);
		execlp("umbel", "umbel", "exec", "h2", "--", self, NULL);
		_exit(99);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	n = WEXITSTATUS(status);
	assert_int_equal(n, 0);
}

/* Runs on h2. The number of the check that failed. */
static int check_one_device(void)
{
	struct node n = node_open(RDMA_PS_UDP);
	union address other = host_address(1, 0), group = address("239.1.1.1", 0);
	int devices;
	struct ibv_context **list = rdma_get_devices(&devices);

	if (!list || devices != 1)
		return 1;
	rdma_free_devices(list);
	if (rdma_bind_addr(n.id, &other.sa) != -1 || errno != EADDRNOTAVAIL)
		return 2;
	if (rdma_resolve_addr(n.id, NULL, &group.sa, 1000))
		return 3;
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (n.id->route.addr.src_sin.sin_addr.s_addr != inet_addr("10.0.0.2"))
		return 4;
	return 0;
}

int main(void)
{
	if (getenv("ONE_DEVICE"))
		return check_one_device();
	return harness_run(NULL, NULL);
}
