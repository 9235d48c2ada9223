/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections of processes: accept, check who it is, read a request, answer it.
 * Whatever a process sends, it gets an answer or its connection ends; and when its
 * connection ends, all that hung on it goes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "daemon/umad.h"

/*
 * A child that the process forked may hold the connection open beyond its death. The
 * objects then stay, as with a kernel's file; but nobody else may wait for what it was
 * about to do.
 */
static int on_exit_of_process(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	struct daemon_client *c = arg;

	(void)s;
	(void)fd;
	(void)revents;
	daemon_objects_undo(c);
	c->exit_source = sd_event_source_disable_unref(c->exit_source);
	return 0;
}

static void watch_process(struct daemon_client *c)
{
	int fd = c->pid > 0 ? pidfd_open(c->pid, 0) : -1;

	if (fd < 0)
		return; /* in a namespace that we cannot see: its connection has to do */
	if (sd_event_add_io(c->d->loop, &c->exit_source, fd, EPOLLIN, on_exit_of_process, c) < 0)
		close(fd);
	else
		sd_event_source_set_io_fd_own(c->exit_source, true);
}

static int hello(struct daemon_client *c, const struct control_packet *request,
                 struct control_packet *reply)
{
	struct control_hello req;
	struct control_hello_reply rep;
	struct shm_region *r = c->d->f->region;

	if (c->greeted || request->header.bytes != sizeof(req))
		return -EPROTO;
	memcpy(&req, request->body, sizeof(req));
	req.host[sizeof(req.host) - 1] = '\0';
	if (req.version != CONTROL_VERSION || req.role > CONTROL_ROLE_UMAD)
		return -EPROTO;
	c->host_index = -1;
	if (*req.host) {
		c->host_index = fabric_host_find(c->d->f, req.host);
		if (c->host_index < 0)
			return -EHOSTUNREACH;
	}
	if (req.role == CONTROL_ROLE_CM) {
		int ret = cm_client_new(c->d->cm, c->host_index, &c->cm);

		if (ret)
			return ret;
	}
	c->role = req.role;
	c->greeted = true;
	if (c->role == CONTROL_ROLE_VERBS)
		watch_process(c);
	rep = (struct control_hello_reply){ .client = c->id, .host_index = c->host_index };
	memcpy(reply->body, &rep, sizeof(rep));
	reply->header.bytes = sizeof(rep);
	if (c->role == CONTROL_ROLE_CLI)
		return 0;
	reply->fd[0] = dup(r->control_fd);
	reply->fd[1] = dup(r->data_fd);
	reply->n_fds = 2;
	return reply->fd[0] < 0 || reply->fd[1] < 0 ? -EMFILE : 0;
}

static int show(struct daemon_client *c, const struct control_packet *request,
                struct control_packet *reply)
{
	struct control_show req;
	int fd;

	if (request->header.bytes != sizeof(req))
		return -EPROTO;
	memcpy(&req, request->body, sizeof(req));
	req.what[sizeof(req.what) - 1] = '\0';
	fd = daemon_show(c->d, req.what);
	if (fd < 0)
		return fd;
	reply->fd[reply->n_fds++] = fd;
	return 0;
}

static int set(struct daemon_client *c, const struct control_packet *request)
{
	struct shm_settings *settings = &c->d->f->settings;
	const uint32_t send_only = settings->sa_send_only;
	struct control_set req;
	int ret;

	if (request->header.bytes != sizeof(req))
		return -EPROTO;
	memcpy(&req, request->body, sizeof(req));
	req.key[sizeof(req.key) - 1] = req.value[sizeof(req.value) - 1] = '\0';
	ret = fabric_settings_set(settings, req.key, req.value, true);
	if (ret)
		return ret;
	c->d->f->region->control->settings = *settings;
	if (settings->sa_send_only != send_only)
		daemon_links_refresh(c->d); /* an SA would tell nobody; who sets it wants it so */
	return 0;
}

static int cli_request(struct daemon_client *c, const struct control_packet *request,
                       struct control_packet *reply)
{
	union {
		struct control_link link;
		struct control_switch sw;
		struct control_sm_event sm_event;
	} req;
	static const uint32_t bytes[] = {
		[CONTROL_LINK - CONTROL_LINK] = sizeof(req.link),
		[CONTROL_SWITCH - CONTROL_LINK] = sizeof(req.sw),
		[CONTROL_SM_EVENT - CONTROL_LINK] = sizeof(req.sm_event),
	};
	uint32_t type = request->header.type;

	if (type == CONTROL_SET)
		return set(c, request);
	if (type == CONTROL_PARTITIONS)
		return daemon_partitions_set(c->d, request, reply);
	if (type == CONTROL_STOP)
		return sd_event_exit(c->d->loop, 0) < 0 ? -EIO : 0;
	if (type < CONTROL_LINK || type - CONTROL_LINK >= ARRAY_SIZE(bytes))
		return -ENOSYS;
	if (request->header.bytes != bytes[type - CONTROL_LINK])
		return -EPROTO;
	memcpy(&req, request->body, request->header.bytes);
	switch (type) {
	case CONTROL_LINK:
		return daemon_link_set(c->d, &req.link);
	case CONTROL_SWITCH:
		return daemon_switch_set(c->d, &req.sw);
	default:
		return daemon_sm_event(c->d, &req.sm_event);
	}
}

