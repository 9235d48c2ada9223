/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RoCEv2's datagrams between two network namespaces: as they arrive, as they are on the network,
 * and the errors when this does not work.
 */
#include <harness.h>

#include "netdev/testing.h"

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/udp.h>
#include <net/if.h>

#include "netdev/udp.h"
#include "wire/roce.h"

#define HEAD 20 /* bytes that come to a place of their own */
#define ROOM 4200

/* Sockets there that send, by family; here that receive. */
struct lab {
	const struct testing_nets *nets;
	int send[2], receive[2];
	uint16_t port[2];
	char why[256];
	uint8_t head[NETDEV_UDP_BATCH][HEAD], body[NETDEV_UDP_BATCH][ROOM];
	struct netdev_udp_datagram got[NETDEV_UDP_BATCH];
	uint32_t lost;
};

/* The device of that name, in our network. */
#define ON(name) (&(const struct netdev_site){ .device = (name) })

enum { V4, V6 };
static const int families[] = { AF_INET, AF_INET6 };

static int set_up(void **state)
{
	struct lab *l = test_calloc(1, sizeof(*l));

	l->nets = *state;
	for (unsigned v = V4; v <= V6; v++) {
		testing_go(l->nets->there);
		l->port[v] = 0xC123;
		l->send[v] = netdev_udp_open_send(families[v], ON("vb"), &l->port[v], l->why,
		                                  sizeof(l->why));
		testing_go(l->nets->here);
		l->receive[v] =
		        netdev_udp_open_receive(families[v], ON("va"), l->why, sizeof(l->why));
		if (l->send[v] < 0 || l->receive[v] < 0)
			fail_msg("%s", l->why);
	}
	for (unsigned i = 0; i < NETDEV_UDP_BATCH; i++) {
		l->got[i].iov[0] = (struct iovec){ l->head[i], HEAD };
		l->got[i].iov[1] = (struct iovec){ l->body[i], ROOM };
	}
	*state = l;
	return 0;
}

static int tear_down(void **state)
{
	struct lab *l = *state;

	for (unsigned v = V4; v <= V6; v++) {
		close(l->send[v]);
		close(l->receive[v]);
	}
	*state = (void *)l->nets;
	test_free(l);
	return 0;
}

static struct ib_gid gid(const char *text)
{
	struct ib_gid g;

	assert_int_equal(inet_pton(AF_INET6, text, &g), 1);
	return g;
}

static struct wire_ip to(const char *from, const char *dest)
{
	return (struct wire_ip){ .sgid = gid(from), .dgid = gid(dest), .hop_limit = 64 };
}

/* Between the two devices. */
static struct wire_ip unicast(unsigned v)
{
	return v == V4 ? to("::ffff:10.0.0.2", "::ffff:10.0.0.1")
	               : to("2001:db8::2", "2001:db8::1");
}

/* Sends one; 0 or what went wrong. */
static int send_one(int fd, const struct wire_ip *ip, const void *at, size_t bytes)
{
	struct netdev_udp_message m = {
		.ip = ip, .iov = { { (void *)at, bytes } }, .n_iov = 1, .error = 1
	};
	unsigned taken = netdev_udp_send(fd, &m, 1);

	assert_int_equal(taken, m.error == 0);
	return m.error;
}

/* Waits for datagrams, at most @most, into l->got. Returns how many. */
static int receive(struct lab *l, unsigned v, unsigned most)
{
	int n;

	testing_wait_input(l->receive[v], testing_deadline());
	n = netdev_udp_receive(l->receive[v], l->got, most, &l->lost);
	assert_in_range(n, 1, most);
	return n;
}

static void assert_got(const struct lab *l, unsigned i, const void *bytes, uint32_t n)
{
	const struct netdev_udp_datagram *d = &l->got[i];
	uint32_t head = n < HEAD ? n : HEAD;

	assert_int_equal(d->bytes, n);
	assert_false(d->truncated);
	assert_memory_equal(l->head[i], bytes, head);
	assert_memory_equal(l->body[i], (const char *)bytes + head, n - head);
}

