/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Measures what processor time large messages take from one host to another, by an RC connection on
 * RoCEv2, by TCP, and by UDP sockets with segmentation offload, in turns: a process on either host,
 * in the network namespaces a and b, which bench/wire.sh makes. A side that has to wait sleeps.
 * UDP's datagrams are as large as RC's packets; once alone, and once with what RoCEv2 wants
 * besides: the CRC of each, and a copy at either end, between the memory of the messages and the
 * datagrams. The time is that of all processes of the PID namespace, the daemons included. Prints a
 * line of JSON a sample; bench/run.py calls it and judges.
 *
 * goodput BYTES [TURNS]
 */
#include "common/rc.h"

#include <ctype.h>
#include <dirent.h>
#include <isa-l/crc.h>
#include <netinet/udp.h>

#include <infiniband/verbs.h>

#include "common/bare.h"
#include "common/pair.h"
#include "common/util.h"

#define UNDER_WAY 16 /* messages */
#define RECEIVES  64
#define TOTAL     (128u << 20)
#define PORT      17900

/* of UDP's datagrams */
#define HEADERS   12 /* a BTH */
#define TRAILER   4  /* an ICRC */
#define MOST      62 /* of them leave in one piece */
#define PIECES    4  /* under way */
#define WHOLE     65535
#define MTU_BYTES 4096

struct told {
	uint32_t qpn[2], rkey[2];
	uint64_t memory[2];
};

struct side {
	struct bench_pair *pair;
	struct told *told;
	int number, tcp, udp;
	uint32_t mtu; /* bytes of a packet's payload */
	int pipe[2];  /* by which side 0 wakes side 1 */
	uint32_t bytes;
	unsigned n; /* messages */
	struct ibv_context *context;
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	char *memory;
};

static const char *const address[2] = { "192.0.2.1", "192.0.2.2" };

/* ---- processor time ---- */

static double time_of_thread(const char *path)
{
	unsigned long long ns = 0;
	FILE *f = fopen(path, "re");

	if (f && fscanf(f, "%llu", &ns) != 1) /* else it has just ended */
		ns = 0;
	if (f)
		fclose(f);
	return (double)ns;
}

static double time_of_process(const char *pid)
{
	char path[PATH_MAX];
	struct dirent *d;
	double ns = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%.20s/task", pid);
	tasks = opendir(path);
	while (tasks && (d = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/%.20s/task/%.20s/schedstat", pid, d->d_name);
		if (isdigit(d->d_name[0]))
			ns += time_of_thread(path);
	}
	if (tasks)
		closedir(tasks);
	return ns;
}

/* That all processes have had, in ns. */
static double time_of_all(void)
{
	DIR *all = opendir("/proc");
	struct dirent *d;
	double ns = 0;

	bench_must(all, "/proc");
	while ((d = readdir(all)))
		if (isdigit(d->d_name[0]))
			ns += time_of_process(d->d_name);
	closedir(all);
	return ns;
}

/* ---- the connection ---- */

static void open_rc(struct side *s)
{
	const int access =
	        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
		                         .cap = { UNDER_WAY, RECEIVES, 1, 1, 0 } };
	struct ibv_port_attr port;
	struct ibv_pd *pd;

	s->context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	pd = s->context ? ibv_alloc_pd(s->context) : NULL;
	s->mr = pd ? ibv_reg_mr(pd, s->memory, (size_t)s->bytes * UNDER_WAY, access) : NULL;
	bench_must((s->channel = s->mr ? ibv_create_comp_channel(s->context) : NULL),
	           "opening the device");
	s->cq = init.send_cq = init.recv_cq =
	        ibv_create_cq(s->context, UNDER_WAY + RECEIVES, NULL, s->channel, 0);
	bench_must((s->qp = s->cq ? ibv_create_qp(pd, &init) : NULL), "ibv_create_qp");
	bench_must(!ibv_query_port(s->context, 1, &port), "ibv_query_port");
	s->mtu = 128u << port.active_mtu;
	s->told->qpn[s->number] = s->qp->qp_num;
	s->told->rkey[s->number] = s->mr->rkey;
	s->told->memory[s->number] = (uintptr_t)s->memory;
}

