/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Members of a group while the subnet manager ends, begins anew, or hands the subnet over: messages
 * keep arriving, and nobody has to join again.
 * umbel: --set sm_poll_ms=100
 */
#include <spawn.h>

#include "base/util.h"
#include "common.h"

#define GROUP     "239.4.4.5"
#define LEARN_MS  1000 /* as long as the embedded subnet manager learns of members */
#define MS_IN_NS  1000000ull
#define N_MEMBERS 2
#define SECONDS   120
#define N_GROUPS  1500
#define QUIET_MS  300 /* when nothing has happened, nothing will */

extern char **environ;

struct lab {
	struct node tx, rx[N_MEMBERS];
	struct rdma_ud_param to;
	unsigned sent;
};

static struct node member(unsigned host)
{
	struct node n = node_open(RDMA_PS_UDP);

	node_bind(&n, host, 0);
	node_qp(&n, 0);
	return n;
}

static struct rdma_ud_param join_to_send(struct node *n)
{
	struct rdma_ud_param ud;
	struct rdma_cm_event *e;

	assert_int_equal(join_with(n, GROUP, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, NULL), 0);
	e = next_event(n);
	assert_event(e, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	ud = e->param.ud;
	assert_int_equal(rdma_ack_cm_event(e), 0);
	return ud;
}

/* Host 1 sends to members on hosts 2 and 3. */
static struct lab *lab_open(void)
{
	struct lab *l = calloc(1, sizeof(*l));

