// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * wire_death peer|victims KEY=VALUE...: RC connections between two hosts, of which one end dies, is
 * stopped, forks or becomes another program at a random instruction, or while packets leave, while
 * both do all that RC does to each other. On the one host there is one peer, which lives; on the
 * other one a process that makes victims, one a round, and tells the peer what becomes of them
 * ("rounds", "seed"; "only" one way). They find each other by a socket in the file system ("path"),
 * whatever the network does.
 *
 * Either end goes on in one order (wire_traffic.h). All that arrives is checked. A victim that
 * lives to the end says how much it has done, and both ends look whether all of it is there, once.
 * The peer of a victim that dies gets RETRY_EXC for its first request and a flush for all that
 * follows, in time; and in its memory is what the victim did before, of the last WRITE perhaps a
 * part.
 */
#include "wire_traffic.h"

#include <infiniband/verbs.h>
#include <spawn.h>

#include "base/util.h"

#define ROCE_PORT 4791
#define RUN_US    6000 /* of traffic, at most, before something becomes of a victim */
#define START_US  25000

/* A victim's fate. */
enum way {
	IS_KILLED,
	IS_KILLED_EARLY,    /* perhaps before it is connected */
	IS_STOPPED,         /* for longer than its peer's timeouts; then it goes on */
	STOPPED_AND_KILLED, /* likewise, and never goes on */
	CHILD_ENDS,         /* it forks, the child ends; it goes on */
	CHILD_EXECS,        /* likewise, by exec */
	CHILD_REMAINS,      /* it is killed, and a child lives on for a while */
	CHILD_CONNECTS,     /* its child opens the device and connects by itself */
	CHILD_WRITES,       /* signal handlers fork children that go on with the memory */
	TWO_POST,           /* in two threads; a third one makes children of all kinds */
	BECOMES_ANOTHER,    /* it execs */
	LIVES,
	WAYS,
	PEERS_DAEMON_DIES = WAYS, /* by a script, as what follows */
	ITS_DAEMON_DIES,
	GOES_ON,    /* whatever becomes of the network for a moment, up to SIGUSR1 */
	LOSES_PATH, /* for good */
	ALL_WAYS
};

static const char *const way_name[ALL_WAYS] = {
	"is killed",
	"is killed early",
	"is stopped",
	"is stopped and killed",
	"has a child that ends",
	"has a child that execs",
	"has a child that remains",
	"has a child that connects",
	"has children that write",
	"posts in two threads",
	"becomes another",
	"lives",
	"has a peer whose daemon dies",
	"has a daemon that dies",
	"goes on",
	"loses its path",
};

/* A victim's words to its survivors. */
static struct shared {
	struct traffic_log log;
	_Atomic uint32_t runs, ends; /* connections by which it has sent; it is to come to an end */
	_Atomic uint64_t gone_ns;    /* it execs, or its child ends */
	_Atomic uint64_t child_ns;   /* it has a child */
	_Atomic uint32_t awaits;     /* bool: it happens when packets leave the next time */
} * shared;

/* The words of the process that makes victims to the peer, and the answer, which has @way alone. */
struct word {
	uint32_t round, way;
	uint64_t posted, done; /* by the victim, up to its end */
	uint64_t dead_ns;      /* 0: it has ended well */
};

static struct sockaddr_un path = { .sun_family = AF_UNIX };
static sigset_t signals;         /* SIGUSR1 */
static struct traffic victim[2]; /* its ends */
static uint32_t round_number, way;

static void begin_round(uint32_t number, uint32_t its_way)
{
	round_number = number;
	way = its_way;
	snprintf(traffic_name, sizeof(traffic_name), "round %u (%s)", number, way_name[way]);
}

/* Whether it happens while packets leave: no other worker's may then. */
static bool happens_at_egress(void)
{
	return round_number / WAYS % 2 &&
	       (way == IS_KILLED || way == IS_STOPPED || way == STOPPED_AND_KILLED ||
	        way == CHILD_ENDS || way == CHILD_EXECS || way == BECOMES_ANOTHER);
}

static uint64_t random_below(uint64_t n)
{
	static uint64_t state;

	if (!state)
		state = traffic_mix(round_number ^ (uint64_t)getpid() << 32);
	state = traffic_mix(state);
	return state % n;
}

/* Of one of the two. */
static bool daemon_dies(void)
{
	return way == PEERS_DAEMON_DIES || way == ITS_DAEMON_DIES;
}

