/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process's connection to the daemon of its fabric: requests and replies, one at
 * a time. libibverbs and librdmacm share one, libibumad and the command line have
 * their own. Thread-safe: calls from several threads take turns. Calls block until
 * the daemon has replied, which it does at once; its death ends the wait. They are no
 * cancellation points, and signals do not interrupt them: as ioctl() of a device file.
 */
#ifndef CONTROL_CLIENT_H
#define CONTROL_CLIENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "control/message.h"

/* So long the command line waits for the daemon to answer hello and stop, and a program that looks
 * into sysfs, for any answer. */
#define CONTROL_PATIENCE_MS 5000

struct control_client;
struct control_packet;

/*
 * Connects to the daemon that listens at @socket_path and says hello. @host: the
 * host whose HCAs the process sees, NULL for all. 0; -ENOENT or -ECONNREFUSED: no
 * daemon; -EHOSTUNREACH: no such host; -EPROTO: another version; -EACCES: another
 * user's; -ETIMEDOUT: the daemon does not answer, which the command line and sysfs find out;
 * -errno.
 */
int control_connect(struct control_client **c, const char *socket_path, enum control_role role,
                    const char *host);
void control_close(struct control_client *c);

/* Serves the request in @p and puts the reply in its place. */
typedef void control_serve(void *arg, struct control_packet *p);

/*
 * The daemon's connection to itself: it uses what processes use. @serve serves requests at once,
 *  in the caller's thread. 0 or -ENOMEM. control_fd() of it is -1.
 */
int control_local(struct control_client **c, control_serve *serve, void *arg);

/* The reply to hello. The descriptors (control part, data part) become the caller's; -1 twice for
 * the command line. */
void control_hello(struct control_client *c, struct control_hello_reply *hello, int fd[2]);

/* Of hello: the number of this process among those of its host. */
uint32_t control_number(const struct control_client *c);

/* How long a call waits for the daemon from now on: then it fails with -ETIMEDOUT, and so do later
 * ones with -EIO. 0: for ever. */
void control_limit_wait(struct control_client *c, unsigned ms);

/* The socket: it is readable or hung up only when the daemon has gone. */
int control_fd(const struct control_client *c);

/* Whether a call has found that the daemon has gone: all will fail. */
bool control_is_gone(struct control_client *c);

struct control_call {
	enum control_type type;
	const void *request;
	uint32_t request_bytes;
	void *reply;
	uint32_t reply_bytes; /* exactly so many must come with status 0 */
	int *fd;              /* one descriptor must come with status 0; NULL: none */
	unsigned *n_fds;      /* as many may come as @fd has room for, CONTROL_MAX_FDS; NULL: one */
	const int *send_fd;   /* goes with the request; NULL: none */
	/* asked for with -EMFILE, as the daemon has made what @fd was to lead to; its body is the
	 * handle, a uint32_t, that the reply begins with; 0: nothing was made */
	enum control_type undo;
};

/* The status of the reply; -EIO if the daemon has gone; -EMSGSIZE for a request that is too long;
 * -EMFILE if the process has no room for one more descriptor. */
int control_call(struct control_client *c, const struct control_call *call);

/* The call with the structs that @req and @rep point to, and no descriptors. */
#define CONTROL_CALL(request_type, req, rep)                     \
	((struct control_call){ .type = (request_type),          \
	                        .request = (req),                \
	                        .request_bytes = sizeof(*(req)), \
	                        .reply = (rep),                  \
	                        .reply_bytes = sizeof(*(rep)) })

/* control_call() of it. */
#define control_ask(c, request_type, req, rep) \
	control_call(c, &CONTROL_CALL(request_type, req, rep))

/* A request with nothing but a status to come back. */
int control_request(struct control_client *c, enum control_type type, const void *request,
                    uint32_t bytes);

