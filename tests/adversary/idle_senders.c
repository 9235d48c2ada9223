/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Payload memory that senders have and do not use is everybody's. A client that speaks the daemon's
 * protocol reserves all that there is, for queue pairs that never send, without touching it.
 */
#include "verbs/lab.h"

#include "daemon_lab.h"
#include "shm/region.h"

#define LARGE   1000 /* bytes of a message that needs a payload slot */
#define BACKLOG 40

/* A client that reserves memory. */
struct hog {
	struct control_client *control;
	struct shm_region region;
	uint32_t qpn;
};

static void hog_ask(struct hog *h, enum control_type type, const void *req, uint32_t bytes,
                    void *reply, uint32_t reply_bytes)
{
	int fd = -1;

	assert_int_equal(
	        control_call(h->control,
	                     &(struct control_call){ .type = type,
	                                             .request = req,
	                                             .request_bytes = bytes,
	                                             .reply = reply,
	                                             .reply_bytes = reply_bytes,
	                                             .fd = type == CONTROL_OPEN_HCA ? &fd : NULL }),
	        0);
}

static void hog_open(struct hog *h)
{
	const struct control_open_hca open = { .hca = 3 };
	struct control_create_cq create_cq = { .cqe = 1 };
	struct control_create_qp create_qp = { .max_recv_wr = 1,
		                               .ready_bit = SHM_NO_READY_BIT,
		                               .type = IBV_QPT_UD };
	struct control_open_hca_reply opened;
	struct control_create_cq_reply cq;
	struct control_create_qp_reply qp;

	h->control = daemon_client(CONTROL_ROLE_VERBS);
	close(daemon_map(h->control, &h->region));
	hog_ask(h, CONTROL_OPEN_HCA, &open, sizeof(open), &opened, sizeof(opened));
	create_cq.hca_handle = create_qp.hca_handle = opened.handle;
	hog_ask(h, CONTROL_CREATE_CQ, &create_cq, sizeof(create_cq), &cq, sizeof(cq));
	create_qp.cq = cq.cq;
	hog_ask(h, CONTROL_CREATE_QP, &create_qp, sizeof(create_qp), &qp, sizeof(qp));
	h->qpn = qp.qpn;
}

static void hog_close(struct hog *h)
{
	shm_region_unmap(&h->region);
	control_close(h->control);
}

/* Reserves all memory that nobody uses, as one that is posting; then it does not post any more. */
static void hog_reserve(struct hog *h)
{
	_Atomic uint32_t *lease = &shm_sender_at(&h->region, SHM_QP_INDEX(h->qpn))->payload_lease;
	struct control_get_payload want = { .qpn = h->qpn };
	struct control_offset_reply reply;
	int ret;

	*lease = SHM_LEASE_IN_USE;
	for (want.bytes = 1u << 30; want.bytes >= 65536; want.bytes /= 2)
		do
			ret = control_ask(h->control, CONTROL_GET_PAYLOAD, &want, &reply);
		while (!ret || ret == -EAGAIN);
	assert_int_equal(ret, -ENOMEM);
	*lease = SHM_LEASE_FREE;
}

static struct ibv_ah *connect_ends(struct lab_end **from, struct lab_end **to)
{
	*from = lab_end(1);
	*to = lab_end(2);
	lab_post(*to, LAB_SLOTS);
	return lab_ah_to(*from, *to);
}

static void fill(char *message, unsigned i)
{
	memset(message, (int)('a' + i % 26), LARGE);
	snprintf(message, LARGE, "message %u", i);
}

static void send_from(struct lab_end *from, struct ibv_ah *ah, const struct lab_end *to, unsigned i)
{
	char message[LARGE];

	fill(message, i);
	lab_send(from, ah, to->qp->qp_num, message, LARGE);
}

static void expect_from(struct lab_end *to, unsigned i)
{
	char message[LARGE];

	fill(message, i);
	lab_expect(to, message, LARGE);
}

LAB_CASE(a_sender_gets_memory_that_another_does_not_use)
{
	struct lab_end *from, *to;
	struct ibv_ah *ah = connect_ends(&from, &to);
	struct hog h;

	hog_open(&h);
	hog_reserve(&h);
	for (unsigned i = 0; i < 10; i++) {
		send_from(from, ah, to, i);
		expect_from(to, i);
	}
	hog_close(&h);
}

LAB_CASE(who_loses_memory_loses_no_message)
{
	struct lab_end *from, *to;
	struct ibv_ah *ah = connect_ends(&from, &to);
	struct hog h;

	hog_open(&h);
	for (unsigned i = 0; i < BACKLOG; i++)
		send_from(from, ah, to, i);
	/* what the idle sender has is now the hog's, but for what waits */
	hog_reserve(&h);
	for (unsigned i = 0; i < BACKLOG / 2; i++)
		expect_from(to, i);
	/* the sender begins anew: by memory that the hog does not use */
	for (unsigned i = BACKLOG; i < 2 * BACKLOG; i++)
		send_from(from, ah, to, i);
	for (unsigned i = BACKLOG / 2; i < 2 * BACKLOG; i++)
		expect_from(to, i);
	hog_close(&h);
}