/* Sends one with these and looks at what comes. */
static void check_header(struct lab *l, unsigned v, const struct wire_ip *ip)
{
	char text[] = "twenty bytes go first, these later";
	const struct wire_ip *got = &l->got[0].ip;

	assert_int_equal(send_one(l->send[v], ip, text, sizeof(text)), 0);
	assert_int_equal(receive(l, v, 1), 1);
	assert_got(l, 0, text, sizeof(text));
	assert_memory_equal(&got->sgid, &ip->sgid, sizeof(ip->sgid));
	assert_memory_equal(&got->dgid, &ip->dgid, sizeof(ip->dgid));
	assert_int_equal(got->udp_source, l->port[v]);
	assert_int_equal(got->traffic_class, ip->traffic_class);
	assert_int_equal(got->hop_limit, ip->hop_limit ? ip->hop_limit : 1);
	assert_int_equal(got->flow_label, ip->flow_label);
}

static void check_headers(struct lab *l, unsigned v, uint32_t flow_label)
{
	static const uint8_t hop_limit[] = { 0, 1, NETDEV_UDP_HOP_LIMIT, 7, 255 };
	struct wire_ip ip = unicast(v);

	for (size_t i = 0; EACH_ROW(i, hop_limit); i++) {
		ip.hop_limit = hop_limit[i];
		ip.traffic_class = 0;
		ip.flow_label = 0;
		check_header(l, v, &ip);
		ip.traffic_class = 0xB9; /* with ECN */
		ip.flow_label = flow_label;
		check_header(l, v, &ip);
	}
}

CASE_WITH(a_datagram_comes_with_what_its_ipv4_header_said, set_up, tear_down)
{
	check_headers(*state, V4, 0);
}

CASE_WITH(a_datagram_comes_with_what_its_ipv6_header_said, set_up, tear_down)
{
	check_headers(*state, V6, 0xABCDE);
}

CASE_WITH(link_local_addresses_will_do, set_up, tear_down)
{
	struct lab *l = *state;
	struct wire_ip ip = to("fe80::2", "fe80::1");

	assert_int_equal(send_one(l->send[V6], &ip, "x", 1), 0);
	assert_int_equal(receive(l, V6, 1), 1);
	assert_memory_equal(&l->got[0].ip.sgid, &ip.sgid, sizeof(ip.sgid));
	assert_memory_equal(&l->got[0].ip.dgid, &ip.dgid, sizeof(ip.dgid));
}

CASE_WITH(without_a_udp_checksum_it_comes_as_well, set_up, tear_down)
{
	struct lab *l = *state;
	int one = 1;

	assert_int_equal(setsockopt(l->send[V4], SOL_SOCKET, SO_NO_CHECK, &one, sizeof(one)), 0);
	assert_int_equal(setsockopt(l->send[V6], IPPROTO_UDP, UDP_NO_CHECK6_TX, &one, sizeof(one)),
	                 0);
	for (unsigned v = V4; v <= V6; v++) {
		struct wire_ip ip = unicast(v);

		assert_int_equal(send_one(l->send[v], &ip, "bare", 4), 0);
		assert_int_equal(receive(l, v, 1), 1);
		assert_got(l, 0, "bare", 4);
	}
}