/*
 * A request that nobody waits for: the daemon serves it before those that come by this connection
 * later, and its status is lost. For a process that posts many, requests go by shared memory
 * (posts.h). 0, though the daemon may go before it has served it; -EIO: it has gone; -EMSGSIZE.
 */
int control_post(struct control_client *c, enum control_type type, const void *request,
                 uint32_t bytes);

/* The same; a batch does not keep it back. */
int control_post_now(struct control_client *c, enum control_type type, const void *request,
                     uint32_t bytes);

/*
 * A batch: the requests that a thread makes by control_request() and control_post() are kept, with
 * status 0. They go ahead of the next request that it waits for, or when the batch ends. If a
 * request of a batch fails, those behind it in the batch fail with the same error.
 */
struct control_batch {
	LIST_ENTRY(control_batch) entry;
	pthread_t thread;
	bool is_begun;
	uint32_t bytes, last; /* of @data are used; where the last request begins */
	unsigned char data[sizeof(struct control_header) + CONTROL_MAX_BYTES];
};
/* Within a batch of the thread this does nothing. The end: 0; -EIO: the daemon has gone, and what
 * was kept is lost. */
void control_batch_begin(struct control_client *c, struct control_batch *b);
int control_batch_end(struct control_client *c, struct control_batch *b);

/* JSON text about @what ("status", "hosts", "topology", "groups", "routes", "ports", "counters"),
 * to be freed. -EINVAL: unknown. */
int control_show(struct control_client *c, const char *what, char **json);

/* Likewise, of the switch @of alone, which "routes" can; NULL: of all. -ENOENT: no such switch. */
int control_show_of(struct control_client *c, const char *what, const char *of, char **json);

/* Likewise, as a descriptor that the text can be read from up to its end. */
int control_show_open(struct control_client *c, const char *what, const char *of, int *fd);

/* Changes a setting that may change while the fabric is up. -ENOENT unknown, -EPERM fixed at
 * start, -ERANGE, -EINVAL. */
int control_set(struct control_client *c, const char *key, const char *value);

/* Break links and switches and mend them, and let the subnet manager act, to test programs
 * with. @node as in struct control_port, from where the errors are, too. Return when it is done. */
int control_link(struct control_client *c, const char *node, unsigned port, bool up);
int control_switch(struct control_client *c, const char *name, bool alive);
int control_sm_event(struct control_client *c, enum control_sm_event_type type, const char *node,
                     unsigned port);

/*
 * Has a router send packets on by @fd, one end of a socket whose other end another fabric's daemon
 * gets: @node's, or "": one that is free. @peer: the other fabric. control_end_router() ends that.
 */
struct control_router_reply;
int control_join_router(struct control_client *c, const char *node, const char *peer, int fd,
                        struct control_router_reply *reply);
int control_end_router(struct control_client *c, const char *node);

/* Sets the partitions to those in the text in the memfd @fd. @why: what is wrong with it. */
int control_partitions(struct control_client *c, const char *name, int fd, char why[static 512]);

/* The namespaces of the host that we said hello on: network, host name, mounts, and the user
 * namespace or -1. The descriptors are the caller's. -EOPNOTSUPP: it has none. */
int control_enter_host(struct control_client *c, struct control_enter_host_reply *reply,
                       int fd[static CONTROL_MAX_FDS]);

/* MADs from now on, as @which says: a descriptor to read struct control_captured from. */
int control_capture(struct control_client *c, const struct control_capture *which, int *fd);

/* Asks the daemon to end; returns when it has. -ETIMEDOUT: it does not. */
int control_stop(struct control_client *c);

/*
 * Connects to the daemon without a word, which works even if it does not answer. Returns the
 * socket, which hangs up when the daemon ends, and the daemon's process: 0 if this PID namespace
 * does not see it. -errno as control_connect().
 */
int control_find_daemon(const char *socket_path, pid_t *pid);

/* Waits until the other end of @sock is gone. 0, -ETIMEDOUT or -errno. */
int control_wait_hangup(int sock, unsigned ms);

#endif
