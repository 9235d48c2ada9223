/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Services of rdma_cm are resolved by MADs: here one of the two sides is the test, with an agent
 * for communication management at the port of host 3, and the other is rdma_cm on host 2.
 */
#include "lab.h"

#include <infiniband/umad_cm.h>
#include <rdma/rdma_cma.h>

#include "deadline.h"

#define CM_CLASS   0x07
#define CM_VERSION 2
#define SERVICE    7174
#define SERVICE_ID (0x01110000 | SERVICE)
#define QPN        0x123
#define QKEY       0x01234567

struct sidr_req {
	struct umad_hdr hdr;
	__be32 request_id;
	__be16 pkey, reserved;
	__be32 service_high, service_low;
	uint8_t version, ip_version;
	__be16 port;
	uint8_t src[16], dst[16];
	uint8_t private_data[180];
};

struct sidr_rep {
	struct umad_hdr hdr;
	__be32 request_id;
	uint8_t status, info_length;
	__be16 reserved;
	__be32 qpn; /* the high 24 bits */
	__be32 service_high, service_low;
	__be32 qkey;
	uint8_t info[72];
	uint8_t private_data[136];
};

/* ---- host 3: MADs ---- */

struct side {
	int fd, agent;
};

static struct side side_open(void)
{
	struct umad_reg_attr attr = { .mgmt_class = CM_CLASS,
		                      .mgmt_class_version = CM_VERSION,
		                      .method_mask = { LAB_METHOD(LAB_SEND) } };
	struct side s = { .fd = lab_open(3) };
	int err;

	s.agent = lab_register(s.fd, &attr, &err);
	assert_int_equal(err, 0);
	return s;
}

static void *side_expect(const struct side *s, uint16_t attribute)
{
	void *umad = lab_expect(s->fd, s->agent, LAB_MAD);
	const struct umad_hdr *h = (void *)lab_data(umad);

	assert_int_equal(h->mgmt_class, CM_CLASS);
	assert_int_equal(h->class_version, CM_VERSION);
	assert_int_equal(h->method, LAB_SEND);
	assert_int_equal(be16toh(h->attr_id), attribute);
	assert_int_equal(be16toh(umad_get_mad_addr(umad)->lid), lab_lid(2));
	return umad;
}

static void side_send(const struct side *s, const void *mad)
{
	void *umad = umad_alloc(1, umad_size() + LAB_MAD);

	assert_non_null(umad);
	memcpy(lab_data(umad), mad, LAB_MAD);
	lab_send(s->fd, umad, &(struct lab_how){ .agent = s->agent, .lid = lab_lid(2) });
}

/* The answer to @req, which is freed. */
static void side_answer(const struct side *s, void *req, uint8_t status)
{
	const struct sidr_req *r = (void *)lab_data(req);
	struct sidr_rep rep = { .hdr = r->hdr,
		                .request_id = r->request_id,
		                .status = status,
		                .qpn = htobe32(QPN << 8),
		                .service_high = r->service_high,
		                .service_low = r->service_low,
		                .qkey = htobe32(QKEY),
		                .private_data = "here" };

	rep.hdr.attr_id = htobe16(UMAD_CM_ATTR_SIDR_REP);
	side_send(s, &rep);
	umad_free(req);
}

static struct sidr_req request(uint32_t request_id)
{
	struct sidr_req r = { .hdr = { .base_version = 1,
		                       .mgmt_class = CM_CLASS,
		                       .class_version = CM_VERSION,
		                       .method = LAB_SEND,
		                       .attr_id = htobe16(UMAD_CM_ATTR_SIDR_REQ) },
		              .request_id = htobe32(request_id),
		              .pkey = htobe16(0xFFFF),
		              .service_low = htobe32(SERVICE_ID),
		              .ip_version = 0x40,
		              .port = htobe16(4000),
		              .private_data = "hello" };

	inet_pton(AF_INET, "10.0.0.3", r.src + 12);
	inet_pton(AF_INET, "10.0.0.2", r.dst + 12);
	return r;
}

/* ---- host 2: rdma_cm ---- */

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

static struct node node_open(uint16_t port)
{
	struct sockaddr_in a = address("10.0.0.2", port);
	struct node n = { .channel = rdma_create_event_channel() };

	assert_non_null(n.channel);
	assert_int_equal(rdma_create_id(n.channel, &n.id, NULL, RDMA_PS_UDP), 0);
	assert_int_equal(rdma_bind_addr(n.id, (struct sockaddr *)&a), 0);
	return n;
}

static void node_close(struct node *n)
{
	assert_int_equal(rdma_destroy_id(n->id), 0);
	rdma_destroy_event_channel(n->channel);
}

static struct rdma_cm_event *expect_event(struct node *n, enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *e;

	DEADLINE_AWAIT(n->channel->fd, rdma_event_str(type));
	assert_int_equal(rdma_get_cm_event(n->channel, &e), 0);
	assert_string_equal(rdma_event_str(e->event), rdma_event_str(type));
	assert_int_equal(e->status, status);
	return e;
}