CASE_WITH(a_roce_message_comes_whole_and_with_the_right_icrc, set_up, tear_down)
{
	struct lab *l = *state;

	for (unsigned v = V4; v <= V6; v++) {
		struct wire_roce_packet p = { .ip = unicast(v),
			                      .h.bth.opcode = WIRE_OPCODE_UD_SEND_ONLY,
			                      .payload = "hello",
			                      .payload_bytes = 5 },
		                        got;
		uint8_t whole[64];
		struct wire_roce_datagram d = { .at = whole, .transports = 1 << WIRE_TRANSPORT_UD };
		struct netdev_udp_message m = { .ip = &p.ip, .n_iov = 3 };
		struct wire_roce_frame f;

		p.ip.udp_source = l->port[v];
		wire_roce_build(&p, &f);
		m.iov[0] = (struct iovec){ f.head, f.head_bytes };
		m.iov[1] = (struct iovec){ (void *)p.payload, p.payload_bytes };
		m.iov[2] = (struct iovec){ f.trailer, f.trailer_bytes };
		assert_int_equal(netdev_udp_send(l->send[v], &m, 1), 1);
		assert_int_equal(receive(l, v, 1), 1);
		d.bytes = l->got[0].bytes;
		assert_in_range(d.bytes, HEAD, sizeof(whole));
		memcpy(whole, l->head[0], HEAD);
		memcpy(whole + HEAD, l->body[0], d.bytes - HEAD);
		got.ip = l->got[0].ip;
		assert_int_equal(wire_roce_parse(&d, &got), WIRE_ROCE_OK);
		assert_int_equal(got.payload_bytes, 5);
		assert_memory_equal(got.payload, "hello", 5);
	}
}

/* A socket that sees what goes out of device @ifname by IPv4. */
static int open_capture(const char *ifname)
{
	struct sockaddr_ll ll = { .sll_family = AF_PACKET,
		                  .sll_protocol = htons(ETH_P_ALL),
		                  .sll_ifindex = (int)if_nametoindex(ifname) };
	int fd;

	testing_use_capabilities(true);
	fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	testing_use_capabilities(false);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&ll, sizeof(ll)), 0);
	return fd;
}

/* The next UDP datagram over IPv4 that a capture sees, from its IP header on. */
static void capture_udp(int fd, uint8_t *packet, size_t room)
{
	uint64_t deadline = testing_deadline();

	do {
		testing_wait_input(fd, deadline);
		assert_true(recv(fd, packet, room, 0) > 0);
	} while (packet[0] != 0x45 || packet[9] != IPPROTO_UDP);
}

/* The ICRC counts on this, again and again, to a neighbour and to a group. */
CASE_WITH(on_the_wire_ipv4_has_no_identification_and_is_not_fragmented, set_up, tear_down)
{
	static const uint8_t expected[] = { 0, 0, 0x40, 0 };
	struct lab *l = *state;
	uint8_t packet[ROOM];
	int fd = open_capture("va");

	for (unsigned i = 0; i < 3; i++) {
		struct wire_ip ip =
		        i == 2 ? to("::ffff:10.0.0.2", "::ffff:239.1.1.1") : unicast(V4);

		assert_int_equal(send_one(l->send[V4], &ip, "x", 1), 0);
		capture_udp(fd, packet, sizeof(packet));
		assert_memory_equal(packet + 4, expected, sizeof(expected));
	}
	close(fd);
}

CASE_WITH(a_datagram_too_large_for_its_buffer_says_so, set_up, tear_down)
{
	struct lab *l = *state;
	struct wire_ip ip = unicast(V4);
	char bytes[HEAD + 9] = { 0 };

	l->got[0].iov[1].iov_len = 8;
	assert_int_equal(send_one(l->send[V4], &ip, bytes, sizeof(bytes)), 0);
	assert_int_equal(receive(l, V4, 1), 1);
	assert_int_equal(l->got[0].bytes, HEAD + 8);
	assert_true(l->got[0].truncated);
}

CASE_WITH(a_datagram_of_no_bytes_is_received, set_up, tear_down)
{
	struct lab *l = *state;
	struct wire_ip ip = unicast(V6);

	assert_int_equal(send_one(l->send[V6], &ip, "", 0), 0);
	assert_int_equal(receive(l, V6, 1), 1);
	assert_got(l, 0, "", 0);
}

#define MANY 1000
#define ROW  100 /* on their way at once: a slow machine's queues hold more */

