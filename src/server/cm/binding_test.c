/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Binding: addresses of hosts, and port numbers of port spaces.
 */
#include <harness.h>

#include "cm/testing.h"

static uint16_t port_of(struct cm_client *c, uint32_t id)
{
	struct control_cm_id_reply info = testing_query(c, id);

	return cm_addr_port(&info.src);
}

CASE_WITH(binding_to_a_host_s_address_names_its_device, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 1);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);
	struct control_cm_id_reply info;

	assert_int_equal(testing_bind(c, id, "10.0.0.2", 7174), 0);
	info = testing_query(c, id);
	assert_string_equal(info.hca, t->f->hca_port[1]->node->name);
	assert_int_equal(info.port_num, 1);
	assert_int_equal(info.pkey, 0xFFFF);
	assert_int_equal(port_of(c, id), 7174);
	cm_client_free(t->cm, c);
}

CASE_WITH(an_address_of_another_host_is_not_available, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 1);

	assert_int_equal(testing_bind(c, testing_id(c, RDMA_PS_UDP, 1), "10.0.0.1", 0),
	                 -EADDRNOTAVAIL);
	assert_int_equal(testing_bind(c, testing_id(c, RDMA_PS_UDP, 1), "192.0.2.1", 0),
	                 -EADDRNOTAVAIL);
	cm_client_free(t->cm, c);
}

CASE_WITH(a_process_of_all_hosts_binds_to_any, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, CM_ALL_HOSTS);
	char addr[] = "10.0.0.x";

	for (int i = 0; i < 4; i++) {
		uint32_t id = testing_id(c, RDMA_PS_UDP, 1);

		addr[7] = (char)('1' + i);
		assert_int_equal(testing_bind(c, id, addr, 0), 0);
		assert_string_equal(testing_query(c, id).hca, t->f->hca_port[i]->node->name);
	}
	cm_client_free(t->cm, c);
}

CASE_WITH(a_wildcard_has_no_device, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);

	assert_int_equal(testing_bind(c, id, "0.0.0.0", 0), 0);
	assert_string_equal(testing_query(c, id).hca, "");
	cm_client_free(t->cm, c);
}

CASE_WITH(a_second_bind_is_refused, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);

	assert_int_equal(testing_bind(c, id, "10.0.0.1", 0), 0);
	assert_int_equal(testing_bind(c, id, "10.0.0.1", 0), -EINVAL);
	cm_client_free(t->cm, c);
}

CASE_WITH(link_local_and_global_ipv6_addresses_bind, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	char text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, shm_port_at(t->f->region, 0)->ipv6, text, sizeof(text));
	assert_int_equal(testing_bind(c, testing_id(c, RDMA_PS_UDP, 1), text, 0), 0);
	inet_ntop(AF_INET6, shm_port_at(t->f->region, 0)->gid[0].raw, text, sizeof(text));
	assert_int_equal(testing_bind(c, testing_id(c, RDMA_PS_UDP, 1), text, 0), 0);
	cm_client_free(t->cm, c);
}

CASE_WITH(a_gid_binds_as_af_ib, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);
	struct control_cm_bind_addr request = { .id = id };
	struct control_cm_id_reply reply;

	request.addr.ib.sib_family = AF_IB;
	memcpy(&request.addr.ib.sib_addr, &shm_port_at(t->f->region, 0)->gid[0], 16);
	assert_int_equal(REQUEST(c, BIND_ADDR, request, &reply), 0);
	assert_string_equal(reply.hca,
	                    shm_hca_at(t->f->region, t->f->hca_port[0]->node->hca)->device);
	assert_int_equal(be64toh(reply.src.ib.sib_sid) >> 16, RDMA_PS_UDP);
	assert_true(cm_addr_port(&reply.src) >= 32768);
	cm_client_free(t->cm, c);
}

/* Binds @id by the GID of the client's port to a service. */
static int bind_service(struct testing *t, struct cm_client *c, uint32_t id, uint64_t service)
{
	struct control_cm_bind_addr request = { .id = id };
	struct control_cm_id_reply reply;

	request.addr.ib.sib_family = AF_IB;
	request.addr.ib.sib_sid = htobe64(service);
	request.addr.ib.sib_sid_mask = UINT64_MAX;
	memcpy(&request.addr.ib.sib_addr, &shm_port_at(t->f->region, 0)->gid[0], 16);
	return REQUEST(c, BIND_ADDR, request, &reply);
}

static uint32_t rc_id(struct cm_client *c)
{
	struct control_cm_create_id request = {
		.uid = 1, .channel = testing_channel(c), .ps = RDMA_PS_IB, .qp_type = IBV_QPT_RC
	};

	return testing_new_id(c, &request);
}

