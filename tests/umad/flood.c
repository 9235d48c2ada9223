/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A listener on host 2 gets more requests for connections than its program can take: host 3 sends
 * them as MADs, each for a queue pair of its own, and does not care what becomes of them. Host 1
 * connects to the same listener.
 */
#include "lab.h"

#include <infiniband/umad_cm.h>
#include <rdma/rdma_cma.h>

#include "base/pause.h"
#include "deadline.h"

#define CM_CLASS    0x07
#define CM_VERSION  2
#define PORT        7175
#define SERVICE_ID  (0x01060000 | PORT)
#define ENOUGH      6000 /* more than any backlog has room for */
#define CONNECTIONS 20

struct req {
	struct umad_hdr hdr;
	__be32 local_id, vendor_id;
	__be64 service_id, guid;
	__be32 reserved, qkey;
	__be32 qpn, eecn, remote_eecn, psn; /* 24 bits each, and a byte */
	__be16 pkey;
	uint8_t mtu, retries;
	__be16 local_lid, remote_lid;
	uint8_t local_gid[16], remote_gid[16];
	uint8_t path[8], other_path[44];
	uint8_t version, ip_version;
	__be16 port;
	uint8_t src[16], dst[16];
	uint8_t private_data[56];
};
_Static_assert(sizeof(struct req) == LAB_MAD, "layout");

/* ---- host 3 ---- */

static struct flood {
	pthread_t thread;
	int fd, agent;
	_Atomic unsigned sent;
	_Atomic bool stop;
} flood;

static void read_gid(int host, uint8_t gid[16])
{
	umad_port_t port;

	assert_int_equal(umad_get_port(lab_ca(host), 1, &port), 0);
	memcpy(gid, &port.gid_prefix, 8);
	memcpy(gid + 8, &port.port_guid, 8);
	umad_release_port(&port);
}

static struct req request(void)
{
	struct req r = { .hdr = { .base_version = 1,
		                  .mgmt_class = CM_CLASS,
		                  .class_version = CM_VERSION,
		                  .method = LAB_SEND,
		                  .attr_id = htobe16(UMAD_CM_ATTR_REQ) },
		         .service_id = htobe64(SERVICE_ID),
		         .guid = htobe64(0x2756d0000003000),
		         .remote_eecn = htobe32(20 << 3), /* a timeout; the transport is RC */
		         .psn = htobe32(20 << 3),
		         .pkey = htobe16(0xFFFF),
		         .mtu = 5 << 4,
		         .local_lid = htobe16(lab_lid(3)),
		         .remote_lid = htobe16(lab_lid(2)),
		         .ip_version = 0x40,
		         .port = htobe16(4000) };

	read_gid(3, r.local_gid);
	read_gid(2, r.remote_gid);
	inet_pton(AF_INET, "10.0.0.3", r.src + 12);
	inet_pton(AF_INET, "10.0.0.2", r.dst + 12);
	return r;
}

/* Answers are read, and no more. */
static void discard_answers(void)
{
	void *umad = umad_alloc(1, umad_size() + LAB_MAD);
	int length = LAB_MAD;

	assert_non_null(umad);
	while (umad_recv(flood.fd, umad, &length, 0) >= 0)
		length = LAB_MAD;
	umad_free(umad);
}

static void *send_requests(void *arg)
{
	struct req r = request();
	void *umad = umad_alloc(1, umad_size() + LAB_MAD);

	assert_non_null(umad);
	for (uint32_t n = 1; !flood.stop; n++) {
		r.local_id = htobe32(n);
		r.qpn = htobe32(n << 8);
		memcpy(lab_data(umad), &r, sizeof(r));
		umad_set_addr(umad, lab_lid(2), 1, 0, UMAD_QKEY);
		if (umad_send(flood.fd, flood.agent, umad, LAB_MAD, 0, 0))
			break;
		flood.sent = n;
		if (n % 64 == 0)
			discard_answers();
	}
	umad_free(umad);
	return arg;
}

static void flood_begin(void)
{
	struct umad_reg_attr attr = { .mgmt_class = CM_CLASS,
		                      .mgmt_class_version = CM_VERSION,
		                      .method_mask = { LAB_METHOD(LAB_SEND) } };
	int err;

	flood.fd = lab_open(3);
	flood.agent = lab_register(flood.fd, &attr, &err);
	assert_int_equal(err, 0);
	flood.stop = false;
	flood.sent = 0;
	assert_int_equal(pthread_create(&flood.thread, NULL, send_requests, NULL), 0);
}