CASE_WITH(many_come_in_order_and_in_batches, set_up, tear_down)
{
	static struct netdev_udp_message message[MANY];
	static uint32_t number[MANY];
	struct lab *l = *state;
	struct wire_ip ip = unicast(V6);
	uint32_t next = 0;
	unsigned full = 0; /* batches; others may begin before all datagrams have come */

	for (uint32_t i = 0; i < MANY; i++) {
		number[i] = i;
		message[i] = (struct netdev_udp_message){ .ip = &ip,
			                                  .iov = { { &number[i], 4 } },
			                                  .n_iov = 1 };
	}
	while (next < MANY) {
		int n;

		if (next % ROW == 0)
			assert_int_equal(netdev_udp_send(l->send[V6], &message[next], ROW), ROW);
		n = receive(l, V6, NETDEV_UDP_BATCH);
		full += n == NETDEV_UDP_BATCH;
		for (int i = 0; i < n; i++, next++)
			assert_got(l, (unsigned)i, &next, sizeof(next));
	}
	assert_true(full);
	assert_int_equal(netdev_udp_receive(l->receive[V6], l->got, 1, NULL), 0);
}

CASE_WITH(a_datagram_that_fails_does_not_stop_the_others, set_up, tear_down)
{
	static char large[9000];
	struct lab *l = *state;
	struct wire_ip good = unicast(V4), foreign = to("::ffff:10.9.9.9", "::ffff:10.0.0.1");
	struct netdev_udp_message m[] = {
		{ .ip = &good, .iov = { { "1", 1 } }, .n_iov = 1 },
		{ .ip = &good, .iov = { { large, sizeof(large) } }, .n_iov = 1 },
		{ .ip = &good, .iov = { { "2", 1 } }, .n_iov = 1 },
		{ .ip = &foreign, .iov = { { "x", 1 } }, .n_iov = 1 },
		{ .ip = &good, .iov = { { "3", 1 } }, .n_iov = 1 },
	};

	assert_int_equal(netdev_udp_send(l->send[V4], m, ARRAY_SIZE(m)), 3);
	assert_int_equal(m[0].error, 0);
	assert_int_equal(m[1].error, -EMSGSIZE);
	assert_int_equal(m[2].error, 0);
	assert_int_equal(m[3].error, -ENETUNREACH);
	assert_int_equal(m[4].error, 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(receive(l, V4, 1), 1);
		assert_got(l, 0, &"123"[i], 1);
	}
}

#define PIECE 4
#define EACH  30

/* Sends PIECE messages as one piece, each of @bytes, the last of 5 bytes fewer; each filled with
 * its number. How many were taken, and why the first was not. */
static unsigned send_piece(struct lab *l, unsigned v, size_t bytes, int *error)
{
	static char filled[PIECE][9000];
	struct wire_ip ip = unicast(v);
	struct netdev_udp_message m[PIECE];
	unsigned taken;

	for (unsigned i = 0; i < PIECE; i++) {
		memset(filled[i], (int)i, bytes);
		m[i] = (struct netdev_udp_message){
			.ip = &ip,
			.iov = { { filled[i], 3 },
			         { filled[i], bytes - 3 - (i == PIECE - 1 ? 5 : 0) } },
			.n_iov = 2,
			.follows = i > 0,
		};
	}
	taken = netdev_udp_send(l->send[v], m, PIECE);
	*error = m[0].error;
	return taken;
}

CASE_WITH(datagrams_in_a_row_come_joined_with_their_length, set_up, tear_down)
{
	struct lab *l = *state;

	for (unsigned v = V4; v <= V6; v++) {
		char expected[PIECE * EACH];
		int error;

		for (unsigned i = 0; i < PIECE; i++)
			memset(expected + i * EACH, (int)i, EACH);
		assert_int_equal(send_piece(l, v, EACH, &error), PIECE);
		assert_int_equal(receive(l, v, NETDEV_UDP_BATCH), 1);
		assert_int_equal(l->got[0].each, EACH);
		assert_got(l, 0, expected, PIECE * EACH - 5);
		assert_int_equal(send_one(l->send[v], &(struct wire_ip[]){ unicast(v) }[0], "x", 1),
		                 0);
		assert_int_equal(receive(l, v, 1), 1);
		assert_int_equal(l->got[0].each, 0);
	}
}

