/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of events.
 */
#include "api/rdmacm/rdmacm.h"

#define NAME(event) [event] = #event

/* Of rdma_resolve_addrinfo(), which is refused; newer than the headers of Debian 12 and 13. */
#define ADDRINFO_RESOLVED 16
#define ADDRINFO_ERROR    17

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	static const char *const names[] = {
		NAME(RDMA_CM_EVENT_ADDR_RESOLVED),
		NAME(RDMA_CM_EVENT_ADDR_ERROR),
		NAME(RDMA_CM_EVENT_ROUTE_RESOLVED),
		NAME(RDMA_CM_EVENT_ROUTE_ERROR),
		NAME(RDMA_CM_EVENT_CONNECT_REQUEST),
		NAME(RDMA_CM_EVENT_CONNECT_RESPONSE),
		NAME(RDMA_CM_EVENT_CONNECT_ERROR),
		NAME(RDMA_CM_EVENT_UNREACHABLE),
		NAME(RDMA_CM_EVENT_REJECTED),
		NAME(RDMA_CM_EVENT_ESTABLISHED),
		NAME(RDMA_CM_EVENT_DISCONNECTED),
		NAME(RDMA_CM_EVENT_DEVICE_REMOVAL),
		NAME(RDMA_CM_EVENT_MULTICAST_JOIN),
		NAME(RDMA_CM_EVENT_MULTICAST_ERROR),
		NAME(RDMA_CM_EVENT_ADDR_CHANGE),
		NAME(RDMA_CM_EVENT_TIMEWAIT_EXIT),
		[ADDRINFO_RESOLVED] = "RDMA_CM_EVENT_ADDRINFO_RESOLVED",
		[ADDRINFO_ERROR] = "RDMA_CM_EVENT_ADDRINFO_ERROR",
	};

	return (unsigned)event < ARRAY_SIZE(names) ? names[event] : "UNKNOWN EVENT";
}
