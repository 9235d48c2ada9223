/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The requests that processes send, as one table by type: the length of the body, the roles that
 * may ask, and the function that serves it. Each module adds its rows when it starts; a new request
 * is a row and a function. This module checks the length, the role, and that the object of the
 * request is the client's own. The function checks every other number of a body.
 */
#ifndef DAEMON_REQUEST_H
#define DAEMON_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "control/socket.h"

struct daemon_client;

/* A request that is being served. */
struct daemon_call {
	struct daemon_client *client;
	const void *body;             /* as long as the row says, aligned for what it is */
	struct control_packet *reply; /* all zero but for type and serial */
	void *module;                 /* that has added the row */
	void *about;                  /* what the row's find() has found; NULL: it has none */
	const struct control_packet *request;
	bool collected; /* it has waited by DAEMON_SERVE_COLLECTED */
};

enum daemon_asker {
	DAEMON_CLI = 1 << CONTROL_ROLE_CLI,
	DAEMON_VERBS = 1 << CONTROL_ROLE_VERBS,
	DAEMON_UMAD = 1 << CONTROL_ROLE_UMAD,
	DAEMON_SYSFS = 1 << CONTROL_ROLE_SYSFS,
	DAEMON_ANYBODY = DAEMON_CLI | DAEMON_VERBS | DAEMON_UMAD | DAEMON_SYSFS,
	DAEMON_OWNER = 1 << 29,    /* ORed to it: the fabric's owner or root, no named user */
	DAEMON_STRANGER = 1 << 30, /* it has yet to say hello */
};

#define DAEMON_ANY_BYTES UINT16_MAX /* the function checks the length */

struct daemon_request {
	uint8_t type, last; /* last: of a range of types that are served alike; 0: it is one */
	uint8_t n_fds;      /* that must come with it; 0: those that come are closed */
	bool is_owners;     /* not for users that the owner has named (--allow-user) */
	uint16_t bytes;     /* of the body */
	uint16_t about_at;  /* where the body names what the request is about, for find() */
	uint32_t who;       /* enum daemon_asker, ORed */
	/* The client's object with this handle, or number; NULL: there is none. Or no function: the
	 * request is about nothing that has a handle. */
	void *(*find)(const struct daemon_call *call, uint32_t handle);
	/* The status of the reply: 0 or -errno; or enum daemon_wait. Fills in its body, length and
	 * descriptors. */
	int (*serve)(struct daemon_call *call);
};

/* Rows: a request whose body is struct @body, of @asker; and one for the owner alone. */
#define DAEMON_REQUEST(name, body, asker, function)                                   \
	{                                                                             \
		.type = CONTROL_##name, .bytes = sizeof(struct body), .who = (asker), \
		.serve = (function)                                                   \
	}
#define DAEMON_OWNERS_REQUEST(name, body, asker, function)                               \
	{                                                                                \
		.type = CONTROL_##name, .bytes = sizeof(struct body), .is_owners = true, \
		.who = (asker), .serve = (function)                                      \
	}

/* The values that a function returns if the reply has to wait: but for the last three until the
 * subnet is at rest (client.h), and only for DAEMON_CLI. */
enum daemon_wait {
	DAEMON_SERVE_AGAIN = 1, /* nothing has been done: the request is served then */
	DAEMON_REPLY_THEN,      /* all has been done: the reply is as it is, and sent then */
	DAEMON_REPLY_RESULT,    /* and its status is what came out */
	DAEMON_SERVE_COLLECTED, /* as the first, until counters are collected
	                           (fabric/forwarding/collect.h) */
	DAEMON_REPLY_FOLLOWED,  /* as the second, when flows have followed all changes of groups
	                           that there are by now (fabric/forwarding/change.h) */
	DAEMON_SERVE_SETTLED,   /* as the first, until clients are gone that have hung up by now; no
	                           function returns it */
};

struct daemon_requests {
	struct {
		const struct daemon_request *row; /* NULL: there is no such request */
		void *module;
	} of[UINT8_MAX + 1];
};

/* Adds @n rows, which stay where they are. */
void daemon_requests_add(struct daemon_requests *all, const struct daemon_request *row, size_t n,
                         void *module);

/*
 * Serves a request of @who, an enum daemon_asker. The status: that of the function; -ENOSYS: there
 * is no such request for this role; -EPROTO: it has the wrong length, or lacks descriptors, or
 * comes before the hello; -EACCES: it is not for this user; -EINVAL: its object is not the
 * client's.
 */
int daemon_requests_serve(const struct daemon_requests *all, uint32_t who,
                          struct daemon_call *call);

/* The body of the reply, from now on of @bytes. */
void *daemon_call_reply(struct daemon_call *call, size_t bytes);

/* Hands @fd over with the reply: it is the reply's from now on. */
void daemon_call_give(struct daemon_call *call, int fd);

/* Hands a duplicate of @fd over. 0 or -errno. */
int daemon_call_give_copy(struct daemon_call *call, int fd);

#endif
