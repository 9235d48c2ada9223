/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Multicast by rdma_cm: joining, what the event says, which members receive, leaving.
 */
#include "common.h"

#define GROUP "239.1.1.1"

static struct node member(unsigned host)
{
	struct node n = node_open(RDMA_PS_UDP);

	node_bind(&n, host, 0);
	return n;
}

static struct node member_with_qp(unsigned host)
{
	struct node n = member(host);

	node_qp(&n, 0);
	return n;
}

/* ---- arguments ---- */

CASE(join_refuses_an_unknown_mask_bit)
{
	struct node CLOSED n = member(1);
	union address a = address(GROUP, 0);
	struct rdma_cm_join_mc_attr_ex attr = { .comp_mask = 7, .addr = &a.sa };

	assert_fails(rdma_join_multicast_ex(n.id, &attr, NULL), ENOTSUP);
}

CASE(join_refuses_a_missing_address_or_flags)
{
	struct node CLOSED n = member(1);
	union address a = address(GROUP, 0);
	struct rdma_cm_join_mc_attr_ex attr = { .comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS,
		                                .addr = &a.sa };

	assert_fails(rdma_join_multicast_ex(n.id, &attr, NULL), EINVAL);
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	assert_fails(rdma_join_multicast_ex(n.id, &attr, NULL), EINVAL);
	attr.comp_mask |= RDMA_CM_JOIN_MC_ATTR_ADDRESS;
	attr.addr = NULL;
	assert_fails(rdma_join_multicast_ex(n.id, &attr, NULL), EINVAL);
	assert_fails(rdma_join_multicast(n.id, NULL, NULL), EINVAL);
	assert_fails(rdma_join_multicast_ex(n.id, NULL, NULL), EINVAL);
}

CASE(join_refuses_an_unknown_flag)
{
	struct node CLOSED n = member(1);

	assert_fails(join_with(&n, GROUP, RDMA_MC_JOIN_FLAG_RESERVED, NULL), EINVAL);
}

CASE(join_refuses_an_unknown_family)
{
	struct node CLOSED n = member(1);
	union address a = { .sa = { .sa_family = AF_UNIX } };

	assert_fails(rdma_join_multicast(n.id, &a.sa, NULL), EINVAL);
	assert_fails(rdma_leave_multicast(n.id, &a.sa), EINVAL);
}

CASE(join_needs_an_identifier_that_is_bound_or_resolved)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);
	union address any = address("0.0.0.0", 0), group = address(GROUP, 0);

	assert_fails(rdma_join_multicast(n.id, &group.sa, NULL), EINVAL);
	assert_int_equal(rdma_bind_addr(n.id, &any.sa), 0);
	assert_fails(rdma_join_multicast(n.id, &group.sa, NULL), EINVAL);
	assert_int_equal(rdma_resolve_addr(n.id, NULL, &group.sa, 1000), 0);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	join(&n, GROUP);
}

/* ---- the event ---- */

