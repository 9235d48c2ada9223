// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The verbs of Ethernet ports, and messages between two ports of one host: address handles, GIDs,
 * attachments, and the 40 bytes that a message begins with. verbs.sh runs it: host 1 is eth0, with
 * 192.0.2.1 and 2001:db8::1; host 2 is eth1, with 198.51.100.1 and 2001:db8:1::1.
 */
#include "verbs/lab.h"

#include <netinet/ip.h>
#include <netinet/ip6.h>

enum { LINK_LOCAL, IPV4, IPV6, FREE }; /* indices of the GIDs */

static union ibv_gid gid(const char *text)
{
	union ibv_gid g;

	assert_int_equal(inet_pton(AF_INET6, text, &g), 1);
	return g;
}

static struct ibv_ah_attr attr_to(const char *dgid, uint8_t sgid_index)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };

	attr.grh.dgid = gid(dgid);
	attr.grh.sgid_index = sgid_index;
	attr.grh.hop_limit = 7;
	attr.grh.traffic_class = 0x28;
	return attr;
}

static int try_ah(struct ibv_pd *pd, const struct ibv_ah_attr *attr)
{
	struct ibv_ah_attr copy = *attr;
	struct ibv_ah *ah = ibv_create_ah(pd, &copy);

	if (!ah)
		return errno;
	assert_int_equal(ibv_destroy_ah(ah), 0);
	return 0;
}

/* ---- the port ---- */

LAB_CASE(the_port_is_ethernets)
{
	struct ibv_port_attr port;

	assert_int_equal(ibv_query_port(lab_open(1), 1, &port), 0);
	assert_int_equal(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(port.state, IBV_PORT_ACTIVE);
	assert_int_equal(port.lid, 0);
	assert_int_equal(port.sm_lid, 0);
	assert_int_equal(port.pkey_tbl_len, 1);
	assert_int_equal(port.active_mtu, IBV_MTU_1024);
	assert_int_equal(port.flags, IBV_QPF_GRH_REQUIRED);
	assert_true(port.gid_tbl_len > FREE);
}

LAB_CASE(gids_are_of_type_roce_v2_and_name_the_device)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_gid_entry e, table[8];
	union ibv_gid address = gid("::ffff:192.0.2.1");

	assert_int_equal(ibv_query_gid_ex(context, 1, IPV4, &e, 0), 0);
	assert_int_equal(e.gid_type, IBV_GID_TYPE_ROCE_V2);
	assert_memory_equal(&e.gid, &address, sizeof(address));
	assert_int_not_equal(e.ndev_ifindex, 0);
	assert_int_equal(ibv_query_gid_ex(context, 1, FREE, &e, 0), ENODATA);
	assert_int_equal(ibv_query_gid_table(context, table, LAB_ARRAY(table), 0), FREE);
	assert_int_equal(table[IPV6].gid_index, IPV6);
}

/* Not in the headers: 1 is RoCE v2, and an empty entry has 0. */
LAB_CASE(a_gids_type_is_as_sysfs_has_it)
{
	int (*type_of)(struct ibv_context *, uint8_t, unsigned, int *) =
	        dlvsym(RTLD_DEFAULT, "ibv_query_gid_type", "IBVERBS_PRIVATE_34");
	struct ibv_context *context = lab_open(1);
	int type = -1;

	assert_non_null(type_of);
	assert_int_equal(type_of(context, 1, IPV4, &type), 0);
	assert_int_equal(type, 1);
	assert_int_equal(type_of(context, 1, FREE, &type), 0);
	assert_int_equal(type, 0);
}

/* ---- address handles ---- */

LAB_CASE(a_handle_must_be_global_and_its_lid_means_nothing)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));
	struct ibv_ah_attr attr = attr_to("::ffff:192.0.2.9", IPV4);

	assert_int_equal(try_ah(pd, &attr), 0);
	attr.dlid = 0xC001;
	attr.sl = 135; /* three bits of it are a priority */
	assert_int_equal(try_ah(pd, &attr), 0);
	attr.is_global = 0;
	assert_int_equal(try_ah(pd, &attr), EINVAL);
}

LAB_CASE(a_handles_source_must_be_there_and_of_its_ip_version)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));
	struct ibv_ah_attr to4 = attr_to("::ffff:192.0.2.9", IPV4);
	struct ibv_ah_attr to6 = attr_to("ff15::1", IPV6);

	assert_int_equal(try_ah(pd, &to6), 0);
	to4.grh.sgid_index = IPV6;
	to6.grh.sgid_index = IPV4;
	assert_int_equal(try_ah(pd, &to4), EINVAL);
	assert_int_equal(try_ah(pd, &to6), EINVAL);
	to4.grh.sgid_index = FREE;
	assert_int_equal(try_ah(pd, &to4), EINVAL);
	to6 = attr_to("::", IPV6);
	assert_int_equal(try_ah(pd, &to6), EINVAL);
	to4 = attr_to("::ffff:192.0.2.9", IPV4);
	to4.port_num = 2;
	assert_int_equal(try_ah(pd, &to4), EINVAL);
}

