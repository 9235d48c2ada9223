// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * wire_cm_death listen|connect FILE ADDRESS [ROUNDS]: a listener of rdma_cm on one host, and on the
 * other one programs that connect to it and are killed, or become another program that lives on, at
 * a random moment, perhaps before they are connected. Both note in FILE, which they share, when
 * what happened. The listener looks in the end: a connection that was made has got DISCONNECTED, at
 * once; a connection that was about to be made has got some event that ends it.
 */
#include "must.h"

#include <rdma/rdma_cma.h>

#include "base/util.h"

#define PORT     7174
#define ROUNDS   1000     /* at most */
#define MOMENT   8000     /* us, at least, of which each is a moment to die */
#define AT_ONCE  2000     /* ms, on a busy machine; retries take longer */
#define PATIENCE 20000000 /* us, that the last one may take to be heard of */

struct round {
	_Atomic uint64_t died_ns, requested_ns, established_ns, ended_ns;
	_Atomic uint32_t event;
};

static struct shared {
	_Atomic uint32_t listens, rounds; /* rounds: all are over, and were so many */
	_Atomic uint32_t judged;
	struct round round[ROUNDS];
} * shared;

static void create_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };

	check(!rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
}

/* ---- the listener ---- */

static unsigned n_open;

static void take_request(struct rdma_cm_event *event)
{
	struct rdma_conn_param param = { .responder_resources = 1, .retry_count = 7 };
	struct round *r;
	uint32_t number;

	memcpy(&number, event->param.conn.private_data, sizeof(number));
	check(number < ROUNDS, "the number of a round");
	r = &shared->round[number];
	event->id->context = r;
	atomic_store(&r->requested_ns, base_now_ns());
	create_qp(event->id);
	if (rdma_accept(event->id, &param))
		atomic_store(&r->ended_ns, base_now_ns()); /* it has gone already */
	else
		n_open++;
}

/* The connection has ended. Its identifier is destroyed behind the event. */
static struct rdma_cm_id *note_end(const struct rdma_cm_event *event)
{
	struct round *r = event->id->context;

	must(!atomic_load(&r->ended_ns), "%s of a connection that has ended",
	     rdma_event_str(event->event));
	atomic_store(&r->event, event->event);
	atomic_store(&r->ended_ns, base_now_ns());
	n_open--;
	return event->id;
}

static void take_event(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *ended = NULL;
	struct rdma_cm_event *event;

	check(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		take_request(event);
	else if (event->event == RDMA_CM_EVENT_ESTABLISHED)
		atomic_store(&((struct round *)event->id->context)->established_ns, base_now_ns());
	else if (event->event != RDMA_CM_EVENT_TIMEWAIT_EXIT)
		ended = note_end(event);
	rdma_ack_cm_event(event);
	if (!ended)
		return;
	rdma_destroy_qp(ended);
	rdma_destroy_id(ended);
}

static uint64_t judge(unsigned n)
{
	unsigned established = 0, requested = 0, early = 0;
	uint64_t longest = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct round *r = &shared->round[i];
		const uint64_t took =
		        r->ended_ns > r->died_ns ? (r->ended_ns - r->died_ns) / 1000000 : 0;

		if (!r->requested_ns)
			continue;
		requested++;
		must(r->ended_ns, "round %u never ends%s", i,
		     r->established_ns ? ", which was established" : "");
		longest = took > longest ? took : longest;
		early += !r->established_ns;
		if (!r->established_ns)
			continue;
		established++;
		must(r->event == RDMA_CM_EVENT_DISCONNECTED && took <= AT_ONCE,
		     "round %u ends with %s, after %lu ms", i, rdma_event_str(r->event), took);
	}
	printf("%u of %u were established, %u were not; the last heard after %lu ms\n", established,
	       requested, early, longest);
	return established;
}

static void listen_at(struct sockaddr_in *address)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct pollfd p = { .events = POLLIN };
	struct rdma_cm_id *listener;
	uint64_t over_ns = 0;

	check(channel && !rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(!rdma_bind_addr(listener, (struct sockaddr *)address) &&
	              !rdma_listen(listener, ROUNDS),
	      "rdma_listen");
	p.fd = channel->fd;
	atomic_store(&shared->listens, 1);
	while (!over_ns || n_open) {
		if (poll(&p, 1, 10) == 1)
			take_event(channel);
		if (!over_ns && atomic_load(&shared->rounds))
			over_ns = base_now_ns();
		if (over_ns && (base_now_ns() - over_ns) / 1000 > PATIENCE)
			break;
	}
	must(judge(atomic_load(&shared->rounds)), "nobody was connected");
	atomic_store(&shared->judged, 1);
	puts("all is well");
}

