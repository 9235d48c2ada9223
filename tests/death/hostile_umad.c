/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Hostile users of libibumad: what they write to their ports, and what they ask the daemon,
 * is random, or almost right. Whatever it is, MADs of others go their way, and the daemon
 * holds no more when they are gone than before they came.
 */
#include "daemon_lab.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <infiniband/umad.h>

#include "base/util.h"
#include "control/socket.h"
#include "control/umad_message.h"
#include "wire/rmpp.h"
#include "harness.h"

#define SECONDS  120
#define ROUNDS   20000
#define HOSTS    4
#define MAD      256
#define CLASS    0x32
#define OUI      0x02756D
#define GET      1
#define RESPONSE 0x80
#define MOST_FDS 3 /* with a datagram */
#define LARGE    (8 << 20)
#define N_LARGE  15     /* for so many a port has memory at one time */
#define NOBODY   0xBFFE /* a LID */
#define N_SENT   100    /* for which a socket has room */

static uint64_t seed = 1;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

static void fill(uint8_t *p, size_t n)
{
	while (n--)
		*p++ = (uint8_t)below(256);
}

/* ---- ports ---- */

static struct control_client *control;

static int call(enum control_umad_type type, const void *request, uint32_t bytes, void *reply,
                uint32_t reply_bytes, int *fd)
{
	return control_call(control, &(struct control_call){ .type = (enum control_type)type,
	                                                     .request = request,
	                                                     .request_bytes = bytes,
	                                                     .reply = reply,
	                                                     .reply_bytes = reply_bytes,
	                                                     .fd = fd });
}

static int open_port(uint32_t index, uint32_t *handle)
{
	struct control_umad_at req = { .index = index };
	struct control_umad_port rep;
	int fd;

	assert_int_equal(call(CONTROL_UMAD_OPEN_PORT, &req, sizeof(req), &rep, sizeof(rep), &fd),
	                 0);
	*handle = rep.port;
	return fd;
}

static int add_agent(uint32_t handle, uint8_t rmpp_version, uint64_t methods)
{
	struct control_umad_register req = { .port = handle,
		                             .method_mask = { methods },
		                             .oui = OUI,
		                             .qpn = 1,
		                             .mgmt_class = CLASS,
		                             .mgmt_class_version = 1,
		                             .rmpp_version = rmpp_version };
	struct control_umad_agent rep;
	int ret = call(CONTROL_UMAD_REGISTER, &req, sizeof(req), &rep, sizeof(rep), NULL);

	return ret ? ret : (int)rep.agent;
}

static void connect_daemon(void)
{
	if (control)
		control_close(control);
	control = daemon_client(CONTROL_ROLE_UMAD);
}

/* ---- what must go on ---- */

/* Two users of the library, on hosts of their own, use it correctly. */
static void others_are_served(void)
{
	struct umad_reg_attr attr = { .mgmt_class = CLASS,
		                      .mgmt_class_version = 1,
		                      .oui = OUI + 1,
		                      .method_mask = { 1u << GET } };
	int client = umad_open_port("umbel_h3_0", 1), server = umad_open_port("umbel_h4_0", 1);
	struct ib_user_mad *mad = umad_alloc(1, umad_size() + MAD);
	uint32_t client_agent, server_agent;
	int bytes = MAD;
	umad_port_t port;

	assert_true(client >= 0 && server >= 0);
	assert_int_equal(umad_register2(server, &attr, &server_agent), 0);
	attr.method_mask[0] = 0;
	assert_int_equal(umad_register2(client, &attr, &client_agent), 0);
	assert_int_equal(umad_get_port("umbel_h4_0", 1, &port), 0);
	umad_set_addr(mad, (int)port.base_lid, 1, 0, 0);
	umad_release_port(&port);
	memcpy(mad->data, (uint8_t[]){ 1, CLASS, 1, GET }, 4);
	memcpy(mad->data + 37, (uint8_t[]){ OUI >> 16, OUI >> 8 & 0xFF, (OUI & 0xFF) + 1 }, 3);
	assert_int_equal(umad_send(client, (int)client_agent, mad, MAD, SECONDS * 1000, 0), 0);
	assert_int_equal(umad_recv(server, mad, &bytes, SECONDS * 1000), server_agent);
	mad->data[3] |= RESPONSE;
	assert_int_equal(umad_send(server, (int)server_agent, mad, MAD, 0, 0), 0);
	assert_int_equal(umad_recv(client, mad, &bytes, SECONDS * 1000), client_agent);
	assert_int_equal(umad_status(mad), 0);
	umad_free(mad);
	umad_close_port(client);
	umad_close_port(server);
}

