/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Clients: connections of processes. Each request on one gets a reply, or the connection ends;
 * and when it ends, all that the client holds is freed.
 */
#ifndef DAEMON_CLIENT_H
#define DAEMON_CLIENT_H

#include <sys/types.h>

#include "cm/cm.h"
#include "control/posts.h"
#include "daemon/clients/objects.h"
#include "daemon/clients/program.h"
#include "daemon/clients/request.h"
#include "daemon/clients/share.h"
#include "daemon/core/giver.h"
#include "fabric/forwarding/collect.h"

/* A request that waits for the subnet to be at rest, for counters, or for flows. */
struct daemon_later {
	TAILQ_ENTRY(daemon_later) entry; /* in ->waiting or ->following; for counters in none */
	struct fabric_reader reader;
	uint64_t change; /* flows are to follow it: fabric_changes.done */
	struct daemon_client *client;
	enum daemon_wait wait;
	struct control_packet request, reply;
};

struct daemon_clients {
	struct daemon_loop *loop;
	TAILQ_HEAD(daemon_laters, daemon_later) waiting;
	struct daemon_laters following; /* for flows, in the order of their changes */
	struct fabric *f;
	struct daemon_objects *objects;
	struct cm *cm;     /* set when there is one */
	const uid_t *user; /* these may connect, besides the fabric's owner and root */
	unsigned n_users;
	const gid_t *group; /* members of these may, too */
	unsigned n_groups;
	int (*stopping)(void *arg); /* before the daemon ends by request: 0, or what it replies */
	void *stopping_arg;
	struct daemon_requests requests;
	struct base_idtable ids;
	struct daemon_source listening;
	struct base_timer listen_again; /* there was not even a spare descriptor */
	int spare_fd; /* given up to refuse a client when there are no more descriptors; or -1 */
	struct daemon_shares shares; /* of descriptors */
	uint32_t n_programs;         /* so far, of those that see all hosts */
};

struct daemon_client {
	struct daemon_clients *all;
	uint32_t id;
	int sock; /* -1: it is the daemon itself */
	struct daemon_source source;
	struct daemon_giver giver;
	struct daemon_source exit_source; /* the process's exit */
	enum control_role role;
	bool greeted, is_owner;         /* is_owner: or root */
	int host_index;                 /* -1: it sees all hosts */
	struct daemon_member member;    /* of shares of the daemon's descriptors */
	struct daemon_share *undecided; /* it goes unless this has room for it; or NULL */
	unsigned n_objects;             /* that have a descriptor of the daemon's each */
	pid_t pid;
	char program[DAEMON_PROGRAM]; /* its name, once somebody was told */
	struct daemon_holder *holds;
	struct control_posts_reader posts;
	struct control_packet *rest; /* of a datagram, whose other requests took all of its turn; it
	                                is not heard meanwhile */
	struct base_timer next_turn; /* for the rest, or for what has been posted and not served */
	struct daemon_later *later;  /* its request that waits; it is not heard meanwhile */
	bool collected;              /* the next one has waited for counters, */
	bool settled;                /* for hang-ups that came before */
};

/* Has them served, by rows that modules add to ->requests. */
void daemon_clients_init(struct daemon_clients *all, struct daemon_loop *loop, struct fabric *f,
                         struct daemon_objects *objects);

/* Accepts connections at @listen_fd. 0 or -errno. */
int daemon_clients_listen(struct daemon_clients *all, int listen_fd);

/* Whether it is a process that uses verbs or libibumad. */
bool daemon_client_is_program(const struct daemon_client *c);

/* How many processes use verbs, but for the daemon itself. */
unsigned daemon_clients_count_verbs(const struct daemon_clients *all);

/*
 * The daemon as a client of itself, greeted as one of role VERBS on all hosts. Its requests come
 * by daemon_client_serve(). 0, -ENOSPC, -ENOMEM.
 */
int daemon_client_new_local(struct daemon_clients *all, struct daemon_client **c);

/* Serves the request in @p, of which it makes the reply: of type control_serve. */
void daemon_client_serve(void *client, struct control_packet *p);

/*
 * The subnet is at rest: replies to those that waited for it, with @status where that is their
 * reply, and serves the requests that had to wait for their turn, in their order, until one of them
 * has to wait again.
 */
void daemon_clients_go_on(struct daemon_clients *all, int status);

/* Replies to those whose changes all flows have followed. */
void daemon_clients_followed(struct daemon_clients *all);

/* Ends a connection and all that hangs on it. */
void daemon_client_free(struct daemon_client *c);

/* Whether the client may use what is on this host (an index). */
bool daemon_client_sees(const struct daemon_client *c, uint32_t host_index);

#endif