	for (unsigned i = 0; i < N_MEMBERS; i++) {
		l->rx[i] = member(2 + i);
		join(&l->rx[i], GROUP);
	}
	l->tx = member(1);
	l->to = join_to_send(&l->tx);
	return l;
}

static void lab_close(struct lab *l)
{
	for (unsigned i = 0; i < N_MEMBERS; i++)
		node_close(&l->rx[i]);
	assert_int_equal(leave(&l->tx, GROUP), 0);
	node_close(&l->tx);
	free(l);
}

/* Whether the next message is there; @number: which it is. Its receive is posted again. */
static bool take(struct node *n, unsigned *number)
{
	struct ibv_sge sge = { .length = GRH_BYTES + MESSAGE, .lkey = n->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wc wc;

	if (!ibv_poll_cq(n->cq, 1, &wc))
		return false;
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	wr.wr_id = wc.wr_id;
	sge.addr = (uintptr_t)n->buffer + wc.wr_id * (GRH_BYTES + MESSAGE);
	assert_int_equal(sscanf((char *)sge.addr + GRH_BYTES, "number %u", number), 1);
	assert_int_equal(ibv_post_recv(n->id->qp, &wr, &bad), 0);
	return true;
}

static void send_number(struct lab *l)
{
	char text[32];

	snprintf(text, sizeof(text), "number %u", ++l->sent);
	send_to(&l->tx, &l->to, text);
}

/* A message, which every member must get. It is there as soon as it was sent. */
static void send_one(struct lab *l)
{
	unsigned number;

	send_number(l);
	for (unsigned i = 0; i < N_MEMBERS; i++) {
		assert_true(take(&l->rx[i], &number));
		assert_int_equal(number, l->sent);
	}
}

static pid_t begin(const char *command)
{
	char *argv[] = { "sh", "-c", (char *)command, NULL };
	pid_t pid;

	assert_int_equal(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ), 0);
	return pid;
}

static bool has_ended(pid_t pid)
{
	int status;

	if (!waitpid(pid, &status, WNOHANG))
		return false;
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return true;
}

/* Messages arrive until the command has ended, and so long after it. */
static void send_while(struct lab *l, const char *command, unsigned more_ms)
{
	pid_t pid = begin(command);
	uint64_t end;

	while (!has_ended(pid))
		send_one(l);
	for (end = base_now_ns() / MS_IN_NS + more_ms; base_now_ns() / MS_IN_NS < end;)
		send_one(l);
}

/* The members that there were have heard nothing; and joining and leaving works. */
static void assert_undisturbed(struct lab *l)
{
	struct node CLOSED late = member(4);
	unsigned number;

	for (unsigned i = 0; i < N_MEMBERS; i++)
		assert_no_event(&l->rx[i]);
	assert_no_event(&l->tx);
	join(&late, GROUP);
	send_one(l);
	assert_true(take(&late, &number));
	assert_int_equal(leave(&late, GROUP), 0);
	send_one(l);
	assert_false(take(&late, &number));
	late.group = NULL;
}

CASE(an_sm_that_ends_and_begins_disturbs_nobody)
{
	struct lab *l = lab_open();

	for (unsigned i = 0; i < 3; i++) {
		send_while(l, "umbel sm stop", 0);
		send_while(l, "umbel sm start", i == 2 ? LEARN_MS + 200 : 0);
	}
	assert_undisturbed(l);
	lab_close(l);
}

/* Group @i of many. */
static void join_one_of_many(struct node *n, unsigned i)
{
	char group[32];

	snprintf(group, sizeof(group), "239.5.%u.%u", i / 250, i % 250);
	join(n, group);
	n->group = NULL; /* it ends with the identifier */
}

/* A port has so many groups that the daemon needs several turns to have them registered. A program
 * that joins the last ones meanwhile gets no groups of its own. */
CASE(who_comes_after_a_new_sm_joins_the_groups_that_there_are)
{
	struct node CLOSED many = node_open(RDMA_PS_UDP), late = node_open(RDMA_PS_UDP);
	struct pollfd p = { .fd = many.channel->fd, .events = POLLIN };

	node_bind(&many, 2, 0);
	node_bind(&late, 3, 0);
	for (unsigned i = 0; i < N_GROUPS; i++)
		join_one_of_many(&many, i);
	assert_int_equal(system("umbel sm stop && umbel sm start"), 0);
	for (unsigned i = 1; i <= 10; i++)
		join_one_of_many(&late, N_GROUPS - i);
	assert_int_equal(poll(&p, 1, QUIET_MS), 0);
}

/* ---- Debian's OpenSM, unmodified ---- */

static bool succeeds(const char *command)
{
	return system(command) == 0;
}

/* Messages are sent meanwhile, and may be lost. */
static void wait_until(struct lab *l, const char *command)
{
	uint64_t end = base_now_ns() / MS_IN_NS + SECONDS * 1000;
	unsigned number;

	while (!succeeds(command)) {
		if (base_now_ns() / MS_IN_NS > end)
			fail_msg("in vain: wait until %s", command);
		send_number(l);
		for (unsigned i = 0; i < N_MEMBERS; i++)
			while (take(&l->rx[i], &number))
				;
	}
}

/* Until each member gets what is sent. */
static void wait_served(struct lab *l)
{
	uint64_t end = base_now_ns() / MS_IN_NS + SECONDS * 1000;
	unsigned got = 0, number;

	while (got < N_MEMBERS) {
		if (base_now_ns() / MS_IN_NS > end)
			fail_msg("members get no messages any more");
		send_number(l);
		got = 0;
		for (unsigned i = 0; i < N_MEMBERS; i++)
			while (take(&l->rx[i], &number))
				got += number == l->sent;
	}
}

static pid_t begin_opensm(void)
{
	return begin("cd \"$TMPDIR\" && export OSM_CACHE_DIR=$TMPDIR OSM_TMP_DIR=$TMPDIR && "
	             "export ASAN_OPTIONS=detect_leaks=0:intercept_send=0 && "
	             "exec umbel exec h4 -- opensm -p 5 -f \"$TMPDIR/opensm.log\" > opensm.out");
}

#ifdef __SANITIZE_THREAD__ /* its runtime cannot be loaded into Debian's programs */
#define RUNS_OPENSM 0
#else
#define RUNS_OPENSM 1
#endif

#define MASTER_IS(host) \
	"umbel exec h2 -- sminfo 2> /dev/null | grep -q 'guid 0x2756d0000000" host "01,.*MASTER'"
#define ALL_REGISTERED                                                                        \
	"test $(umbel exec h2 -- saquery --smkey 1 MCMR 2> /dev/null | awk '/MGID/ { ours = " \
	"/ff12:4001:ffff::f04:405/ } ours && /PortGid/' | wc -l) = 3"

/*
 * OpenSM clears the multicast tables when it takes a subnet over; members are registered with it
 * as soon as it listens. When it is killed, and ours takes over, nobody misses anything.
 */
CASE(opensm_takes_over_and_is_killed)
{
	struct lab *l;
	pid_t opensm;

	if (!RUNS_OPENSM)
		skip();
	l = lab_open();
	opensm = begin_opensm();
	wait_until(l, MASTER_IS("4"));
	wait_until(l, ALL_REGISTERED);
	wait_served(l);
	assert_int_equal(kill(opensm, SIGKILL), 0);
	assert_int_equal(waitpid(opensm, NULL, 0), opensm);
	send_while(l, "until " MASTER_IS("1") "; do sleep 0.02; done", LEARN_MS + 200);
	assert_undisturbed(l);
	lab_close(l);
}