/* By the time of the reply, what is asked of the embedded SA has been done: as good as no time
 * has passed. Of another one it is on its way. */
static int serve_cm(struct daemon_client *c, const struct control_packet *request,
                    struct control_packet *reply)
{
	int ret;

	if (request->header.type < CONTROL_CM_FIRST || request->header.type > CONTROL_CM_LAST)
		return -ENOSYS;
	ret = cm_request(c->d->cm, c->cm, request, reply);
	daemon_umad_send_queued(c->d->umad);
	fabric_mads_settle(c->d->f);
	return ret;
}

static int serve(struct daemon_client *c, const struct control_packet *request,
                 struct control_packet *reply)
{
	uint32_t type = request->header.type;

	if (type == CONTROL_HELLO)
		return hello(c, request, reply);
	if (!c->greeted)
		return -EPROTO;
	if (type == CONTROL_SHOW)
		return show(c, request, reply);
	if (c->role == CONTROL_ROLE_VERBS)
		return daemon_verbs_request(c, request, reply);
	if (c->role == CONTROL_ROLE_CM)
		return serve_cm(c, request, reply);
	if (c->role == CONTROL_ROLE_UMAD)
		return daemon_umad_request(c, request, reply);
	return cli_request(c, request, reply);
}

/* Makes @reply, which is all zero. */
static void answer(struct daemon_client *c, const struct control_packet *request,
                   struct control_packet *reply)
{
	reply->header.type = request->header.type;
	reply->header.serial = request->header.serial;
	reply->header.status = serve(c, request, reply);
	if (reply->header.status) {
		reply->header.bytes = 0;
		control_close_fds(reply);
	}
}

void daemon_client_serve(void *client, struct control_packet *p)
{
	struct control_packet reply = { 0 };

	answer(client, p, &reply);
	*p = reply;
}

static int on_request(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	struct daemon_client *c = arg;
	struct control_packet request, reply = { 0 };
	int ret = control_receive(fd, &request);

	(void)s;
	(void)revents;
	if (ret == -EAGAIN)
		return 0;
	if (ret == -EPROTO) {
		/* no packet at all: say so once, in the form of a reply to nothing */
		reply.header.status = -EPROTO;
		control_send(fd, &reply);
	}
	if (ret) {
		daemon_client_free(c);
		return 0;
	}
	answer(c, &request, &reply);
	control_close_fds(&request);
	ret = control_send(fd, &reply);
	control_close_fds(&reply);
	if (ret) /* it does not read its replies, or is gone */
		daemon_client_free(c);
	return 0;
}

int daemon_client_new(struct daemon *d, int sock, struct daemon_client **out)
{
	struct daemon_client *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return -ENOMEM;
	c->d = d;
	c->sock = sock;
	ret = base_idtable_add(&d->clients, c, &c->id);
	if (ret) {
		free(c);
		return ret;
	}
	*out = c;
	return 0;
}

static int add_client(struct daemon *d, int sock, pid_t pid)
{
	struct daemon_client *c;
	int ret = daemon_client_new(d, sock, &c);

	if (ret)
		return ret;
	c->pid = pid;
	ret = sd_event_add_io(d->loop, &c->source, sock, EPOLLIN, on_request, c);
	if (ret < 0) {
		base_idtable_remove(&d->clients, c->id);
		free(c);
		return ret;
	}
	return 0;
}

/* Out of descriptors: whoever asked is told so, or we would be woken for him for ever. */
static void refuse(struct daemon *d, int listen_fd)
{
	int sock;

	close(d->spare_fd);
	sock = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (sock >= 0)
		close(sock);
	d->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int daemon_client_accept(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	struct daemon *d = arg;
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int sock = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)s;
	(void)revents;
	if (sock < 0) {
		if (errno == EMFILE || errno == ENFILE)
			refuse(d, fd);
		return 0;
	}
	/* the directory is private; this is the second lock on the door */
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 ||
	    (cred.uid != geteuid() && cred.uid != 0)) {
		close(sock);
		return 0;
	}
	if (add_client(d, sock, cred.pid)) {
		base_log("no memory for a client");
		close(sock);
	}
	return 0;
}

void daemon_client_free(struct daemon_client *c)
{
	if (c->cm)
		cm_client_free(c->d->cm, c->cm);
	daemon_objects_release(c);
	sd_event_source_disable_unref(c->exit_source);
	sd_event_source_disable_unref(c->source);
	if (c->sock >= 0)
		close(c->sock);
	base_idtable_remove(&c->d->clients, c->id);
	free(c);
}