static pid_t daemon_process(void)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	assert_int_equal(getsockopt(control_fd(control), SOL_SOCKET, SO_PEERCRED, &cred, &len), 0);
	return cred.pid;
}

/* Bytes that the daemon has read from files so far. */
static uint64_t daemon_reads(void)
{
	char path[64];
	unsigned long long bytes;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/io", daemon_process());
	assert_non_null(f = fopen(path, "r"));
	assert_int_equal(fscanf(f, "rchar: %llu", &bytes), 1);
	fclose(f);
	return bytes;
}

static long daemon_fds(void)
{
	return daemon_descriptors(daemon_process());
}

static long fds_at_first;

/* Until it holds as many as at first, or @more. */
static void wait_fds(long more)
{
	time_t end = time(NULL) + SECONDS;
	long n;

	while ((n = daemon_fds()) < fds_at_first || n > fds_at_first + more) {
		assert_true(time(NULL) < end);
		others_are_served();
	}
}

/* ---- datagrams ---- */

struct datagram {
	struct ib_user_mad header;
	uint8_t data[2 * CONTROL_UMAD_DATAGRAM];
};

/* @n times the descriptor comes with it, at most MOST_FDS. */
static void send_with_many(int sock, const void *data, size_t bytes, int fd, size_t n)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(MOST_FDS * sizeof(int))];
	} control_data = { 0 };
	struct iovec iov = { (void *)data, bytes };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct pollfd p = { .fd = sock, .events = POLLOUT };

	if (n) {
		msg.msg_control = &control_data;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		control_data.align = (struct cmsghdr){ .cmsg_len = CMSG_LEN(n * sizeof(int)),
			                               .cmsg_level = SOL_SOCKET,
			                               .cmsg_type = SCM_RIGHTS };
	}
	for (size_t i = 0; i < n; i++)
		memcpy(CMSG_DATA(&control_data.align) + i * sizeof(fd), &fd, sizeof(fd));
	while (sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		if (errno == EPIPE)
			return; /* the port has ended */
		else
			assert_int_equal(poll(&p, 1, SECONDS * 1000), 1);
}

static void send_with(int sock, const void *data, size_t bytes, int fd)
{
	send_with_many(sock, data, bytes, fd, fd >= 0);
}

/* The answers are not looked at; they must not pile up. */
static void drain(int sock)
{
	static struct datagram d;
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control_data;

	for (;;) {
		struct iovec iov = { &d, sizeof(d) };
		struct msghdr msg = { .msg_iov = &iov,
			              .msg_iovlen = 1,
			              .msg_control = &control_data,
			              .msg_controllen = sizeof(control_data.space) };
		int fd;

		if (recvmsg(sock, &msg, MSG_DONTWAIT) <= 0)
			return;
		if (CMSG_FIRSTHDR(&msg)) {
			memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
			close(fd);
		}
	}
}

/* A MAD in which most is as it should be. */
static size_t random_mad(struct datagram *d)
{
	static const uint8_t classes[] = { CLASS, CLASS, CLASS, 1, 0x81, 3, 4, 0x32 };
	static const uint8_t methods[] = { 1, 2, 3, 5, 7, 0x12, 0x81, 0x83, 0x92 };
	uint8_t *mad = d->data;

	fill((uint8_t *)&d->header, sizeof(d->header));
	fill(d->data, MAD);
	d->header.agent_id = below(4);
	d->header.timeout_ms = below(3) ? 0 : below(20);
	d->header.retries = below(3);
	d->header.addr.lid = htobe16((uint16_t)(below(8) ? 1 + below(2) : below(65536)));
	d->header.addr.qpn = htobe32(below(8) ? 1 : below(4));
	d->header.addr.gid_index = (uint8_t)below(10);
	d->header.addr.pkey_index = (uint16_t)(below(8) ? 0 : below(65536));
	d->header.addr.grh_present = below(8) == 0;
	mad[0] = below(16) ? 1 : (uint8_t)below(256);
	mad[1] = classes[below(ARRAY_SIZE(classes))];
	mad[2] = mad[1] == 3 ? 2 : 1;
	mad[3] = methods[below(ARRAY_SIZE(methods))];
	if (mad[1] == 0x81) {
		mad[6] = (uint8_t)(below(4) ? 0 : below(256));
		mad[7] = (uint8_t)(below(4) ? below(4) : below(256));
		mad[17] = (uint8_t)(0x10 + below(0x12));
		mad[16] = 0;
	}
	memset(mad + 8, 0, 4); /* transaction IDs that meet */
	mad[11] = (uint8_t)below(8);
	memset(mad + 12, 0, 3);
	mad[15] = (uint8_t)below(4);
	mad[24] = below(16) ? 1 : 0;
	mad[25] = (uint8_t)below(6);
	mad[26] = (uint8_t)(below(8) | 0x18);
	memset(mad + 28, 0, 3);
	mad[31] = (uint8_t)below(4);
	if (below(4))
		memset(mad + 32, 0, 2);
	memcpy(mad + 37, (uint8_t[]){ OUI >> 16, OUI >> 8 & 0xFF, OUI & 0xFF }, 3);
	return below(16) ? MAD : below(sizeof(d->data));
}

