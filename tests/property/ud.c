/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A port's queue pairs: see ud.h.
 */
#include "posix.h"
#include "ud.h"

#define QKEY       0x11111111
#define MCAST_QPN  0xFFFFFF
#define GRH        40
#define SLOT_BYTES (GRH + UD_BYTES)

static void must(int ret, const char *what)
{
	if (ret)
		errx(EXIT_FAILURE, "%s: %s", what, strerror(ret > 0 ? ret : -ret));
}

static void *must_be(void *object, const char *what)
{
	if (!object)
		err(EXIT_FAILURE, "%s", what);
	return object;
}

/* Slots are numbered over both queue pairs. */
static void post(struct ud *ud, unsigned slot)
{
	struct ibv_sge sge = { .addr = (uintptr_t)(ud->memory + slot * SLOT_BYTES),
		               .length = SLOT_BYTES,
		               .lkey = ud->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	must(ibv_post_recv(ud->qp[slot / UD_SLOTS], &wr, &bad), "ibv_post_recv");
}

static struct ibv_qp *open_qp(struct ud *ud)
{
	struct ibv_qp_init_attr init = { .send_cq = ud->send_cq,
		                         .recv_cq = ud->cq,
		                         .qp_type = IBV_QPT_UD,
		                         .cap = { .max_send_wr = 4,
		                                  .max_recv_wr = UD_SLOTS,
		                                  .max_send_sge = 1,
		                                  .max_recv_sge = 1,
		                                  .max_inline_data = UD_BYTES } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = ud->port, .qkey = QKEY };
	struct ibv_qp *qp = must_be(ibv_create_qp(ud->pd, &init), "ibv_create_qp");

	must(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	     "ibv_modify_qp");
	attr.qp_state = IBV_QPS_RTR;
	must(ibv_modify_qp(qp, &attr, IBV_QP_STATE), "ibv_modify_qp");
	attr.qp_state = IBV_QPS_RTS;
	must(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "ibv_modify_qp");
	return qp;
}

void ud_open(struct ud *ud, struct ibv_context *context, int port)
{
	size_t bytes = (size_t)UD_QPS * UD_SLOTS * SLOT_BYTES;

	ud->port = (uint8_t)port;
	ud->pd = must_be(ibv_alloc_pd(context), "ibv_alloc_pd");
	ud->send_cq = must_be(ibv_create_cq(context, 8, NULL, NULL, 0), "ibv_create_cq");
	ud->cq = must_be(ibv_create_cq(context, UD_QPS * UD_SLOTS, NULL, NULL, 0), "ibv_create_cq");
	ud->memory = must_be(calloc(1, bytes), "memory");
	ud->mr = must_be(ibv_reg_mr(ud->pd, ud->memory, bytes, IBV_ACCESS_LOCAL_WRITE),
	                 "ibv_reg_mr");
	for (unsigned i = 0; i < UD_QPS; i++)
		ud->qp[i] = open_qp(ud);
	for (unsigned slot = 0; slot < UD_QPS * UD_SLOTS; slot++)
		post(ud, slot);
}

static union ibv_gid gid_of(const uint8_t mgid[16])
{
	union ibv_gid gid;

	memcpy(gid.raw, mgid, sizeof(gid.raw));
	return gid;
}

void ud_attach(struct ud *ud, unsigned qp, const uint8_t mgid[16], uint16_t mlid)
{
	union ibv_gid gid = gid_of(mgid);

	must(ibv_attach_mcast(ud->qp[qp], &gid, mlid), "ibv_attach_mcast");
}

void ud_detach(struct ud *ud, unsigned qp, const uint8_t mgid[16], uint16_t mlid)
{
	union ibv_gid gid = gid_of(mgid);

	must(ibv_detach_mcast(ud->qp[qp], &gid, mlid), "ibv_detach_mcast");
}

void ud_send(struct ud *ud, const uint8_t mgid[16], uint16_t mlid, uint32_t number)
{
	struct ibv_ah_attr attr = {
		.dlid = mlid, .is_global = 1, .port_num = ud->port, .grh.dgid = gid_of(mgid)
	};
	struct ibv_ah *ah = must_be(ibv_create_ah(ud->pd, &attr), "ibv_create_ah");
	uint32_t message[UD_BYTES / sizeof(uint32_t)] = { number };
	struct ibv_sge sge = { .addr = (uintptr_t)message, .length = sizeof(message) };
	struct ibv_send_wr wr = { .sg_list = &sge,
		                  .num_sge = 1,
		                  .opcode = IBV_WR_SEND,
		                  .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
		                  .wr.ud = { .ah = ah,
		                             .remote_qpn = MCAST_QPN,
		                             .remote_qkey = QKEY } },
	                   *bad;
	struct ibv_wc wc;

	must(ibv_post_send(ud->qp[0], &wr, &bad), "ibv_post_send");
	while (!ibv_poll_cq(ud->send_cq, 1, &wc))
		;
	if (wc.status)
		errx(EXIT_FAILURE, "a send ends with: %s", ibv_wc_status_str(wc.status));
	must(ibv_destroy_ah(ah), "ibv_destroy_ah");
}

void ud_take(struct ud *ud, void (*take)(void *arg, unsigned qp, uint32_t number), void *arg)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(ud->cq, 1, &wc)) {
		unsigned slot = (unsigned)wc.wr_id;
		uint32_t number;

		if (wc.status || wc.byte_len != SLOT_BYTES)
			errx(EXIT_FAILURE, "a receive ends with: %s, %u bytes",
			     ibv_wc_status_str(wc.status), wc.byte_len);
		memcpy(&number, ud->memory + (size_t)slot * SLOT_BYTES + GRH, sizeof(number));
		post(ud, slot);
		take(arg, slot / UD_SLOTS, number);
	}
}
