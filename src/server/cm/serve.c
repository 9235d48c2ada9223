/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Services that the daemon resolves by itself. A listener names a queue pair for each port, and the
 * daemon responds to requests there at once, even if the listener's process is busy. For datagram
 * rsockets.
 */
#include <errno.h>
#include <stdlib.h>

#include "cm/state.h"

struct cm_served {
	LIST_ENTRY(cm_served) entry;
	uint32_t port; /* index */
	uint32_t qpn;
};

static struct cm_served *served_find(const struct cm_id *id, uint32_t port)
{
	struct cm_served *s;

	LIST_FOREACH(s, &id->served, entry)
	if (s->port == port)
		return s;
	return NULL;
}

static struct cm_served *served_get(struct cm_id *id, uint32_t port)
{
	struct cm_served *s = served_find(id, port);

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->port = port;
	LIST_INSERT_HEAD(&id->served, s, entry);
	return s;
}

/* The index of the port that @qpn is on, if it is a queue pair in use there. 0 or -EINVAL. */
static int port_of(const struct cm *cm, uint32_t qpn, uint32_t *port)
{
	const struct shm_qp *qp;

	if (qpn > IB_QPN_MCAST)
		return -EINVAL;
	qp = shm_qp_at(cm->f->region, SHM_QP_INDEX(qpn));
	if (qp->qpn != qpn || !qp->port_num || qp->port >= cm->f->n_hca_ports)
		return -EINVAL;
	*port = qp->port;
	return 0;
}

int cm_serve(struct cm_call *call)
{
	const struct control_cm_serve *request = call->request;
	struct cm_id *id = cm_id_find(call, request->id);
	struct cm_served *s;
	uint32_t port;
	int ret;

	if (!id)
		return -EINVAL;
	if (id->qp_type != IBV_QPT_UD)
		return -EOPNOTSUPP;
	ret = port_of(call->cm, request->qp_num, &port);
	if (!ret && !id->serves) {
		id->serves = true; /* other identifiers may listen there, too, if all allow it */
		ret = cm_connect_start_listening(id, 0);
		id->serves = !ret;
	}
	if (!ret)
		ret = cm_id_default_qkey(id);
	if (ret)
		return ret;
	s = served_get(id, port);
	if (!s)
		return -ENOMEM;
	s->qpn = request->qp_num;
	cm_id_describe(id, call->reply);
	call->reply_bytes = sizeof(struct control_cm_id_reply);
	return 0;
}

uint32_t cm_serve_find(const struct cm_id *listener, const struct fabric_port *port)
{
	const struct cm_served *s = served_find(listener, port->index);

	return s ? s->qpn : 0;
}

void cm_serve_end(struct cm_id *id)
{
	struct cm_served *s;

	while ((s = LIST_FIRST(&id->served))) {
		LIST_REMOVE(s, entry);
		free(s);
	}
}