/* A program whose daemon is gone is told so. Otherwise its first request fails by its retries. */
static void expect_reason(const struct traffic *e)
{
	struct pollfd p = { e->context->async_fd, POLLIN, 0 };
	struct ibv_async_event event;

	if (way != (e->is_peer ? PEERS_DAEMON_DIES : ITS_DAEMON_DIES)) {
		if (e->status != IBV_WC_RETRY_EXC_ERR)
			traffic_wrong("%s", ibv_wc_status_str(e->status));
		return;
	}
	if (poll(&p, 1, TRAFFIC_STALL_NS / 1000000) != 1 || ibv_get_async_event(e->context, &event))
		traffic_wrong("nobody tells that the daemon is gone");
	if (event.event_type != IBV_EVENT_DEVICE_FATAL)
		traffic_wrong("%s", ibv_event_type_str(event.event_type));
	ibv_ack_async_event(&event);
}

/* ---- the peer ---- */

static struct {
	unsigned ended, failed;
	uint64_t longest_ns;
} tally[ALL_WAYS];

/* Victims of which no request may fail. */
static bool lives(void)
{
	return way == CHILD_ENDS || way == CHILD_EXECS || way == CHILD_CONNECTS ||
	       way == CHILD_WRITES || way == TWO_POST || way == LIVES;
}

/*
 * 8 times 67 ms. Or 537, in which much may happen to a network; or, if the process lives, 2.1 s: a
 * machine may be so busy that a process has no turn for a second, and its peer cannot tell. In all
 * it is less than what counts as a stall.
 */
static uint8_t timeout(void)
{
	return lives() ? 19 : way == GOES_ON ? 17 : 14;
}

/* Those whose victim dies in any case. */
static bool must_fail(void)
{
	return way == IS_KILLED || way == IS_KILLED_EARLY || way == STOPPED_AND_KILLED ||
	       way == CHILD_REMAINS || way == BECOMES_ANOTHER;
}

static bool may_fail(void)
{
	return must_fail() || way == IS_STOPPED || daemon_dies() || way == LOSES_PATH;
}

static void await_word(int fd, struct word *w)
{
	struct pollfd p = { fd, POLLIN, 0 };

	if (poll(&p, 1, TRAFFIC_STALL_NS / 1000000) != 1 || !traffic_hear(fd, w, sizeof(*w)))
		traffic_wrong("nobody says what has become of the victim");
}

/* A victim's connection. -1: it has died before. */
static int accept_victim(int listener, int maker)
{
	struct pollfd p[2] = { { listener, POLLIN, 0 }, { maker, POLLIN, 0 } };

	if (poll(p, 2, TRAFFIC_STALL_NS / 1000000) < 1)
		traffic_wrong("no victim comes");
	return p[0].revents ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
}

/* With a victim, up to its end, in memory that is its. False: it did not connect. */
static bool serve_victim(struct traffic *e, int listener, int maker)
{
	uint64_t theirs = 0;

	e->other = accept_victim(listener, maker);
	if (e->other < 0)
		return false;
	traffic_open(e);
	e->began_ns = base_now_ns();
	if (traffic_meet(e)) {
		traffic_connect(e);
		traffic_tell(e->other, "", 1);
		traffic_run(e, &theirs, NULL);
	} else {
		e->is_gone = true;
	}
	if (!e->failed_ns && !e->is_gone) {
		traffic_expect(false, theirs, theirs);
		traffic_tell(e->other, &e->posted, sizeof(e->posted));
	}
	close(e->other);
	return true;
}

/* Judges what was seen of a victim that is gone. */
static void judge(const struct traffic *e, const struct word *w)
{
	if (e->failed_ns && !may_fail())
		traffic_wrong("%s", ibv_wc_status_str(e->status));
	if (e->posted && !e->failed_ns && must_fail())
		traffic_wrong("all is well");
	if (e->failed_ns)
		expect_reason(e);
	if (e->failed_ns)
		traffic_expect(false, w->done, w->posted);
	tally[way].ended++;
	tally[way].failed += e->failed_ns != 0;
	if (w->dead_ns && e->failed_ns > w->dead_ns &&
	    e->failed_ns - w->dead_ns > tally[way].longest_ns)
		tally[way].longest_ns = e->failed_ns - w->dead_ns;
}