static struct datagram datagram;

CASE(random_mads_harm_nobody)
{
	uint32_t handle[2];
	int fd[2];

	for (uint32_t i = 0; i < 2; i++) {
		fd[i] = open_port(i, &handle[i]);
		assert_true(add_agent(handle[i], 0, 0x6) >= 0);
		assert_true(add_agent(handle[i], 1, 0x28) >= 0);
		assert_true(add_agent(handle[i], 1, 0) >= 0);
	}
	for (int i = 0; i < ROUNDS; i++) {
		size_t bytes = random_mad(&datagram);

		send_with(fd[below(2)], &datagram, sizeof(datagram.header) + bytes, -1);
		drain(fd[0]);
		drain(fd[1]);
	}
	others_are_served();
	close(fd[0]);
	close(fd[1]);
	others_are_served();
}

CASE(random_segments_harm_nobody)
{
	uint32_t handle[2];
	int fd[2];

	for (uint32_t i = 0; i < 2; i++) {
		fd[i] = open_port(i, &handle[i]);
		assert_true(add_agent(handle[i], (uint8_t)i, 0xFFFFFFFF) >= 0);
	}
	for (int i = 0; i < ROUNDS; i++) {
		uint8_t *mad = datagram.data;

		random_mad(&datagram);
		datagram.header.agent_id = 0;
		datagram.header.addr.lid = htobe16(2);
		mad[0] = mad[24] = 1;
		mad[1] = CLASS;
		mad[3] = (uint8_t)(1 + below(2));
		send_with(fd[0], &datagram, sizeof(datagram.header) + MAD, -1);
		drain(fd[0]);
		drain(fd[1]);
	}
	others_are_served();
	close(fd[0]);
	close(fd[1]);
}

CASE(random_lengths_harm_nobody)
{
	uint32_t handle;
	int fd = open_port(0, &handle);

	assert_true(add_agent(handle, 1, 2) >= 0);
	for (size_t bytes = 1; bytes < sizeof(datagram); bytes += 1 + bytes / 16) {
		random_mad(&datagram);
		send_with(fd, &datagram, bytes, -1);
		drain(fd);
	}
	others_are_served();
	close(fd);
}

/* A descriptor that is no memfd, or not as long as it should be. */
CASE(descriptors_of_all_kinds_harm_nobody)
{
	static const uint32_t lengths[] = {
		0, 1, 63, 64, 65, 320, 100000, CONTROL_UMAD_MAX_BYTES + 64, 1u << 31, UINT32_MAX
	};
	uint32_t handle;
	int port, fds[6], pipe_fd[2];

	port = open_port(0, &handle);
	assert_true(add_agent(handle, 1, 2) >= 0);
	assert_int_equal(pipe(pipe_fd), 0);
	fds[0] = pipe_fd[0];
	fds[1] = port;
	fds[2] = open("/", O_RDONLY);
	fds[3] = open("/dev/zero", O_RDONLY);
	fds[4] = memfd_create("short", 0);
	fds[5] = memfd_create("long", 0);
	assert_int_equal(ftruncate(fds[4], 100), 0);
	assert_int_equal(ftruncate(fds[5], 200000), 0);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		for (size_t k = 0; k < ARRAY_SIZE(lengths); k++) {
			random_mad(&datagram);
			datagram.header.agent_id = 0;
			datagram.header.length = lengths[k];
			send_with(port, &datagram, sizeof(datagram.header) + MAD, fds[i]);
			drain(port);
		}
	others_are_served();
	close(pipe_fd[1]);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	wait_fds(0);
}