static void connect_rc(struct side *s)
{
	struct ibv_ah_attr path = { .port_num = 1, .is_global = 1 };

	path.grh = (struct ibv_global_route){ .dgid = bench_mapped_gid(address[!s->number]),
		                              .sgid_index = bench_find_gid(s->context,
		                                                           address[s->number]),
		                              .hop_limit = 64 };
	bench_rc_bring_up(s->qp, s->told->qpn[!s->number], &path);
	/* a sleeper is late with its receives now and then: 10 microseconds, not 655 ms */
	errno = ibv_modify_qp(s->qp, &(struct ibv_qp_attr){ .min_rnr_timer = 1 },
	                      IBV_QP_MIN_RNR_TIMER);
	bench_must(!errno, "ibv_modify_qp");
}

static void post(struct side *s, enum ibv_wr_opcode opcode, unsigned i)
{
	const uint64_t off = (uint64_t)(i % UNDER_WAY) * s->bytes;
	struct ibv_sge sge = { (uintptr_t)s->memory + off, s->bytes, s->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED
	};
	struct ibv_send_wr *bad;

	wr.wr.rdma.remote_addr = s->told->memory[!s->number] + off;
	wr.wr.rdma.rkey = s->told->rkey[!s->number];
	errno = ibv_post_send(s->qp, &wr, &bad);
	bench_must(!errno, "ibv_post_send");
}

static void post_receive(struct side *s, unsigned i)
{
	struct ibv_sge sge = { (uintptr_t)s->memory + (uint64_t)(i % UNDER_WAY) * s->bytes,
		               s->bytes, s->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	errno = ibv_post_recv(s->qp, &wr, &bad);
	bench_must(!errno, "ibv_post_recv");
}

/* Sleeps until there are completions. How many. */
static unsigned complete(struct side *s)
{
	struct ibv_cq *cq;
	void *context;
	int n = bench_rc_poll(s->cq, UNDER_WAY);

	if (n)
		return (unsigned)n;
	errno = ibv_req_notify_cq(s->cq, 0);
	bench_must(!errno, "ibv_req_notify_cq");
	n = bench_rc_poll(s->cq, UNDER_WAY);
	if (n)
		return (unsigned)n;
	bench_must(!ibv_get_cq_event(s->channel, &cq, &context), "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	return 0;
}

static void request_all(struct side *s, enum ibv_wr_opcode opcode)
{
	unsigned posted = 0, done = 0;

	while (done < s->n) {
		while (posted < s->n && posted - done < UNDER_WAY)
			post(s, opcode, posted++);
		done += complete(s);
	}
}

/* ---- what is measured: side 0 has all @n messages done; side 1 helps, and sleeps ---- */

static void rc_write(struct side *s)
{
	if (!s->number)
		request_all(s, IBV_WR_RDMA_WRITE);
}

static void rc_read(struct side *s)
{
	if (!s->number)
		request_all(s, IBV_WR_RDMA_READ);
}

static void rc_send(struct side *s)
{
	unsigned done = 0;

	if (!s->number)
		request_all(s, IBV_WR_SEND);
	while (s->number && done < s->n) {
		unsigned n = complete(s);

		for (unsigned i = 0; i < n; i++)
			post_receive(s, done++);
	}
}

static void tcp(struct side *s)
{
	for (uint64_t left = (uint64_t)s->n * s->bytes; left;) {
		size_t part = left < s->bytes ? left : s->bytes;
		ssize_t n = s->number ? recv(s->tcp, s->memory, part, 0)
		                      : send(s->tcp, s->memory, part, 0);

		bench_must(n > 0, "TCP");
		left -= (size_t)n;
	}
}

static void connect_tcp(struct side *s)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	inet_pton(AF_INET, address[1], &at.sin_addr);
	if (s->number && (bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 1)))
		bench_fail("listen");
	bench_pair_meet(s->pair, s->number);
	if (!s->number && connect(fd, (struct sockaddr *)&at, sizeof(at)))
		bench_fail("connect");
	s->tcp = s->number ? accept(fd, NULL, NULL) : fd;
	bench_must(s->tcp >= 0, "accept");
}

