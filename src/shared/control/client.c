/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection to the daemon: see client.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/reason.h"
#include "base/signals.h"
#include "base/util.h"
#include "control/client.h"
#include "control/directory.h"
#include "control/posts.h"
#include "control/socket.h"

/* A process that has posted so many requests asks for a ring ahead of the next request that it
 * waits for. */
#define POSTS_BEFORE_RING 32

struct control_client {
	pthread_mutex_t lock;
	int sock;
	uint32_t serial;
	bool gone;
	struct control_hello_reply hello;
	int region_fd[2];
	LIST_HEAD(, control_batch) batches; /* of different threads */
	unsigned n_posts;                   /* POSTS_BEFORE_RING at most */
	bool asked_for_ring;
	struct control_posts *posts; /* the ring, or NULL */
	const char *is_own;          /* not 0 there: it was this process that asked for the ring */
	control_serve *serve;        /* NULL: a socket leads to the daemon */
	void *serve_arg;
};

/* Whether the daemon at the other end belongs to a user that may be trusted. 0, -EACCES or
 * -errno. */
static int check_peer(int sock, const char *path)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	return control_user_is_trusted(peer.uid, path) ? 0 : -EACCES;
}

static void set_timeout(int sock, int option, unsigned ms)
{
	const struct timeval t = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	setsockopt(sock, SOL_SOCKET, option, &t, sizeof(t));
}

/* How long sending and receiving on @sock may wait; 0: for ever. */
static void set_patience(int sock, unsigned ms)
{
	set_timeout(sock, SO_RCVTIMEO, (ms + 1) / 2); /* receive() waits twice */
	set_timeout(sock, SO_SNDTIMEO, ms);
}

/* As control_receive(). While the whole machine stands still, as virtual ones do, the time passes,
 * and a wait is over before the daemon has had any of it. The second one begins behind that. */
static int receive(int sock, struct control_packet *p)
{
	int ret = control_receive(sock, p);

	return ret == -EAGAIN ? control_receive(sock, p) : ret;
}

/* Connects; @patience_ms: as for set_patience(). The socket or -errno. */
static int connect_socket(const char *path, unsigned patience_ms)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int sock, ret;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, path);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	set_patience(sock, patience_ms);
	do {
		ret = connect(sock, (struct sockaddr *)&addr, sizeof(addr));
	} while (ret < 0 && errno == EINTR);
	ret = ret < 0 ? -errno : check_peer(sock, path);
	if (ret == -EAGAIN)
		ret = -ETIMEDOUT;
	if (ret) {
		close(sock);
		return ret;
	}
	return sock;
}

static uint32_t next_serial(struct control_client *c)
{
	return ++c->serial ? c->serial : ++c->serial;
}

/* ---- posted requests: with the lock held ---- */

/* Sends @p, with @bytes of requests @ahead, and puts what comes in its place. 0 or -errno. */
static int transfer(struct control_client *c, const void *ahead, uint32_t bytes,
                    struct control_packet *p)
{
	int ret;

	if (c->serve) {
		c->serve(c->serve_arg, p);
		return 0;
	}
	ret = control_send_behind(c->sock, ahead, bytes, p);
	if (!ret)
		ret = receive(c->sock, p);
	return !ret && p->behind ? -EPROTO : ret;
}

/* The same, and what comes is the reply; also with -EMFILE: the process has too many descriptors
 * open, or we would have got one more. */
static int round_trip(struct control_client *c, const void *ahead, uint32_t bytes,
                      struct control_packet *p)
{
	/* a request of the daemon to itself may lead to another one before the reply */
	const uint32_t serial = next_serial(c);
	int ret;

	p->header.serial = serial;
	ret = transfer(c, ahead, bytes, p);
	if ((!ret || ret == -EMFILE) && p->header.serial != serial) {
		control_close_fds(p);
		return -EPROTO;
	}
	return ret;
}

/*
 * A byte that is 0 in a child by fork(): it has the connection, whose datagrams are whole, but no
 * lock in common with its parent, so the ring is not for it. NULL: the kernel cannot do that.
 */