/* vb's driver gets no pieces: the kernel cuts before it. */
static void cut_before_the_device(const struct lab *l, bool yes)
{
	testing_go(l->nets->there);
	testing_run("ip link set vb gso_max_segs %d", yes ? 1 : 65535);
	testing_go(l->nets->here);
}

CASE_WITH(pieces_are_cut_into_datagrams_with_increasing_ipv4_identifications, set_up, tear_down)
{
	struct lab *l = *state;
	uint8_t packet[ROOM];
	int fd = open_capture("va"), error;
	char filled[EACH];

	cut_before_the_device(l, true);
	assert_int_equal(send_piece(l, V4, EACH, &error), PIECE);
	for (uint8_t i = 0; i < PIECE; i++) {
		const uint8_t expected[] = { 0, i, 0x40, 0 };

		capture_udp(fd, packet, sizeof(packet));
		assert_memory_equal(packet + 4, expected, sizeof(expected));
		memset(filled, i, sizeof(filled));
		assert_int_equal(receive(l, V4, 1), 1);
		assert_int_equal(l->got[0].each, 0);
		assert_got(l, 0, filled, i == PIECE - 1 ? EACH - 5 : EACH);
	}
	cut_before_the_device(l, false);
	close(fd);
}

CASE_WITH(a_piece_of_datagrams_larger_than_the_mtu_fails_as_a_whole, set_up, tear_down)
{
	struct lab *l = *state;
	int error;

	assert_int_equal(send_piece(l, V4, 1600, &error), 0);
	assert_true(error == -EMSGSIZE || error == -EINVAL);
	assert_int_equal(netdev_udp_receive(l->receive[V4], l->got, 1, NULL), 0);
}

CASE_WITH(a_source_that_is_no_address_of_the_host_is_an_error, set_up, tear_down)
{
	struct lab *l = *state;
	struct wire_ip ipv4 = to("::ffff:10.9.9.9", "::ffff:10.0.0.1"),
	               ipv6 = to("2001:db8::9", "2001:db8::1");

	assert_int_equal(send_one(l->send[V4], &ipv4, "x", 1), -ENETUNREACH);
	assert_int_equal(send_one(l->send[V6], &ipv6, "x", 1), -EINVAL);
}

CASE_WITH(nothing_larger_than_the_mtu_goes_out_in_fragments, set_up, tear_down)
{
	static char bytes[1500];
	struct lab *l = *state;

	for (unsigned v = V4; v <= V6; v++) {
		struct wire_ip ip = unicast(v);
		size_t most = 1500 - WIRE_UDP_BYTES - (v == V4 ? WIRE_IPV4_BYTES : WIRE_IPV6_BYTES);

		assert_int_equal(send_one(l->send[v], &ip, bytes, most), 0);
		assert_int_equal(receive(l, v, 1), 1);
		assert_int_equal(l->got[0].bytes, most);
		assert_int_equal(send_one(l->send[v], &ip, bytes, most + 1), -EMSGSIZE);
	}
}

CASE_WITH(without_a_route_or_a_device_that_is_up_the_error_says_so, set_up, tear_down)
{
	struct lab *l = *state;
	struct wire_ip far = to("2001:db8::2", "2001:db8:1::1"), near = unicast(V4);

	assert_int_equal(send_one(l->send[V6], &far, "x", 1), -ENETUNREACH);
	testing_go(l->nets->there);
	testing_run("ip link set vb down");
	assert_int_equal(send_one(l->send[V4], &near, "x", 1), -ENETUNREACH);
	testing_run(TESTING_DEVICE "", "vb", 2, 2, 2);
	testing_go(l->nets->here);
}

