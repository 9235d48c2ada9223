/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * GIDs as addresses (AF_IB): what they may be bound to, from where they are reached, which service
 * IDs their masks let through, and what a request says of both ends. Hosts h1 to h4, one process.
 */
#include "common.h"

#include <rdma/rsocket.h>

#define PORT     7300
#define IP_BYTES 36 /* that IP addresses take in the private data of a request */
#define TCP      ((uint64_t)RDMA_PS_TCP << 16)
#define UDP      ((uint64_t)RDMA_PS_UDP << 16)

#define CONSUMER_DEFINED 28 /* why a request is rejected */

/* Private data that begins as the IP addresses of a request do. */
static const char like_ip[] = "\0\x40 and more";

static union address gid_of(unsigned host, uint64_t sid, uint64_t mask)
{
	union address a = { .ib = { .sib_family = AF_IB,
		                    .sib_pkey = htobe16(0xFFFF),
		                    .sib_sid = htobe64(sid),
		                    .sib_sid_mask = htobe64(mask) } };
	char gid[INET6_ADDRSTRLEN];

	snprintf(gid, sizeof(gid), "fe80::275:6d00:0:%x01", host);
	if (host)
		assert_int_equal(inet_pton(AF_INET6, gid, a.ib.sib_addr.sib_raw), 1);
	return a;
}

static union address gid_at(unsigned host, uint16_t port)
{
	return gid_of(host, TCP | port, UINT64_MAX);
}

static void assert_gid_of(const struct sockaddr *addr, unsigned host)
{
	union address a = gid_of(host, 0, 0);

	assert_int_equal(addr->sa_family, AF_IB);
	assert_memory_equal(&((const struct sockaddr_ib *)addr)->sib_addr, &a.ib.sib_addr, 16);
}

/* ---- binding ---- */

static void bind_fails(enum rdma_port_space ps, const union address *a, int err)
{
	struct node CLOSED n = node_open(ps);

	assert_fails(rdma_bind_addr(n.id, (struct sockaddr *)&a->sa), err);
	assert_null(n.id->verbs);
	node_bind(&n, 1, 0); /* as if nothing had been tried */
}

/* The service ID that an identifier has after it was bound. */
static uint64_t bound_service(enum rdma_port_space ps, union address a)
{
	struct node n = node_open(ps);
	const struct sockaddr_ib *src = (const struct sockaddr_ib *)rdma_get_local_addr(n.id);
	uint64_t service;

	assert_int_equal(rdma_bind_addr(n.id, &a.sa), 0);
	assert_int_equal(src->sib_sid_mask, UINT64_MAX);
	service = be64toh(src->sib_sid);
	assert_int_equal(ntohs(rdma_get_src_port(n.id)), service & UINT16_MAX);
	node_close(&n);
	return service;
}

CASE(a_gid_of_no_port_has_no_device)
{
	union address a = gid_at(99, PORT);

	bind_fails(RDMA_PS_TCP, &a, ENODEV);
	a = gid_at(1, PORT);
	a.ib.sib_addr.sib_raw[0] ^= 1; /* in another subnet */
	bind_fails(RDMA_PS_TCP, &a, ENODEV);
}

CASE(the_mask_says_what_of_the_service_counts)
{
	uint64_t service = bound_service(RDMA_PS_TCP, gid_of(1, UINT64_MAX, 0));

	assert_int_equal(service >> 16, RDMA_PS_TCP);
	assert_true((service & UINT16_MAX) >= 32768);
	service = bound_service(RDMA_PS_TCP, gid_of(1, TCP | PORT, RDMA_IB_IP_PS_MASK));
	assert_true((service & UINT16_MAX) >= 32768);
	service = bound_service(RDMA_PS_TCP, gid_of(1, UDP | PORT, RDMA_IB_IP_PORT_MASK));
	assert_int_equal(service, TCP | PORT);
	service = bound_service(RDMA_PS_UDP, gid_of(0, UDP | PORT, UINT64_MAX));
	assert_int_equal(service, UDP | PORT);
	service = bound_service(RDMA_PS_IB, gid_of(1, TCP | PORT, UINT64_MAX));
	assert_int_equal(service, TCP | PORT);
}

