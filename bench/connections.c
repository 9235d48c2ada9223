/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Measures how many connections a second rdma_cm makes and ends: a process on one host connects,
 * one on another accepts, the first one disconnects. The queue pairs of each end are made and
 * destroyed with their connections, and complete in one queue, as a server's do. Prints a line of
 * JSON; bench/run.py calls it.
 *
 * connections N AT_ONCE [SERVER [CLIENT]]	N connections, of which AT_ONCE are under way; the
 *						addresses of the two ends
 */
#include "common/util.h"

#include <rdma/rdma_cma.h>

#define SERVER     "10.0.0.2"
#define CLIENT     "10.0.0.1"
#define PORT       7471
#define CQE        16384
#define TIMEOUT_MS 5000

static struct rdma_event_channel *events;
static struct ibv_cq *cq;

/* ---- both ends ---- */

static struct sockaddr_in address_of(const char *text, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (inet_pton(AF_INET, text, &in.sin_addr) != 1)
		errx(EXIT_FAILURE, "%s: no address", text);
	return in;
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC
	};

	if (!cq)
		bench_must((cq = ibv_create_cq(id->verbs, CQE, NULL, NULL, 0)), "ibv_create_cq");
	attr.send_cq = attr.recv_cq = cq;
	bench_must(!rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
}

/* Frees both: the connection has ended. */
static void destroy(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	bench_must(!rdma_destroy_id(id), "rdma_destroy_id");
}

/* The next event's type, and the identifier that it is about. */
static enum rdma_cm_event_type next_event(struct rdma_cm_id **id)
{
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;

	bench_must(!rdma_get_cm_event(events, &event), "rdma_get_cm_event");
	type = event->event;
	*id = event->id;
	if (event->status)
		errx(EXIT_FAILURE, "%s, status %d", rdma_event_str(type), event->status);
	rdma_ack_cm_event(event);
	return type;
}

/* ---- the server ---- */

static void listen_at(const char *address)
{
	struct sockaddr_in in = address_of(address, PORT);
	struct rdma_cm_id *listener;

	events = rdma_create_event_channel();
	bench_must(events && !rdma_create_id(events, &listener, NULL, RDMA_PS_TCP),
	           "rdma_create_id");
	bench_must(!rdma_bind_addr(listener, (struct sockaddr *)&in) && !rdma_listen(listener, 0),
	           "rdma_listen");
}

static void serve_one(void)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_id *id;

	switch (next_event(&id)) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		make_qp(id);
		bench_must(!rdma_accept(id, &param), "rdma_accept");
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		bench_must(!rdma_disconnect(id), "rdma_disconnect");
		destroy(id);
		break;
	default:
		break;
	}
}

/* Serves until the client ends. @ready: a byte is written there once it listens. */
__attribute__((noreturn)) static void serve(const char *address, int ready)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	listen_at(address);
	bench_must(write(ready, "", 1) == 1, "write");
	for (;;)
		serve_one();
}

static pid_t start_server(const char *address)
{
	int ready[2];
	pid_t pid;
	char byte;

	bench_must(!pipe(ready), "pipe");
	pid = fork();
	bench_must(pid >= 0, "fork");
	if (!pid)
		serve(address, ready[1]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		errx(EXIT_FAILURE, "the server has failed");
	close(ready[0]);
	return pid;
}

/* ---- the client ---- */

struct client {
	struct sockaddr_in from, to;
	unsigned long left, done; /* connections to begin, and that have ended */
};

static void begin(struct client *c)
{
	struct rdma_cm_id *id;

	if (!c->left)
		return;
	c->left--;
	bench_must(!rdma_create_id(events, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	bench_must(!rdma_resolve_addr(id, (struct sockaddr *)&c->from, (struct sockaddr *)&c->to,
	                              TIMEOUT_MS),
	           "rdma_resolve_addr");
}

static void connect_id(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };

	make_qp(id);
	bench_must(!rdma_connect(id, &param), "rdma_connect");
}

static void go_on(struct client *c)
{
	struct rdma_cm_id *id;

	switch (next_event(&id)) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		bench_must(!rdma_resolve_route(id, TIMEOUT_MS), "rdma_resolve_route");
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		connect_id(id);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		bench_must(!rdma_disconnect(id), "rdma_disconnect");
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		destroy(id);
		c->done++;
		begin(c);
		break;
	default:
		break;
	}
}

/* Nanoseconds a connection. */
static double measure(struct client *c, unsigned long n, unsigned long at_once)
{
	uint64_t t = bench_now();

	c->left = n;
	c->done = 0;
	for (unsigned long i = 0; i < at_once; i++)
		begin(c);
	while (c->done < n)
		go_on(c);
	return (double)(bench_now() - t) / (double)n;
}

int main(int argc, char **argv)
{
	struct client c;
	unsigned long n, at_once;
	double ns;
	pid_t server;

	if (argc < 3 || argc > 5)
		errx(EXIT_FAILURE, "usage: connections N AT_ONCE [SERVER [CLIENT]]");
	n = strtoul(argv[1], NULL, 0);
	at_once = strtoul(argv[2], NULL, 0);
	if (!n || !at_once)
		errx(EXIT_FAILURE, "no connections");
	c.to = address_of(argc > 3 ? argv[3] : SERVER, PORT);
	c.from = address_of(argc > 4 ? argv[4] : CLIENT, 0);
	server = start_server(argc > 3 ? argv[3] : SERVER);
	bench_must((events = rdma_create_event_channel()), "rdma_create_event_channel");
	measure(&c, at_once, at_once); /* what comes first is made once */
	ns = measure(&c, n, at_once);
	printf("{\"measure\": \"rdma_cm\", \"at_once\": %lu, \"ns\": %.1f}\n", at_once, ns);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	return 0;
}