/* ---- groups ---- */

/* Makes @fd a member, here. */
static void join(int fd, unsigned v, const char *group)
{
	struct ib_gid g = gid(group);
	struct group_req req = { .gr_interface = if_nametoindex("va") };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr = { wire_gid_to_ipv4(&g) } };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };

	memcpy(&in6.sin6_addr, &g, sizeof(g));
	if (v == V4)
		memcpy(&req.gr_group, &in, sizeof(in));
	else
		memcpy(&req.gr_group, &in6, sizeof(in6));
	assert_int_equal(setsockopt(fd, v == V4 ? IPPROTO_IP : IPPROTO_IPV6, MCAST_JOIN_GROUP, &req,
	                            sizeof(req)),
	                 0);
}

/* Another socket's membership is enough; without any nothing comes. */
CASE_WITH(messages_to_a_group_that_any_process_joined_are_received, set_up, tear_down)
{
	static const char *const group[][2] = { { "::ffff:239.1.1.1", "::ffff:239.1.1.2" },
		                                { "ff0e::1", "ff0e::2" } };
	static const char *const from[] = { "::ffff:10.0.0.2", "2001:db8::2" };
	struct lab *l = *state;

	for (unsigned v = V4; v <= V6; v++) {
		struct wire_ip joined = to(from[v], group[v][0]), other = to(from[v], group[v][1]);
		int member = socket(families[v], SOCK_DGRAM | SOCK_CLOEXEC, 0);

		join(member, v, group[v][0]);
		assert_int_equal(send_one(l->send[v], &other, "other", 5), 0);
		assert_int_equal(send_one(l->send[v], &joined, "joined", 6), 0);
		assert_int_equal(receive(l, v, NETDEV_UDP_BATCH), 1);
		assert_got(l, 0, "joined", 6);
		assert_memory_equal(&l->got[0].ip.dgid, &joined.dgid, sizeof(joined.dgid));
		close(member);
	}
}

/* The sender's own host is a member; from the other it would get it. */
CASE_WITH(what_is_sent_to_a_group_does_not_come_back, set_up, tear_down)
{
	static const char *const group[] = { "::ffff:239.1.1.1", "ff0e::1" };
	static const char *const from[] = { "::ffff:10.0.0.1", "2001:db8::1" };
	struct lab *l = *state;

	for (unsigned v = V4; v <= V6; v++) {
		struct wire_ip own = to(from[v], group[v]), theirs = to("::", group[v]);
		uint16_t port = 0xC000;
		int fd = netdev_udp_open_send(families[v], ON("va"), &port, l->why, sizeof(l->why));

		theirs.sgid = unicast(v).sgid;
		join(l->receive[v], v, group[v]);
		assert_int_equal(send_one(fd, &own, "own", 3), 0);
		assert_int_equal(send_one(l->send[v], &theirs, "theirs", 6), 0);
		assert_int_equal(receive(l, v, NETDEV_UDP_BATCH), 1);
		assert_got(l, 0, "theirs", 6);
		close(fd);
	}
}

/* ---- sockets ---- */

CASE_WITH(a_device_that_does_not_exist_is_named, set_up, tear_down)
{
	struct lab *l = *state;
	uint16_t port = 0xC000;

	assert_int_equal(netdev_udp_open_receive(AF_INET, ON("nix0"), l->why, sizeof(l->why)),
	                 -ENODEV);
	assert_non_null(strstr(l->why, "nix0"));
	l->why[0] = 0;
	assert_int_equal(netdev_udp_open_send(AF_INET6, ON("nix0"), &port, l->why, sizeof(l->why)),
	                 -ENODEV);
	assert_non_null(strstr(l->why, "nix0"));
}

