/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The client against a daemon that is a thread and replies as each test tells it to:
 * rightly, wrongly, or not at all.
 */
#include <harness.h>

#include "base/util.h"
#include "control/client.h"
#include "control/posts.h"
#include "control/socket.h"

/* The daemon's answer to a request. The reply comes filled in as a good one without a body. */
typedef bool (*reply_fn)(const struct control_packet *request, struct control_packet *reply);

struct daemon {
	char dir[32], path[64];
	int listen_fd;
	reply_fn make_reply; /* false: hangs up instead */
	pthread_t thread;
	bool running;
};

/* A descriptor with @text in it. */
static int text_fd(const char *text)
{
	int fd = memfd_create("text", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, text, strlen(text)) < 0)
		return -1;
	return fd;
}

/* A descriptor from which @text comes, and then its end. */
static int text_socket(const char *text)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 ||
	    write(pair[1], text, strlen(text)) < 0)
		return -1;
	close(pair[1]);
	return pair[0];
}

static void set_body(struct control_packet *p, const void *body, uint32_t bytes)
{
	memcpy(p->body, body, bytes);
	p->header.bytes = bytes;
}

static bool say_hello(struct control_packet *reply, int n_fds)
{
	struct control_hello_reply hello = { .client = 5, .host_index = 2 };

	set_body(reply, &hello, sizeof(hello));
	for (int i = 0; i < n_fds; i++)
		reply->fd[reply->n_fds++] = text_fd(i ? "data" : "control");
	return true;
}

static bool reply_well(const struct control_packet *request, struct control_packet *reply)
{
	const struct control_hello *hello = (const void *)request->body;

	switch (request->header.type) {
	case CONTROL_HELLO:
		return say_hello(reply, hello->role == CONTROL_ROLE_CLI ? 0 : 2);
	case CONTROL_SHOW:
		reply->fd[reply->n_fds++] = text_socket("{}");
		return true;
	case CONTROL_CREATE_CQ:
		set_body(reply, request->body, sizeof(struct control_create_cq_reply));
		return true;
	case CONTROL_STOP:
		return true;
	default:
		reply->header.status = -EBUSY;
		return true;
	}
}

static void *serve(void *arg)
{
	struct daemon *m = arg;
	int sock = accept(m->listen_fd, NULL, NULL);
	struct control_packet request, reply;
	bool go_on = sock >= 0;

	while (go_on && !control_receive(sock, &request)) {
		memset(&reply, 0, sizeof(reply));
		reply.header.type = request.header.type;
		reply.header.serial = request.header.serial;
		go_on = m->make_reply(&request, &reply) &&
		        (!reply.header.serial || !control_send(sock, &reply)) &&
		        request.header.type != CONTROL_STOP;
		control_close_fds(&request);
		control_close_fds(&reply);
	}
	close(sock);
	return NULL;
}