/* More descriptors than there is to be, and some with and behind a datagram of 0 bytes. */
CASE(needless_descriptors_are_closed)
{
	uint32_t handle;
	int fd, memfd = memfd_create("needless", 0);

	for (int i = 0; i < 50; i++) {
		fd = open_port(0, &handle);
		assert_true(add_agent(handle, 1, 2) >= 0);
		random_mad(&datagram);
		for (size_t n = 0; n <= MOST_FDS; n++)
			send_with_many(fd, &datagram, sizeof(datagram.header) + MAD, memfd, n);
		for (size_t n = 0; n <= MOST_FDS; n++)
			send_with_many(fd, &datagram, i % 2 ? n : 0, memfd, n);
		close(fd);
	}
	close(memfd);
	others_are_served();
	wait_fds(0);
}

static int large[N_LARGE]; /* memfds */

static void make_large(void)
{
	for (size_t i = 0; i < N_LARGE; i++) {
		large[i] = memfd_create("large", 0);
		assert_int_equal(ftruncate(large[i], LARGE), 0);
	}
}

static void close_large(void)
{
	for (size_t i = 0; i < N_LARGE; i++)
		close(large[i]);
}

/* The i-th message that takes the daemon long to read, to a LID that nobody has. */
static void send_large(int port, int agent, int i)
{
	memset(&datagram, 0, sizeof(datagram));
	datagram.header.agent_id = (uint32_t)agent;
	datagram.header.length = sizeof(datagram.header) + LARGE;
	datagram.header.timeout_ms = 1;
	datagram.header.addr.lid = htobe16(NOBODY);
	datagram.header.addr.qpn = htobe32(1);
	memcpy(datagram.data, (uint8_t[]){ 1, CLASS, 1, GET }, 4);
	memcpy(datagram.data + 24, (uint8_t[]){ 1, 1, 1 }, 3);
	memcpy(datagram.data + 37, (uint8_t[]){ OUI >> 16, OUI >> 8 & 0xFF, OUI & 0xFF }, 3);
	datagram.data[15] = (uint8_t)i; /* the transaction ID */
	assert_int_equal(pwrite(large[i], datagram.data, MAD, 0), MAD);
	send_with(port, &datagram, sizeof(datagram.header) + MAD, large[i]);
}

/* They are not all worked on in one turn: each comes back, in whatever turn; and what is left when
 * the port ends leaves nothing. */
CASE(many_large_messages_are_all_seen_to)
{
	int fd, agent;
	uint32_t handle;

	make_large();
	for (int ends = 0; ends < 2; ends++) {
		fd = open_port(0, &handle);
		agent = add_agent(handle, 1, 2);
		assert_true(agent >= 0);
		for (int i = 0; i < N_LARGE; i++)
			send_large(fd, agent, i);
		for (int i = 0; i < N_LARGE && !ends; i++) {
			struct pollfd p = { .fd = fd, .events = POLLIN };

			assert_int_equal(poll(&p, 1, SECONDS * 1000), 1);
			assert_true(recv(fd, &datagram, sizeof(datagram), 0) >=
			            (ssize_t)sizeof(datagram.header));
			assert_int_not_equal(datagram.header.status, 0);
		}
		close(fd);
	}
	close_large();
	others_are_served();
	wait_fds(0);
}

/* The daemon has received all that was sent to the port. */
static void wait_taken(int port)
{
	time_t end = time(NULL) + SECONDS;
	int unread;

	while (!ioctl(port, SIOCOUTQ, &unread) && unread) {
		assert_true(time(NULL) < end);
		others_are_served();
	}
}

/* A message that would be refused is not read before. */
CASE(large_messages_in_vain_are_not_read)
{
	int fd, agent;
	uint64_t reads = daemon_reads();
	uint32_t handle;

	make_large();
	fd = open_port(0, &handle);
	agent = add_agent(handle, 0, 2); /* does RMPP itself */
	assert_true(agent >= 0);
	for (int i = 0; i < N_LARGE; i++)
		send_large(fd, i % 2 ? agent : UMAD_CA_MAX_AGENTS - 1, i);
	wait_taken(fd);
	close(fd);
	close_large();
	others_are_served();
	wait_fds(0);
	assert_true(daemon_reads() - reads < LARGE);
}

