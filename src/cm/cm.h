/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The manager's half of rdma_cm: what the kernel's rdma_cm, ib_cm and ib_sa modules
 * are to librdmacm. Identifiers and their states, addresses and ports of hosts,
 * service ID resolution for UD, multicast joins on behalf of processes (a port joins
 * once, however many processes ask; see SA). The process's half is api/rdmacm.
 *
 * The manager's; not thread-safe. Sockets and memory are passed in: that there is an
 * event leaves by an outbox that the daemon provides, the event itself is asked for
 * (see control/cm_message.h).
 */
#ifndef CM_CM_H
#define CM_CM_H

#include "control/socket.h"
#include "fabric/fabric.h"
#include "subnet/sa.h"

struct cm;
struct cm_client; /* one process's connection */
struct cm_outbox; /* one event channel's way to its process; the daemon's */

struct cm_ops {
	/* Opens an outbox; *@process_fd is the end that goes to the process. 0 or -errno. */
	int (*outbox_open)(void *arg, struct cm_outbox **box, int *process_fd);
	/* Sends one datagram, in order; never blocks, never loses. */
	void (*outbox_send)(struct cm_outbox *box, const void *data, size_t bytes);
	void (*outbox_close)(struct cm_outbox *box);
	/* Asks to call cm_run_due() after @ms milliseconds; the soonest of several counts. */
	void (*wake)(void *arg, unsigned ms);
	void *arg;
};

int cm_new(struct cm **cm, struct fabric *f, struct sa *sa, const struct cm_ops *ops);

/* The subnet administrator that it asks; NULL: there is none within reach. */
void cm_set_sa(struct cm *cm, struct sa *sa);

/* Its clients have been freed. */
void cm_free(struct cm *cm);

/* A process of host @host_index (-1: it sees all hosts) has connected. 0 or -ENOMEM. */
int cm_client_new(struct cm *cm, int host_index, struct cm_client **client);

/* It is gone: its identifiers, joins, listeners and channels go too. */
void cm_client_free(struct cm *cm, struct cm_client *client);

/*
 * Serves one request of types CONTROL_CM_FIRST to CONTROL_CM_LAST, whose body is
 * input and checked as such. Fills body, bytes and descriptors of @reply; the
 * descriptors are the caller's to close. The status: 0 or -errno (-EPROTO: a malformed
 * request).
 */
int cm_request(struct cm *cm, struct cm_client *client, const struct control_packet *request,
               struct control_packet *reply);

/* Time has passed. @now_ms: monotonic. */
void cm_run_due(struct cm *cm, uint64_t now_ms);

/*
 * A port went down, or its LID or its SM changed: its members get MULTICAST_ERROR,
 * -ENETRESET, and the port is a member no more. They may leave, and join anew.
 */
void cm_port_changed(struct cm *cm, struct fabric_port *port);

#endif