static void expect(struct node *n, enum rdma_cm_event_type type, int status)
{
	assert_int_equal(rdma_ack_cm_event(expect_event(n, type, status)), 0);
}

/* Asks for the service on host 3. */
static void node_connect(struct node *n)
{
	struct rdma_conn_param param = { .private_data = "hello", .private_data_len = 6 };
	struct sockaddr_in a = address("10.0.0.3", SERVICE);

	assert_int_equal(rdma_resolve_addr(n->id, NULL, (struct sockaddr *)&a, 1000), 0);
	expect(n, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_resolve_route(n->id, 1000), 0);
	expect(n, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(rdma_connect(n->id, &param), 0);
}

/* ---- asking ---- */

LAB_CASE(connecting_is_a_request_with_addresses)
{
	const struct sidr_req want = request(0);
	struct side s = side_open();
	struct node n = node_open(4711);
	struct rdma_cm_event *e;
	struct sidr_req *r;
	void *umad;

	node_connect(&n);
	umad = side_expect(&s, UMAD_CM_ATTR_SIDR_REQ);
	r = (void *)lab_data(umad);
	assert_int_equal(r->service_high, 0);
	assert_int_equal(be32toh(r->service_low), SERVICE_ID);
	assert_int_equal(be16toh(r->pkey), 0xFFFF);
	assert_int_equal(r->version, 0);
	assert_int_equal(r->ip_version, 0x40);
	assert_int_equal(be16toh(r->port), 4711);
	assert_memory_equal(r->src, want.dst, sizeof(r->src));
	assert_memory_equal(r->dst, want.src, sizeof(r->dst));
	assert_string_equal((char *)r->private_data, "hello");
	side_answer(&s, umad, 0);
	e = expect_event(&n, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(e->param.ud.qp_num, QPN);
	assert_int_equal(e->param.ud.qkey, QKEY);
	assert_int_equal(e->param.ud.ah_attr.dlid, lab_lid(3));
	assert_string_equal((const char *)e->param.ud.private_data, "here");
	assert_int_equal(rdma_ack_cm_event(e), 0);
	node_close(&n);
}

LAB_CASE(a_service_that_is_refused_is_unreachable)
{
	struct side s = side_open();
	struct node n = node_open(0);

	node_connect(&n);
	side_answer(&s, side_expect(&s, UMAD_CM_ATTR_SIDR_REQ), 3); /* there is no queue pair */
	expect(&n, RDMA_CM_EVENT_UNREACHABLE, 3);
	node_close(&n);
}

LAB_CASE(a_request_goes_out_until_it_is_answered)
{
	struct side s = side_open();
	struct node n = node_open(0);

	node_connect(&n);
	umad_free(side_expect(&s, UMAD_CM_ATTR_SIDR_REQ));
	side_answer(&s, side_expect(&s, UMAD_CM_ATTR_SIDR_REQ), 0); /* four seconds later */
	expect(&n, RDMA_CM_EVENT_ESTABLISHED, 0);
	node_close(&n);
}

/* ---- being asked ---- */

LAB_CASE(a_request_is_announced_once_and_answered_as_often_as_it_comes)
{
	struct rdma_conn_param param = { .qp_num = QPN };
	struct side s = side_open();
	struct node n = node_open(SERVICE);
	struct sidr_req r = request(42);
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	assert_int_equal(rdma_listen(n.id, 0), 0);
	side_send(&s, &r);
	side_send(&s, &r);
	e = expect_event(&n, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	id = e->id;
	assert_string_equal((const char *)e->param.ud.private_data, "hello");
	assert_int_equal(rdma_get_dst_port(id), htons(4000));
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(rdma_accept(id, &param), 0);
	for (int i = 0; i < 3; i++) {
		void *umad = side_expect(&s, UMAD_CM_ATTR_SIDR_REP);
		struct sidr_rep *rep = (void *)lab_data(umad);

		assert_int_equal(be32toh(rep->request_id), 42);
		assert_int_equal(rep->status, 0);
		assert_int_equal(be32toh(rep->qpn) >> 8, QPN);
		assert_int_equal(be32toh(rep->qkey), QKEY);
		umad_free(umad);
		side_send(&s, &r);
	}
	assert_int_equal(poll(&(struct pollfd){ .fd = n.channel->fd, .events = POLLIN }, 1, 0), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
	node_close(&n);
}

LAB_CASE(a_service_that_nobody_has_is_not_supported)
{
	struct side s = side_open();
	struct sidr_req r = request(43);
	void *umad;

	side_send(&s, &r);
	umad = side_expect(&s, UMAD_CM_ATTR_SIDR_REP);
	assert_int_equal(((struct sidr_rep *)lab_data(umad))->status, 1);
	umad_free(umad);
}

LAB_CASE(who_wants_a_connection_is_rejected)
{
	struct side s = side_open();
	struct sidr_req r = request(44);

	r.hdr.attr_id = htobe16(UMAD_CM_ATTR_REQ);
	side_send(&s, &r);
	umad_free(side_expect(&s, UMAD_CM_ATTR_REJ));
}
