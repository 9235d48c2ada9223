/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the program needs: see needs.h.
 */
#define _GNU_SOURCE /* secure_getenv() */
#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checked/card.h"
#include "checked/needs.h"
#include "checked/places.h"
#include "checked/report.h"
#include "checked/requests.h"
#include "hca/process/context.h"

static struct checked_card card;
static bool has_card, looked_at_gids;

/* The command has read it before, and said what is wrong. */
void checked_needs_start(void)
{
	const char *name = secure_getenv(CHECKED_CARD);
	static char why[PATH_MAX + 256] = "the card: ";
	const size_t n = strlen(why);

	if (!name || !*name)
		return;
	has_card = !checked_card_read(name, &card, why + n, sizeof(why) - n);
	if (!has_card)
		checked_say(why);
}

static struct checked_report made_at(enum checked_rule rule, const char *is, const void *caller)
{
	return (struct checked_report){ .rule = rule,
		                        .at = { { is, checked_place(caller) }, { .is = "" } } };
}

/* ---- limits ---- */

static void limit(const char *name, uint64_t wanted, uint64_t most, const void *caller)
{
	struct checked_report report;

	if (wanted <= most)
		return;
	report = made_at(CHECKED_RULE_CARD_LIMIT, "asked", caller);
	checked_report(&report, "%s has %s %" PRIu64 ", and the program wants %" PRIu64, card.title,
	               name, most, wanted);
}

static void lack(bool has, const char *what, const char *is, const void *caller)
{
	struct checked_report report;

	if (has)
		return;
	report = made_at(CHECKED_RULE_CARD_LACKS, is, caller);
	checked_report(&report, "%s has no %s", card.title, what);
}

/* ---- objects ---- */

static uint32_t type_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return CHECKED_RC;
	case IBV_QPT_UC:
		return CHECKED_UC;
	case IBV_QPT_UD:
		return CHECKED_UD;
	default:
		return CHECKED_XRC;
	}
}

static const char *type_name(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return "RC queue pairs";
	case IBV_QPT_UC:
		return "UC queue pairs";
	case IBV_QPT_UD:
		return "UD queue pairs";
	default:
		return "XRC queue pairs";
	}
}

static void need_qp(const struct checked_made *how)
{
	const struct ibv_qp_cap *cap = how->asked;
	const bool is_ud = how->qp->qp_type == IBV_QPT_UD;

	lack(card.qp_types & type_of(how->qp->qp_type), type_name(how->qp->qp_type), "created",
	     how->caller);
	lack(!how->is_extended || (card.features & CHECKED_HAS_WR_API),
	     "ibv_wr_start() and its like (IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)", "created",
	     how->caller);
	limit("max_qp_wr", cap->max_send_wr, card.max_qp_wr, how->caller);
	limit("max_sge", cap->max_send_sge, card.max_sge, how->caller);
	if (!how->qp->srq) {
		limit("max_qp_wr", cap->max_recv_wr, card.max_qp_wr, how->caller);
		limit("max_sge", cap->max_recv_sge, card.max_sge, how->caller);
	}
	limit("max_inline_data", cap->max_inline_data,
	      is_ud ? card.max_inline_data_ud : card.max_inline_data, how->caller);
}

static void need_cq(const struct checked_made *how)
{
	limit("max_cqe", how->entries, card.max_cqe, how->caller);
	lack(!how->is_extended || (card.features & CHECKED_HAS_CQ_EX), "extended completion queues",
	     "created", how->caller);
	if (how->is_extended && (card.features & CHECKED_HAS_CQ_EX))
		lack(!(how->wc_flags & ~(uint64_t)card.wc_flags),
		     "completions with all that wc_flags ask for", "created", how->caller);
}

static void need_srq(const struct checked_made *how)
{
	lack(card.max_srq_wr, "shared receive queues", "created", how->caller);
	if (!card.max_srq_wr)
		return;
	limit("max_srq_wr", how->entries, card.max_srq_wr, how->caller);
	limit("max_srq_sge", how->sges, card.max_srq_sge, how->caller);
}

/* On Ethernet, where index 0 need not be what it is here. librdmacm chooses an index by itself. */
static void need_gid(struct ibv_context *context, const struct ibv_ah_attr *attr, const char *is,
                     const void *caller)
{
	static int has_rdmacm = -1;
	struct checked_report report;

	if (looked_at_gids || !attr->is_global || attr->grh.sgid_index ||
	    !hca_context(context)->gid_users)
		return;
	if (has_rdmacm < 0)
		has_rdmacm = dlopen("librdmacm.so.1", RTLD_NOW | RTLD_NOLOAD) != NULL;
	if (has_rdmacm)
		return;
	report = made_at(CHECKED_RULE_GID_INDEX, is, caller);
	checked_report(&report, "sgid_index is 0, at port %u", attr->port_num);
}

void checked_needs_object(enum checked_kind kind, const struct checked_made *how)
{
	if (kind == CHECKED_AH)
		need_gid(how->context, how->ah, "created", how->caller);
	if (!has_card)
		return;
	switch (kind) {
	case CHECKED_QP:
		need_qp(how);
		break;
	case CHECKED_CQ:
		need_cq(how);
		break;
	case CHECKED_SRQ:
		need_srq(how);
		break;
	case CHECKED_MR:
		lack(!(how->access & IBV_ACCESS_ON_DEMAND) ||
		             (card.features & CHECKED_HAS_ON_DEMAND),
		     "on-demand paging (IBV_ACCESS_ON_DEMAND)", "registered", how->caller);
		break;
	default:
		break;
	}
}

/* ---- requests ---- */

void checked_needs_request(const struct hca_record *r)
{
	struct checked_report report;

	if (r->is_receive)
		return;
	if (r->remote_addr % 8) {
		report = made_at(CHECKED_RULE_UNALIGNED, "posted", r->caller);
		checked_report(&report, "the %s with wr_id %" PRIu64 " is for address 0x%" PRIx64,
		               checked_request_name(r), r->wr_id, r->remote_addr);
	}
	if (!has_card)
		return;
	lack(card.operations & 1u << (unsigned)r->opcode, checked_request_name(r), "posted",
	     r->caller);
	if (r->opcode == IBV_WR_RDMA_READ)
		limit("max_sge_rd", r->n, card.max_sge_rd, r->caller);
}

void checked_needs_modified(const struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	if (mask & IBV_QP_AV)
		need_gid(qp->context, &attr->ah_attr, "connected", NULL);
	if (has_card && (mask & IBV_QP_MAX_QP_RD_ATOMIC))
		limit("max_qp_rd_atom", attr->max_rd_atomic, card.max_qp_rd_atom, NULL);
	if (has_card && (mask & IBV_QP_MAX_DEST_RD_ATOMIC))
		limit("max_qp_rd_atom", attr->max_dest_rd_atomic, card.max_qp_rd_atom, NULL);
}

void checked_needs(enum checked_need need, uint64_t n, const void *caller)
{
	if (!has_card)
		return;
	if (need == CHECKED_NEEDS_WINDOWS)
		lack(card.features & CHECKED_HAS_WINDOWS, "memory windows", "allocated", caller);
	else if (!card.max_dm_size)
		lack(false, "device memory", "allocated", caller);
	else
		limit("max_dm_size", n, card.max_dm_size, caller);
}

void checked_looked_at_gids(void)
{
	looked_at_gids = true;
}
