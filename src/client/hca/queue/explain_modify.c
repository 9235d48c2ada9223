/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why a queue pair is not moved: see explain.h.
 */
#include <errno.h>
#include <stdio.h>

#include "base/reason.h"
#include "base/util.h"
#include "hca/queue/explain.h"
#include "hca/queue/qp.h"

/* Writes the names of the attributes in @mask to @text. */
static const char *mask_names(int mask, char text[static BASE_REASON_MAX])
{
	static const char *const names[] = {
		"STATE",
		"CUR_STATE",
		"EN_SQD_ASYNC_NOTIFY",
		"ACCESS_FLAGS",
		"PKEY_INDEX",
		"PORT",
		"QKEY",
		"AV",
		"PATH_MTU",
		"TIMEOUT",
		"RETRY_CNT",
		"RNR_RETRY",
		"RQ_PSN",
		"MAX_QP_RD_ATOMIC",
		"ALT_PATH",
		"MIN_RNR_TIMER",
		"SQ_PSN",
		"MAX_DEST_RD_ATOMIC",
		"PATH_MIG_STATE",
		"CAP",
		"DEST_QPN",
	};
	size_t n = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < ARRAY_SIZE(names) && n < BASE_REASON_MAX; i++)
		if (mask & 1 << i)
			n += (size_t)snprintf(text + n, BASE_REASON_MAX - n, "%sIBV_QP_%s",
			                      n ? ", " : "", names[i]);
	return text;
}

static const struct hca_transition *find_transition(const struct hca_qp *qp, enum ibv_qp_state from,
                                                    enum ibv_qp_state to)
{
	const struct hca_transition *t = qp->transport->transitions;

	while (t->to != IBV_QPS_RESET && (t->from != from || t->to != to))
		t++;
	return t->to == IBV_QPS_RESET ? NULL : t;
}

/* Whether the change of state is possible, and @mask has what goes with it; else says why not. */
static bool explain_transition(const struct hca_qp *qp, enum ibv_qp_state to, int mask, int error)
{
	const enum ibv_qp_state from = hca_qp_state(qp);
	const struct hca_transition *t = find_transition(qp, from, to);
	const char *name = qp->transport->name;
	char text[BASE_REASON_MAX];
	int wrong;

	if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET)) {
		wrong = mask & ~IBV_QP_STATE;
		if (wrong)
			base_because(error, "no queue pair takes %s when it goes to %s",
			             mask_names(wrong, text), hca_state_name(to));
		return !wrong;
	}
	if (!t) {
		base_because(error,
		             "QP 0x%06x cannot go from %s to %s: the way is RESET, INIT, RTR, RTS",
		             qp->sender.qpn, hca_state_name(from), hca_state_name(to));
		return false;
	}
	wrong = t->required & ~mask;
	if (wrong) {
		base_because(error, "%s queue pairs need %s to go from %s to %s", name,
		             mask_names(wrong, text), hca_state_name(from), hca_state_name(to));
		return false;
	}
	wrong = mask & ~(IBV_QP_STATE | t->required | t->optional);
	if (wrong)
		base_because(error, "%s queue pairs take no %s when they go from %s to %s", name,
		             mask_names(wrong, text), hca_state_name(from), hca_state_name(to));
	return !wrong;
}

/* Whether port and P_Key index are there; else says why not. */
static bool explain_port(const struct hca_qp *qp, const struct ibv_qp_attr *a, int mask, int error)
{
	unsigned num = mask & IBV_QP_PORT ? a->port_num : qp->port_num;
	unsigned index = mask & IBV_QP_PKEY_INDEX ? a->pkey_index : qp->pkey_index;
	struct shm_port port;

	if (!(mask & (IBV_QP_PORT | IBV_QP_PKEY_INDEX)))
		return true;
	if (hca_port(qp->ctx, num, &port)) /* which says why */
		return false;
	if (index < port.n_pkeys && port.pkey[index])
		return true;
	base_because(error,
	             "P_Key index %u: port %u has no P_Key there; ibv_query_pkey() says "
	             "where it has some",
	             index, num);
	return false;
}

static void explain_number(int error, const char *name, unsigned is, unsigned most)
{
	if (is > most)
		base_because(error, "%s is %u: at most %u is possible", name, is, most);
}

static void explain_connection(const struct hca_qp *qp, const struct ibv_qp_attr *a, int mask,
                               int error)
{
	struct shm_port port;

	if ((mask & IBV_QP_PATH_MTU) &&
	    !hca_port(qp->ctx, mask & IBV_QP_PORT ? a->port_num : qp->port_num, &port) &&
	    (a->path_mtu < IBV_MTU_256 || a->path_mtu > port.active_mtu))
		base_because(error, "path_mtu is enum ibv_mtu %d: the port's active_mtu is %u",
		             (int)a->path_mtu, port.active_mtu);
#define AT_MOST(flag, field, most) \
	if (mask & (flag))         \
	explain_number(error, #field, a->field, most)
	AT_MOST(IBV_QP_TIMEOUT, timeout, 31);
	AT_MOST(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic, HCA_MAX_RD_ATOMIC);
	AT_MOST(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, HCA_MAX_RD_ATOMIC);
#undef AT_MOST
}

int hca_explain_modify(const struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask, int error)
{
	enum ibv_qp_state state = hca_qp_state(qp);

	if (!base_log_reasons || error != -EINVAL)
		return error;
	mask &= ~qp->transport->ignored;
	if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != state)
		return base_because(error, "cur_qp_state is %s: QP 0x%06x is in %s",
		                    hca_state_name(attr->cur_qp_state), qp->sender.qpn,
		                    hca_state_name(state));
	if (explain_transition(qp, mask & IBV_QP_STATE ? attr->qp_state : state, mask, error) &&
	    explain_port(qp, attr, mask, error) && qp->transport->set_path)
		explain_connection(qp, attr, mask, error);
	return error;
}