/* ---- attachments ---- */

LAB_CASE(groups_are_those_of_ip_and_any_lid_will_do)
{
	static const char *const groups[] = { "::ffff:239.1.1.1", "ff15::1", "ff02::77" };
	static const char *const others[] = { "::ffff:192.0.2.1", "2001:db8::1", "::" };
	struct lab_end *e = lab_end(1);
	union ibv_gid g;

	for (size_t i = 0; i < LAB_ARRAY(groups); i++) {
		g = gid(groups[i]);
		assert_int_equal(ibv_attach_mcast(e->qp, &g, 0), 0);
		assert_int_equal(ibv_attach_mcast(e->qp, &g, 0), 0); /* the same again */
		assert_int_equal(ibv_attach_mcast(e->qp, &g, 7), 0);
		assert_int_equal(ibv_detach_mcast(e->qp, &g, 0xC123), EINVAL); /* not that LID */
		assert_int_equal(ibv_detach_mcast(e->qp, &g, 0), 0);
		assert_int_equal(ibv_detach_mcast(e->qp, &g, 0), EINVAL);
		assert_int_equal(ibv_detach_mcast(e->qp, &g, 7), 0);
	}
	for (size_t i = 0; i < LAB_ARRAY(others); i++) {
		g = gid(others[i]);
		assert_int_equal(ibv_attach_mcast(e->qp, &g, 0xC001), EINVAL);
	}
}

/* ---- what a message begins with ---- */

/* The message that host 1 sends to host 2 with @attr. */
static struct lab_message message_by(const struct ibv_ah_attr *attr, uint32_t qpn,
                                     struct lab_end *to)
{
	struct lab_end *from = lab_end(1);

	lab_post(to, 1);
	lab_send_text(from, lab_ah(from->pd, attr), qpn ? qpn : to->qp->qp_num, "hello");
	return lab_receive(to);
}

LAB_CASE(ipv4_messages_begin_with_an_ipv4_header)
{
	struct ibv_ah_attr attr = attr_to("::ffff:198.51.100.1", IPV4);
	struct lab_message m = message_by(&attr, 0, lab_end(2));
	static const char zero[20];
	struct iphdr ip;
	uint32_t sum = 0;

	assert_true(m.wc.wc_flags & IBV_WC_GRH);
	assert_int_equal(m.wc.sl, 8 | 2); /* as mlx5: UDP, IPv4 */
	assert_memory_equal(m.grh, zero, sizeof(zero));
	memcpy(&ip, m.grh + 20, sizeof(ip));
	assert_int_equal(ip.version, 4);
	assert_int_equal(ip.ihl, 5);
	assert_int_equal(ip.tos, 0x28);
	assert_int_equal(ip.ttl, 7);
	assert_int_equal(ip.protocol, IPPROTO_UDP);
	assert_int_equal(ip.saddr, inet_addr("192.0.2.1"));
	assert_int_equal(ip.daddr, inet_addr("198.51.100.1"));
	/* IP, UDP, BTH, DETH, "hello", its end, pad, ICRC */
	assert_int_equal(ntohs(ip.tot_len), 20 + 8 + 12 + 8 + 8 + 4);
	for (int i = 20; i < 40; i += 2)
		sum += (uint32_t)(uint8_t)m.grh[i] << 8 | (uint8_t)m.grh[i + 1];
	assert_int_equal((sum & 0xFFFF) + (sum >> 16), 0xFFFF);
}

LAB_CASE(ipv6_messages_begin_with_an_ipv6_header)
{
	struct ibv_ah_attr attr = attr_to("2001:db8:1::1", IPV6);
	struct lab_message m = message_by(&attr, 0, lab_end(2));
	union ibv_gid from = gid("2001:db8::1");
	struct ip6_hdr ip;

	assert_int_equal(m.wc.sl, 8 | 1); /* UDP, IPv6 */
	memcpy(&ip, m.grh, sizeof(ip));
	assert_int_equal(ntohl(ip.ip6_flow), 0x62800000);
	assert_int_equal(ip.ip6_nxt, IPPROTO_UDP);
	assert_int_equal(ip.ip6_hlim, 7);
	assert_int_equal(ntohs(ip.ip6_plen), 8 + 12 + 8 + 8 + 4);
	assert_memory_equal(&ip.ip6_src, &from, sizeof(from));
	assert_memory_equal(&ip.ip6_dst, &attr.grh.dgid, sizeof(attr.grh.dgid));
}

/* ---- replies ---- */