static void post(enum control_umad_type type, const void *body, uint32_t bytes)
{
	struct control_packet p = {
		.header = { .type = (enum control_type)type, .serial = UINT32_MAX, .bytes = bytes }
	};

	memcpy(p.body, body, bytes);
	assert_int_equal(control_send(control_fd(control), &p), 0);
}

static int reply_status(void)
{
	struct pollfd p = { .fd = control_fd(control), .events = POLLIN };
	struct control_packet reply;

	assert_int_equal(poll(&p, 1, SECONDS * 1000), 1);
	assert_int_equal(control_receive(control_fd(control), &reply), 0);
	return reply.header.status;
}

/*
 * A request that comes behind many large messages of a port waits for few of them: neither a
 * request for the same class, nor the end of an agent, has them all read in one turn. The rest of
 * them is dropped when their own agent ends: it would not be sent as a whole.
 */
CASE(requests_do_not_read_all_messages)
{
	struct control_umad_register same = {
		.method_mask = { 2 },
		.oui = OUI,
		.qpn = 1,
		.mgmt_class = CLASS,
		.mgmt_class_version = 1,
	};
	struct control_umad_agent which, none;
	int fd, other, agent;
	uint64_t reads;

	make_large();
	for (int registers = 0; registers < 2; registers++) {
		other = open_port(0, &same.port);
		fd = open_port(0, &which.port);
		agent = add_agent(which.port, 1, 2);
		assert_true(agent >= 0);
		which.agent = (uint32_t)agent;
		none = (struct control_umad_agent){ which.port,
			                            (uint32_t)add_agent(which.port, 1, 4) };
		reads = daemon_reads();
		assert_int_equal(kill(daemon_process(), SIGSTOP), 0);
		for (int i = 0; i < N_LARGE; i++)
			send_large(fd, agent, i);
		if (registers)
			post(CONTROL_UMAD_REGISTER, &same, sizeof(same));
		else
			post(CONTROL_UMAD_UNREGISTER, &none, sizeof(none));
		post(CONTROL_UMAD_UNREGISTER, &which, sizeof(which));
		assert_int_equal(kill(daemon_process(), SIGCONT), 0);
		assert_int_equal(reply_status(), registers ? -EINVAL : 0);
		assert_int_equal(reply_status(), 0);
		assert_true(add_agent(same.port, 1, 2) >= 0); /* the class is free */
		wait_taken(fd);
		close(fd);
		close(other);
		others_are_served();
		wait_fds(0);
		/* a turn ends by the clock: some machines read 5 messages, a fast one may read more
		 */
		assert_true(daemon_reads() - reads < N_LARGE * 4 / 5 * (uint64_t)LARGE);
	}
	close_large();
}

static void send_request(int port, int agent, uint16_t lid, uint32_t tid, uint32_t timeout_ms)
{
	memset(&datagram, 0, sizeof(datagram.header) + MAD);
	datagram.header.agent_id = (uint32_t)agent;
	datagram.header.timeout_ms = timeout_ms;
	datagram.header.addr.lid = htobe16(lid);
	datagram.header.addr.qpn = htobe32(1);
	memcpy(datagram.data, (uint8_t[]){ 1, CLASS, 1, GET }, 4);
	memcpy(datagram.data + 37, (uint8_t[]){ OUI >> 16, OUI >> 8 & 0xFF, OUI & 0xFF }, 3);
	tid = htobe32(tid);
	memcpy(datagram.data + 12, &tid, sizeof(tid));
	send_with(port, &datagram, sizeof(datagram.header) + MAD, -1);
}

/* Of agents that are unregistered, and of those that end with the port; some would time out while
 * they wait to be freed. */