static const char *mark_own(void)
{
	char *mark = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mark == MAP_FAILED)
		return NULL;
	if (madvise(mark, 1, MADV_WIPEONFORK)) {
		munmap(mark, 1);
		return NULL;
	}
	*mark = 1;
	return mark;
}

static bool has_ring(const struct control_client *c)
{
	return c->posts && *c->is_own;
}

/* Asks for the ring, once, if the process posts much. 0, whether or not there is one now; or
 * -errno. */
static int open_ring(struct control_client *c)
{
	struct control_packet p = { .header.type = CONTROL_OPEN_POSTS };
	int ret;

	if (c->asked_for_ring || c->n_posts < POSTS_BEFORE_RING)
		return 0;
	c->asked_for_ring = true;
	c->is_own = mark_own();
	if (!c->is_own)
		return 0;
	ret = round_trip(c, NULL, 0, &p);
	if (ret)
		return ret == -EMFILE ? 0 : ret;
	if (!p.header.status && p.n_fds == 1)
		control_posts_map(&c->posts, p.fd[0]);
	control_close_fds(&p);
	return 0;
}

/* The daemon reads what is in the ring ahead of any request. 0 or -errno. */
static int empty_ring(struct control_client *c)
{
	struct control_packet p = { .header.type = CONTROL_POSTED };
	int ret = round_trip(c, NULL, 0, &p);

	control_close_fds(&p);
	return ret;
}

/* Sends a datagram that nobody waits for: by the ring, if there is one. 0 or -errno. */
static int send_posts(struct control_client *c, const void *ahead, uint32_t bytes,
                      const struct control_packet *p)
{
	const struct control_packet posted = { .header.type = CONTROL_POSTED };
	bool tell;
	int ret;

	c->n_posts += c->n_posts < POSTS_BEFORE_RING;
	if (!has_ring(c))
		return control_send_behind(c->sock, ahead, bytes, p);
	ret = control_posts_put(c->posts, ahead, bytes, p, &tell);
	if (ret) { /* it is full */
		ret = empty_ring(c);
		if (!ret)
			ret = control_posts_put(c->posts, ahead, bytes, p, &tell);
	}
	return !ret && tell ? control_send(c->sock, &posted) : ret;
}

/* ---- batches: with the lock held ---- */

/* The batch of the calling thread, or NULL. */
static struct control_batch *batch_of(struct control_client *c)
{
	struct control_batch *b;

	LIST_FOREACH(b, &c->batches, entry)
	if (pthread_equal(b->thread, pthread_self()))
		return b;
	return NULL;
}

/* Sends what is kept of it. 0 or -errno. */
static int send_batch(struct control_client *c, struct control_batch *b)
{
	struct control_packet p = { .n_fds = 0 };
	uint32_t bytes = b->bytes;

	b->bytes = 0;
	if (!bytes)
		return 0;
	if (c->gone)
		return -EIO;
	memcpy(&p, b->data + b->last, bytes - b->last);
	p.header.status = 0;
	return send_posts(c, b->data, b->last, &p);
}

/* The thread's batch has no room for more. */
static int send_kept(struct control_client *c)
{
	struct control_batch *b = batch_of(c);

	return b ? send_batch(c, b) : 0;
}

/* round_trip(), with what the thread's batch keeps ahead of @p. */
static int round_trip_with_batch(struct control_client *c, struct control_packet *p)
{
	struct control_batch *b = batch_of(c);
	uint32_t bytes = b ? b->bytes : 0;
	int ret = 0;

	if (bytes + p->header.bytes > CONTROL_MAX_BYTES) {
		ret = send_batch(c, b);
		bytes = 0;
	}
	if (b)
		b->bytes = 0;
	return ret ? ret : round_trip(c, b ? b->data : NULL, bytes, p);
}

/* Keeps a request, if the thread has a batch with room for it. */
static bool keep(struct control_client *c, const struct control_header *h, const void *body)
{
	struct control_batch *b = batch_of(c);
	const uint64_t bytes = control_followed_bytes(h->bytes);
	struct control_header followed = *h;

	if (!b || c->gone || bytes > sizeof(b->data) - b->bytes)
		return false;
	followed.status = CONTROL_FOLLOWED;
	b->last = b->bytes;
	memset(b->data + b->last, 0, bytes);
	memcpy(b->data + b->last, &followed, sizeof(followed));
	if (h->bytes)
		memcpy(b->data + b->last + sizeof(followed), body, h->bytes);
	b->bytes += (uint32_t)bytes;
	return true;
}