static void check_reply(const char *to, uint8_t sgid_index)
{
	struct lab_end *asker = lab_end(1), *asked = lab_end(2);
	struct ibv_ah_attr attr = attr_to(to, sgid_index);
	struct lab_message m;
	struct ibv_ah *back;

	lab_post(asker, 1);
	lab_post(asked, 1);
	lab_send_text(asker, lab_ah(asker->pd, &attr), asked->qp->qp_num, "ask");
	m = lab_receive(asked);
	assert_non_null(back = ibv_create_ah_from_wc(asked->pd, &m.wc, (struct ibv_grh *)m.grh, 1));
	lab_send_text(asked, back, m.wc.src_qp, "reply");
	lab_expect_text(asker, "reply");
	assert_int_equal(ibv_destroy_ah(back), 0);
}

LAB_CASE(a_message_has_what_a_reply_needs)
{
	check_reply("::ffff:198.51.100.1", IPV4);
	check_reply("2001:db8:1::1", IPV6);
}

LAB_CASE(a_message_to_a_group_allows_no_reply)
{
	static const char *const group[] = { "::ffff:239.1.1.1", "ff15::1" };
	static const uint8_t index[] = { IPV4, IPV6 };

	for (size_t i = 0; i < LAB_ARRAY(group); i++) {
		struct lab_end *to = lab_end(1); /* a group is this device's */
		struct ibv_ah_attr attr = attr_to(group[i], index[i]), reply;
		struct lab_message m;

		lab_attach(to->qp, &attr.grh.dgid, 0);
		m = message_by(&attr, LAB_MCAST, to);
		assert_int_equal(
		        ibv_init_ah_from_wc(to->context, 1, &m.wc, (struct ibv_grh *)m.grh, &reply),
		        -1);
		assert_int_equal(errno, EINVAL);
		lab_detach(to->qp, &attr.grh.dgid, 0);
	}
}

LAB_CASE(a_message_without_ip_header_allows_no_reply)
{
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_context *context = lab_open(1);
	struct ibv_ah_attr reply;
	struct ibv_grh grh;

	memset(&grh, 0, sizeof(grh));
	assert_int_equal(ibv_init_ah_from_wc(context, 1, &wc, &grh, &reply), -1);
	((char *)&grh)[20] = 0x45; /* of IPv4, but its checksum is wrong */
	assert_int_equal(ibv_init_ah_from_wc(context, 1, &wc, &grh, &reply), -1);
}

LAB_CASE(a_hop_limit_of_none_is_the_usual_one)
{
	struct ibv_ah_attr attr = attr_to("2001:db8:1::1", IPV6);
	struct lab_message m;

	attr.grh.hop_limit = 0;
	m = message_by(&attr, 0, lab_end(2));
	assert_int_equal(((const struct ip6_hdr *)m.grh)->ip6_hlim, 64);
}

/* ---- threads and fork ---- */

#define POSTERS 2
#define FORKS   1000

struct poster {
	struct lab_end end; /* of one device that is open; queue pair and CQ are its own */
	struct ibv_ah *ah;
	_Atomic bool *ends;
};

static struct poster poster_at(const struct lab_end *e, _Atomic bool *ends)
{
	struct ibv_ah_attr attr = attr_to("::ffff:239.9.9.9", IPV4);
	struct poster p = { *e, lab_ah(e->pd, &attr), ends };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
		                         .cap = { .max_send_wr = 64, .max_send_sge = 1 } };

	init.send_cq = init.recv_cq = p.end.send_cq = lab_cq(e->context, 64, NULL);
	p.end.qp = lab_qp(e->pd, &init);
	lab_start(p.end.qp, LAB_QKEY);
	return p;
}

/* A message to a group beyond the fabric. */
static int post_one(const struct poster *p)
{
	struct lab_end end = p->end;
	struct ibv_send_wr *bad;
	struct lab_request r;

	lab_request(&end, &r, p->ah, LAB_MCAST, NULL, 8);
	return ibv_post_send(end.qp, &r.wr, &bad);
}

static void *post_until_end(void *arg)
{
	const struct poster *p = arg;
	struct ibv_wc wc[16];

	while (!atomic_load(p->ends))
		if (post_one(p)) /* the queue is full */
			ibv_poll_cq(p->end.send_cq, LAB_ARRAY(wc), wc);
	return NULL;
}

/* Whatever the other threads were in the middle of when it was forked. */
LAB_CASE(a_child_of_fork_can_post_to_a_queue_of_its_own)
{
	_Atomic bool ends = false;
	struct lab_end *e = lab_end(1);
	struct poster p[POSTERS], own = poster_at(e, &ends);
	pthread_t thread[POSTERS];
	int status = 0;

	for (unsigned i = 0; i < POSTERS; i++) {
		p[i] = poster_at(e, &ends);
		assert_int_equal(pthread_create(&thread[i], NULL, post_until_end, &p[i]), 0);
	}
	assert_int_equal(post_one(&own), 0); /* it knows the way */
	for (unsigned i = 0; i < FORKS && !status; i++) {
		pid_t pid = fork();

		if (!pid) {
			alarm(10);
			_exit(post_one(&own) != 0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	atomic_store(&ends, true);
	for (unsigned i = 0; i < POSTERS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(status, 0);
}