CASE_WITH(a_service_outside_of_the_port_spaces_is_for_ps_ib, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	const uint64_t service = 0x1000000000000041;
	uint32_t id = rc_id(c);
	struct control_cm_id_reply info;
	union control_cm_addr none = { .ib.sib_family = AF_IB };

	assert_int_equal(bind_service(t, c, testing_id(c, RDMA_PS_TCP, 1), service),
	                 -EPROTONOSUPPORT);
	assert_int_equal(bind_service(t, c, id, service), 0);
	info = testing_query(c, id);
	assert_true(be64toh(info.src.ib.sib_sid) == service);
	assert_int_equal(bind_service(t, c, rc_id(c), service), -EADDRINUSE);
	assert_int_equal(bind_service(t, c, rc_id(c), service + 1), 0);
	/* it is the whole ID that counts */
	assert_null(cm_binding_listener(t->cm, t->f->hca_port[0], service, &none));
	assert_int_equal(testing_listen(c, id, 0), 0);
	assert_non_null(cm_binding_listener(t->cm, t->f->hca_port[0], service, &none));
	assert_null(cm_binding_listener(t->cm, t->f->hca_port[1], service, &none));
	assert_null(cm_binding_listener(t->cm, t->f->hca_port[0], service & UINT32_MAX, &none));
	cm_client_free(t->cm, c);
}

CASE_WITH(an_unknown_family_is_refused, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	struct control_cm_bind_addr request = { .id = testing_id(c, RDMA_PS_UDP, 1) };

	request.addr.sa.sa_family = AF_UNIX;
	assert_int_equal(REQUEST(c, BIND_ADDR, request, NULL), -EAFNOSUPPORT);
	cm_client_free(t->cm, c);
}

/* ---- port numbers ---- */

CASE_WITH(a_port_in_use_is_refused, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *a = testing_client(t, 0), *b = testing_client(t, 0);

	assert_int_equal(testing_bind(a, testing_id(a, RDMA_PS_UDP, 1), "10.0.0.1", 100), 0);
	assert_int_equal(testing_bind(b, testing_id(b, RDMA_PS_UDP, 1), "10.0.0.1", 100),
	                 -EADDRINUSE);
	/* the kernel's word for a wildcard in the way */
	assert_int_equal(testing_bind(b, testing_id(b, RDMA_PS_UDP, 1), "0.0.0.0", 100),
	                 -EADDRNOTAVAIL);
	cm_client_free(t->cm, a);
	assert_int_equal(testing_bind(b, testing_id(b, RDMA_PS_UDP, 1), "10.0.0.1", 100), 0);
	cm_client_free(t->cm, b);
}

CASE_WITH(hosts_have_port_numbers_of_their_own, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *a = testing_client(t, 0), *b = testing_client(t, 1);

	assert_int_equal(testing_bind(a, testing_id(a, RDMA_PS_UDP, 1), "0.0.0.0", 100), 0);
	assert_int_equal(testing_bind(b, testing_id(b, RDMA_PS_UDP, 1), "0.0.0.0", 100), 0);
	cm_client_free(t->cm, a);
	cm_client_free(t->cm, b);
}

CASE_WITH(a_wildcard_on_all_hosts_is_in_every_host_s_way, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *a = testing_client(t, CM_ALL_HOSTS), *b = testing_client(t, 1);

	assert_int_equal(testing_bind(a, testing_id(a, RDMA_PS_UDP, 1), "0.0.0.0", 100), 0);
	assert_int_equal(testing_bind(b, testing_id(b, RDMA_PS_UDP, 1), "10.0.0.2", 100),
	                 -EADDRNOTAVAIL);
	cm_client_free(t->cm, a);
	cm_client_free(t->cm, b);
}

CASE_WITH(port_spaces_have_port_numbers_of_their_own, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);

	assert_int_equal(testing_bind(c, testing_id(c, RDMA_PS_UDP, 1), "10.0.0.1", 100), 0);
	assert_int_equal(testing_bind(c, testing_id(c, RDMA_PS_IPOIB, 1), "10.0.0.1", 100), 0);
	assert_int_equal(testing_bind(c, testing_id(c, RDMA_PS_TCP, 1), "10.0.0.1", 100), 0);
	cm_client_free(t->cm, c);
}

CASE_WITH(a_port_is_shared_if_all_allow_it, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t a = testing_id(c, RDMA_PS_UDP, 1), b = testing_id(c, RDMA_PS_UDP, 1);

	assert_int_equal(testing_set_int(c, a, RDMA_OPTION_ID_REUSEADDR, 1), 0);
	assert_int_equal(testing_bind(c, a, "10.0.0.1", 100), 0);
	assert_int_equal(testing_bind(c, b, "10.0.0.1", 100), -EADDRINUSE);
	assert_int_equal(testing_set_int(c, b, RDMA_OPTION_ID_REUSEADDR, 1), 0);
	assert_int_equal(testing_bind(c, b, "10.0.0.1", 100), 0);
	/* but nobody listens at a port that is shared */
	assert_int_equal(testing_listen(c, b, 0), -EADDRINUSE);
	cm_client_free(t->cm, c);
}