static int setup(void **state)
{
	struct daemon *m = calloc(1, sizeof(*m));
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	strcpy(m->dir, "/tmp/umbel-test-XXXXXX");
	if (!mkdtemp(m->dir))
		return -1;
	snprintf(m->path, sizeof(m->path), "%s/socket", m->dir);
	strcpy(addr.sun_path, m->path);
	m->make_reply = reply_well;
	m->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (bind(m->listen_fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(m->listen_fd, 1))
		return -1;
	m->running = !pthread_create(&m->thread, NULL, serve, m);
	*state = m;
	return m->running ? 0 : -1;
}

static int teardown(void **state)
{
	struct daemon *m = *state;

	shutdown(m->listen_fd, SHUT_RDWR); /* in case nobody came */
	pthread_join(m->thread, NULL);
	close(m->listen_fd);
	unlink(m->path);
	rmdir(m->dir);
	free(m);
	return 0;
}

static struct control_client *connect_as(const struct daemon *m, enum control_role role)
{
	struct control_client *c;

	assert_int_equal(control_connect(&c, m->path, role, "h3"), 0);
	return c;
}

/* ---- hello ---- */

static struct control_hello seen_hello;

static bool remember_hello(const struct control_packet *request, struct control_packet *reply)
{
	memcpy(&seen_hello, request->body, sizeof(seen_hello));
	return reply_well(request, reply);
}

CASE_WITH(hello_names_version_role_and_host, setup, teardown)
{
	struct daemon *m = *state;
	struct control_client *c;

	m->make_reply = remember_hello;
	c = connect_as(m, CONTROL_ROLE_UMAD);
	assert_int_equal(seen_hello.version, CONTROL_VERSION);
	assert_int_equal(seen_hello.role, CONTROL_ROLE_UMAD);
	assert_string_equal(seen_hello.host, "h3");
	control_close(c);
}

CASE_WITH(hello_brings_both_descriptors_once, setup, teardown)
{
	struct control_client *c = connect_as(*state, CONTROL_ROLE_VERBS);
	struct control_hello_reply hello;
	char text[8] = { 0 };
	int fd[2];

	control_hello(c, &hello, fd);
	assert_int_equal(hello.client, 5);
	assert_int_equal(hello.host_index, 2);
	assert_int_equal(pread(fd[0], text, sizeof(text), 0), 7);
	assert_string_equal(text, "control");
	close(fd[0]);
	close(fd[1]);
	control_hello(c, &hello, fd);
	assert_int_equal(fd[0], -1);
	assert_int_equal(fd[1], -1);
	control_close(c);
}

CASE_WITH(the_command_line_gets_no_descriptors, setup, teardown)
{
	struct control_client *c = connect_as(*state, CONTROL_ROLE_CLI);
	struct control_hello_reply hello;
	int fd[2];

	control_hello(c, &hello, fd);
	assert_int_equal(fd[0], -1);
	control_close(c);
}

CASE_WITH(closing_closes_what_nobody_took, setup, teardown)
{
	unsigned before;
	struct control_client *c;

	before = harness_descriptors();
	c = connect_as(*state, CONTROL_ROLE_VERBS);
	assert_true(harness_descriptors() > before);
	control_close(c);
	pthread_join(((struct daemon *)*state)->thread, NULL); /* its end is closed as well */
	assert_int_equal(harness_descriptors(), before);
	pthread_create(&((struct daemon *)*state)->thread, NULL, serve, *state);
}

static bool refuse(const struct control_packet *request, struct control_packet *reply)
{
	(void)request;
	reply->header.status = -EHOSTUNREACH;
	return true;
}

static bool hello_without_descriptors(const struct control_packet *request,
                                      struct control_packet *reply)
{
	(void)request;
	return say_hello(reply, 0);
}

static bool hello_too_short(const struct control_packet *request, struct control_packet *reply)
{
	(void)request;
	say_hello(reply, 2);
	reply->header.bytes--;
	return true;
}

static bool hang_up(const struct control_packet *request, struct control_packet *reply)
{
	(void)request;
	(void)reply;
	return false;
}

static bool wrong_serial(const struct control_packet *request, struct control_packet *reply)
{
	(void)request;
	reply->header.serial++;
	return say_hello(reply, 2);
}

static void assert_hello_fails(struct daemon *m, reply_fn make_reply, int error)
{
	struct control_client *c;

	m->make_reply = make_reply;
	assert_int_equal(control_connect(&c, m->path, CONTROL_ROLE_VERBS, NULL), error);
}

CASE_WITH(a_refused_hello_says_why, setup, teardown)
{
	assert_hello_fails(*state, refuse, -EHOSTUNREACH);
}

CASE_WITH(a_hello_without_its_descriptors_is_no_hello, setup, teardown)
{
	assert_hello_fails(*state, hello_without_descriptors, -EPROTO);
}

CASE_WITH(a_hello_of_another_size_is_no_hello, setup, teardown)
{
	assert_hello_fails(*state, hello_too_short, -EPROTO);
}

CASE_WITH(a_daemon_that_hangs_up_at_hello_is_eio, setup, teardown)
{
	assert_hello_fails(*state, hang_up, -EIO);
}

CASE_WITH(a_reply_to_another_request_is_eio, setup, teardown)
{
	assert_hello_fails(*state, wrong_serial, -EIO);
}

CASE_WITH(no_daemon_is_enoent_or_refused, setup, teardown)
{
	struct daemon *m = *state;
	struct control_client *c;
	char path[96];

	snprintf(path, sizeof(path), "%s/none", m->dir);
	assert_int_equal(control_connect(&c, path, CONTROL_ROLE_CLI, NULL), -ENOENT);
	shutdown(m->listen_fd, SHUT_RDWR);
	pthread_join(m->thread, NULL);
	close(m->listen_fd);
	assert_int_equal(control_connect(&c, m->path, CONTROL_ROLE_CLI, NULL), -ECONNREFUSED);
	m->listen_fd = -1;
	pthread_create(&m->thread, NULL, serve, m); /* for the teardown to join */
}

CASE_WITH(a_path_that_no_socket_can_have_is_refused, setup, teardown)
{
	struct control_client *c;
	char path[200];

	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(control_connect(&c, path, CONTROL_ROLE_CLI, NULL), -ENAMETOOLONG);
}

CASE_WITH(a_host_that_no_fabric_can_have_is_unreachable, setup, teardown)
{
	struct daemon *m = *state;
	struct control_client *c;

	assert_int_equal(control_connect(&c, m->path, CONTROL_ROLE_CLI,
	                                 "a-name-that-is-longer-than-32-characters"),
	                 -EHOSTUNREACH);
}

/* ---- calls ---- */

static int create_cq(struct control_client *c, uint32_t n, uint32_t *cq)
{
	struct control_create_cq request = { .hca_handle = n };

	return control_call(c, &(struct control_call){ .type = CONTROL_CREATE_CQ,
	                                               .request = &request,
	                                               .request_bytes = sizeof(request),
	                                               .reply = cq,
	                                               .reply_bytes = sizeof(*cq) });
}

CASE_WITH(a_call_brings_its_reply, setup, teardown)
{
	struct control_client *c = connect_as(*state, CONTROL_ROLE_CLI);
	uint32_t cq;

	assert_int_equal(create_cq(c, 77, &cq), 0);
	assert_int_equal(cq, 77);
	control_close(c);
}

CASE_WITH(a_failed_call_brings_the_status, setup, teardown)
{
	struct control_client *c = connect_as(*state, CONTROL_ROLE_CLI);

	assert_int_equal(control_request(c, CONTROL_ATTACH, NULL, 0), -EBUSY);
	control_close(c);
}

static bool surprise(const struct control_packet *request, struct control_packet *reply)
{
	if (request->header.type == CONTROL_HELLO)
		return reply_well(request, reply);
	reply->fd[reply->n_fds++] = text_fd("?");
	return true;
}

CASE_WITH(a_reply_that_is_not_what_was_asked_for_is_eproto, setup, teardown)
{
	struct daemon *m = *state;
	struct control_client *c;
	uint32_t cq;

	m->make_reply = surprise;
	c = connect_as(m, CONTROL_ROLE_CLI);
	assert_int_equal(create_cq(c, 1, &cq), -EPROTO);                        /* no body */
	assert_int_equal(control_request(c, CONTROL_ATTACH, NULL, 0), -EPROTO); /* a descriptor */
	control_close(c);
}

CASE_WITH(a_request_that_is_too_long_is_not_sent, setup, teardown)
{
	struct control_client *c = connect_as(*state, CONTROL_ROLE_CLI);
	char body[CONTROL_MAX_BYTES + 1] = { 0 };
	uint32_t cq;

	assert_int_equal(control_request(c, CONTROL_SET, body, sizeof(body)), -EMSGSIZE);
	assert_int_equal(create_cq(c, 3, &cq), 0);
	control_close(c);
}

static bool die_at_attach(const struct control_packet *request, struct control_packet *reply)
{
	return request->header.type != CONTROL_ATTACH && reply_well(request, reply);
}

CASE_WITH(a_daemon_that_dies_is_eio_from_then_on, setup, teardown)
{
	struct daemon *m = *state;
	struct control_client *c;
	uint32_t cq;

	m->make_reply = die_at_attach;
	c = connect_as(m, CONTROL_ROLE_CLI);
	assert_int_equal(create_cq(c, 1, &cq), 0);
	assert_int_equal(control_request(c, CONTROL_ATTACH, NULL, 0), -EIO);
	assert_int_equal(create_cq(c, 1, &cq), -EIO);
	control_close(c);
}

static void *call_often(void *client)
{
	uintptr_t wrong = 0;
	uint32_t cq;

	for (uint32_t i = 0; i < 2000; i++)
		wrong += create_cq(client, i, &cq) || cq != i;
	return (void *)wrong;
}

CASE_WITH(threads_take_turns, setup, teardown)
{
	struct control_client *c = connect_as(*state, CONTROL_ROLE_CLI);
	pthread_t thread[4];
	void *wrong;

	for (size_t i = 0; EACH_ROW(i, thread); i++)
		assert_int_equal(pthread_create(&thread[i], NULL, call_often, c), 0);
	for (size_t i = 0; EACH_ROW(i, thread); i++) {
		pthread_join(thread[i], &wrong);
		assert_null(wrong);
	}
	control_close(c);
}

/* ---- the command line's ---- */

CASE_WITH(show_brings_the_text, setup, teardown)
{
	struct control_client *c = connect_as(*state, CONTROL_ROLE_CLI);
	unsigned before = harness_descriptors();
	uint32_t cq;
	char *json;

	assert_int_equal(control_show(c, "hosts", &json), 0);
	assert_string_equal(json, "{}");
	free(json);
	assert_int_equal(create_cq(c, 1, &cq), 0); /* the daemon has closed its own by now */
	assert_int_equal(harness_descriptors(), before);
	control_close(c);
}

CASE_WITH(names_that_do_not_fit_are_refused_here, setup, teardown)
{
	struct control_client *c = connect_as(*state, CONTROL_ROLE_CLI);
	char *json, name[100];

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(control_show(c, name, &json), -EINVAL);
	assert_int_equal(control_show_of(c, "routes", name, &json), -ENOENT);
	assert_int_equal(control_set(c, name, "1"), -ENOENT);
	assert_int_equal(control_set(c, "mtu", name), -EINVAL);
	control_close(c);
}

/* ---- batches ---- */

/* The requests that have come, in order: "A" stands for ATTACH, "D" for DETACH, "C" for CREATE_CQ;
 * and a space before each datagram. */
static struct {
	pthread_mutex_t lock;
	char text[64];
} seen = { .lock = PTHREAD_MUTEX_INITIALIZER };

static char letter(uint32_t type)
{
	return type == CONTROL_ATTACH ? 'A' : type == CONTROL_DETACH ? 'D' : 'C';
}

/* Replies only to a caller that waits. */
static bool note(const struct control_packet *request, struct control_packet *reply)
{
	struct control_packet p = *request;
	size_t n;

	if (request->header.type == CONTROL_HELLO)
		return reply_well(request, reply);
	pthread_mutex_lock(&seen.lock);
	n = strlen(seen.text);
	seen.text[n++] = ' ';
	do
		seen.text[n++] = letter(p.header.type);
	while (control_packet_next(&p));
	seen.text[n] = '\0';
	pthread_mutex_unlock(&seen.lock);
	reply->header.serial = p.header.serial;
	reply->header.type = p.header.type;
	if (p.header.type == CONTROL_CREATE_CQ)
		set_body(reply, p.body, sizeof(struct control_create_cq_reply));
	return true;
}

static struct control_client *connect_noting(struct daemon *m)
{
	seen.text[0] = '\0';
	m->make_reply = note;
	return connect_as(m, CONTROL_ROLE_VERBS);
}

static int attach(struct control_client *c)
{
	const struct control_attach request = { .qpn = 1 };

	return control_request(c, CONTROL_ATTACH, &request, sizeof(request));
}

static int post_detach(struct control_client *c)
{
	const struct control_attach request = { .qpn = 1 };

	return control_post(c, CONTROL_DETACH, &request, sizeof(request));
}

CASE_WITH(a_batch_goes_ahead_of_what_the_thread_waits_for, setup, teardown)
{
	struct control_client *c = connect_noting(*state);
	struct control_batch b;
	uint32_t cq;

	control_batch_begin(c, &b);
	assert_int_equal(attach(c), 0);
	assert_int_equal(post_detach(c), 0);
	assert_int_equal(create_cq(c, 5, &cq), 0);
	assert_int_equal(cq, 5);
	assert_int_equal(attach(c), 0);
	assert_int_equal(create_cq(c, 6, &cq), 0);
	control_batch_end(c, &b);
	assert_int_equal(create_cq(c, 7, &cq), 0);
	assert_string_equal(seen.text, " ADC AC C");
	control_close(c);
}

CASE_WITH(what_is_left_of_a_batch_goes_when_it_ends, setup, teardown)
{
	struct control_client *c = connect_noting(*state);
	struct control_batch b;
	uint32_t cq;

	control_batch_begin(c, &b);
	assert_int_equal(attach(c), 0);
	assert_int_equal(post_detach(c), 0);
	control_batch_end(c, &b);
	assert_int_equal(create_cq(c, 5, &cq), 0);
	assert_string_equal(seen.text, " AD C");
	control_close(c);
}

CASE_WITH(a_batch_that_is_full_goes_at_once, setup, teardown)
{
	struct control_client *c = connect_noting(*state);
	char body[CONTROL_MAX_BYTES] = { 0 };
	struct control_batch b;
	uint32_t cq;

	control_batch_begin(c, &b);
	assert_int_equal(attach(c), 0);
	assert_int_equal(control_request(c, CONTROL_DETACH, body, sizeof(body)), 0);
	assert_int_equal(control_request(c, CONTROL_DETACH, body, sizeof(body) - 16), 0);
	assert_int_equal(create_cq(c, 5, &cq), 0);
	control_batch_end(c, &b);
	assert_string_equal(seen.text, " A D D C");
	control_close(c);
}

static void *attach_in_thread(void *c)
{
	return (void *)(intptr_t)attach(c);
}

CASE_WITH(another_thread_does_not_wait_for_a_batch, setup, teardown)
{
	struct control_client *c = connect_noting(*state);
	struct control_batch b;
	pthread_t thread;
	uint32_t cq;

	control_batch_begin(c, &b);
	assert_int_equal(post_detach(c), 0);
	assert_int_equal(pthread_create(&thread, NULL, attach_in_thread, c), 0);
	pthread_join(thread, NULL);
	assert_int_equal(create_cq(c, 5, &cq), 0);
	control_batch_end(c, &b);
	assert_string_equal(seen.text, " A DC");
	control_close(c);
}

/* ---- the ring for posted requests ---- */

#define BEFORE 32 /* requests that a process posts before it asks for a ring */

static struct control_posts_reader ring; /* the daemon's */
static bool gives_ring;
static unsigned n_told, n_posted, n_waited; /* datagrams; requests by the socket; with a reply */

static void read_ring(void)
{
	struct control_packet p;

	while (ring.ring && !control_posts_take(&ring, control_posts_written(&ring), &p))
		n_posted++;
}

static bool count(const struct control_packet *request, struct control_packet *reply)
{
	switch (request->header.type) {
	case CONTROL_HELLO:
		return reply_well(request, reply);
	case CONTROL_OPEN_POSTS:
		reply->header.status = gives_ring ? 0 : -ENOMEM;
		if (gives_ring && !control_posts_make(&ring, reply->fd))
			reply->n_fds = 1;
		return true;
	case CONTROL_POSTED: /* reads only if somebody waits for that: the ring fills */
		n_told += !request->header.serial;
		if (request->header.serial)
			read_ring();
		return true;
	default:
		read_ring();
		if (request->header.serial)
			n_waited++;
		else
			n_posted++;
		return true;
	}
}

static struct control_client *connect_counting(struct daemon *m, bool gives)
{
	gives_ring = gives;
	n_told = n_posted = n_waited = 0;
	ring = (struct control_posts_reader){ 0 };
	m->make_reply = count;
	return connect_as(m, CONTROL_ROLE_VERBS);
}

/* Posts @n requests, and waits for another one: it has a ring then if it had posted enough. */
static void post_and_wait(struct control_client *c, unsigned n)
{
	while (n--)
		assert_int_equal(post_detach(c), 0);
	assert_int_equal(attach(c), 0);
}

CASE_WITH(who_posts_much_posts_by_shared_memory, setup, teardown)
{
	struct control_client *c = connect_counting(*state, true);

	post_and_wait(c, BEFORE - 1);
	assert_null(ring.ring);
	assert_int_equal(post_detach(c), 0);
	assert_null(ring.ring); /* nobody waits for a ring by itself */
	post_and_wait(c, 0);
	assert_non_null(ring.ring);
	assert_int_equal(n_told, 0);
	/* the ring is read before a request that came later */
	post_and_wait(c, 50);
	assert_int_equal(n_posted, BEFORE + 50);
	assert_int_equal(n_waited, 3);
	assert_int_equal(n_told, 1); /* it has never said that it sleeps again */
	control_posts_unmap(ring.ring);
	control_close(c);
}

CASE_WITH(who_finds_the_ring_full_waits, setup, teardown)
{
	struct control_client *c = connect_counting(*state, true);
	unsigned posts = 4 * CONTROL_POSTS_BYTES / 32;

	post_and_wait(c, BEFORE);
	post_and_wait(c, posts);
	assert_int_equal(n_posted, BEFORE + posts); /* each as what it is: nobody waits for it */
	assert_int_equal(n_waited, 2);
	control_posts_unmap(ring.ring);
	control_close(c);
}

CASE_WITH(a_batch_goes_to_the_ring_whole, setup, teardown)
{
	struct control_client *c = connect_counting(*state, true);
	struct control_packet p;
	struct control_batch b;

	post_and_wait(c, BEFORE);
	control_batch_begin(c, &b);
	assert_int_equal(attach(c), 0);
	assert_int_equal(post_detach(c), 0);
	assert_int_equal(control_batch_end(c, &b), 0);
	assert_int_equal(control_posts_take(&ring, control_posts_written(&ring), &p), 0);
	assert_int_equal(p.header.type, CONTROL_ATTACH);
	assert_true(control_packet_next(&p));
	assert_int_equal(p.header.type, CONTROL_DETACH);
	assert_false(control_packet_next(&p));
	control_posts_unmap(ring.ring);
	control_close(c);
}

/* The child's lock is not its parent's. */
CASE_WITH(a_child_posts_by_the_socket, setup, teardown)
{
	struct control_client *c = connect_counting(*state, true);
	unsigned in_ring;
	pid_t child;
	int status;

	post_and_wait(c, BEFORE);
	in_ring = control_posts_written(&ring);
	child = fork();
	if (!child) {
		for (unsigned i = 0; i < 10; i++)
			if (post_detach(c))
				_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(control_posts_written(&ring), in_ring);
	post_and_wait(c, 10);
	assert_int_equal(n_posted, BEFORE + 20);
	control_posts_unmap(ring.ring);
	control_close(c);
}

CASE_WITH(a_daemon_without_memory_gives_none, setup, teardown)
{
	struct control_client *c = connect_counting(*state, false);
	unsigned posts = 0;

	for (; posts < 3 * BEFORE; posts++)
		assert_int_equal(post_detach(c), 0);
	assert_int_equal(attach(c), 0);
	assert_int_equal(n_posted, posts);
	assert_int_equal(n_told, 0);
	control_close(c);
}

CASE_WITH(stop_returns_when_the_daemon_has_hung_up, setup, teardown)
{
	struct control_client *c = connect_as(*state, CONTROL_ROLE_CLI);
	uint32_t cq;

	assert_int_equal(control_stop(c), 0);
	assert_int_equal(create_cq(c, 1, &cq), -EIO);
	control_close(c);
}