static void flood_end(void)
{
	flood.stop = true;
	assert_int_equal(pthread_join(flood.thread, NULL), 0);
}

static void wait_for_requests(unsigned n)
{
	struct base_pause pause = { 0 };

	while (flood.sent < n)
		base_pause(&pause);
}

/* ---- hosts 1 and 2 ---- */

struct node {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
};

static struct sockaddr_in address(const char *text, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, text, &a.sin_addr);
	return a;
}

static struct node node_open(const char *text, uint16_t port)
{
	struct sockaddr_in a = address(text, port);
	struct node n = { .channel = rdma_create_event_channel() };

	assert_non_null(n.channel);
	assert_int_equal(rdma_create_id(n.channel, &n.id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(n.id, (struct sockaddr *)&a), 0);
	return n;
}

static void node_close(struct node *n)
{
	assert_int_equal(rdma_destroy_id(n->id), 0);
	rdma_destroy_event_channel(n->channel);
}

static void expect_event(const struct node *n, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e;

	DEADLINE_AWAIT(n->channel->fd, rdma_event_str(type));
	assert_int_equal(rdma_get_cm_event(n->channel, &e), 0);
	assert_string_equal(rdma_event_str(e->event), rdma_event_str(type));
	assert_int_equal(rdma_ack_cm_event(e), 0);
}

/* Host 1 asks; its queue pair is of its own making. */
static struct node ask(void)
{
	struct sockaddr_in dst = address("10.0.0.2", PORT);
	struct rdma_conn_param param = { .qp_num = 0x123 };
	struct node n = node_open("10.0.0.1", 0);

	assert_int_equal(rdma_resolve_addr(n.id, NULL, (struct sockaddr *)&dst, 10000), 0);
	expect_event(&n, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(n.id, 10000), 0);
	expect_event(&n, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(rdma_connect(n.id, &param), 0);
	return n;
}

/* The program at the listener refuses all hosts but host 1. */
static bool is_host_1(struct rdma_cm_id *id)
{
	const struct sockaddr_in *from = (void *)rdma_get_peer_addr(id);

	return from->sin_addr.s_addr == inet_addr("10.0.0.1");
}

/* Takes requests until that of host 1 has come, which it accepts. How many others there were. */
static unsigned take(const struct node *listener, struct rdma_cm_id **taken)
{
	struct rdma_conn_param param = { .qp_num = 0x456 };
	struct rdma_cm_event *e;
	unsigned others = 0;

	for (*taken = NULL; !*taken;) {
		struct rdma_cm_id *id;

		DEADLINE_AWAIT(listener->channel->fd, "a request to connect");
		assert_int_equal(rdma_get_cm_event(listener->channel, &e), 0);
		assert_int_equal(e->event, RDMA_CM_EVENT_CONNECT_REQUEST);
		id = e->id;
		assert_int_equal(rdma_ack_cm_event(e), 0);
		if (is_host_1(id)) {
			assert_int_equal(rdma_accept(id, &param), 0);
			*taken = id;
		} else {
			assert_int_equal(rdma_reject(id, NULL, 0), 0);
			assert_int_equal(rdma_destroy_id(id), 0);
			others++;
		}
	}
	return others;
}

/* Both ends are established, and end. */
static void finish(struct node *asker, struct rdma_cm_id *taken)
{
	expect_event(asker, RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(rdma_establish(asker->id), 0);
	node_close(asker);
	assert_int_equal(rdma_destroy_id(taken), 0);
}

static struct node listener_open(int backlog)
{
	struct node listener = node_open("10.0.0.2", PORT);

	assert_int_equal(rdma_listen(listener.id, backlog), 0);
	return listener;
}

LAB_CASE(a_full_backlog_has_room_for_who_is_not_in_it)
{
	struct node listener = listener_open(0), asker;
	struct rdma_cm_id *taken;
	unsigned others;

	flood_begin();
	wait_for_requests(ENOUGH);
	asker = ask();
	flood_end();
	others = take(&listener, &taken);
	assert_true(others > 100 && others < ENOUGH);
	finish(&asker, taken);
	node_close(&listener);
}

LAB_CASE(a_listener_serves_others_during_a_flood)
{
	struct node listener = listener_open(64);

	flood_begin();
	wait_for_requests(ENOUGH);
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		struct node asker = ask();
		struct rdma_cm_id *taken;

		take(&listener, &taken);
		finish(&asker, taken);
	}
	flood_end();
	node_close(&listener);
}
