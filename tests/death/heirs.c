/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An XRC target whose owner gives it up is that of another process that has it open. Resources that
 * the owner had got for it, by the daemon's protocol, are not to harm the heir.
 */
#include "daemon_lab.h"

#include <infiniband/verbs.h>

#include "shm/layout.h"
#include "harness.h"

#define FLOWS (SHM_QP_FLOWS + 12) /* more than every queue pair may have */

struct client {
	struct control_client *c;
	uint32_t hca;
};

static struct client open_client(void)
{
	const struct control_open_hca req = { .hca = 0 };
	struct control_open_hca_reply rep;
	struct client client = { .c = daemon_client(CONTROL_ROLE_VERBS) };
	int fd;

	assert_int_equal(
	        control_call(client.c, &(struct control_call){ .type = CONTROL_OPEN_HCA,
	                                                       .request = &req,
	                                                       .request_bytes = sizeof(req),
	                                                       .reply = &rep,
	                                                       .reply_bytes = sizeof(rep),
	                                                       .fd = &fd }),
	        0);
	close(fd);
	client.hca = rep.handle;
	return client;
}

/* The domain of the file @fd. */
static uint32_t open_domain(const struct client *c, int fd)
{
	const struct control_open_xrcd req = { .hca_handle = c->hca, .create = 1 };
	struct control_open_xrcd_reply rep;
	struct control_call call = CONTROL_CALL(CONTROL_OPEN_XRCD_FILE, &req, &rep);

	call.send_fd = &fd;
	assert_int_equal(control_call(c->c, &call), 0);
	return rep.xrcd;
}

/* Of UD, or if there is a domain, an XRC target. 0 or -errno. */
static int try_qp(const struct client *c, uint32_t xrcd, struct control_create_qp_reply *qp)
{
	const struct control_create_cq cq = { .hca_handle = c->hca, .cqe = 1 };
	struct control_create_qp req = { .hca_handle = c->hca,
		                         .max_recv_wr = 1,
		                         .ready_bit = SHM_NO_READY_BIT,
		                         .type = xrcd ? IBV_QPT_XRC_RECV : IBV_QPT_UD,
		                         .max_send_wr = 1,
		                         .request_bytes = xrcd ? 128 : 0,
		                         .max_recv_sge = 1,
		                         .xrcd = xrcd };
	struct control_create_cq_reply made;
	struct control_offset_reply keys;

	assert_int_equal(control_call(c->c, &(struct control_call){ .type = CONTROL_OPEN_KEYS,
	                                                            .reply = &keys,
	                                                            .reply_bytes = sizeof(keys) }),
	                 0);
	assert_int_equal(control_ask(c->c, CONTROL_CREATE_CQ, &cq, &made), 0);
	req.cq = req.send_cq = made.cq;
	return control_ask(c->c, CONTROL_CREATE_QP, &req, qp);
}

/* One with a port. Its number. */
static uint32_t make_qp(const struct client *c, uint32_t xrcd)
{
	struct control_modify_qp modify = { .port_num = 1, .state = IBV_QPS_INIT };
	struct control_create_qp_reply qp;

	assert_int_equal(try_qp(c, xrcd, &qp), 0);
	modify.qpn = qp.qpn;
	assert_int_equal(control_request(c->c, CONTROL_MODIFY_QP, &modify, sizeof(modify)), 0);
	return qp.qpn;
}

static void give_flows(const struct client *c, uint32_t qpn)
{
	for (unsigned i = 0; i < FLOWS; i++) {
		const struct control_get_flow req = { .qpn = qpn, .dlid = (uint16_t)(1 + i) };
		struct control_get_flow_reply rep;

		assert_int_equal(control_ask(c->c, CONTROL_GET_FLOW, &req, &rep), 0);
	}
}

static void destroy_qp(const struct client *c, uint32_t qpn)
{
	const struct control_handle req = { .handle = qpn };
	struct control_destroy_reply rep;

	assert_int_equal(control_ask(c->c, CONTROL_DESTROY_QP, &req, &rep), 0);
}

CASE(a_domain_is_for_those_who_have_opened_it)
{
	const struct client owner = open_client(), stranger = open_client();
	const int fd = memfd_create("domain", MFD_CLOEXEC);
	const uint32_t xrcd = open_domain(&owner, fd);
	struct control_create_qp_reply qp;

	assert_int_not_equal(try_qp(&stranger, xrcd, &qp), 0);
	assert_int_equal(open_domain(&stranger, fd), xrcd);
	assert_int_equal(try_qp(&stranger, xrcd, &qp), 0);
	control_close(stranger.c);
	control_close(owner.c);
	close(fd);
}

CASE(who_inherits_an_xrc_target_may_have_flows)
{
	const struct client owner = open_client(), heir = open_client();
	const int fd = memfd_create("domain", MFD_CLOEXEC);
	const uint32_t xrcd = open_domain(&owner, fd), target = make_qp(&owner, xrcd);
	const struct control_open_qp req = { .hca_handle = heir.hca, .xrcd = xrcd, .qpn = target };
	struct control_create_qp_reply rep;

	give_flows(&owner, target);
	assert_int_equal(open_domain(&heir, fd), xrcd);
	assert_int_equal(control_ask(heir.c, CONTROL_OPEN_QP, &req, &rep), 0);
	destroy_qp(&owner, target); /* it is the heir's alone */
	destroy_qp(&heir, target);
	give_flows(&heir, make_qp(&heir, 0));
	close(fd);
	control_close(owner.c);
	control_close(heir.c);
}