CASE(a_service_of_another_port_space_is_refused)
{
	union address a = gid_of(1, UDP | PORT, UINT64_MAX);

	bind_fails(RDMA_PS_TCP, &a, EPROTONOSUPPORT);
	a = gid_of(1, TCP | PORT, UINT64_MAX);
	bind_fails(RDMA_PS_UDP, &a, EPROTONOSUPPORT);
	a = gid_of(1, UINT64_C(1) << 63 | TCP | PORT, UINT64_MAX);
	bind_fails(RDMA_PS_TCP, &a, EPROTONOSUPPORT);
	bind_fails(RDMA_PS_IPOIB, &a, EPROTONOSUPPORT);
}

CASE(the_scope_is_kept_and_means_nothing)
{
	struct node CLOSED n = node_open(RDMA_PS_TCP);
	union address a = gid_at(1, PORT);

	a.ib.sib_scope_id = htobe64(UINT64_MAX - 7);
	assert_int_equal(rdma_bind_addr(n.id, &a.sa), 0);
	assert_memory_equal(rdma_get_local_addr(n.id), &a, sizeof(a.ib));
	assert_fails(rdma_bind_addr(n.id, &a.sa), EINVAL);
}

/* ---- resolving ---- */

CASE(families_do_not_mix)
{
	struct node CLOSED n = node_open(RDMA_PS_TCP), other = node_open(RDMA_PS_TCP);
	union address gid = gid_at(2, PORT), ip = host_address(2, PORT), src = host_address(1, 0);

	assert_fails(rdma_resolve_addr(n.id, &src.sa, &gid.sa, 1000), EINVAL);
	src = gid_at(1, 0);
	assert_fails(rdma_resolve_addr(other.id, &src.sa, &ip.sa, 1000), EINVAL);
}

static void resolve_fails(const union address *to, int err)
{
	struct node CLOSED n = node_open(RDMA_PS_TCP);

	assert_fails(rdma_resolve_addr(n.id, NULL, (struct sockaddr *)&to->sa, 1000), err);
}

CASE(no_port_leads_to_another_subnet_or_partition)
{
	union address a = gid_at(2, PORT);

	a.ib.sib_pkey = htobe16(0x8765);
	resolve_fails(&a, ENODEV);
	a = gid_at(2, PORT);
	a.ib.sib_addr.sib_raw[7] ^= 1;
	resolve_fails(&a, ENODEV);
}

CASE(ones_own_gid_is_reached_from_its_port)
{
	struct node CLOSED n = node_open(RDMA_PS_TCP);
	union address a = gid_at(3, PORT);

	assert_int_equal(rdma_resolve_addr(n.id, NULL, &a.sa, 1000), 0);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_gid_of(rdma_get_local_addr(n.id), 3);
}

CASE(a_gid_that_nobody_has_has_no_route)
{
	struct node CLOSED n = node_open(RDMA_PS_TCP);
	union address a = gid_at(99, PORT);
	struct rdma_cm_event *e;

	assert_int_equal(rdma_resolve_addr(n.id, NULL, &a.sa, 1000), 0);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(n.id, 1000), 0);
	e = next_event(&n);
	assert_event(e, RDMA_CM_EVENT_ROUTE_ERROR, -EINVAL);
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

/* ---- connecting ---- */

static struct node listening(union address a)
{
	struct node l = node_open(RDMA_PS_TCP);

	assert_int_equal(rdma_bind_addr(l.id, &a.sa), 0);
	assert_int_equal(rdma_listen(l.id, 4), 0);
	return l;
}

/* @data: 11 bytes. */
static struct node asking(union address src, union address dst, const char *data)
{
	struct rdma_conn_param param = { .private_data = data, .private_data_len = 11 };
	struct node n = node_open(RDMA_PS_TCP);

	param.qp_num = 1;
	assert_int_equal(rdma_resolve_addr(n.id, &src.sa, &dst.sa, 1000), 0);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(n.id, 1000), 0);
	expect_event(&n, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(rdma_connect(n.id, &param), 0);
	return n;
}

