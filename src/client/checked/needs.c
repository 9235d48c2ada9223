/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The needs of the program: see needs.h.
 */
#define _GNU_SOURCE /* secure_getenv() */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checked/card.h"
#include "checked/needs.h"
#include "checked/objects.h"
#include "checked/places.h"
#include "checked/report.h"
#include "checked/requests.h"
#include "checked/settings.h"
#include "hca/process/context.h"

static struct checked_card card;
static bool has_card, looked_at_gids, looked_at_ports;

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

/* Here. */
static struct checked_report made_at(enum checked_rule rule, const char *is)
{
	return (struct checked_report){ .rule = rule,
		                        .at = { { is, checked_place(NULL) }, { .is = "" } } };
}

/* ---- limits ---- */

/* The limits that one call is over, in words. */
struct over {
	char text[400];
	size_t n;
};

static void limit(struct over *o, const char *name, uint64_t wanted, uint64_t most)
{
	if (wanted > most && o->n < sizeof(o->text))
		o->n += (size_t)snprintf(o->text + o->n, sizeof(o->text) - o->n,
		                         "%s%s %" PRIu64 " (wanted: %" PRIu64 ")", o->n ? ", " : "",
		                         name, most, wanted);
}

static void tell_limits(const struct over *o)
{
	struct checked_report report;

	if (!o->n)
		return;
	report = made_at(CHECKED_RULE_CARD_LIMIT, "asked");
	checked_report(&report, "%s has %s", card.title, o->text);
}

static void lack(bool has, const char *what, const char *is)
{
	struct checked_report report;

	if (has)
		return;
	report = made_at(CHECKED_RULE_CARD_LACKS, is);
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
	struct over over = { .n = 0 };

	lack(card.qp_types & type_of(how->qp->qp_type), type_name(how->qp->qp_type), "created");
	lack(!how->is_extended || (card.features & CHECKED_HAS_WR_API),
	     "ibv_wr_start() and its like (IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)", "created");
	limit(&over, "max_qp_wr", cap->max_send_wr, card.max_qp_wr);
	limit(&over, "max_sge", cap->max_send_sge, card.max_sge);
	if (!how->qp->srq) {
		limit(&over, "max_qp_wr", cap->max_recv_wr, card.max_qp_wr);
		limit(&over, "max_sge", cap->max_recv_sge, card.max_sge);
	}
	limit(&over, "max_inline_data", cap->max_inline_data,
	      is_ud ? card.max_inline_data_ud : card.max_inline_data);
	tell_limits(&over);
}

static void need_cq(const struct checked_made *how)
{
	struct over over = { .n = 0 };

	limit(&over, "max_cqe", how->entries, card.max_cqe);
	tell_limits(&over);
	lack(!how->is_extended || (card.features & CHECKED_HAS_CQ_EX), "extended completion queues",
	     "created");
	if (how->is_extended && (card.features & CHECKED_HAS_CQ_EX))
		lack(!(how->wc_flags & ~(uint64_t)card.wc_flags),
		     "completions with all that wc_flags ask for", "created");
}

static void need_srq(const struct checked_made *how)
{
	struct over over = { .n = 0 };

	lack(card.max_srq_wr, "shared receive queues", "created");
	if (!card.max_srq_wr)
		return;
	limit(&over, "max_srq_wr", how->entries, card.max_srq_wr);
	limit(&over, "max_srq_sge", how->sges, card.max_srq_sge);
	tell_limits(&over);
}

/* On Ethernet, where index 0 need not be what it is here. librdmacm chooses an index by itself. */
static void need_gid(struct ibv_context *context, const struct ibv_ah_attr *attr, const char *is)
{
	struct checked_report report;

	if (looked_at_gids || !attr->is_global || attr->grh.sgid_index ||
	    !hca_context(context)->gid_users || checked_place_has_library("librdmacm.so.1"))
		return;
	report = made_at(CHECKED_RULE_GID_INDEX, is);
	checked_report(&report, "sgid_index is 0, at port %u", attr->port_num);
}

