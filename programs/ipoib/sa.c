/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests to the subnet administrator: see sa.h. libibumad repeats them and says when it gives up.
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/umad.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "ipoib/sa.h"

#define TIMEOUT_MS 1000
#define RETRIES    3

struct ipoib_sa {
	struct ibv_context *verbs;
	uint8_t port;
	int fd;
	uint32_t agent;
	uint64_t last_tid;
	struct base_hash requests; /* by TID */
	void *umad;                /* for one MAD */
};

/* The memberships that the port has got by our MADs end with us, as Linux's interface leaves its
 * groups. */
static int open_agent(struct ipoib_sa *sa)
{
	struct umad_reg_attr attr = { .mgmt_class = MAD_CLASS_SUBN_ADM,
		                      .mgmt_class_version = MAD_VERSION_SUBN_ADM,
		                      .flags = MAD_AGENT_LEAVES };

	return -umad_register2(sa->fd, &attr, &sa->agent);
}

int ipoib_sa_open(struct ipoib_sa **sa_, struct ibv_context *verbs, uint8_t port)
{
	struct ipoib_sa *sa = calloc(1, sizeof(*sa));
	int ret = -ENOMEM;

	if (!sa)
		return ret;
	sa->verbs = verbs;
	sa->port = port;
	sa->umad = umad_alloc(1, umad_size() + MAD_BYTES);
	if (!sa->umad)
		goto err_free;
	ret = sa->fd = umad_open_port(ibv_get_device_name(verbs->device), port);
	if (ret < 0)
		goto err_umad;
	ret = open_agent(sa);
	if (ret < 0)
		goto err_close;
	*sa_ = sa;
	return 0;

err_close:
	umad_close_port(sa->fd);
err_umad:
	umad_free(sa->umad);
err_free:
	free(sa);
	return ret;
}

void ipoib_sa_close(struct ipoib_sa *sa)
{
	umad_close_port(sa->fd);
	base_hash_fini(&sa->requests);
	umad_free(sa->umad);
	free(sa);
}

int ipoib_sa_fd(const struct ipoib_sa *sa)
{
	return umad_get_fd(sa->fd);
}

static uint64_t hash_of(uint64_t tid)
{
	return base_hash_of(&tid, sizeof(tid), 0);
}

void ipoib_sa_cancel(struct ipoib_sa *sa, struct ipoib_sa_request *r)
{
	if (!r->tid)
		return;
	base_hash_remove(&sa->requests, &r->node);
	r->tid = 0;
}

int ipoib_sa_send(struct ipoib_sa *sa, const struct ipoib_sa_query *query,
                  struct ipoib_sa_request *r)
{
	struct wire_sa_mad mad = {
		.mad = { .base_version = MAD_BASE_VERSION,
		         .mgmt_class = MAD_CLASS_SUBN_ADM,
		         .class_version = MAD_VERSION_SUBN_ADM,
		         .method = query->method,
		         .attribute_id = query->attribute },
		.component_mask = query->mask,
	};
	struct ibv_port_attr port;
	int ret = 0;

	/* always: not every change of the SM's LID is an event */
	if (ibv_query_port(sa->verbs, sa->port, &port))
		return -EIO;
	/* the library has the upper half */
	sa->last_tid = (sa->last_tid + 1) & UINT32_MAX;
	sa->last_tid += !sa->last_tid;
	mad.mad.transaction_id = sa->last_tid;
	wire_encode(query->layout, query->record, mad.data);
	memset(sa->umad, 0, umad_size() + MAD_BYTES);
	wire_sa_mad_encode(&mad, umad_get_mad(sa->umad));
	umad_set_addr(sa->umad, port.sm_lid, IB_QPN_GSI, port.sm_sl, (int)IB_QKEY_GSI);
	if (r) {
		ipoib_sa_cancel(sa, r);
		ret = base_hash_add(&sa->requests, &r->node, hash_of(sa->last_tid));
	}
	if (ret)
		return ret;
	if (r)
		r->tid = sa->last_tid;
	if (!umad_send(sa->fd, (int)sa->agent, sa->umad, MAD_BYTES, r ? TIMEOUT_MS : 0,
	               r ? RETRIES : 0))
		return 0;
	ret = -errno;
	if (r)
		ipoib_sa_cancel(sa, r);
	return ret;
}

static struct ipoib_sa_request *find(const struct ipoib_sa *sa, uint64_t tid)
{
	struct ipoib_sa_request *r;

	BASE_HASH_FOREACH(r, &sa->requests, hash_of(tid), node)
		if (r->tid == tid)
			return r;
	return NULL;
}

static void received(struct ipoib_sa *sa)
{
	struct wire_sa_mad mad;
	struct ipoib_sa_request *r;
	int status = -umad_status(sa->umad);

	wire_sa_mad_decode(umad_get_mad(sa->umad), &mad);
	r = find(sa, mad.mad.transaction_id & UINT32_MAX);
	if (!r)
		return;
	ipoib_sa_cancel(sa, r);
	if (!status)
		status = mad.mad.status;
	r->done(r, status, status ? NULL : mad.data);
}

int ipoib_sa_dispatch(struct ipoib_sa *sa)
{
	for (;;) {
		int bytes = MAD_BYTES;
		int agent = umad_recv(sa->fd, sa->umad, &bytes, 0);

		if (agent == -EWOULDBLOCK)
			return 0;
		if (agent < 0 && agent != -EINTR)
			return agent;
		if (agent == (int)sa->agent)
			received(sa);
	}
}