CASE(many_requests_end_with_their_agents)
{
	struct control_umad_agent which;
	int fd, agent[2];

	fd = open_port(0, &which.port);
	for (int i = 0; i < 2; i++) {
		agent[i] = add_agent(which.port, 0, i ? 2 : 4);
		assert_true(agent[i] >= 0);
	}
	for (uint32_t i = 0; i < ROUNDS; i++)
		send_request(fd, agent[i % 2], NOBODY, i, i % 4 ? SECONDS * 1000 : 1 + below(1000));
	which.agent = (uint32_t)agent[0];
	assert_int_equal(call(CONTROL_UMAD_UNREGISTER, &which, sizeof(which), NULL, 0, NULL), 0);
	assert_int_equal(call(CONTROL_UMAD_UNREGISTER, &which, sizeof(which), NULL, 0, NULL),
	                 -EINVAL);
	close(fd);
	others_are_served();
	wait_fds(0);
}

static void receive_mads(int fd, int n)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	while (n--) {
		assert_int_equal(poll(&p, 1, SECONDS * 1000), 1);
		assert_true(recv(fd, &datagram, sizeof(datagram), 0) > 0);
	}
}

/* A MAD that was sent goes its way though its program unregisters, or closes its port, at once. */
CASE(what_was_sent_before_the_end_is_sent)
{
	struct control_umad_agent which;
	struct control_umad_port port;
	uint32_t handle;
	int fd, reader = open_port(1, &handle);

	assert_true(add_agent(handle, 0, 2) >= 0);
	for (int closes = 0; closes < 2; closes++) {
		fd = open_port(0, &which.port);
		which.agent = (uint32_t)add_agent(which.port, 0, 0);
		port.port = which.port;
		assert_int_equal(kill(daemon_process(), SIGSTOP), 0);
		for (uint32_t i = 0; i < N_SENT; i++)
			send_request(fd, (int)which.agent, 2, i, 0);
		if (closes) {
			close(fd);
			post(CONTROL_UMAD_CLOSED, &port, sizeof(port));
		} else {
			post(CONTROL_UMAD_UNREGISTER, &which, sizeof(which));
		}
		assert_int_equal(kill(daemon_process(), SIGCONT), 0);
		assert_int_equal(reply_status(), 0);
		receive_mads(reader, N_SENT);
		if (!closes)
			close(fd);
	}
	close(reader);
	wait_fds(0);
}

CASE(who_does_not_read_stops_nobody)
{
	uint32_t handle[2];
	int fd[2];

	for (uint32_t i = 0; i < 2; i++) {
		fd[i] = open_port(i, &handle[i]);
		assert_true(add_agent(handle[i], 0, 2) >= 0);
	}
	memset(&datagram, 0, sizeof(datagram));
	memcpy(datagram.data, (uint8_t[]){ 1, CLASS, 1, GET }, 4);
	memcpy(datagram.data + 37, (uint8_t[]){ OUI >> 16, OUI >> 8 & 0xFF, OUI & 0xFF }, 3);
	datagram.header.addr.lid = htobe16(2);
	datagram.header.addr.qpn = htobe32(1);
	for (int i = 0; i < ROUNDS; i++)
		send_with(fd[0], &datagram, sizeof(datagram.header) + MAD, -1);
	others_are_served();
	close(fd[0]);
	close(fd[1]);
}

/* ---- requests ---- */

CASE(random_requests_get_responses)
{
	for (int i = 0; i < ROUNDS; i++) {
		uint8_t body[CONTROL_MAX_BYTES], reply[CONTROL_MAX_BYTES];
		enum control_umad_type type = CONTROL_UMAD_FIRST + below(7);
		uint32_t bytes = below(4) ? (type == CONTROL_UMAD_REGISTER     ? 32
		                             : type == CONTROL_UMAD_UNREGISTER ? 8
		                                                               : 4)
		                          : below(64);
		int fd = -1, ret;

		fill(body, sizeof(body));
		if (below(4)) {
			memset(body, 0, 4);
			body[0] = (uint8_t)below(HOSTS);
		}
		ret = call(type, body, bytes, reply,
		           type == CONTROL_UMAD_ISSM || type == CONTROL_UMAD_CLOSED ? 0 : 4,
		           type == CONTROL_UMAD_OPEN_PORT ? &fd : NULL);
		assert_int_not_equal(ret, -EIO);
		if (!ret && fd >= 0)
			close(fd);
	}
	others_are_served();
	connect_daemon();
	wait_fds(1); /* the FIFOs stay, with one inotify descriptor for all of them */
}

int main(void)
{
	connect_daemon();
	others_are_served(); /* the library has its connection */
	fds_at_first = daemon_fds();
	return harness_run(NULL, NULL);
}
