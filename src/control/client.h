/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process's connection to the manager of its fabric: requests and replies, one at
 * a time. The verbs library, the rdma_cm library and the command line each have
 * their own. Thread-safe: calls from several threads take turns. Calls block until
 * the manager has answered, which it does at once; its death ends the wait.
 */
#ifndef CONTROL_CLIENT_H
#define CONTROL_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "control/message.h"

struct control_client;
struct control_packet;

/*
 * Connects to the manager that listens at @socket_path and says hello. @host: the
 * host whose HCAs the process sees, NULL for all. 0; -ENOENT or -ECONNREFUSED: no
 * manager; -EHOSTUNREACH: no such host; -EPROTO: another version; -EACCES: another
 * user's; -errno.
 */
int control_connect(struct control_client **c, const char *socket_path, enum control_role role,
                    const char *host);
void control_close(struct control_client *c);

/* Answers the request in @p there. */
typedef void control_serve(void *arg, struct control_packet *p);

/*
 * The manager's connection to itself: it uses what processes use. Requests are answered at once
 * by @serve, in the caller's thread. 0 or -ENOMEM. control_fd() of it is -1.
 */
int control_local(struct control_client **c, control_serve *serve, void *arg);

/* What hello brought. The descriptors (control part, data part) become the caller's; -1 twice
 * for the command line. */
void control_hello(struct control_client *c, struct control_hello_reply *hello, int fd[2]);

/* The socket: it is readable or hung up only when the manager has gone. */
int control_fd(const struct control_client *c);

struct control_call {
	enum control_type type;
	const void *request;
	uint32_t request_bytes;
	void *reply;
	uint32_t reply_bytes; /* exactly so many must come with status 0 */
	int *fd;              /* one descriptor must come with status 0; NULL: none */
	const int *send_fd;   /* goes with the request; NULL: none */
};

/* The status of the reply; -EIO if the manager has gone; -EMSGSIZE for a request that is too long;
 * -EMFILE if the process cannot take one more descriptor. */
int control_call(struct control_client *c, const struct control_call *call);

/* A request with nothing but a status to come back. */
int control_request(struct control_client *c, enum control_type type, const void *request,
                    uint32_t bytes);

/* JSON text about @what ("status", "hosts", "topology", "groups", "routes", "counters"), to be
 * freed. -EINVAL: unknown. */
int control_show(struct control_client *c, const char *what, char **json);

/* Changes a setting that may change while the fabric is up. -ENOENT unknown, -EPERM fixed at
 * start, -ERANGE, -EINVAL. */
int control_set(struct control_client *c, const char *key, const char *value);

/* Breaks things and mends them, and has the subnet manager do things, for programs to be tested
 * with. @node as in struct control_port, from where the errors are, too. Return when it is done. */
int control_link(struct control_client *c, const char *node, unsigned port, bool up);
int control_switch(struct control_client *c, const char *name, bool alive);
int control_sm_event(struct control_client *c, enum control_sm_event_type type, const char *node,
                     unsigned port);

/* Has the fabric take the partitions in the text at @fd. @why: what is wrong with it. */
int control_partitions(struct control_client *c, const char *name, int fd, char why[static 512]);

/* Asks the manager to end; returns when it has. */
int control_stop(struct control_client *c);

#endif
