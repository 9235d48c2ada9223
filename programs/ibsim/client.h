/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client: a program with libumad2sim, at a port. Its MADs go between its socket and a port of
 * libibumad, which treats them like those of its own programs. Not thread-safe.
 */
#ifndef IBSIM_CLIENT_H
#define IBSIM_CLIENT_H

#include "ibsim/node.h"
#include "ibsim/protocol.h"
#include "ibsim/requests.h"
#include "ibsim/socket.h"
#include "ibsim/source.h"

#define IBSIM_SM_AGENTS 3

struct ibsim_client;

/* The part that clients share. */
struct ibsim_common {
	int loop;         /* epoll */
	const char *base; /* of the sockets' names */
	void *umad;       /* room for one MAD */
	/* The client has ended, or must; frees it. */
	void (*gone)(struct ibsim_common *common, struct ibsim_client *client);
	void (*fabric_gone)(struct ibsim_common *common);
};

struct ibsim_client {
	struct ibsim_common *common;
	uint32_t id;
	struct ibsim_address control; /* where its questions come from */
	struct ibsim_place at;
	struct ibsim_source socket, port, process;
	int smi, gsi, sa; /* agents */
	int is_sm;        /* the open issm file, or -1 */
	int sm_agent[IBSIM_SM_AGENTS];
	struct ibsim_requests requests;
	struct ibsim_mad late; /* its socket was full */
	bool is_late;
};

/*
 * A client with the number @id, which has asked by @sender for what @hello says. 0; -EADDRINUSE:
 * another has the name of socket @id; -EBUSY: the client is to be the SM at that port, and there is
 * one already; -errno of ibsim_node_find() and others.
 */
int ibsim_client_open(struct ibsim_client **c, struct ibsim_common *common, uint32_t id,
                      const struct ibsim_connect *hello, const struct ibsim_sender *sender);
void ibsim_client_close(struct ibsim_client *c);

/* Whether it manages the subnet: then it gets requests as well. 0; -EBUSY: another program does at
 * that port. */
int ibsim_client_set_sm(struct ibsim_client *c, bool is_sm);

#endif