static void begin_end(struct traffic *e, const struct traffic *device)
{
	*e = *device;
	/* so that a death is noticed soon */
	e->timeout = may_fail() ? 10 : timeout();
	e->retries = may_fail() ? 3 : 7;
	e->sleeps = round_number % 3 == 0;
	e->may_lose_device = daemon_dies();
}

/* The other connection of one that posts in two threads. */
struct second {
	struct traffic end;
	int listener, maker;
};

static void *serve_second(void *arg)
{
	struct second *s = arg;

	s->end.channel = ibv_create_comp_channel(s->end.context);
	traffic_check(s->end.channel, "ibv_create_comp_channel");
	if (!serve_victim(&s->end, s->listener, s->maker))
		traffic_wrong("its second thread does not connect");
	if (s->end.failed_ns)
		traffic_wrong("%s", ibv_wc_status_str(s->end.status));
	traffic_close(&s->end);
	traffic_check(!ibv_destroy_comp_channel(s->end.channel), "ibv_destroy_comp_channel");
	return NULL;
}

static void serve_round(const struct traffic *device, int listener, int maker)
{
	const unsigned n = way == CHILD_CONNECTS ? 2 : 1;
	struct second second = { .listener = listener, .maker = maker };
	pthread_t thread;
	struct word w;
	bool there[2];
	struct traffic e;

	if (way == TWO_POST) {
		begin_end(&second.end, device);
		traffic_check(!pthread_create(&thread, NULL, serve_second, &second), "a thread");
	}
	for (unsigned i = 0; i < n; i++) {
		begin_end(&e, device);
		there[i] = serve_victim(&e, listener, maker);
		if (i + 1 == n || !there[i])
			continue;
		if (e.failed_ns)
			traffic_wrong("%s, before it has a child", ibv_wc_status_str(e.status));
		traffic_close(&e);
	}
	if (way == TWO_POST)
		pthread_join(thread, NULL);
	await_word(maker, &w);
	if (there[n - 1]) {
		judge(&e, &w);
		traffic_close(&e);
	}
	traffic_tell(maker, &w, sizeof(w));
}

static int listen_there(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	traffic_check(fd >= 0 && !bind(fd, (struct sockaddr *)&path, sizeof(path)) &&
	                      !listen(fd, 8),
	              "listen");
	return fd;
}

static void be_peer(void)
{
	struct traffic device = { .is_peer = true };
	int listener = listen_there(), maker;
	struct word w;

	traffic_open_device(&device);
	puts("listens");
	maker = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	traffic_check(maker >= 0, "accept");
	while (traffic_hear(maker, &w, sizeof(w))) {
		begin_round(w.round, w.way);
		traffic_tell(maker, &w, sizeof(w));
		serve_round(&device, listener, maker);
	}
	for (unsigned i = 0; i < ALL_WAYS; i++)
		if (tally[i].ended)
			printf("%s: %u, of which %u failed, after up to %lu ms\n", way_name[i],
			       tally[i].ended, tally[i].failed, tally[i].longest_ns / 1000000);
	puts("all is well");
}

/* ---- a victim ---- */

static int connect_to_peer(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	traffic_check(fd >= 0 && !connect(fd, (struct sockaddr *)&path, sizeof(path)), "connect");
	return fd;
}

static void sleep_us(uint64_t us)
{
	const struct timespec t = { (time_t)(us / 1000000), (long)(us % 1000000) * 1000 };

	nanosleep(&t, NULL);
}

/* A child: nobody else writes to what was registered, and nobody else sees what it writes there. */
static bool memory_is_its_own(void)
{
	for (unsigned i = 0; i < 1 + (way == TWO_POST); i++)
		memset(victim[i].mr->addr, 0xaa, victim[i].mr->length);
	sleep_us(random_below(RUN_US));
	for (unsigned i = 0; i < 1 + (way == TWO_POST); i++)
		for (size_t at = 0; at < victim[i].mr->length; at++)
			if (((uint8_t *)victim[i].mr->addr)[at] != 0xaa)
				return false;
	return true;
}

/* In the one thread that there is, perhaps in the middle of a call of the library's. */
static void fork_later(void)
{
	const struct itimerval once = { .it_value = { 0, 1 + (suseconds_t)random_below(RUN_US) } };

	setitimer(ITIMER_REAL, &once, NULL);
}

static void on_alarm(int unused)
{
	const int error = errno;
	pid_t pid = fork();

	(void)unused;
	if (pid < 0)
		abort();
	if (!pid)
		_exit(!memory_is_its_own());
	fork_later();
	errno = error;
}