/* ---- UDP ---- */

static void connect_udp(struct side *s)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons(PORT) }, peer = own;
	const int joins = s->number, room = 8 << 20; /* what comes, but not what side 0 is told */

	inet_pton(AF_INET, address[s->number], &own.sin_addr);
	inet_pton(AF_INET, address[!s->number], &peer.sin_addr);
	s->udp = socket(AF_INET, SOCK_DGRAM, 0);
	if (setsockopt(s->udp, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
	    setsockopt(s->udp, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) ||
	    setsockopt(s->udp, IPPROTO_UDP, UDP_GRO, &joins, sizeof(joins)) ||
	    bind(s->udp, (struct sockaddr *)&own, sizeof(own)) ||
	    connect(s->udp, (struct sockaddr *)&peer, sizeof(peer)))
		bench_fail("UDP");
}

/* Bytes of a datagram. */
static uint32_t each_of(const struct side *s)
{
	return HEADERS + s->mtu + TRAILER;
}

/* So many datagrams leave in one piece. */
static uint32_t most_of(const struct side *s)
{
	const uint32_t fit = (WHOLE - 28) / each_of(s); /* behind the headers of IP and UDP */

	return fit < MOST ? fit : MOST;
}

/* Sends @n datagrams in one piece, from @at on. */
static void send_piece(struct side *s, char *at, unsigned n, bool all)
{
	static char datagram[MOST][HEADERS + MTU_BYTES + TRAILER];
	const uint16_t each = (uint16_t)each_of(s);
	char control[CMSG_SPACE(sizeof(each))] = { 0 };
	struct iovec iov[3 * MOST];
	struct msghdr m = { .msg_iov = iov,
		            .msg_iovlen = 3 * n,
		            .msg_control = control,
		            .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	for (unsigned i = 0; i < n; i++, at += s->mtu) {
		char *headers = datagram[i], *payload = headers + HEADERS,
		     *trailer = payload + s->mtu;
		uint32_t crc = 0;

		if (all) {
			memcpy(payload, at, s->mtu);
			crc = crc32_gzip_refl(crc, (unsigned char *)headers, HEADERS + s->mtu);
			memcpy(trailer, &crc, sizeof(crc));
		}
		iov[3 * i] = (struct iovec){ headers, HEADERS };
		iov[3 * i + 1] = (struct iovec){ all ? payload : at, s->mtu };
		iov[3 * i + 2] = (struct iovec){ trailer, TRAILER };
	}
	*c = (struct cmsghdr){ CMSG_LEN(sizeof(each)), IPPROTO_UDP, UDP_SEGMENT };
	memcpy(CMSG_DATA(c), &each, sizeof(each));
	bench_must(sendmsg(s->udp, &m, 0) >= 0, "sendmsg");
}

/* Sleeps until something has come. Its bytes. */
static size_t receive_piece(const struct side *s, char *to, size_t room)
{
	const ssize_t n = recv(s->udp, to, room, 0);

	bench_must(n >= 0, "recv");
	return (size_t)n;
}

/* Takes a piece in, whose messages begin at @at. How many datagrams it was. */
static unsigned take_piece(struct side *s, char *at, bool all)
{
	static char in[WHOLE];
	const uint32_t each = each_of(s);
	const unsigned n = (unsigned)receive_piece(s, in, sizeof(in)) / each;

	for (unsigned i = 0; all && i < n; i++, at += s->mtu) {
		const char *headers = in + (size_t)i * each;
		uint32_t crc = crc32_gzip_refl(0, (const unsigned char *)headers, HEADERS + s->mtu);

		if (memcmp(&crc, headers + HEADERS + s->mtu, sizeof(crc)) != 0)
			errx(EXIT_FAILURE, "a datagram was changed");
		memcpy(at, headers + HEADERS, s->mtu);
	}
	return n;
}

/* @all: with a CRC, and copies. The receiver says how many have come, behind each piece. */
static void udp(struct side *s, bool all)
{
	const uint32_t total = TOTAL / s->mtu, most = most_of(s);
	const uint32_t around = s->bytes * UNDER_WAY / s->mtu; /* of the memory for messages */
	uint32_t sent = 0, come = 0, place = 0;

	while (come < total) {
		uint32_t n = total - sent < most ? total - sent : most;

		if (place + most > around)
			place = 0;
		if (s->number) {
			n = take_piece(s, s->memory + (size_t)place * s->mtu, all);
			come += n;
			bench_must(send(s->udp, &come, sizeof(come), 0) >= 0, "send");
		} else if (n && sent + n - come <= PIECES * most) {
			send_piece(s, s->memory + (size_t)place * s->mtu, n, all);
			sent += n;
		} else {
			receive_piece(s, (char *)&come, sizeof(come));
			continue;
		}
		place += n;
	}
}

static void udp_alone(struct side *s)
{
	udp(s, false);
}

static void udp_with_crc(struct side *s)
{
	udp(s, true);
}

static const struct {
	const char *name;
	void (*run)(struct side *s);
} operations[] = {
	{ "write", rc_write }, { "read", rc_read },  { "send", rc_send },
	{ "tcp", tcp },        { "udp", udp_alone }, { "udp-crc", udp_with_crc },
};

/* ---- measuring ---- */

/* Side 1 sleeps until side 0 says that all is done: a side that polls for that would take a
 * processor.
 */
static void sleep_till_done(struct side *s)
{
	char byte = 0;

	if (s->number ? read(s->pipe[0], &byte, 1) != 1 : write(s->pipe[1], &byte, 1) != 1)
		bench_fail("pipe");
}

static void measure(struct side *s, unsigned turn, unsigned what)
{
	double cpu, total = (double)s->n * s->bytes;
	uint64_t t;

	bench_pair_meet(s->pair, s->number);
	cpu = s->number ? 0 : time_of_all();
	t = bench_now();
	operations[what].run(s);
	sleep_till_done(s);
	if (s->number || !turn)
		return;
	t = bench_now() - t;
	printf("{\"measure\": \"goodput\", \"what\": \"%s\", \"bytes\": %u, \"turn\": %u, "
	       "\"ns\": %.4f, \"cpu\": %.4f}\n",
	       operations[what].name, s->bytes, turn, (double)t / total,
	       (time_of_all() - cpu) / total);
}

struct plan {
	unsigned bytes, turns;
	int pipe[2];
	struct told *told;
};

static void run(struct bench_pair *pair, int number, void *arg)
{
	const struct plan *plan = arg;
	struct side s = { .pair = pair,
		          .told = plan->told,
		          .number = number,
		          .pipe = { plan->pipe[0], plan->pipe[1] },
		          .bytes = plan->bytes,
		          .n = TOTAL / plan->bytes };

	bench_enter(number ? "b" : "a");
	s.memory = bench_alloc((size_t)s.bytes * UNDER_WAY, 0);
	open_rc(&s);
	bench_pair_meet(pair, number);
	connect_rc(&s);
	for (unsigned i = 0; number && i < RECEIVES; i++)
		post_receive(&s, i);
	connect_tcp(&s);
	connect_udp(&s);
	/* turn 0 is not printed */
	for (unsigned turn = 0; turn <= plan->turns; turn++)
		for (unsigned i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
			measure(&s, turn, i);
	bench_pair_meet(pair, number);
}

int main(int argc, char **argv)
{
	struct plan plan = { .bytes = argc > 1 ? (unsigned)atoi(argv[1]) : 0,
		             .turns = argc > 2 ? (unsigned)atoi(argv[2]) : 3 };

	if (!plan.bytes || plan.bytes > TOTAL || pipe(plan.pipe))
		errx(2, "usage: goodput BYTES [TURNS]");
	plan.told = bench_alloc(sizeof(*plan.told), 1);
	setvbuf(stdout, NULL, _IOLBF, 0);
	return bench_pair_run(bench_pair_new(), run, &plan);
}