/* ---- those that connect ---- */

static void expect_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	check(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	must(event->event == type, "%s", rdma_event_str(event->event));
	rdma_ack_cm_event(event);
}

__attribute__((noreturn)) static void be_victim(struct sockaddr_in *address, uint32_t number)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = { .private_data = &number,
		                         .private_data_len = sizeof(number),
		                         .initiator_depth = 1,
		                         .retry_count = 7 };
	struct rdma_cm_id *id;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	check(channel && !rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(!rdma_resolve_addr(id, NULL, (struct sockaddr *)address, 2000), "rdma_resolve_addr");
	expect_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	check(!rdma_resolve_route(id, 2000), "rdma_resolve_route");
	expect_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	create_qp(id);
	check(!rdma_connect(id, &param), "rdma_connect");
	expect_event(channel, RDMA_CM_EVENT_ESTABLISHED);
	for (;;)
		pause();
}

static void become_another(int signal)
{
	static char *const args[] = { "wire_cm_death", "linger", NULL };

	(void)signal;
	execv("/proc/self/exe", args);
	_exit(1);
}

/* Kills the victim; or the victim becomes another program, for which its peer is not to wait. */
static void end_victim(pid_t pid, bool lives_on)
{
	int status;

	kill(pid, lives_on ? SIGUSR1 : SIGKILL);
	if (lives_on)
		return;
	check(waitpid(pid, &status, 0) == pid, "waitpid");
	must(WIFSIGNALED(status), "%d: status 0x%x", pid, status);
}

/* When the listener has heard of all ends. */
static void end_those_that_live_on(const pid_t *pids, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (pids[i])
			end_victim(pids[i], false);
}

/* The first one is established before it dies: how long that takes here, and as long again. */
static useconds_t await_first(useconds_t moment)
{
	const uint64_t began = base_now_ns();
	uint64_t took;

	while (!atomic_load(&shared->round[0].established_ns))
		usleep(1000);
	took = (base_now_ns() - began) / 1000;
	return 2 * took > moment ? (useconds_t)(2 * took) : moment;
}

static void make_victims(struct sockaddr_in *address, unsigned rounds)
{
	useconds_t moment = MOMENT;
	pid_t left[ROUNDS] = { 0 };

	signal(SIGUSR1, become_another); /* theirs */
	srand((unsigned)base_now_ns());
	while (!atomic_load(&shared->listens))
		usleep(1000);
	for (unsigned i = 0; i < rounds; i++) {
		pid_t pid = fork();

		check(pid >= 0, "fork");
		if (!pid)
			be_victim(address, i);
		if (i)
			usleep((useconds_t)rand() % moment);
		else
			moment = await_first(moment);
		atomic_store(&shared->round[i].died_ns, base_now_ns());
		left[i] = i % 2 ? pid : 0;
		end_victim(pid, left[i]);
	}
	atomic_store(&shared->rounds, rounds);
	for (unsigned i = 0; i < 2 * PATIENCE / 1000 && !atomic_load(&shared->judged); i++)
		usleep(1000);
	end_those_that_live_on(left, rounds);
	puts("all is well");
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	unsigned rounds = argc > 4 ? (unsigned)strtoul(argv[4], NULL, 0) : 400;
	int fd;

	if (argc == 2 && !strcmp(argv[1], "linger"))
		return pause();
	if (argc < 4 || rounds > ROUNDS || inet_pton(AF_INET, argv[3], &address.sin_addr) != 1)
		errx(2, "usage: wire_cm_death listen|connect FILE ADDRESS [ROUNDS]");
	fd = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	check(fd >= 0 && !ftruncate(fd, sizeof(*shared)), argv[2]);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(shared != MAP_FAILED, "mmap");
	setlinebuf(stdout);
	if (!strcmp(argv[1], "listen"))
		listen_at(&address);
	else
		make_victims(&address, rounds);
	return 0;
}