static void begin_forks(void)
{
	struct sigaction act = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };

	traffic_check(!sigaction(SIGALRM, &act, NULL), "sigaction");
	fork_later();
}

static void end_forks(void)
{
	int status;

	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	signal(SIGALRM, SIG_IGN);
	while (wait(&status) > 0)
		if (status)
			traffic_wrong("a child ends with status 0x%x", status);
}

/* From the device to the last look at memory. Ends the process if a request fails. */
static void be_connected(struct traffic *e)
{
	uint64_t theirs;
	char there;

	*e = (struct traffic){ .timeout = timeout(),
		               .retries = 7,
		               .sleeps = round_number % 2,
		               .began_ns = base_now_ns(),
		               .may_lose_device = daemon_dies(),
		               .log = e == victim ? &shared->log : NULL };
	traffic_open_device(e);
	traffic_open(e);
	e->other = connect_to_peer();
	traffic_check(traffic_meet(e), "the peer");
	traffic_connect(e);
	traffic_check(traffic_hear(e->other, &there, 1), "the peer");
	atomic_fetch_add(&shared->runs, 1);
	if (way >= WAYS)
		puts("sends");
	if (way == CHILD_WRITES)
		begin_forks();
	traffic_run(e, &theirs, &shared->ends);
	if (way == CHILD_WRITES)
		end_forks();
	if (e->failed_ns && !may_fail())
		traffic_wrong("the victim's request %lu: %s", e->done,
		              ibv_wc_status_str(e->status));
	if (e->failed_ns) {
		expect_reason(e);
		exit(2);
	}
	if (!traffic_tell(e->other, &e->posted, sizeof(e->posted))) {
		traffic_check(may_fail(), "the peer"); /* its requests have failed */
		exit(2);
	}
	while (!traffic_look(e) && !e->failed_ns)
		;
	if (e->failed_ns || !traffic_hear(e->other, &theirs, sizeof(theirs)))
		exit(2);
	while (e->received < traffic_messages_in(theirs))
		traffic_look(e);
	traffic_expect(true, theirs, theirs);
	close(e->other);
}

static void *be_second(void *unused)
{
	(void)unused;
	be_connected(&victim[1]);
	return NULL;
}

/* Makes a child of a way of its own, which ends. */
static void make_child(enum way its_way)
{
	static char *const args[] = { "true", NULL };
	int status;
	pid_t pid;

	if (its_way == TWO_POST) { /* in the parent's memory up to its exec() */
		traffic_check(!posix_spawn(&pid, "/bin/true", NULL, NULL, args, args + 1),
		              "posix_spawn");
	} else {
		pid = fork();
		traffic_check(pid >= 0, "fork");
	}
	if (!pid && its_way == CHILD_EXECS)
		execv("/bin/true", args);
	if (!pid && its_way == CHILD_REMAINS) {
		atomic_store(&shared->child_ns, base_now_ns());
		sleep_us(50000 + random_below(50000));
		atomic_store(&shared->gone_ns, base_now_ns());
	}
	if (!pid)
		_exit(its_way == CHILD_WRITES && !memory_is_its_own());
	if (its_way == CHILD_REMAINS)
		pause(); /* for its own end */
	if (waitpid(pid, &status, 0) == pid && status)
		traffic_wrong("a child ends with status 0x%x", status);
}

static void become_another(void)
{
	atomic_store(&shared->gone_ns, base_now_ns());
	execl("/proc/self/exe", "wire_death", "linger", NULL);
	traffic_check(false, "exec");
}

/* In the middle of the library, before packets of the victim's leave. */
static void meet_fate(const struct msghdr *m)
{
	const struct sockaddr_in *to = m->msg_name;

	if (!shared || !to || m->msg_namelen != sizeof(*to) || to->sin_port != htons(ROCE_PORT) ||
	    !atomic_exchange(&shared->awaits, 0))
		return;
	if (way == BECOMES_ANOTHER)
		become_another();
	if (way == CHILD_ENDS || way == CHILD_EXECS)
		make_child(way);
	else
		kill(getpid(), SIGSTOP);
}

/* In the place of the C library's, for the library. */
__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	meet_fate(m);
	return syscall(SYS_sendmsg, fd, m, flags);
}

__attribute__((visibility("default"))) int sendmmsg(int fd, struct mmsghdr *m, unsigned n,
                                                    int flags)
{
	meet_fate(&m->msg_hdr);
	return (int)syscall(SYS_sendmmsg, fd, m, n, flags);
}