CASE(the_join_event_has_what_a_sender_needs)
{
	struct node CLOSED n = member(2);
	struct rdma_cm_event *e;
	struct ibv_ah *ah;
	int context;

	assert_int_equal(join_with(&n, GROUP, RDMA_MC_JOIN_FLAG_FULLMEMBER, &context), 0);
	e = next_event(&n);
	assert_event(e, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_ptr_equal(e->id, n.id);
	assert_null(e->listen_id);
	assert_ptr_equal(e->param.ud.private_data, &context);
	assert_int_equal(e->param.ud.qp_num, 0xFFFFFF);
	assert_int_equal(e->param.ud.qkey, UDP_QKEY);
	assert_int_equal(e->param.ud.ah_attr.is_global, 1);
	assert_in_range(e->param.ud.ah_attr.dlid, 0xC000, 0xFFFE);
	assert_int_equal(e->param.ud.ah_attr.port_num, n.id->port_num);
	assert_int_equal(e->param.ud.ah_attr.grh.sgid_index, 0);
	assert_non_null(ah = ibv_create_ah(n.id->pd, &e->param.ud.ah_attr));
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

static void mgid_of(enum rdma_port_space ps, const char *group, const char *mgid)
{
	struct node CLOSED n = node_open(ps);
	struct rdma_ud_param ud;

	node_bind(&n, 1, 0);
	ud = join(&n, group);
	assert_gid(&ud.ah_attr.grh.dgid, mgid);
}

CASE(ipv4_groups_map_to_signature_4001_and_401b)
{
	mgid_of(RDMA_PS_UDP, "239.129.2.3", "ff12:4001:ffff::f81:203");
	mgid_of(RDMA_PS_IPOIB, "239.129.2.3", "ff12:401b:ffff::f81:203");
}

CASE(ipv6_groups_map_to_signature_6001_and_601b)
{
	mgid_of(RDMA_PS_UDP, "ff1e::1:2", "ff12:6001:ffff::1:2");
	mgid_of(RDMA_PS_IPOIB, "ff1e::1:2", "ff12:601b:ffff::1:2");
}

CASE(an_address_that_is_such_an_mgid_is_taken_verbatim)
{
	mgid_of(RDMA_PS_UDP, "ff15:a01b::77", "ff15:a01b::77");
}

CASE(af_ib_addresses_are_taken_verbatim)
{
	struct node CLOSED n = member(1);
	union address a = { .ib = { .sib_family = AF_IB } };
	struct rdma_cm_event *e;

	inet_pton(AF_INET6, "ff0e::abcd", &a.ib.sib_addr);
	assert_int_equal(rdma_join_multicast(n.id, &a.sa, NULL), 0);
	e = next_event(&n);
	assert_event(e, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_gid(&e->param.ud.ah_attr.grh.dgid, "ff0e::abcd");
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(rdma_leave_multicast(n.id, &a.sa), 0);
}

CASE(an_address_of_zero_lets_the_sa_pick)
{
	struct node CLOSED n = member(1), m = member(2);
	struct rdma_ud_param made = join(&n, "0.0.0.0"), ud;
	const uint8_t *raw = made.ah_attr.grh.dgid.raw;
	char text[INET6_ADDRSTRLEN];

	assert_int_equal(raw[0], 0xFF);
	assert_int_equal(raw[1] & 0xF0, 0x10);
	assert_int_equal(raw[2] << 8 | raw[3], 0xA01B);
	inet_ntop(AF_INET6, raw, text, sizeof(text));
	ud = join(&m, text);
	assert_int_equal(ud.ah_attr.dlid, made.ah_attr.dlid);
	assert_int_equal(leave(&n, "0.0.0.0"), 0);
}

CASE(the_qkey_is_of_the_port_space)
{
	struct node CLOSED udp = node_open(RDMA_PS_UDP), ipoib = node_open(RDMA_PS_IPOIB);

	node_bind(&udp, 1, 0);
	node_bind(&ipoib, 1, 0);
	assert_int_equal(join(&udp, GROUP).qkey, UDP_QKEY);
	assert_int_equal(join(&ipoib, GROUP).qkey, 0x0B1B); /* the broadcast group's */
}

CASE(what_the_sa_refuses_is_an_error_event)
{
	struct node CLOSED n = member(1);
	union address a = { .ib = { .sib_family = AF_IB } };
	struct rdma_cm_event *e;
	int context;

	inet_pton(AF_INET6, "fe80::1", &a.ib.sib_addr); /* no multicast GID */
	assert_int_equal(rdma_join_multicast(n.id, &a.sa, &context), 0);
	e = next_event(&n);
	assert_event(e, RDMA_CM_EVENT_MULTICAST_ERROR, -EINVAL);
	assert_ptr_equal(e->param.ud.private_data, &context);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(rdma_leave_multicast(n.id, &a.sa), 0);
}

/* ---- attaching ---- */

CASE(the_qp_is_attached_inside_get_event)
{
	struct node CLOSED rx = member_with_qp(2), tx = member_with_qp(1);
	struct rdma_ud_param to = join(&tx, GROUP);

	assert_int_equal(leave(&tx, GROUP), 0); /* one may send without being a member */
	assert_int_equal(join_with(&rx, GROUP, RDMA_MC_JOIN_FLAG_FULLMEMBER, NULL), 0);
	send_to(&tx, &to, "too early");
	expect_event(&rx, RDMA_CM_EVENT_MULTICAST_JOIN);
	to = join(&tx, GROUP);
	assert_int_equal(leave(&tx, GROUP), 0);
	send_to(&tx, &to, "in time");
	assert_received(&rx, "in time");
	assert_nothing_received(&rx);
	assert_int_equal(leave(&rx, GROUP), 0);
}

CASE(joined_means_forwarding)
{
	struct node CLOSED tx = member_with_qp(1);
	struct rdma_ud_param to = join(&tx, GROUP);

	assert_int_equal(ibv_detach_mcast(tx.id->qp, &to.ah_attr.grh.dgid, to.ah_attr.dlid), 0);
	for (unsigned host = 2; host <= 4; host++) {
		struct node rx = member_with_qp(host);

		join(&rx, GROUP);
		send_to(&tx, &to, "at once");
		assert_received(&rx, "at once");
		node_close(&rx);
	}
}

CASE(a_failed_attach_turns_the_join_into_an_error)
{
	struct node CLOSED n = member_with_qp(1), holder = member(1);
	struct ibv_device_attr_ex limits;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 }
	};
	struct rdma_ud_param ud = join(&holder, GROUP);
	struct rdma_cm_event *e;
	struct ibv_qp **qp;
	int count;

	assert_int_equal(ibv_query_device_ex(n.id->verbs, NULL, &limits), 0);
	count = limits.orig_attr.max_mcast_qp_attach;
	qp = calloc(count, sizeof(*qp));
	attr.send_cq = attr.recv_cq = n.cq;
	for (int i = 0; i < count; i++) {
		assert_non_null(qp[i] = ibv_create_qp(n.id->pd, &attr));
		assert_int_equal(ibv_attach_mcast(qp[i], &ud.ah_attr.grh.dgid, ud.ah_attr.dlid), 0);
	}
	assert_int_equal(join_with(&n, GROUP, RDMA_MC_JOIN_FLAG_FULLMEMBER, NULL), 0);
	e = next_event(&n);
	assert_event(e, RDMA_CM_EVENT_MULTICAST_ERROR, -ENOMEM);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(leave(&n, GROUP), 0);
	for (int i = 0; i < count; i++) {
		ibv_detach_mcast(qp[i], &ud.ah_attr.grh.dgid, ud.ah_attr.dlid);
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	}
	free(qp);
}

CASE(send_only_sends_and_does_not_receive)
{
	struct node CLOSED rx = member_with_qp(2), tx = member_with_qp(1);
	struct rdma_cm_event *e;

	join(&rx, GROUP);
	assert_int_equal(join_with(&tx, GROUP, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, NULL), 0);
	e = next_event(&tx);
	assert_event(e, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	send_to(&tx, &e->param.ud, "one way");
	assert_received(&rx, "one way");
	assert_nothing_received(&tx);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(leave(&tx, GROUP), 0);
}

CASE(send_only_needs_the_sa_s_support)
{
	struct node CLOSED n = member(1);

	assert_int_equal(system("umbel set sa_send_only=0"), 0);
	assert_fails(join_with(&n, GROUP, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, NULL), EOPNOTSUPP);
	assert_fails(leave(&n, GROUP), EADDRNOTAVAIL);
	join(&n, GROUP); /* full members as ever */
	assert_int_equal(system("umbel set sa_send_only=1"), 0);
}

CASE(without_a_qp_the_caller_attaches)
{
	struct node CLOSED rx = member(2), tx = member_with_qp(1);
	struct rdma_ud_param ud = join(&rx, GROUP), to = ud;

	node_qp(&rx, 0);
	send_to(&tx, &to, "not attached");
	assert_nothing_received(&rx);
	assert_int_equal(ibv_attach_mcast(rx.id->qp, &ud.ah_attr.grh.dgid, ud.ah_attr.dlid), 0);
	send_to(&tx, &to, "attached");
	assert_received(&rx, "attached");
	assert_int_equal(leave(&rx, GROUP), 0);
}

CASE(a_member_hears_itself_unless_it_asked_not_to)
{
	struct node CLOSED loud = member_with_qp(1), deaf = member(2);
	struct rdma_ud_param ud = join(&loud, GROUP);
	struct ibv_ah *ah = ibv_create_ah(loud.id->pd, &ud.ah_attr);
	struct ibv_sge sge = { .addr = (uintptr_t)loud.buffer + RECEIVES * (GRH_BYTES + MESSAGE),
		               .length = MESSAGE,
		               .lkey = loud.mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = RECEIVES, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND
	};
	struct ibv_send_wr *bad;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = ud.qp_num;
	wr.wr.ud.remote_qkey = ud.qkey;
	assert_int_equal(ibv_post_send(loud.id->qp, &wr, &bad), 0);
	for (int i = 0; i < 2; i++)
		next_completion(loud.cq);
	assert_nothing_received(&loud);
	assert_int_equal(ibv_destroy_ah(ah), 0);

	node_qp(&deaf, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
	ud = join(&deaf, GROUP);
	send_to(&deaf, &ud, "to others");
	assert_nothing_received(&deaf);
	assert_received(&loud, "to others");
}

/* ---- leaving ---- */

CASE(one_that_left_gets_nothing_more)
{
	struct node CLOSED rx = member_with_qp(2), tx = member_with_qp(1);
	struct rdma_ud_param to;

	join(&rx, GROUP);
	to = join(&tx, GROUP);
	assert_int_equal(ibv_detach_mcast(tx.id->qp, &to.ah_attr.grh.dgid, to.ah_attr.dlid), 0);
	send_to(&tx, &to, "before");
	assert_received(&rx, "before");
	assert_int_equal(leave(&rx, GROUP), 0);
	send_to(&tx, &to, "after");
	assert_nothing_received(&rx);
}

CASE(leave_compares_the_whole_address)
{
	struct node CLOSED n = member(1);
	union address other_port = address(GROUP, 5);

	join(&n, GROUP);
	assert_fails(rdma_leave_multicast(n.id, &other_port.sa), EADDRNOTAVAIL);
	assert_fails(leave(&n, "239.1.1.2"), EADDRNOTAVAIL);
	assert_int_equal(leave(&n, GROUP), 0);
	assert_fails(leave(&n, GROUP), EADDRNOTAVAIL);
}

CASE(leave_takes_the_newest_join_first)
{
	struct node CLOSED n = member(1);
	union address zero = address("0.0.0.0", 0);
	struct rdma_ud_param first = join(&n, "0.0.0.0"), second = join(&n, "0.0.0.0");
	char command[256], first_text[INET6_ADDRSTRLEN], second_text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, first.ah_attr.grh.dgid.raw, first_text, sizeof(first_text));
	inet_ntop(AF_INET6, second.ah_attr.grh.dgid.raw, second_text, sizeof(second_text));
	n.group = NULL;
	assert_int_equal(rdma_leave_multicast(n.id, &zero.sa), 0);
	snprintf(command, sizeof(command),
	         "g=$(umbel show groups --json); [[ $g == *'\"%s\"'* && $g != *'\"%s\"'* ]]",
	         first_text, second_text);
	setenv("CHECK", command, 1);
	assert_int_equal(system("bash -c \"$CHECK\""), 0);
	assert_int_equal(rdma_leave_multicast(n.id, &zero.sa), 0);
}

static void *leave_in_thread(void *arg)
{
	return (void *)(intptr_t)leave(arg, GROUP);
}

CASE(leave_waits_until_its_events_are_acknowledged)
{
	struct node CLOSED n = member(1);
	struct rdma_cm_event *e;
	pthread_t thread;
	void *result;

	assert_int_equal(join_with(&n, GROUP, RDMA_MC_JOIN_FLAG_FULLMEMBER, NULL), 0);
	e = next_event(&n);
	assert_int_equal(pthread_create(&thread, NULL, leave_in_thread, &n), 0);
	assert_int_equal(pthread_tryjoin_np(thread, &result), EBUSY);
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_null(result);
}

CASE(leave_takes_an_event_back_that_nobody_got)
{
	struct node CLOSED n = member(1);

	assert_int_equal(join_with(&n, GROUP, RDMA_MC_JOIN_FLAG_FULLMEMBER, NULL), 0);
	assert_int_equal(leave(&n, GROUP), 0);
	assert_no_event(&n);
}

CASE(two_processes_of_a_host_share_a_membership)
{
	struct node CLOSED rx = member_with_qp(2), tx = member_with_qp(1);
	struct rdma_ud_param to;
	pid_t child = fork();

	if (!child) { /* joins as well, and leaves */
		struct node n = member(2);

		join(&n, GROUP);
		_exit(leave(&n, GROUP) != 0);
	}
	join(&rx, GROUP);
	harness_expect_success(child);
	to = join(&tx, GROUP);
	assert_int_equal(leave(&tx, GROUP), 0);
	send_to(&tx, &to, "still there");
	assert_received(&rx, "still there");
}

static bool group_is_there(const char *mgid)
{
	char command[128];

	snprintf(command, sizeof(command), "umbel show groups --json | grep -q '\"%s\"'", mgid);
	return system(command) == 0;
}

CASE(a_process_that_dies_leaves_its_groups)
{
	int pipefd[2], status;
	char byte;
	pid_t child;

	assert_int_equal(pipe(pipefd), 0);
	child = fork();
	if (!child) {
		struct node n = member(3);

		join(&n, "239.9.9.9");
		if (write(pipefd[1], "", 1) != 1)
			_exit(1);
		pause();
		_exit(1);
	}
	assert_int_equal(read(pipefd[0], &byte, 1), 1);
	assert_true(group_is_there("ff12:4001:ffff::f09:909"));
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	while (group_is_there("ff12:4001:ffff::f09:909"))
		; /* the daemon hears of it in its own time */
	close(pipefd[0]);
	close(pipefd[1]);
}

CASE(destroying_the_identifier_leaves)
{
	struct node n = member(1);

	join(&n, "239.9.9.8");
	n.group = NULL;
	assert_true(group_is_there("ff12:4001:ffff::f09:908"));
	node_close(&n);
	assert_false(group_is_there("ff12:4001:ffff::f09:908"));
}