static void expect_rejected(struct node *n, int status)
{
	struct rdma_cm_event *e = next_event(n);

	assert_event(e, RDMA_CM_EVENT_REJECTED, status);
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

/* A request from h1 to the listener on h2, which is of AF_IB; @skip: where the private data is. */
static void expect_request_by_gid(struct node *l, size_t skip)
{
	struct rdma_cm_event *e = next_event(l);
	const struct sockaddr_ib *src = (const struct sockaddr_ib *)rdma_get_local_addr(e->id);
	const struct sockaddr_ib *dst = (const struct sockaddr_ib *)rdma_get_peer_addr(e->id);
	struct rdma_cm_id *id;

	assert_event(e, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_gid_of((const struct sockaddr *)src, 2);
	assert_gid_of((const struct sockaddr *)dst, 1);
	assert_int_equal(be64toh(src->sib_sid), TCP | PORT);
	assert_int_equal(src->sib_sid_mask, UINT64_MAX);
	assert_int_equal(be16toh(src->sib_pkey), 0xFFFF);
	assert_int_equal(be16toh(dst->sib_pkey), 0xFFFF);
	assert_int_equal(ntohs(rdma_get_src_port(e->id)), PORT);
	assert_int_equal(rdma_get_dst_port(e->id), 0); /* no request has it */
	assert_int_equal(e->param.conn.private_data_len, 92);
	assert_memory_equal((const char *)e->param.conn.private_data + skip, like_ip, 11);
	assert_int_equal(rdma_reject(e->id, NULL, 0), 0);
	id = e->id;
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

CASE(a_request_by_gid_is_announced_by_gid)
{
	struct node CLOSED l = listening(gid_at(2, PORT));
	struct node CLOSED n = asking(gid_of(1, 0, 0), gid_at(2, PORT), like_ip);

	expect_request_by_gid(&l, 0);
	expect_rejected(&n, CONSUMER_DEFINED);
}

/* The listener's family counts, not what is in the request. */
CASE(a_request_by_ip_is_announced_by_gid)
{
	struct node CLOSED l = listening(gid_at(0, PORT));
	struct node CLOSED n = asking(host_address(1, 0), host_address(2, PORT), like_ip);

	expect_request_by_gid(&l, IP_BYTES);
	expect_rejected(&n, CONSUMER_DEFINED);
}

CASE(who_listens_by_ip_hears_no_request_by_gid)
{
	struct node CLOSED l = listening(address("::", PORT));
	struct node CLOSED n = asking(gid_of(1, 0, 0), gid_at(2, PORT), "\1 and more.");

	expect_rejected(&n, CONSUMER_DEFINED);
	assert_no_event(&l);
}

/* ---- rsockets ---- */

static int by_gid(void)
{
	int rs = rsocket(AF_IB, SOCK_STREAM, 0);

	assert_true(rs >= 0);
	return rs;
}

static int listening_rsocket(union address a)
{
	int rs = rsocket(a.sa.sa_family, SOCK_STREAM, 0);
	socklen_t bytes = a.sa.sa_family == AF_IB ? sizeof(a.ib) : sizeof(a.in);

	assert_int_equal(rbind(rs, &a.sa, bytes), 0);
	assert_int_equal(rlisten(rs, 4), 0);
	return rs;
}

static void expect_bytes_pass(int from, int to)
{
	char text[4] = "";

	assert_int_equal(rsend(from, "now", 3, 0), 3);
	assert_int_equal(rrecv(to, text, 3, MSG_WAITALL), 3);
	assert_string_equal(text, "now");
}

static void close_all(const int *rs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(rclose(rs[i]), 0);
}

typedef int name_call(int rs, struct sockaddr *addr, socklen_t *bytes);

static void expect_name(name_call *call, int rs, unsigned host, uint16_t port)
{
	union address a;
	socklen_t bytes = sizeof(a);

	memset(&a, 0xA5, sizeof(a));
	assert_int_equal(call(rs, &a.sa, &bytes), 0);
	assert_int_equal(bytes, sizeof(a.ib));
	assert_gid_of(&a.sa, host);
	if (port)
		assert_int_equal(be64toh(a.ib.sib_sid), TCP | port);
}

CASE(rsockets_connect_by_gids)
{
	union address from = gid_at(1, 0), to = gid_at(2, PORT), peer;
	int listener = listening_rsocket(to), client = by_gid(), server;
	socklen_t bytes = sizeof(peer);

	assert_int_equal(rbind(client, &from.sa, sizeof(from.ib)), 0);
	assert_int_equal(rconnect(client, &to.sa, sizeof(to.ib)), 0);
	server = raccept(listener, &peer.sa, &bytes);
	assert_true(server >= 0);
	assert_int_equal(bytes, sizeof(peer.ib));
	assert_gid_of(&peer.sa, 1);
	expect_name(rgetsockname, client, 1, 0);
	expect_name(rgetpeername, client, 2, PORT);
	expect_name(rgetsockname, server, 2, PORT);
	expect_name(rgetpeername, server, 1, 0);
	expect_bytes_pass(client, server);
	expect_bytes_pass(server, client);
	close_all((int[]){ client, server, listener }, 3);
}

CASE(an_rsocket_that_listens_by_gid_serves_ip)
{
	union address to = host_address(2, PORT), from = host_address(1, 0);
	int listener = listening_rsocket(gid_at(0, PORT)), server;
	int client = rsocket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(rbind(client, &from.sa, sizeof(from.in)), 0);
	assert_int_equal(rconnect(client, &to.sa, sizeof(to.in)), 0);
	server = raccept(listener, NULL, NULL);
	assert_true(server >= 0);
	expect_name(rgetpeername, server, 1, 0);
	expect_bytes_pass(client, server);
	expect_bytes_pass(server, client);
	close_all((int[]){ client, server, listener }, 3);
}

CASE(an_rsocket_by_gid_is_refused_by_ip)
{
	int listener = listening_rsocket(host_address(2, PORT)), client = by_gid();
	union address to = gid_at(2, PORT);

	assert_fails(rconnect(client, &to.sa, sizeof(to.ib)), ECONNREFUSED);
	close_all((int[]){ client, listener }, 2);
}

CASE(bad_addresses_of_rsockets_are_refused)
{
	union address ip = host_address(2, PORT), gid = gid_at(2, PORT);
	int client = by_gid(), other = rsocket(AF_INET6, SOCK_STREAM, 0);

	for (socklen_t n = 0; n < sizeof(gid.ib); n++) {
		assert_fails(rconnect(client, &gid.sa, n), EINVAL);
		assert_fails(rbind(client, &gid.sa, n), EINVAL);
	}
	assert_fails(rbind(client, NULL, sizeof(gid.ib)), EINVAL);
	assert_fails(rbind(client, &ip.sa, sizeof(gid.ib)), EAFNOSUPPORT);
	assert_fails(rconnect(client, &ip.sa, sizeof(gid.ib)), EAFNOSUPPORT);
	assert_fails(rbind(other, &gid.sa, sizeof(gid.ib)), EAFNOSUPPORT);
	gid = gid_at(99, PORT);
	assert_fails(rbind(client, &gid.sa, sizeof(gid.ib)), ENODEV);
	gid = gid_of(2, UDP | PORT, UINT64_MAX);
	assert_fails(rbind(client, &gid.sa, sizeof(gid.ib)), EPROTONOSUPPORT);
	gid = gid_of(2, 0, 0);
	gid.ib.sib_addr.sib_raw[0] = 0xFF;
	assert_fails(rconnect(client, &gid.sa, sizeof(gid.ib)), ENETUNREACH);
	assert_fails(rsocket(AF_IB, SOCK_DGRAM, 0), EAFNOSUPPORT); /* the system has no UDP by it */
	assert_fails(rsocket(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT);
	close_all((int[]){ client, other }, 2);
}

CASE(a_name_goes_where_there_is_room)
{
	int rs = by_gid();
	char place[sizeof(struct sockaddr_ib)];
	union address a = gid_at(1, 0);
	socklen_t bytes = 3;

	assert_int_equal(rbind(rs, &a.sa, sizeof(a.ib)), 0);
	memset(place, 0xA5, sizeof(place));
	assert_int_equal(rgetsockname(rs, (struct sockaddr *)place, &bytes), 0);
	assert_int_equal(bytes, sizeof(a.ib));
	assert_memory_equal(place, &a, 3);
	assert_int_equal(place[3], (char)0xA5);
	close_all(&rs, 1);
}

/* A program asks that is no rsocket: whatever it says, the listener goes on. */
CASE(strangers_are_rejected_and_the_next_is_served)
{
	static const char *const say[] = { "\1..........", "\0..........", like_ip };
	union address to = gid_at(2, PORT);
	int listener = listening_rsocket(to), client = by_gid(), server;

	assert_int_equal(rfcntl(listener, F_SETFL, O_NONBLOCK), 0);
	for (size_t i = 0; i < sizeof(say) / sizeof(say[0]); i++) {
		struct node n = asking(gid_of(1, 0, 0), to, say[i]);
		struct pollfd p[] = { { .fd = listener, .events = POLLIN },
			              { .fd = n.channel->fd, .events = POLLIN } };

		while (!p[1].revents)
			assert_true(rpoll(p, 2, -1) > 0);
		assert_int_equal(p[0].revents, 0);
		expect_rejected(&n, CONSUMER_DEFINED);
		node_close(&n);
	}
	assert_int_equal(rfcntl(listener, F_SETFL, 0), 0);
	assert_int_equal(rconnect(client, &to.sa, sizeof(to.ib)), 0);
	server = raccept(listener, NULL, NULL);
	expect_bytes_pass(client, server);
	close_all((int[]){ client, server, listener }, 3);
}