/* Has it happen to whatever thread sends next, and waits for that. */
static void happen_at_egress(void)
{
	atomic_store(&shared->awaits, 1);
	while (atomic_load(&shared->awaits))
		sleep_us(100);
}

/* In a thread, so that it happens to the other ones at any instruction. */
static void *happen(void *unused)
{
	static const enum way kinds[] = { CHILD_ENDS, CHILD_EXECS, CHILD_WRITES, TWO_POST };

	(void)unused;
	while (atomic_load(&shared->runs) < 1 + (way == TWO_POST))
		sleep_us(100);
	for (unsigned i = 0; i < 3; i++) {
		sleep_us(random_below(RUN_US));
		if (happens_at_egress()) {
			happen_at_egress();
			continue;
		}
		if (way == BECOMES_ANOTHER)
			become_another();
		make_child(way == TWO_POST ? kinds[random_below(4)] : way);
	}
	return NULL;
}

/* Before the victim sends: its threads. */
static void prepare(pthread_t *second)
{
	const bool forks =
	        way == CHILD_ENDS || way == CHILD_EXECS || way == CHILD_REMAINS || way == TWO_POST;
	pthread_t thread;

	if (forks || way == CHILD_CONNECTS)
		traffic_check(!ibv_fork_init(), "ibv_fork_init");
	if (forks || way == BECOMES_ANOTHER)
		traffic_check(!pthread_create(&thread, NULL, happen, NULL), "pthread_create");
	if (way == TWO_POST)
		traffic_check(!pthread_create(second, NULL, be_second, NULL), "pthread_create");
}

__attribute__((noreturn)) static void be_victim(void)
{
	pthread_t second;
	int status;
	pid_t pid;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prepare(&second);
	be_connected(&victim[0]);
	if (way == TWO_POST)
		pthread_join(second, NULL);
	if (way == CHILD_CONNECTS) {
		atomic_store(&shared->ends, 0);
		pid = fork();
		if (!pid) {
			be_connected(&victim[0]);
			exit(0);
		}
		traffic_check(waitpid(pid, &status, 0) == pid && !status, "the child");
	}
	exit(0);
}

/* ---- the one that makes them ---- */

/* Until the victim sends, by its @n-th connection. Nonzero: it has ended before, with that status
 * of waitpid(). */
static int await(pid_t pid, unsigned n)
{
	const uint64_t began = base_now_ns();
	int status = 0;

	while (atomic_load(&shared->runs) < n) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status ? status : -1;
		if (base_now_ns() - began > TRAFFIC_STALL_NS)
			traffic_wrong("the victim stalls before it sends");
		sleep_us(50);
	}
	return 0;
}

static void await_time(const _Atomic uint64_t *time)
{
	const uint64_t began = base_now_ns();

	while (!atomic_load(time)) {
		if (base_now_ns() - began > TRAFFIC_STALL_NS)
			traffic_wrong("nothing becomes of the victim");
		sleep_us(100);
	}
}

static void reap(pid_t pid, int expected)
{
	int status;

	traffic_check(waitpid(pid, &status, 0) == pid, "waitpid");
	if (WIFSIGNALED(status) ? WTERMSIG(status) != expected : expected || WEXITSTATUS(status))
		traffic_wrong("the victim ends with status 0x%x", status);
}

/* Lets it go on for a while, and come to an end. False: a request has failed. */
static bool end_well(pid_t pid)
{
	int status;

	if (way == GOES_ON)
		sigwait(&signals, &status);
	else if (way < WAYS)
		sleep_us(random_below(RUN_US));
	if (!daemon_dies() && way != LOSES_PATH)
		atomic_store(&shared->ends, 1);
	traffic_check(waitpid(pid, &status, 0) == pid, "waitpid");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2 && may_fail())
		return false;
	if (status)
		traffic_wrong("the victim ends with status 0x%x", status);
	return true;
}

/* Until it stops itself, as its packets leave. False: it has ended, as a request has failed: its
 * peer has given it up, whose timeouts are shorter than a busy machine may keep it waiting. */
static bool stop_at_egress(pid_t pid)
{
	int status;

	atomic_store(&shared->awaits, 1);
	traffic_check(waitpid(pid, &status, WUNTRACED) == pid, "waitpid");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		return false;
	if (!WIFSTOPPED(status))
		traffic_wrong("the victim ends with status 0x%x before it stops", status);
	return true;
}