void control_batch_begin(struct control_client *c, struct control_batch *b)
{
	b->thread = pthread_self();
	b->bytes = b->last = 0;
	pthread_mutex_lock(&c->lock);
	/* the daemon itself is served at once, and in order */
	b->is_begun = !c->serve && !batch_of(c);
	if (b->is_begun)
		LIST_INSERT_HEAD(&c->batches, b, entry);
	pthread_mutex_unlock(&c->lock);
}

int control_batch_end(struct control_client *c, struct control_batch *b)
{
	int ret, cancel_state;

	if (!b->is_begun)
		return 0;
	cancel_state = base_cancel_off();
	pthread_mutex_lock(&c->lock);
	LIST_REMOVE(b, entry);
	ret = send_batch(c, b);
	if (ret)
		c->gone = true;
	pthread_mutex_unlock(&c->lock);
	base_cancel_restore(cancel_state);
	return ret ? -EIO : 0;
}

/* ---- requests ---- */

/* The status of a reply; and from now on the reason for it is the daemon's. */
static int take_status(const struct control_packet *p)
{
	if (p->header.status && p->header.bytes)
		return base_because(p->header.status, "%.*s", (int)p->header.bytes,
		                    (const char *)p->body);
	return p->header.status;
}

/* One request, one reply into @p. With the lock held. */
static int exchange(struct control_client *c, const struct control_call *call,
                    struct control_packet *p)
{
	int ret;

	if (c->gone)
		return base_because(-EIO, "the daemon of the fabric is gone");
	if (call->request_bytes > sizeof(p->body))
		return -EMSGSIZE;
	p->header = (struct control_header){ .type = call->type, .bytes = call->request_bytes };
	if (call->request_bytes)
		memcpy(p->body, call->request, call->request_bytes);
	p->n_fds = 0;
	if (call->send_fd)
		p->fd[p->n_fds++] = *call->send_fd;
	ret = open_ring(c);
	if (!ret)
		ret = round_trip_with_batch(c, p);
	if (ret == -EMFILE)
		return ret;
	if (ret) {
		c->gone = true;
		base_because(-EIO, "the daemon of the fabric is gone");
		return ret == -EAGAIN ? -ETIMEDOUT : -EIO; /* EAGAIN: its patience has ended */
	}
	if (p->header.status)
		control_close_fds(p);
	return take_status(p);
}

/* @reply came without its descriptor: the daemon's object is destroyed again, as nobody could use
 * it. */
static void undo(struct control_client *c, const struct control_call *call,
                 const struct control_packet *reply)
{
	const bool made = !reply->header.status && reply->header.bytes == call->reply_bytes;

	if (call->undo && made)
		control_request(c, call->undo, reply->body, sizeof(struct control_handle));
}

int control_call(struct control_client *c, const struct control_call *call)
{
	struct control_packet p;
	int ret, cancel_state = base_cancel_off(); /* a reply half received would end it for all */

	pthread_mutex_lock(&c->lock);
	ret = exchange(c, call, &p);
	pthread_mutex_unlock(&c->lock);
	base_cancel_restore(cancel_state);
	if (ret == -EMFILE)
		undo(c, call, &p);
	if (ret)
		return ret;
	if (p.header.bytes != call->reply_bytes ||
	    (!call->n_fds && p.n_fds != (call->fd ? 1 : 0))) {
		control_close_fds(&p);
		return -EPROTO;
	}
	if (call->reply_bytes)
		memcpy(call->reply, p.body, call->reply_bytes);
	if (call->n_fds)
		*call->n_fds = (unsigned)p.n_fds;
	if (call->fd)
		memcpy(call->fd, p.fd, sizeof(*p.fd) * (size_t)p.n_fds);
	return 0;
}