void checked_needs_object(enum checked_kind kind, const struct checked_made *how)
{
	if (kind == CHECKED_AH)
		need_gid(how->context, how->ah, "created");
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
		     "on-demand paging (IBV_ACCESS_ON_DEMAND)", "registered");
		break;
	default:
		break;
	}
}

/* ---- requests ---- */

static bool is_atomic(const struct hca_record *r)
{
	return r->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static void need_reads(const struct hca_record *r)
{
	const struct checked_object *qp = checked_object_find(CHECKED_QP, r->qp);
	struct checked_report report;

	if (!qp || qp->max_rd_atomic)
		return;
	report = made_at(CHECKED_RULE_NO_READS, "posted");
	checked_report(&report,
	               "the %s with wr_id %" PRIu64 " is for QP 0x%06x, whose max_rd_atomic is 0",
	               checked_request_name(r), r->wr_id, r->qp->qp_num);
}

void checked_needs_request(const struct hca_record *r)
{
	struct checked_report report;
	struct over over = { .n = 0 };

	if (r->is_receive)
		return;
	if (is_atomic(r) || r->opcode == IBV_WR_RDMA_READ)
		need_reads(r);
	if (is_atomic(r) && r->rdma_addr % 8) {
		report = made_at(CHECKED_RULE_UNALIGNED, "posted");
		checked_report(&report, "the %s with wr_id %" PRIu64 " is for address 0x%" PRIx64,
		               checked_request_name(r), r->wr_id, r->rdma_addr);
	}
	if (!has_card || (unsigned)r->opcode > 31)
		return;
	lack(card.operations & 1u << r->opcode, checked_request_name(r), "posted");
	if (r->opcode == IBV_WR_RDMA_READ)
		limit(&over, "max_sge_rd", r->n, card.max_sge_rd);
	tell_limits(&over);
}

/* When it is about to be used: many programs ask for the LID or the state behind the way to INIT.
 * By other libraries a program asks otherwise. */
static void need_port(const struct ibv_qp *qp, uint8_t port)
{
	struct checked_report report;

	if (looked_at_ports || port != 1 || checked_place_has_library("librdmacm.so.1") ||
	    checked_place_has_library("libibumad.so.3"))
		return;
	report = made_at(CHECKED_RULE_PORT, "started");
	checked_report(&report, "QP 0x%06x is at port 1 of '%s'", qp->qp_num,
	               qp->context->device->name);
}

void checked_needs_modified(const struct ibv_qp *qp, uint8_t port, const struct ibv_qp_attr *attr,
                            int mask)
{
	struct over over = { .n = 0 };

	if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RTS)
		need_port(qp, port);
	if (mask & IBV_QP_AV)
		need_gid(qp->context, &attr->ah_attr, "connected");
	if (has_card && (mask & IBV_QP_MAX_QP_RD_ATOMIC))
		limit(&over, "max_qp_rd_atom", attr->max_rd_atomic, card.max_qp_rd_atom);
	if (has_card && (mask & IBV_QP_MAX_DEST_RD_ATOMIC))
		limit(&over, "max_qp_rd_atom", attr->max_dest_rd_atomic, card.max_qp_rd_atom);
	tell_limits(&over);
}

void checked_needs(enum checked_need need, uint64_t n)
{
	struct over over = { .n = 0 };

	if (!has_card)
		return;
	if (need == CHECKED_NEEDS_WINDOWS)
		lack(card.features & CHECKED_HAS_WINDOWS, "memory windows", "allocated");
	else if (!card.max_dm_size)
		lack(false, "device memory", "allocated");
	else
		limit(&over, "max_dm_size", n, card.max_dm_size);
	tell_limits(&over);
}

void checked_looked_at_ports(void)
{
	looked_at_ports = true;
}

void checked_looked_at_gids(void)
{
	looked_at_gids = true;
}