static void stop(pid_t pid)
{
	kill(pid, SIGSTOP);
	sleep_us(random_below(8) ? random_below(250000) : 1100000);
}

static unsigned given_up; /* victims, before anything became of them */

/* Something becomes of the victim. */
static void bring_about(pid_t pid, struct word *w)
{
	int status = way == IS_KILLED_EARLY ? 0 : await(pid, way == TWO_POST ? 2 : 1);

	if (status)
		traffic_wrong("the victim ends with status 0x%x before it sends", status);
	sleep_us(random_below(way == IS_KILLED_EARLY ? START_US : RUN_US));
	if (happens_at_egress() && way <= STOPPED_AND_KILLED && !stop_at_egress(pid)) {
		w->dead_ns = base_now_ns();
		given_up++;
		return;
	}
	if (way == IS_STOPPED || way == STOPPED_AND_KILLED)
		stop(pid);
	if (way == IS_STOPPED)
		kill(pid, SIGCONT);
	if (way == CHILD_CONNECTS) {
		atomic_store(&shared->ends, 1);
		status = await(pid, 2);
		if (status)
			traffic_wrong("the victim ends with status 0x%x before its child sends",
			              status);
	}
	if (must_fail()) {
		if (way == BECOMES_ANOTHER) {
			await_time(&shared->gone_ns);
			sleep_us(300000);
		}
		if (way == CHILD_REMAINS)
			await_time(&shared->child_ns);
		w->dead_ns = base_now_ns();
		kill(pid, SIGKILL);
		reap(pid, SIGKILL);
		if (way == CHILD_REMAINS)
			await_time(&shared->gone_ns);
		if (way == CHILD_REMAINS || way == BECOMES_ANOTHER)
			w->dead_ns = atomic_load(&shared->gone_ns);
	} else if (!end_well(pid)) {
		w->dead_ns = base_now_ns();
	} else if (daemon_dies() || way == LOSES_PATH) {
		traffic_wrong("the victim has noticed nothing");
	}
}

static void make_victim(int peer)
{
	struct word w = { .round = round_number, .way = way };
	pid_t pid;

	traffic_check(traffic_tell(peer, &w, sizeof(w)) && traffic_hear(peer, &w, sizeof(w)),
	              "the peer");
	memset((void *)shared, 0, sizeof(*shared));
	pid = fork();
	traffic_check(pid >= 0, "fork");
	if (!pid)
		be_victim();
	bring_about(pid, &w);
	w.posted = atomic_load(&shared->log.posted);
	w.done = atomic_load(&shared->log.done);
	traffic_check(traffic_tell(peer, &w, sizeof(w)) && traffic_hear(peer, &w, sizeof(w)),
	              "the peer");
}

static void make_victims(unsigned rounds, unsigned seed, unsigned only)
{
	int peer = connect_to_peer();

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	              0);
	traffic_check(shared != MAP_FAILED, "mmap");
	for (unsigned i = 0; i < rounds; i++) {
		begin_round(seed + i, only < ALL_WAYS ? only : i + 1 == rounds ? LIVES : i % WAYS);
		make_victim(peer);
	}
	if (given_up > rounds / 20)
		traffic_wrong("%u victims of %u ended before anything became of them", given_up,
		              rounds);
	puts("all is well");
}

static unsigned number(const char *argument, const char *key, unsigned otherwise)
{
	size_t length = strlen(key);

	return strncmp(argument, key, length) ? otherwise
	                                      : (unsigned)strtoul(argument + length, NULL, 0);
}

int main(int argc, char **argv)
{
	unsigned rounds = 1, seed = 1, only = ALL_WAYS;

	setlinebuf(stdout);
	if (argc > 1 && !strcmp(argv[1], "linger"))
		return pause();
	for (int i = 2; i < argc; i++) {
		rounds = number(argv[i], "rounds=", rounds);
		seed = number(argv[i], "seed=", seed);
		only = number(argv[i], "only=", only);
		if (!strncmp(argv[i], "path=", 5))
			strncpy(path.sun_path, argv[i] + 5, sizeof(path.sun_path) - 1);
	}
	if (argc > 1 && !strcmp(argv[1], "peer"))
		be_peer();
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	if (argc > 1 && !strcmp(argv[1], "victims"))
		make_victims(rounds, seed, only);
	return 0;
}