/* Keeps it, if the thread has a batch with room for it. */
static bool try_keep(struct control_client *c, enum control_type type, const void *request,
                     uint32_t bytes)
{
	const struct control_header h = { .type = type, .bytes = bytes };
	bool kept;

	pthread_mutex_lock(&c->lock);
	kept = keep(c, &h, request);
	pthread_mutex_unlock(&c->lock);
	return kept;
}

int control_request(struct control_client *c, enum control_type type, const void *request,
                    uint32_t bytes)
{
	if (try_keep(c, type, request, bytes))
		return 0;
	return control_call(c, &(struct control_call){
	                               .type = type, .request = request, .request_bytes = bytes });
}

/* @now: whatever a batch keeps. */
static int post(struct control_client *c, struct control_packet *p, bool now)
{
	int ret = c->gone ? -EIO : 0;

	if (ret)
		return ret;
	if (c->serve) {
		c->serve(c->serve_arg, p);
		control_close_fds(p);
		return 0;
	}
	if (!now && keep(c, &p->header, p->body))
		return 0;
	ret = now ? 0 : send_kept(c);
	if (!ret)
		ret = send_posts(c, NULL, 0, p);
	c->gone = ret;
	return ret ? -EIO : 0;
}

static int lock_and_post(struct control_client *c, const struct control_header *h,
                         const void *request, bool now)
{
	struct control_packet p = { .header = *h };
	int ret, cancel_state;

	if (h->bytes > sizeof(p.body))
		return -EMSGSIZE;
	memcpy(p.body, request, h->bytes);
	cancel_state = base_cancel_off();
	pthread_mutex_lock(&c->lock);
	ret = post(c, &p, now);
	pthread_mutex_unlock(&c->lock);
	base_cancel_restore(cancel_state);
	return ret;
}

int control_post(struct control_client *c, enum control_type type, const void *request,
                 uint32_t bytes)
{
	return lock_and_post(c, &(struct control_header){ .type = type, .bytes = bytes }, request,
	                     false);
}

int control_post_now(struct control_client *c, enum control_type type, const void *request,
                     uint32_t bytes)
{
	return lock_and_post(c, &(struct control_header){ .type = type, .bytes = bytes }, request,
	                     true);
}

/* The connection has ended with @error before the daemon has heard of us. The daemon tells a
 * process that it refuses it; that reply lies behind the error that the daemon's end of the
 * connection has left. */
static int find_refusal(const struct control_client *c, int error)
{
	struct control_packet p;

	fcntl(c->sock, F_SETFL, O_NONBLOCK);
	for (unsigned i = 0; i < 2; i++) {
		if (control_receive(c->sock, &p))
			continue;
		control_close_fds(&p);
		return p.header.status < 0 ? take_status(&p) : error;
	}
	return error;
}

static int say_hello(struct control_client *c, enum control_role role, const char *host)
{
	struct control_hello hello = { .version = CONTROL_VERSION, .role = role };
	struct control_packet p;
	int ret;

	if (host && strlen(host) >= sizeof(hello.host))
		return -EHOSTUNREACH;
	if (host)
		strcpy(hello.host, host);
	ret = exchange(c,
	               &(struct control_call){ .type = CONTROL_HELLO,
	                                       .request = &hello,
	                                       .request_bytes = sizeof(hello) },
	               &p);
	if (ret)
		return ret == -EIO ? find_refusal(c, ret) : ret;
	if (p.header.bytes != sizeof(c->hello) || p.n_fds != (role == CONTROL_ROLE_CLI ? 0 : 2)) {
		control_close_fds(&p);
		return -EPROTO;
	}
	memcpy(&c->hello, p.body, sizeof(c->hello));
	if (p.n_fds)
		memcpy(c->region_fd, p.fd, sizeof(c->region_fd));
	return 0;
}

/* Whether it waits for ever, as for a device. */
static bool is_patient(enum control_role role)
{
	return role != CONTROL_ROLE_CLI && role != CONTROL_ROLE_SYSFS;
}

