/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The devices, by libibverbs's public calls: one context a device for the whole
 * process, open for good once it is, and one default PD while identifiers use it.
 * The daemon names a device as libibverbs does.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "api/rdmacm/rdmacm.h"
#include "api/verbs/connection.h"

/* With the lock of sessions held. */
static int load(struct rdmacm_session *s)
{
	struct ibv_device **known;
	int n = 0;

	if (s->listed)
		return 0;
	known = ibv_get_device_list(&n);
	if (!known)
		return -ENODEV;
	if (!n) {
		ibv_free_device_list(known);
		return -ENODEV;
	}
	while (n--) {
		struct rdmacm_device *d = calloc(1, sizeof(*d));

		if (!d)
			break;
		d->session = s;
		d->dev = known[n];
		TAILQ_INIT(&d->users);
		LIST_INSERT_HEAD(&s->devices, d, entry);
	}
	s->listed = known;
	return 0;
}

static int open_device(struct rdmacm_device *d)
{
	struct ibv_device_attr attr;

	if (d->verbs)
		return 0;
	d->verbs = ibv_open_device(d->dev);
	if (!d->verbs)
		return -ENODEV;
	if (!umbel_connection_stands(d->session->client)) {
		ibv_close_device(d->verbs); /* it may be another fabric's */
		d->verbs = NULL;
		return -EIO;
	}
	if (!ibv_query_device(d->verbs, &attr)) {
		d->max_responder_resources = (uint8_t)attr.max_qp_rd_atom;
		d->max_initiator_depth = (uint8_t)attr.max_qp_init_rd_atom;
	}
	return 0;
}

static int use(struct rdmacm_device *d)
{
	int ret = open_device(d);

	if (ret)
		return ret;
	if (!d->pd)
		d->pd = ibv_alloc_pd(d->verbs);
	if (!d->pd)
		return errno ? -errno : -ENOMEM;
	return 0;
}

static struct rdmacm_device *find(struct rdmacm_session *s, const char *name)
{
	struct rdmacm_device *d;

	LIST_FOREACH(d, &s->devices, entry)
	if (!strcmp(ibv_get_device_name(d->dev), name))
		return d;
	return NULL;
}

int rdmacm_device_use(struct rdmacm_id *id, const char *name)
{
	struct rdmacm_device *d;
	int ret;

	rdmacm_session_lock();
	ret = load(id->session);
	if (!ret) {
		d = find(id->session, name);
		ret = d ? use(d) : -ENODEV;
	}
	if (!ret) {
		TAILQ_INSERT_TAIL(&d->users, id, of_device);
		id->device = d;
		id->id.verbs = d->verbs;
		id->id.pd = d->pd;
	}
	rdmacm_session_unlock();
	return ret;
}

/* Of a request that is not accepted the program hears when it accepts it. */
static bool is_to_be_told(const struct rdmacm_id *id, const struct rdma_event_channel *channel)
{
	return id->id.channel == channel && !id->removal_told &&
	       !rdmacm_id_is_at(id, RDMACM_REQUESTED);
}

struct rdmacm_id *rdmacm_device_removed(const struct rdmacm_channel *ch)
{
	const struct rdma_event_channel *channel = &ch->channel;
	struct rdmacm_id *id = NULL;
	struct rdmacm_device *d;

	rdmacm_session_lock();
	LIST_FOREACH(d, &ch->session->devices, entry)
	{
		TAILQ_FOREACH(id, &d->users, of_device)
		if (is_to_be_told(id, channel))
			break;
		if (id)
			break;
	}
	rdmacm_session_unlock();
	return id;
}

bool rdmacm_port_is_ready(struct ibv_context *verbs, uint8_t port_num)
{
	struct ibv_port_attr port;

	return !ibv_query_port(verbs, port_num, &port) &&
	       port.link_layer == IBV_LINK_LAYER_INFINIBAND && port.state == IBV_PORT_ACTIVE &&
	       port.sm_lid;
}

bool rdmacm_device_is_ready(const struct rdmacm_id *id)
{
	return id->device && rdmacm_port_is_ready(id->id.verbs, id->id.port_num);
}

void rdmacm_device_release(struct rdmacm_id *id)
{
	struct rdmacm_device *d = id->device;

	if (!d)
		return;
	rdmacm_session_lock();
	id->device = NULL;
	TAILQ_REMOVE(&d->users, id, of_device);
	if (TAILQ_EMPTY(&d->users)) {
		if (d->xrcd)
			ibv_close_xrcd(d->xrcd);
		d->xrcd = NULL;
		ibv_dealloc_pd(d->pd);
		d->pd = NULL;
	}
	rdmacm_session_unlock();
}

struct ibv_xrcd *rdmacm_device_xrcd(const struct rdmacm_id *id)
{
	struct ibv_xrcd_init_attr attr = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
		                                        IBV_XRCD_INIT_ATTR_OFLAGS,
		                           .fd = -1,
		                           .oflags = O_CREAT };
	struct rdmacm_device *d = id->device;
	struct ibv_xrcd *xrcd;

	rdmacm_session_lock();
	if (!d->xrcd)
		d->xrcd = ibv_open_xrcd(d->verbs, &attr);
	xrcd = d->xrcd;
	rdmacm_session_unlock();
	return xrcd;
}

/* All that can be opened, with the lock held. */
static struct ibv_context **list_contexts(struct rdmacm_session *s, int *n)
{
	struct ibv_context **list;
	struct rdmacm_device *d;
	int room = 1;

	LIST_FOREACH(d, &s->devices, entry)
	room++;
	list = calloc(room, sizeof(*list));
	if (!list)
		return NULL;
	*n = 0;
	LIST_FOREACH(d, &s->devices, entry)
	if (!open_device(d))
		list[(*n)++] = d->verbs;
	return list;
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ibv_context **list = NULL;
	struct rdmacm_session *s;
	int n = 0, ret;

	rdmacm_session_lock();
	ret = rdmacm_session_current(&s);
	if (!ret)
		ret = load(s);
	if (!ret)
		list = list_contexts(s, &n);
	rdmacm_session_unlock();
	if (ret)
		rdmacm_return(ret);
	else if (!list)
		rdmacm_return(-ENOMEM);
	if (num_devices)
		*num_devices = n;
	return list;
}

/* The contexts stay open: identifiers may come to use them. */
void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