/* Whether the listener has allowed it before or not, and later it cannot allow it, as by Linux. */
CASE_WITH(a_port_with_a_listener_is_not_shared, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);

	for (int allows = 0; allows < 2; allows++) {
		uint32_t l = testing_id(c, RDMA_PS_TCP, 1), b = testing_id(c, RDMA_PS_TCP, 1);
		const uint16_t port = (uint16_t)(100 + allows);

		if (allows)
			assert_int_equal(testing_set_int(c, l, RDMA_OPTION_ID_REUSEADDR, 1), 0);
		assert_int_equal(testing_bind(c, l, "10.0.0.1", port), 0);
		assert_int_equal(testing_listen(c, l, 0), 0);
		assert_int_equal(testing_set_int(c, l, RDMA_OPTION_ID_REUSEADDR, 1), -EINVAL);
		assert_int_equal(testing_set_int(c, l, RDMA_OPTION_ID_REUSEADDR, 0), -EINVAL);
		assert_int_equal(testing_bind(c, b, "10.0.0.1", port), -EADDRINUSE);
		assert_int_equal(testing_bind(c, b, "0.0.0.0", port), -EADDRNOTAVAIL);
		assert_int_equal(testing_set_int(c, b, RDMA_OPTION_ID_REUSEADDR, 1), 0);
		assert_int_equal(testing_bind(c, b, "10.0.0.1", port), -EADDRINUSE);
		assert_int_equal(testing_bind(c, b, "0.0.0.0", port), -EADDRNOTAVAIL);
	}
	cm_client_free(t->cm, c);
}

/* As one that is killed, waited for, and started again at once: the daemon has not seen its end. */
CASE_WITH(who_has_ended_holds_no_port, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *old = testing_client(t, 0), *new = testing_client(t, 0);
	uint32_t bound = testing_id(old, RDMA_PS_UDP, 1),
	         listening = testing_id(old, RDMA_PS_TCP, 1);
	uint32_t again = testing_id(new, RDMA_PS_UDP, 1),
	         wildcard = testing_id(new, RDMA_PS_TCP, 1);

	assert_int_equal(testing_bind(old, bound, "10.0.0.1", 100), 0);
	assert_int_equal(testing_bind(old, listening, "10.0.0.1", 100), 0);
	assert_int_equal(testing_listen(old, listening, 0), 0);
	assert_int_equal(testing_bind(new, again, "10.0.0.1", 100), -EADDRINUSE);
	cm_id_at(old, bound)->channel->box->closed = true;
	cm_id_at(old, listening)->channel->box->closed = true;
	assert_int_equal(testing_bind(new, again, "10.0.0.1", 100), 0);
	assert_int_equal(testing_bind(new, wildcard, "0.0.0.0", 100), 0);
	assert_int_equal(testing_listen(new, wildcard, 0), 0);
	cm_client_free(t->cm, old);
	cm_client_free(t->cm, new);
}

CASE_WITH(port_zero_gets_free_ephemeral_ports, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint16_t last = 0;

	for (int i = 0; i < 100; i++) {
		uint32_t id = testing_id(c, RDMA_PS_UDP, 1);

		assert_int_equal(testing_bind(c, id, "10.0.0.1", 0), 0);
		assert_in_range(port_of(c, id), 32768, 60999);
		assert_int_not_equal(port_of(c, id), last);
		last = port_of(c, id);
	}
	assert_int_equal(t->cm->bindings.n, 100);
	cm_client_free(t->cm, c);
}

CASE_WITH(an_ipv6_wildcard_shares_with_ipv4_only_if_it_is_told_to, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t both = testing_id(c, RDMA_PS_UDP, 1), six = testing_id(c, RDMA_PS_UDP, 1);

	assert_int_equal(testing_bind(c, testing_id(c, RDMA_PS_UDP, 1), "0.0.0.0", 100), 0);
	assert_int_equal(testing_bind(c, both, "::", 100), -EADDRNOTAVAIL);
	assert_int_equal(testing_set_int(c, six, RDMA_OPTION_ID_AFONLY, 1), 0);
	assert_int_equal(testing_bind(c, six, "::", 100), 0);
	cm_client_free(t->cm, c);
}

/* ---- options ---- */

CASE_WITH(options_are_checked, testing_setup, testing_teardown)
{
	struct testing *t = *state;
	struct cm_client *c = testing_client(t, 0);
	uint32_t id = testing_id(c, RDMA_PS_UDP, 1);
	struct control_cm_set_option o = { .id = id, .name = RDMA_OPTION_ID_TOS, .bytes = 1 };

	assert_int_equal(REQUEST(c, SET_OPTION, o, NULL), 0);
	o.bytes = 2;
	assert_int_equal(REQUEST(c, SET_OPTION, o, NULL), -EINVAL);
	o.bytes = UINT32_MAX;
	assert_int_equal(REQUEST(c, SET_OPTION, o, NULL), -EINVAL);
	o.bytes = 4;
	o.name = 99;
	assert_int_equal(REQUEST(c, SET_OPTION, o, NULL), -ENOSYS);
	o.level = 9;
	assert_int_equal(REQUEST(c, SET_OPTION, o, NULL), -ENOSYS);
	assert_int_equal(testing_bind(c, id, "10.0.0.1", 0), 0);
	assert_int_equal(testing_set_int(c, id, RDMA_OPTION_ID_REUSEADDR, 0), -EINVAL);
	cm_client_free(t->cm, c);
}