int control_connect(struct control_client **out, const char *socket_path, enum control_role role,
                    const char *host)
{
	struct control_client *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	c->region_fd[0] = c->region_fd[1] = -1;
	c->sock = connect_socket(socket_path, is_patient(role) ? 0 : CONTROL_PATIENCE_MS);
	if (c->sock < 0) {
		ret = c->sock;
		goto err_free;
	}
	ret = say_hello(c, role, host);
	if (ret)
		goto err_close;
	if (role == CONTROL_ROLE_CLI) /* what it asks for may take long */
		set_patience(c->sock, 0);
	*out = c;
	return 0;
err_close:
	close(c->sock);
err_free:
	pthread_mutex_destroy(&c->lock);
	free(c);
	return ret;
}

void control_limit_wait(struct control_client *c, unsigned ms)
{
	set_patience(c->sock, ms);
}

int control_local(struct control_client **out, control_serve *serve, void *arg)
{
	struct control_client *c = calloc(1, sizeof(*c));
	pthread_mutexattr_t attr;

	if (!c)
		return -ENOMEM;
	/* serving a request may need another one */
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&c->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	c->region_fd[0] = c->region_fd[1] = c->sock = -1;
	c->serve = serve;
	c->serve_arg = arg;
	*out = c;
	return 0;
}

