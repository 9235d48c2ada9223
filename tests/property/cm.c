/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Joins by librdmacm: see cm.h.
 */
#include "must.h"

#include <infiniband/ib.h>

#include "cm.h"

#define WAIT_MS 120000

void cm_open(struct cm *cm, const char *address)
{
	struct sockaddr_in at = { .sin_family = AF_INET };

	must(inet_pton(AF_INET, address, &at.sin_addr) == 1, "'%s' is no address", address);
	cm->channel = rdma_create_event_channel();
	if (!cm->channel || rdma_create_id(cm->channel, &cm->id, NULL, RDMA_PS_UDP) ||
	    rdma_bind_addr(cm->id, (struct sockaddr *)&at))
		err(EXIT_FAILURE, "librdmacm at %s", address);
}

static struct sockaddr_ib group_address(const uint8_t mgid[16])
{
	struct sockaddr_ib address = { .sib_family = AF_IB };

	memcpy(&address.sib_addr, mgid, 16);
	return address;
}

/* The next event, if one comes within @ms. */
static struct rdma_cm_event *next_event(struct cm *cm, int ms)
{
	struct pollfd wait = { .fd = cm->channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&wait, 1, ms) != 1)
		return NULL;
	check(!rdma_get_cm_event(cm->channel, &event), "rdma_get_cm_event");
	return event;
}

/* Events that nobody waits for: of joins that a failure has ended. */
static void drop_events(struct cm *cm)
{
	struct rdma_cm_event *event;

	while ((event = next_event(cm, 0)))
		rdma_ack_cm_event(event);
}

void cm_leave(struct cm *cm, const uint8_t mgid[16])
{
	struct sockaddr_ib address = group_address(mgid);

	drop_events(cm);
	check(!rdma_leave_multicast(cm->id, (struct sockaddr *)&address), "rdma_leave_multicast");
}

int cm_join(struct cm *cm, const uint8_t mgid[16], bool send_only, uint16_t *mlid)
{
	struct sockaddr_ib address = group_address(mgid);
	struct rdma_cm_join_mc_attr_ex attr = { .comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
		                                             RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		                                .addr = (struct sockaddr *)&address };
	struct rdma_cm_event *event;
	int status;

	attr.join_flags =
	        send_only ? RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER : RDMA_MC_JOIN_FLAG_FULLMEMBER;
	drop_events(cm);
	if (rdma_join_multicast_ex(cm->id, &attr, NULL)) {
		if (errno == EADDRNOTAVAIL) /* the port has no broadcast group yet */
			return -errno;
		err(EXIT_FAILURE, "rdma_join_multicast_ex");
	}
	event = next_event(cm, WAIT_MS);
	must(event, "no event says what became of a join");
	status = event->event == RDMA_CM_EVENT_MULTICAST_JOIN
	                 ? event->status
	                 : (event->status ? event->status : -EPROTO);
	*mlid = event->param.ud.ah_attr.dlid;
	rdma_ack_cm_event(event);
	if (status)
		cm_leave(cm, mgid);
	return status;
}
