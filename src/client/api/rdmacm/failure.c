/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events that tell of a failure: one line each in the log (base/reason.h). Safe from any thread.
 */
#include <errno.h>
#include <stdlib.h>

#include "api/rdmacm/rdmacm.h"
#include "base/fast.h"
#include "base/reason.h"
#include "wire/cm_mad.h"

static const char *why_rejected(int status)
{
	switch (status) {
	case CM_REJ_INVALID_SERVICE_ID:
		return "nobody listens there at that port: rdma_listen() comes before the peer "
		       "connects";
	case CM_REJ_CONSUMER_DEFINED:
		return "the peer's program has rejected it (rdma_reject()), or its accepting "
		       "failed";
	default:
		return "the peer has rejected it";
	}
}

static const char *why_unreachable(int status)
{
	switch (status) {
	case CM_SIDR_UNSUPPORTED:
		return "nobody listens there at that port";
	case CM_SIDR_REJECT:
		return "the peer's program has rejected it";
	default:
		return "the peer's port did not respond: is it up, and does a way lead there?";
	}
}

static const char *why_multicast(int status)
{
	switch (abs(status)) {
	case ETIMEDOUT:
		return "the SA did not respond: does a subnet manager run, and can the port reach "
		       "it?";
	case EINVAL:
		return "the SA refuses the group: it does not exist, or its P_Key, Q_Key, MTU or "
		       "rate do not fit";
	case ENETRESET:
		return "the port has lost its groups, as it was down or its LID changed: leave and "
		       "join again";
	case ENOMEM:
		return "the queue pair cannot be attached: a limit (max_mcast_grp, "
		       "max_mcast_qp_attach)";
	default:
		return "the port cannot be a member, or the queue pair not be attached";
	}
}

/* NULL: it tells of no failure. */
static const char *why(const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_ERROR:
		if (event->status == -ETIMEDOUT)
			return "nobody on the network has that address, or the gateway on the way: "
			       "ARP and neighbour discovery had no answer";
		return "no port of this host leads to that address, or nobody has it: 'umbel show "
		       "hosts' lists addresses";
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return "the SA knows no path there, or does not respond: is the destination's port "
		       "active, does a subnet manager run?";
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return "the queue pair, or the connection, was not in the state that it needs";
	case RDMA_CM_EVENT_UNREACHABLE:
		return why_unreachable(event->status);
	case RDMA_CM_EVENT_REJECTED:
		return why_rejected(event->status);
	case RDMA_CM_EVENT_MULTICAST_ERROR:
		return why_multicast(event->status);
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return "the daemon of the fabric is gone";
	default:
		return NULL;
	}
}

static BASE_COLD void log_event(const struct rdma_cm_event *event)
{
	const char *reason = why(event);
	const struct base_failure f = { .part = BASE_LOG_PART_rdmacm,
		                        .error = event->status,
		                        .otherwise = reason,
		                        .again = 1 + ((uint64_t)event->event << 32 |
		                                      (uint32_t)event->status) };

	if (reason)
		base_failure_log(&f, "event %s, status %d", rdma_event_str(event->event),
		                 event->status);
}

void rdmacm_failure_log(const struct rdma_cm_event *event)
{
	if (base_log_on(rdmacm, BASE_LOG_WARNING))
		log_event(event);
}