void control_close(struct control_client *c)
{
	for (int i = 0; i < 2; i++)
		if (c->region_fd[i] >= 0)
			close(c->region_fd[i]);
	if (c->sock >= 0)
		close(c->sock);
	control_posts_unmap(c->posts);
	if (c->is_own)
		munmap((void *)c->is_own, 1);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

uint32_t control_number(const struct control_client *c)
{
	return c->hello.number;
}

void control_hello(struct control_client *c, struct control_hello_reply *hello, int fd[2])
{
	*hello = c->hello;
	for (int i = 0; i < 2; i++) {
		fd[i] = c->region_fd[i];
		c->region_fd[i] = -1;
	}
}

int control_fd(const struct control_client *c)
{
	return c->sock;
}

bool control_is_gone(struct control_client *c)
{
	bool gone;

	pthread_mutex_lock(&c->lock);
	gone = c->gone;
	pthread_mutex_unlock(&c->lock);
	return gone;
}

int control_show_open(struct control_client *c, const char *what, const char *of, int *fd)
{
	struct control_show show = { 0 };

	if (strlen(what) >= sizeof(show.what))
		return -EINVAL;
	if (of && strlen(of) >= sizeof(show.of))
		return -ENOENT;
	strcpy(show.what, what);
	strcpy(show.of, of ? of : "");
	return control_call(c, &(struct control_call){ .type = CONTROL_SHOW,
	                                               .request = &show,
	                                               .request_bytes = sizeof(show),
	                                               .fd = fd });
}

int control_show_of(struct control_client *c, const char *what, const char *of, char **json)
{
	int fd, ret = control_show_open(c, what, of, &fd);
	size_t bytes;

	if (ret)
		return ret;
	ret = base_read_all(fd, SIZE_MAX, json, &bytes);
	close(fd);
	return ret;
}

int control_show(struct control_client *c, const char *what, char **json)
{
	return control_show_of(c, what, NULL, json);
}

int control_set(struct control_client *c, const char *key, const char *value)
{
	struct control_set set = { 0 };

	if (strlen(key) >= sizeof(set.key))
		return -ENOENT;
	if (strlen(value) >= sizeof(set.value))
		return -EINVAL;
	strcpy(set.key, key);
	strcpy(set.value, value);
	return control_request(c, CONTROL_SET, &set, sizeof(set));
}

static int name_port(struct control_port *at, const char *node, unsigned port)
{
	if (strlen(node) >= sizeof(at->node))
		return -ENOENT;
	strcpy(at->node, node);
	at->port = port;
	return 0;
}

int control_link(struct control_client *c, const char *node, unsigned port, bool up)
{
	struct control_link link = { .up = up };
	int ret = name_port(&link.at, node, port);

	return ret ? ret : control_request(c, CONTROL_LINK, &link, sizeof(link));
}

int control_switch(struct control_client *c, const char *name, bool alive)
{
	struct control_switch sw = { .alive = alive };

	if (strlen(name) >= sizeof(sw.name))
		return -ENOENT;
	strcpy(sw.name, name);
	return control_request(c, CONTROL_SWITCH, &sw, sizeof(sw));
}

int control_sm_event(struct control_client *c, enum control_sm_event_type type, const char *node,
                     unsigned port)
{
	struct control_sm_event event = { .type = type };
	int ret = name_port(&event.at, node, port);

	return ret ? ret : control_request(c, CONTROL_SM_EVENT, &event, sizeof(event));
}

int control_join_router(struct control_client *c, const char *node, const char *peer, int fd,
                        struct control_router_reply *reply)
{
	struct control_router req = { 0 };

	if (strlen(node) >= sizeof(req.node))
		return -ENOENT;
	strcpy(req.node, node);
	snprintf(req.peer, sizeof(req.peer), "%s", peer);
	return control_call(c, &(struct control_call){ .type = CONTROL_ROUTER,
	                                               .request = &req,
	                                               .request_bytes = sizeof(req),
	                                               .reply = reply,
	                                               .reply_bytes = sizeof(*reply),
	                                               .send_fd = &fd });
}

int control_end_router(struct control_client *c, const char *node)
{
	struct control_router req = { 0 };

	if (strlen(node) >= sizeof(req.node))
		return -ENOENT;
	strcpy(req.node, node);
	return control_request(c, CONTROL_END_ROUTER, &req, sizeof(req));
}

int control_partitions(struct control_client *c, const char *name, int fd, char why[static 512])
{
	struct control_partitions req = { 0 };
	struct control_partitions_reply rep = { 0 };
	int ret;

	snprintf(req.name, sizeof(req.name), "%s", name);
	ret = control_call(c, &(struct control_call){ .type = CONTROL_PARTITIONS,
	                                              .request = &req,
	                                              .request_bytes = sizeof(req),
	                                              .reply = &rep,
	                                              .reply_bytes = sizeof(rep),
	                                              .send_fd = &fd });
	if (ret)
		return ret;
	memcpy(why, rep.why, sizeof(rep.why));
	why[sizeof(rep.why) - 1] = '\0';
	return rep.error;
}

int control_enter_host(struct control_client *c, struct control_enter_host_reply *reply,
                       int fd[static CONTROL_MAX_FDS])
{
	unsigned n = 0;
	int ret;

	for (unsigned i = 0; i < CONTROL_MAX_FDS; i++)
		fd[i] = -1;
	ret = control_call(c, &(struct control_call){ .type = CONTROL_ENTER_HOST,
	                                              .reply = reply,
	                                              .reply_bytes = sizeof(*reply),
	                                              .fd = fd,
	                                              .n_fds = &n });
	if (ret || n >= 3)
		return ret;
	for (unsigned i = 0; i < n; i++)
		close(fd[i]);
	return -EPROTO;
}

int control_capture(struct control_client *c, const struct control_capture *which, int *fd)
{
	return control_call(c, &(struct control_call){ .type = CONTROL_CAPTURE,
	                                               .request = which,
	                                               .request_bytes = sizeof(*which),
	                                               .fd = fd });
}

int control_wait_hangup(int sock, unsigned ms)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	uint64_t end = base_now_ns() + ms * 1000000ull;
	int n;

	do {
		int64_t left = (int64_t)(end - base_now_ns()) / 1000000;

		n = poll(&p, 1, left > 0 ? (int)left : 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n ? 0 : -ETIMEDOUT;
}

int control_find_daemon(const char *socket_path, pid_t *pid)
{
	int sock = connect_socket(socket_path, CONTROL_PATIENCE_MS);
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (sock >= 0 && getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0) {
		close(sock);
		return -errno;
	}
	*pid = sock >= 0 ? peer.pid : 0;
	return sock;
}

int control_stop(struct control_client *c)
{
	int ret;

	set_patience(c->sock, CONTROL_PATIENCE_MS);
	ret = control_request(c, CONTROL_STOP, NULL, 0);
	/* the daemon closes the connection as the last thing it does */
	return ret ? ret : control_wait_hangup(c->sock, CONTROL_PATIENCE_MS);
}