/* "squat FAMILY DESCRIPTOR": a process that holds port 4791 of all devices, and says so. */
static int squat(int family, int ready)
{
	struct sockaddr_in6 any = { .sin6_family = (sa_family_t)family,
		                    .sin6_port = htons(WIRE_ROCE_UDP_PORT) };
	int fd = socket(family, SOCK_DGRAM, 0);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "squatter");
	testing_give_up_capabilities();
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) || write(ready, "", 1) != 1)
		return 1;
	for (;;)
		pause();
}

static pid_t start_squatter(int family)
{
	char family_text[16], ready_text[16], c;
	int ready[2];
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	snprintf(family_text, sizeof(family_text), "%d", family);
	snprintf(ready_text, sizeof(ready_text), "%d", ready[1]);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		execl("/proc/self/exe", "udp_test", "squat", family_text, ready_text, NULL);
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
}

/* IPv6's socket, when it comes to that, is one for both. */
CASE_WITH(an_error_names_the_process_that_has_the_port, set_up, tear_down)
{
	struct lab *l = *state;
	char name[64];

	close(l->receive[V4]);
	close(l->receive[V6]);
	for (unsigned v = V4; v <= V6; v++) {
		pid_t pid = start_squatter(families[v]);

		assert_int_equal(
		        netdev_udp_open_receive(families[v], ON("va"), l->why, sizeof(l->why)),
		        -EADDRINUSE);
		snprintf(name, sizeof(name), "taken by process %d (squatter)", (int)pid);
		assert_non_null(strstr(l->why, name));
		assert_non_null(strstr(l->why, "va: UDP port 4791"));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	l->receive[V4] = netdev_udp_open_receive(AF_INET, ON("va"), l->why, sizeof(l->why));
	l->receive[V6] = netdev_udp_open_receive(AF_INET6, ON("va"), l->why, sizeof(l->why));
	assert_true(l->receive[V4] >= 0 && l->receive[V6] >= 0);
}

/* Somebody has a duplicate of the retired one. */
CASE_WITH(beside_a_retired_socket_only_the_new_one_receives, set_up, tear_down)
{
	static const char *const group[] = { "::ffff:239.1.1.1", "ff0e::1" };
	static const char *const from[] = { "::ffff:10.0.0.2", "2001:db8::2" };
	struct lab *l = *state;

	for (unsigned v = V4; v <= V6; v++) {
		struct wire_ip alone = unicast(v), joined = to(from[v], group[v]);
		int old = dup(l->receive[v]);

		join(l->receive[v], v, group[v]);
		netdev_udp_retire(l->receive[v]);
		assert_int_equal(
		        netdev_udp_open_receive(families[v], ON("va"), l->why, sizeof(l->why)),
		        -EADDRINUSE);
		close(l->receive[v]);
		l->receive[v] =
		        netdev_udp_reopen_receive(families[v], ON("va"), l->why, sizeof(l->why));
		assert_true(l->receive[v] >= 0);
		assert_int_equal(send_one(l->send[v], &alone, "alone", 5), 0);
		assert_int_equal(receive(l, v, 1), 1);
		assert_got(l, 0, "alone", 5);
		assert_int_equal(send_one(l->send[v], &joined, "joined", 6), 0);
		assert_int_equal(receive(l, v, 1), 1);
		assert_got(l, 0, "joined", 6);
		assert_int_equal(netdev_udp_receive(old, l->got, 1, NULL), 0);
		close(old);
	}
}

CASE_WITH(beside_a_socket_in_use_there_is_no_other, set_up, tear_down)
{
	struct lab *l = *state;
	int old = l->receive[V4];

	netdev_udp_retire(old);
	l->receive[V4] = netdev_udp_reopen_receive(AF_INET, ON("va"), l->why, sizeof(l->why));
	assert_true(l->receive[V4] >= 0);
	assert_int_equal(netdev_udp_reopen_receive(AF_INET, ON("va"), l->why, sizeof(l->why)),
	                 -EADDRINUSE);
	close(old);
}

CASE_WITH(each_device_has_a_port_4791_of_its_own, set_up, tear_down)
{
	struct lab *l = *state;
	struct wire_ip ip = unicast(V4);
	int fd = netdev_udp_open_receive(AF_INET, ON("lo"), l->why, sizeof(l->why));

	assert_true(fd >= 0);
	assert_int_equal(send_one(l->send[V4], &ip, "x", 1), 0);
	assert_int_equal(receive(l, V4, 1), 1);
	assert_int_equal(netdev_udp_receive(fd, l->got, 1, NULL), 0);
	close(fd);
}

CASE_WITH(senders_may_share_a_source_port, set_up, tear_down)
{
	struct lab *l = *state;
	uint16_t first = 0xC777, second = 0xC777;
	int a = netdev_udp_open_send(AF_INET, ON("va"), &first, l->why, sizeof(l->why));
	int b = netdev_udp_open_send(AF_INET, ON("va"), &second, l->why, sizeof(l->why));

	assert_true(a >= 0 && b >= 0);
	assert_int_equal(first, 0xC777);
	assert_int_equal(second, 0xC777);
	close(a);
	close(b);
}

CASE_WITH(a_source_port_in_use_is_replaced, set_up, tear_down)
{
	struct lab *l = *state;
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(0xFFFF) };
	int taken = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), fd;
	uint16_t port = 0xFFFF;

	assert_int_equal(bind(taken, (struct sockaddr *)&in, sizeof(in)), 0);
	fd = netdev_udp_open_send(AF_INET, ON("va"), &port, l->why, sizeof(l->why));
	assert_true(fd >= 0);
	assert_int_equal(port, NETDEV_UDP_SOURCE_FIRST);
	close(fd);
	close(taken);
}

