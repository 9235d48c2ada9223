/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Endpoints: a synchronous identifier with all that leads up to connect or listen,
 * made from what rdma_getaddrinfo() said.
 */
#include <errno.h>
#include <stdlib.h>
#include <rdma/rdma_verbs.h>
#include <string.h>

#include "api/rdmacm/rdmacm.h"

#define RESOLVE_MS 2000

static void *copy_of(const void *data, size_t bytes)
{
	void *copy = malloc(bytes);

	if (copy)
		memcpy(copy, data, bytes);
	return copy;
}

static int make_passive(struct rdmacm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
                        const struct ibv_qp_init_attr *qp_init_attr)
{
	if (rdma_bind_addr(&id->id, res->ai_src_addr))
		return -errno;
	if (pd)
		id->id.pd = pd;
	if (!qp_init_attr)
		return 0;
	id->qp_init_attr = copy_of(qp_init_attr, sizeof(*qp_init_attr));
	if (!id->qp_init_attr)
		return -ENOMEM;
	id->qp_init_attr->qp_type = res->ai_qp_type;
	return 0;
}

static int resolve(struct rdmacm_id *id, const struct rdma_addrinfo *res)
{
	if (rdma_resolve_addr(&id->id, res->ai_src_addr, res->ai_dst_addr, RESOLVE_MS))
		return -errno;
	if (!res->ai_route_len)
		return rdma_resolve_route(&id->id, RESOLVE_MS) ? -errno : 0;
	if (rdma_set_option(&id->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, res->ai_route,
	                    res->ai_route_len))
		return -errno;
	return rdmacm_id_complete(id);
}

static int make_active(struct rdmacm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
                       struct ibv_qp_init_attr *qp_init_attr)
{
	int ret = resolve(id, res);

	if (ret)
		return ret;
	if (qp_init_attr) {
		qp_init_attr->qp_type = res->ai_qp_type;
		if (rdma_create_qp(&id->id, pd, qp_init_attr))
			return -errno;
	}
	if (!res->ai_connect_len)
		return 0;
	id->connect_data = copy_of(res->ai_connect, res->ai_connect_len);
	if (!id->connect_data)
		return -ENOMEM;
	id->connect_bytes = res->ai_connect_len;
	return 0;
}

int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
                   struct ibv_qp_init_attr *qp_init_attr)
{
	struct rdmacm_id *made;
	int ret;

	if (!id || !res)
		return rdmacm_return(-EINVAL);
	ret = rdmacm_id_create(NULL, NULL, res->ai_port_space, res->ai_qp_type, &made);
	if (ret)
		return rdmacm_return(ret);
	ret = res->ai_flags & RAI_PASSIVE ? make_passive(made, res, pd, qp_init_attr)
	                                  : make_active(made, res, pd, qp_init_attr);
	if (ret) {
		rdma_destroy_ep(&made->id);
		return rdmacm_return(ret);
	}
	*id = &made->id;
	return 0;
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (!id)
		return;
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	rdma_destroy_id(id);
}
