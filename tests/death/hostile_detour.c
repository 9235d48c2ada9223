/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program that writes what it likes to its socket of the detour (control/detour.h): packets in
 * the name of its own queue pairs with any header, in the name of others', of any length, and
 * floods. Its neighbours' messages arrive whole all the same, and the daemon lives.
 */
#include "verbs/peer_lab.h"

#include "control/detour.h"
#include "wire/roce.h"

#define ROUNDS  40
#define A_ROUND 2500
#define BYTES   (256 << 10)

static uint64_t seed = 1;

static uint32_t any(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((seed >> 33) % below);
}

static int is_seqpacket(int fd)
{
	int type = 0;
	socklen_t len = sizeof(type);

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) && type == SOCK_SEQPACKET;
}

/* The socket of the detour: the one that the first datagram brings. */
static int find_socket(struct lab_end *from, const struct lab_end *to)
{
	static int found = -1;
	bool before[1024];
	uint32_t message = 0;

	if (found >= 0)
		return found; /* the process has one */
	for (int fd = 0; fd < 1024; fd++)
		before[fd] = is_seqpacket(fd);
	lab_send(from, lab_ah_to(from, to), to->qp->qp_num, &message, sizeof(message));
	for (int fd = 0; fd < 1024; fd++)
		if (!before[fd] && is_seqpacket(fd))
			return found = fd;
	fail_msg("no socket has come");
	return -1;
}

struct names {
	uint32_t own[3], foreign;
};

/* Any packet; mostly one that might be. */
static size_t forge(const struct names *n, uint8_t *out)
{
	struct control_detour d;
	uint32_t payload = any(4) ? any(300) : any(WIRE_ROCE_MAX_PAYLOAD + 1);
	uint8_t *at = (uint8_t *)&d;

	for (size_t i = 0; i < sizeof(d); i++)
		at[i] = (uint8_t)any(256);
	d.src_qpn = any(20) ? n->own[any(3)] : n->foreign;
	d.flow = any(5) ? any(64) : any(UINT32_MAX);
	d.payload_bytes = any(20) ? payload : any(UINT32_MAX);
	if (any(3))
		d.h.bth.opcode = (uint8_t)any(0x18);
	if (any(2))
		d.h.bth.dest_qpn = n->own[any(3)];
	d.h.bth.psn = any(2) ? any(64) : d.h.bth.psn;
	memcpy(out, &d, sizeof(d));
	memset(out + sizeof(d), 0x5A, payload);
	/* not 0: that is the socket's end */
	return any(20) ? sizeof(d) + payload : 1 + any((uint32_t)sizeof(d) + payload);
}

static void flood(int fd, const struct names *n)
{
	static uint8_t packet[sizeof(struct control_detour) + WIRE_ROCE_MAX_PAYLOAD + 1];

	for (unsigned i = 0; i < A_ROUND; i++) {
		ssize_t sent = send(fd, packet, forge(n, packet), MSG_NOSIGNAL);

		if (sent < 0)
			fail_msg("the socket has gone: %s", strerror(errno));
	}
}

LAB_CASE_BOTH(neighbours_get_what_they_are_sent)
{
	const struct lab_peer_options own = { .timeout = 10, .retry_cnt = 1 };
	struct lab_peer_options there[2] = {
		{ .host = 3, .bytes = BYTES, .retry_cnt = 7, .timeout = 19 },
		{ .host = 4, .bytes = BYTES, .retry_cnt = 7, .timeout = 19 }
	};
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct lab_peer **mine, *p[2];
	struct names n;
	int fd;

	assert_int_equal(system("umbel fault add opcode=CNP drop > /dev/null"), 0);
	fd = find_socket(a, b);
	mine = lab_peers(&own, state);
	for (int i = 0; i < 2; i++)
		p[i] = lab_peer(&there[i]);
	lab_peer_connect(p[0], p[1]);
	lab_peer_connect(p[1], p[0]);
	n = (struct names){ .own = { a->qp->qp_num, mine[0]->address.qpn, mine[1]->address.qpn },
		            .foreign = p[0]->address.qpn ^ 0x10000 };
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct lab_work w = { .opcode = i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
			              .n = 1,
			              .piece = { { 0, BYTES / 2, 0 } },
			              .to = p[1],
			              .remote = BYTES / 2 };

		flood(fd, &n);
		lab_peer_fill(p[i % 2], i % 2 ? BYTES / 2 : 0, BYTES / 2, i);
		lab_peer_do(p[0], &w, IBV_WC_SUCCESS);
		lab_peer_expect(p[!(i % 2)], i % 2 ? 0 : BYTES / 2, BYTES / 2, i);
	}
	assert_int_equal(lab_status("hosts"), 4);
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
