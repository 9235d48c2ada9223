/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Extended polling (ibv_create_cq_ex(3)): ibv_start_poll() and ibv_next_poll() poll one completion
 * each, and the program reads the fields that it wants.
 */
#include <errno.h>
#include <time.h>

#include "base/fast.h"
#include "base/util.h"
#include "hca/queue/cq.h"

static struct hca_cq *cq_of(struct ibv_cq_ex *ex)
{
	return (struct hca_cq *)ex;
}

/* Sets the times of the completion that was just polled. A send completed when it was posted, a
 * receive when the message arrived, a flushed request now. */
static BASE_COLD void stamp(struct hca_cq *cq)
{
	struct timespec ts;
	uint64_t now = base_now_ns();

	clock_gettime(CLOCK_REALTIME, &ts);
	cq->wallclock_at_ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec - now;
	cq->completed_ns = cq->arrived_ns ? cq->arrived_ns : now;
	cq->arrived_ns = 0;
}

static BASE_HOT int poll_one(struct ibv_cq_ex *ex)
{
	struct hca_cq *cq = cq_of(ex);
	int n = hca_cq_poll(cq, 1, &cq->wc);

	if (base_unlikely(n <= 0))
		return n ? -n : ENOENT;
	if (base_unlikely(cq->stamps))
		stamp(cq);
	ex->wr_id = cq->wc.wr_id;
	ex->status = cq->wc.status;
	return 0;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	return poll_one(ex);
}

static void end_poll(struct ibv_cq_ex *ex)
{
	if (!cq_of(ex)->single_threaded)
		base_unlock(&cq_of(ex)->ex_lock);
}

/* Other threads wait until ibv_end_poll(), which follows if and only if the result is 0. */
static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	int ret;

	if (base_unlikely(attr->comp_mask))
		return EINVAL;
	if (!cq_of(ex)->single_threaded)
		base_lock(&cq_of(ex)->ex_lock);
	ret = poll_one(ex);
	if (base_unlikely(ret))
		end_poll(ex);
	return ret;
}

/* read_FIELD(): as it stands in the completion. */
#define READ(type, field)                              \
	static type read_##field(struct ibv_cq_ex *ex) \
	{                                              \
		return cq_of(ex)->wc.field;            \
	}
READ(enum ibv_wc_opcode, opcode)
READ(uint32_t, vendor_err)
READ(uint32_t, byte_len)
READ(__be32, imm_data)
READ(uint32_t, qp_num)
READ(uint32_t, src_qp)
READ(unsigned int, wc_flags)
READ(uint32_t, slid)
READ(uint8_t, sl)
READ(uint8_t, dlid_path_bits)
#undef READ

/* The HCA's clock is CLOCK_MONOTONIC, one tick a nanosecond, as ibv_query_rt_values_ex() reads it.
 */
static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->completed_ns;
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
	return cq_of(ex)->completed_ns + cq_of(ex)->wallclock_at_ns;
}

/* Programs may ask for these, but no packet here has them: customer VLANs, tags of flow steering,
 * tag matching. */

static uint16_t read_cvlan(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

static uint32_t read_flow_tag(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

static void read_tm_info(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *info)
{
	(void)ex;
	*info = (struct ibv_wc_tm_info){ 0 };
}

void hca_cq_ex_init(struct hca_cq *cq, uint64_t wc_flags, uint32_t flags)
{
	struct ibv_cq_ex *ex = &cq->cq;

	cq->single_threaded = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	cq->ignores_overrun = flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	cq->stamps = wc_flags & (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
	                         IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
	if (wc_flags & IBV_WC_EX_WITH_CVLAN)
		ex->read_cvlan = read_cvlan;
	if (wc_flags & IBV_WC_EX_WITH_FLOW_TAG)
		ex->read_flow_tag = read_flow_tag;
	if (wc_flags & IBV_WC_EX_WITH_TM_INFO)
		ex->read_tm_info = read_tm_info;
}