/* The datagram to the socket's own port is gone when a later one to 4791 has come. */
CASE_WITH(a_send_socket_queues_no_received_datagrams, set_up, tear_down)
{
	struct lab *l = *state;
	struct sockaddr_in in = { .sin_family = AF_INET,
		                  .sin_port = htons(0xC777),
		                  .sin_addr.s_addr = inet_addr("10.0.0.1") };
	struct wire_ip ip = unicast(V4);
	uint16_t port = 0xC777;
	int fd = netdev_udp_open_send(AF_INET, ON("va"), &port, l->why, sizeof(l->why));
	char c;

	assert_true(fd >= 0);
	assert_int_equal(sendto(l->send[V4], "x", 1, 0, (struct sockaddr *)&in, sizeof(in)), 1);
	assert_int_equal(send_one(l->send[V4], &ip, "x", 1), 0);
	assert_int_equal(receive(l, V4, 1), 1);
	assert_int_equal(recv(fd, &c, 1, MSG_DONTWAIT), -1);
	close(fd);
}

CASE_WITH(what_a_full_socket_loses_is_counted, set_up, tear_down)
{
	struct lab *l = *state;
	struct wire_ip ip = unicast(V4);
	struct netdev_udp_message m[64];
	int bytes = 20000, got = 0, n;

	setsockopt(l->receive[V4], SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	for (unsigned i = 0; i < ARRAY_SIZE(m); i++)
		m[i] = (struct netdev_udp_message){ .ip = &ip,
			                            .iov = { { l->why, 100 } },
			                            .n_iov = 1 };
	assert_int_equal(netdev_udp_send(l->send[V4], m, ARRAY_SIZE(m)), ARRAY_SIZE(m));
	while ((n = netdev_udp_receive(l->receive[V4], l->got, NETDEV_UDP_BATCH, &l->lost)) > 0)
		got += n;
	assert_int_equal(n, 0);
	assert_int_equal(send_one(l->send[V4], &ip, "x", 1), 0);
	receive(l, V4, 1);
	assert_in_range(got, 1, ARRAY_SIZE(m) - 1);
	assert_int_equal(l->lost, (int)ARRAY_SIZE(m) - got);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "squat"))
		return squat(atoi(argv[2]), atoi(argv[3]));
	return harness_run(testing_enter_two_namespaces, NULL);
}
