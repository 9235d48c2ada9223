/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A call that ends an object has closed its descriptors, mappings and threads when it returns: each
 * kind of object of verbs, rdma_cm and rsockets is made and ended many times, also by several
 * threads, and when peers die. The rest, which a process keeps from its first use on, is as large
 * as docs/limits.md says.
 */
#include "common.h"
#include "attributes.h"

#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#include <sys/shm.h>

#define PORT    7900
#define BYTES   65536
#define WARM    4  /* rounds until a process has all that it keeps */
#define ROUNDS  24 /* that leave nothing */
#define THREADS 3
#define DEATHS  16
#define NAMES   256
#define DEVICES 4
#define KEPT    (2 * DEVICES + 8) /* docs/limits.md: of rdma_cm's devices, and of the process */

#define ALL                                                                          \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* ---- what a process has ---- */

struct holdings {
	unsigned n_descriptors, n_threads;
	unsigned n_mappings, n_shared; /* with other processes */
	char name[NAMES][64];          /* of descriptors */
};

static void name_descriptor(const char *number, char *name, size_t room)
{
	char path[300];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%s", number);
	n = readlink(path, name, room - 1);
	name[n < 0 ? 0 : n] = '\0';
}

static unsigned count_entries(const char *path, char name[][64])
{
	DIR *d = opendir(path);
	const struct dirent *e;
	unsigned n = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.' || atoi(e->d_name) == dirfd(d))
			continue;
		if (name && n < NAMES)
			name_descriptor(e->d_name, name[n], sizeof(name[n]));
		n++;
	}
	closedir(d);
	return n;
}

/* @print: those that are shared. */
static void count_mappings(struct holdings *h, bool print)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512], mode[8];

	assert_non_null(f);
	for (; fgets(line, sizeof(line), f); h->n_mappings++) {
		if (sscanf(line, "%*s %7s", mode) != 1 || mode[3] != 's')
			continue;
		h->n_shared++;
		if (print)
			print_error("  %s", line);
	}
	fclose(f);
}

static struct holdings look(void)
{
	struct holdings h;

	memset(&h, 0, sizeof(h));
	h.n_descriptors = count_entries("/proc/self/fd", h.name);
	h.n_threads = count_entries("/proc/self/task", NULL);
	count_mappings(&h, false);
	return h;
}

static void print_descriptors(const struct holdings *h)
{
	for (unsigned i = 0; i < h->n_descriptors && i < NAMES; i++)
		print_error("  %s\n", h->name[i]);
}

/* After that many @rounds, each of which may not leave one; malloc(3) may map some memory, too. */
static void expect_no_more(const char *what, const struct holdings *before, unsigned rounds)
{
	struct holdings now = look();

	if (now.n_descriptors > before->n_descriptors) {
		print_descriptors(&now);
		fail_msg("%s: %u descriptors, %u before", what, now.n_descriptors,
		         before->n_descriptors);
	}
	if (now.n_threads > before->n_threads)
		fail_msg("%s: %u threads, %u before", what, now.n_threads, before->n_threads);
	if (now.n_shared > before->n_shared || now.n_mappings > before->n_mappings + rounds / 2) {
		count_mappings(&now, true);
		fail_msg("%s: mappings as above, %u before, %u of them shared", what,
		         before->n_mappings, before->n_shared);
	}
}

/* ---- verbs ---- */

struct device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

static struct device shared; /* of cases that need one */
static struct holdings at_first;

static struct ibv_context *open_first(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	assert_non_null(list);
	assert_non_null(context = ibv_open_device(list[0]));
	ibv_free_device_list(list);
	return context;
}

static void contexts(void)
{
	assert_int_equal(ibv_close_device(open_first()), 0);
}

static void imported_contexts(void)
{
	struct ibv_context *context = open_first(), *imported;
	struct ibv_pd *pd = ibv_alloc_pd(context), *same;

	assert_non_null(imported = ibv_import_device(dup(context->cmd_fd)));
	assert_non_null(same = ibv_import_pd(imported, pd->handle));
	ibv_unimport_pd(same);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(imported), 0);
	assert_int_equal(ibv_close_device(context), 0);
}

static void domains(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(shared.context);
	struct ibv_td_init_attr td_attr = { 0 };
	struct ibv_td *td = ibv_alloc_td(shared.context, &td_attr);
	struct ibv_parent_domain_init_attr attr = { .pd = pd, .td = td };
	struct ibv_pd *parent = ibv_alloc_parent_domain(shared.context, &attr);

	assert_true(pd && td && parent);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void register_and_end(void *at, size_t bytes, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(shared.pd, at, bytes, access);

	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void regions(void)
{
	char *at = malloc(BYTES);
	struct ibv_mr *mr = ibv_reg_mr(shared.pd, at, BYTES, ALL);

	assert_non_null(mr);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, at, BYTES / 2, 0),
	                 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_non_null(mr = ibv_alloc_null_mr(shared.pd));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	register_and_end(at, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	free(at);
}

static void regions_of_mapped_memory(void)
{
	char *at =
	        mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	register_and_end(at, 2 * BYTES, ALL);
	register_and_end(at, BYTES, ALL);
	assert_int_equal(munmap(at, 2 * BYTES), 0);
}

static void regions_of_segments(void)
{
	int id = shmget(IPC_PRIVATE, BYTES, IPC_CREAT | 0600);
	char *at = shmat(id, NULL, 0);

	assert_true(at != (char *)-1);
	register_and_end(at, BYTES, ALL);
	assert_int_equal(shmdt(at), 0);
	assert_int_equal(shmctl(id, IPC_RMID, NULL), 0);
}

static void regions_of_files(void)
{
	int fd = memfd_create("a file of the program's", MFD_CLOEXEC);
	char *at;

	assert_int_equal(ftruncate(fd, BYTES), 0);
	at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(at != MAP_FAILED);
	register_and_end(at, BYTES, ALL);
	assert_int_equal(munmap(at, BYTES), 0);
	close(fd);
}

static void device_memory(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct ibv_dm *dm = ibv_alloc_dm(shared.context, &attr);
	struct ibv_mr *mr;

	assert_non_null(dm);
	assert_non_null(mr = ibv_reg_dm_mr(shared.pd, dm, 0, 4096,
	                                   IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

static void windows(void)
{
	struct ibv_mw *one = ibv_alloc_mw(shared.pd, IBV_MW_TYPE_1);
	struct ibv_mw *two = ibv_alloc_mw(shared.pd, IBV_MW_TYPE_2);

	assert_true(one && two);
	assert_int_equal(ibv_dealloc_mw(one), 0);
	assert_int_equal(ibv_dealloc_mw(two), 0);
}

static void completion_queues(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(shared.context);
	struct ibv_cq_init_attr_ex attr = { .cqe = 64, .channel = channel };
	struct ibv_cq *cq = ibv_create_cq(shared.context, 64, NULL, channel, 0);
	struct ibv_cq_ex *extended = ibv_create_cq_ex(shared.context, &attr);

	assert_true(channel && cq && extended);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	assert_int_equal(ibv_resize_cq(cq, 1024), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(extended)), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

static void shared_receive_queues(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 64, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(shared.pd, &attr);

	assert_non_null(srq);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void queue_pairs(void)
{
	static const enum ibv_qp_type type[] = { IBV_QPT_UD, IBV_QPT_RC, IBV_QPT_UC };

	for (unsigned i = 0; i < 3; i++) {
		struct ibv_qp_init_attr attr = init_of(type[i], shared.cq, 16, 16);
		struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
		struct ibv_qp *qp = ibv_create_qp(shared.pd, &attr);

		assert_non_null(qp);
		assert_int_equal(ibv_modify_qp(qp, &init,
		                               IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		                                       (i ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY)),
		                 0);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
}

static struct ibv_qp *xrc_qp(enum ibv_qp_type type, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = { .qp_type = type,
		                            .comp_mask = type == IBV_QPT_XRC_RECV
		                                                 ? IBV_QP_INIT_ATTR_XRCD
		                                                 : IBV_QP_INIT_ATTR_PD,
		                            .xrcd = xrcd,
		                            .pd = shared.pd };
	struct ibv_qp *qp;

	if (type == IBV_QPT_XRC_SEND) {
		attr.send_cq = shared.cq;
		attr.cap = (struct ibv_qp_cap){ .max_send_wr = 16, .max_send_sge = 1 };
	}
	assert_non_null(qp = ibv_create_qp_ex(shared.context, &attr));
	return qp;
}

static void xrc_domains(void)
{
	struct ibv_xrcd_init_attr attr = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
		                                        IBV_XRCD_INIT_ATTR_OFLAGS,
		                           .fd = -1,
		                           .oflags = O_CREAT };
	struct ibv_xrcd *xrcd = ibv_open_xrcd(shared.context, &attr);
	struct ibv_srq_init_attr_ex srq_attr = { .attr = { .max_wr = 64, .max_sge = 1 },
		                                 .comp_mask = IBV_SRQ_INIT_ATTR_TYPE |
		                                              IBV_SRQ_INIT_ATTR_XRCD |
		                                              IBV_SRQ_INIT_ATTR_CQ |
		                                              IBV_SRQ_INIT_ATTR_PD,
		                                 .srq_type = IBV_SRQT_XRC,
		                                 .xrcd = xrcd,
		                                 .cq = shared.cq,
		                                 .pd = shared.pd };
	struct ibv_srq *srq = ibv_create_srq_ex(shared.context, &srq_attr);
	struct ibv_qp *target = xrc_qp(IBV_QPT_XRC_RECV, xrcd),
	              *from = xrc_qp(IBV_QPT_XRC_SEND, xrcd);

	assert_non_null(srq);
	assert_int_equal(ibv_destroy_qp(from), 0);
	assert_int_equal(ibv_destroy_qp(target), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void address_handles(void)
{
	struct ibv_ah_attr attr = { .dlid = 1, .port_num = 1 };
	struct ibv_ah *ah = ibv_create_ah(shared.pd, &attr);

	assert_non_null(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* ---- rdma_cm ---- */

static void channels(void)
{
	struct node CLOSED n = node_open(RDMA_PS_TCP);
}

static void synchronous_identifiers(void)
{
	union address a = host_address(2, 0);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, &a.sa, 1000), 0);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	assert_int_equal(rdma_destroy_id(id), 0);
}

static void identifiers_with_queue_pairs(void)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);

	node_bind(&n, 1, 0);
	node_qp(&n, 0);
}

static void migrated_identifiers(void)
{
	struct node CLOSED n = node_open(RDMA_PS_TCP);
	struct rdma_event_channel *to = rdma_create_event_channel();

	assert_int_equal(rdma_migrate_id(n.id, to), 0);
	rdma_destroy_event_channel(n.channel);
	n.channel = to;
}

static void listeners(void)
{
	struct node CLOSED n = node_open(RDMA_PS_TCP);

	node_bind(&n, 1, 0);
	assert_int_equal(rdma_listen(n.id, 8), 0);
}

static void groups(void)
{
	struct node CLOSED n = node_open(RDMA_PS_UDP);

	node_bind(&n, 1, 0);
	node_qp(&n, 0);
	join(&n, "239.7.7.7");
}

static void lists_of_devices(void)
{
	struct ibv_context **list = rdma_get_devices(NULL);

	assert_non_null(list);
	rdma_free_devices(list);
}

/* ---- connections ---- */

/* The end of a connection, with memory that its peer reads and writes. */
struct end {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char *memory;
};

struct place {
	uint64_t addr;
	uint32_t rkey;
};

static struct ibv_qp_init_attr end_attr(void)
{
	return (struct ibv_qp_init_attr){ .cap = { 16, 16, 1, 1, 64 },
		                          .qp_type = IBV_QPT_RC,
		                          .sq_sig_all = 1 };
}

static void add_memory(struct end *e)
{
	e->memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(e->memory != MAP_FAILED);
	assert_non_null(e->mr = ibv_reg_mr(e->id->pd, e->memory, BYTES, ALL));
	assert_int_equal(rdma_post_recv(e->id, NULL, e->memory, sizeof(struct place), e->mr), 0);
}

static struct rdma_addrinfo *resolved(unsigned host, uint16_t port, int flags)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP, .ai_flags = flags }, *found;
	char node[32], service[16];

	snprintf(node, sizeof(node), "10.0.0.%u", host);
	snprintf(service, sizeof(service), "%u", port);
	assert_int_equal(rdma_getaddrinfo(node, service, &hints, &found), 0);
	return found;
}

static struct rdma_cm_id *listen_at(unsigned host, uint16_t port)
{
	struct rdma_addrinfo *at = resolved(host, port, RAI_PASSIVE);
	struct ibv_qp_init_attr attr = end_attr();
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_ep(&id, at, NULL, &attr), 0);
	assert_int_equal(rdma_listen(id, 8), 0);
	rdma_freeaddrinfo(at);
	return id;
}

/* Both place their memory's place in the other's. False: the peer has gone. */
static bool exchange(struct end *e, struct place *theirs)
{
	struct place mine = { .addr = (uintptr_t)e->memory, .rkey = e->mr->rkey };
	struct ibv_wc wc;

	if (rdma_post_send(e->id, NULL, &mine, sizeof(mine), NULL, IBV_SEND_INLINE) ||
	    rdma_get_send_comp(e->id, &wc) != 1 || wc.status != IBV_WC_SUCCESS ||
	    rdma_get_recv_comp(e->id, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
		return false;
	memcpy(theirs, e->memory, sizeof(*theirs));
	return !rdma_post_recv(e->id, NULL, e->memory, sizeof(*theirs), e->mr);
}

/* Writes to the other's memory and reads it. */
static bool use(struct end *e, const struct place *theirs)
{
	struct ibv_wc wc;
	const size_t bytes = BYTES / 2; /* beyond what exchange() uses */

	return !rdma_post_write(e->id, NULL, e->memory + bytes, bytes, e->mr, 0,
	                        theirs->addr + bytes, theirs->rkey) &&
	       rdma_get_send_comp(e->id, &wc) == 1 && wc.status == IBV_WC_SUCCESS &&
	       !rdma_post_read(e->id, NULL, e->memory + bytes, bytes, e->mr, 0,
	                       theirs->addr + bytes, theirs->rkey) &&
	       rdma_get_send_comp(e->id, &wc) == 1 && wc.status == IBV_WC_SUCCESS;
}

/* Until both have used the other's memory. */
static bool meet(struct end *e)
{
	struct place theirs;

	return exchange(e, &theirs) && use(e, &theirs) && exchange(e, &theirs);
}

static void close_end(struct end *e)
{
	rdma_disconnect(e->id);
	assert_int_equal(rdma_dereg_mr(e->mr), 0);
	rdma_destroy_ep(e->id);
	assert_int_equal(munmap(e->memory, BYTES), 0);
}

struct passive {
	struct rdma_cm_id *listener;
	bool has_peer;
};

static void *serve_one(void *arg)
{
	struct passive *p = arg;
	struct end e = { 0 };

	assert_int_equal(rdma_get_request(p->listener, &e.id), 0);
	add_memory(&e);
	assert_int_equal(rdma_accept(e.id, NULL), 0);
	p->has_peer = meet(&e);
	close_end(&e);
	return NULL;
}

static struct end connected_end(uint16_t port)
{
	struct rdma_addrinfo *to = resolved(2, port, 0);
	struct ibv_qp_init_attr attr = end_attr();
	struct end e = { 0 };

	assert_int_equal(rdma_create_ep(&e.id, to, NULL, &attr), 0);
	rdma_freeaddrinfo(to);
	add_memory(&e);
	assert_int_equal(rdma_connect(e.id, NULL), 0);
	return e;
}

static uint16_t port_of(struct rdma_cm_id *id)
{
	return ntohs(rdma_get_src_port(id));
}

static void connections(void)
{
	struct passive p = { .listener = listen_at(2, 0) };
	pthread_t thread;
	struct end e;

	assert_int_equal(pthread_create(&thread, NULL, serve_one, &p), 0);
	e = connected_end(port_of(p.listener));
	assert_true(meet(&e));
	close_end(&e);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(p.has_peer);
	rdma_destroy_ep(p.listener);
}

/* The listener goes with a request that nobody has accepted, the client with the connection. */
static void connections_that_are_never_made(void)
{
	struct node CLOSED listener = node_open(RDMA_PS_TCP), client = node_open(RDMA_PS_TCP);
	static _Atomic uint32_t
	        number; /* one that is in use would be taken for an older connection */
	struct rdma_conn_param param = { .qp_num = ++number };
	struct rdma_cm_event *e;
	struct rdma_cm_id *asked;

	node_bind(&listener, 2, 0);
	assert_int_equal(rdma_listen(listener.id, 8), 0);
	node_resolve(&client, 2, port_of(listener.id));
	assert_int_equal(rdma_connect(client.id, &param), 0);
	e = next_event(&listener);
	assert_event(e, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	asked = e->id;
	assert_int_equal(rdma_ack_cm_event(e), 0);
	assert_int_equal(rdma_destroy_id(asked), 0);
}

static void refused_connections(void)
{
	struct rdma_addrinfo *to = resolved(3, 1, 0);
	struct ibv_qp_init_attr attr = end_attr();
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_ep(&id, to, NULL, &attr), 0);
	rdma_freeaddrinfo(to);
	assert_fails(rdma_connect(id, NULL), ECONNREFUSED);
	rdma_destroy_ep(id);
}

/* ---- rsockets ---- */

static union address own_name(int rs)
{
	socklen_t bytes = sizeof(union address);
	union address a;

	assert_int_equal(rgetsockname(rs, &a.sa, &bytes), 0);
	return a;
}

static int bound_rsocket(int type, unsigned host)
{
	union address a = host_address(host, 0);
	int rs = rsocket(AF_INET, type, 0);

	assert_true(rs >= 0);
	assert_int_equal(rbind(rs, &a.sa, sizeof(a.in)), 0);
	return rs;
}

static void streams(void)
{
	int listener = bound_rsocket(SOCK_STREAM, 2), client = bound_rsocket(SOCK_STREAM, 1),
	    server;
	int refused = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	union address a = own_name(listener);
	char byte;

	assert_int_equal(rlisten(listener, 8), 0);
	assert_int_equal(rconnect(client, &a.sa, sizeof(a.in)), 0);
	server = raccept(listener, NULL, NULL);
	assert_true(server >= 0);
	assert_fails(rconnect(refused, &a.sa, sizeof(a.in)), EINPROGRESS);
	assert_int_equal(rsend(client, "x", 1, 0), 1);
	assert_int_equal(rrecv(server, &byte, 1, 0), 1);
	assert_int_equal(rclose(client), 0);
	assert_int_equal(rclose(server), 0);
	assert_int_equal(rclose(refused), 0);
	assert_int_equal(rclose(listener), 0);
}

static void datagrams(void)
{
	int server = bound_rsocket(SOCK_DGRAM, 2), client = bound_rsocket(SOCK_DGRAM, 1);
	union address a = own_name(server);
	char byte;

	assert_int_equal(rsendto(client, "x", 1, 0, &a.sa, sizeof(a.in)), 1);
	assert_int_equal(rrecv(server, &byte, 1, 0), 1);
	assert_int_equal(rclose(client), 0);
	assert_int_equal(rclose(server), 0);
}

/* ---- each kind ---- */

static const struct kind {
	const char *name;
	void (*make_and_end)(void);
} kinds[] = {
	{ "contexts", contexts },
	{ "imported contexts", imported_contexts },
	{ "domains", domains },
	{ "regions", regions },
	{ "regions of mapped memory", regions_of_mapped_memory },
	{ "regions of segments", regions_of_segments },
	{ "regions of files", regions_of_files },
	{ "device memory", device_memory },
	{ "windows", windows },
	{ "completion queues", completion_queues },
	{ "shared receive queues", shared_receive_queues },
	{ "queue pairs", queue_pairs },
	{ "XRC domains", xrc_domains },
	{ "address handles", address_handles },
	{ "event channels", channels },
	{ "synchronous identifiers", synchronous_identifiers },
	{ "identifiers with queue pairs", identifiers_with_queue_pairs },
	{ "migrated identifiers", migrated_identifiers },
	{ "listeners", listeners },
	{ "groups", groups },
	{ "lists of devices", lists_of_devices },
	{ "connections", connections },
	{ "connections that are never made", connections_that_are_never_made },
	{ "refused connections", refused_connections },
	{ "stream rsockets", streams },
	{ "datagram rsockets", datagrams },
};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static int open_shared(void **state)
{
	(void)state;
	at_first = look();
	shared.context = open_first();
	shared.pd = ibv_alloc_pd(shared.context);
	shared.cq = ibv_create_cq(shared.context, 256, NULL, NULL, 0);
	post_much();
	return shared.pd && shared.cq ? 0 : -1;
}

/* Each round has a time of its own: an emulated machine takes a second for some. */
static void repeat(unsigned kind, unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		expect_soon(kinds[kind].name);
		kinds[kind].make_and_end();
	}
	expect_soon(NULL);
}

CASE(each_kind_leaves_nothing)
{
	for (unsigned k = 0; k < N_KINDS; k++) {
		struct holdings before;

		repeat(k, WARM);
		before = look();
		repeat(k, ROUNDS);
		expect_no_more(kinds[k].name, &before, ROUNDS);
	}
}

static void *make_and_end_all(void *arg)
{
	const unsigned first = (unsigned)(uintptr_t)arg * (N_KINDS / THREADS);

	for (unsigned k = 0; k < N_KINDS; k++)
		kinds[(first + k) % N_KINDS].make_and_end();
	return NULL;
}

static void by_threads(void)
{
	pthread_t thread[THREADS];

	expect_soon("all kinds, by three threads");
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, make_and_end_all, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	expect_soon(NULL);
}

CASE(threads_leave_nothing)
{
	struct holdings before;

	by_threads();
	by_threads();
	before = look();
	by_threads();
	by_threads();
	expect_no_more("all kinds, by three threads", &before, ROUNDS);
}

/* ---- calls that fail ---- */

/* Each returns whether all calls worked, and has ended what there is then. */
static bool try_context(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list ? ibv_open_device(list[0]) : NULL, *imported = NULL;
	int fd = context ? dup(context->cmd_fd) : -1;

	if (fd >= 0)
		imported = ibv_import_device(fd);
	if (imported)
		assert_int_equal(ibv_close_device(imported), 0);
	else if (fd >= 0)
		close(fd);
	if (context)
		assert_int_equal(ibv_close_device(context), 0);
	if (list)
		ibv_free_device_list(list);
	return imported;
}

static bool try_channel(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(shared.context);
	struct ibv_cq *cq = channel ? ibv_create_cq(shared.context, 16, NULL, channel, 0) : NULL;

	if (cq)
		assert_int_equal(ibv_destroy_cq(cq), 0);
	if (channel)
		assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	return cq;
}

static bool try_identifier(void)
{
	union address a = host_address(2, 1);
	struct rdma_cm_id *id;
	bool done;

	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return false;
	done = !rdma_resolve_addr(id, NULL, &a.sa, 1000) && !rdma_resolve_route(id, 1000);
	assert_int_equal(rdma_destroy_id(id), 0);
	return done;
}

static bool try_endpoint(void)
{
	struct rdma_addrinfo *at = resolved(2, 0, RAI_PASSIVE);
	struct ibv_qp_init_attr attr = end_attr();
	struct rdma_cm_id *id;
	bool done = !rdma_create_ep(&id, at, NULL, &attr);

	rdma_freeaddrinfo(at);
	if (done)
		rdma_destroy_ep(id);
	return done;
}

static void close_those(const int rs[], unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (rs[i] >= 0)
			assert_int_equal(rclose(rs[i]), 0);
}

/* The listener may have no descriptors left when it is to accept. */
static bool try_streams(void)
{
	int rs[3] = { rsocket(AF_INET, SOCK_STREAM, 0), -1, -1 };
	union address a = host_address(2, 0);

	if (rs[0] >= 0 && !rbind(rs[0], &a.sa, sizeof(a.in)) && !rlisten(rs[0], 8)) {
		a = own_name(rs[0]);
		rs[1] = rsocket(AF_INET, SOCK_STREAM, 0);
	}
	if (rs[1] >= 0 && !rconnect(rs[1], &a.sa, sizeof(a.in)))
		rs[2] = raccept(rs[0], NULL, NULL);
	close_those(rs, 3);
	return rs[2] >= 0;
}

static bool try_datagrams(void)
{
	int rs = rsocket(AF_INET, SOCK_DGRAM, 0);
	union address a = host_address(2, 0);
	bool done = rs >= 0 && !rbind(rs, &a.sa, sizeof(a.in));

	if (done) {
		a = own_name(rs);
		done = !rconnect(rs, &a.sa, sizeof(a.in));
	}
	close_those(&rs, 1);
	return done;
}

static const struct {
	const char *name;
	bool (*try)(void);
} tries[] = {
	{ "contexts", try_context },        { "completion channels", try_channel },
	{ "identifiers", try_identifier },  { "endpoints", try_endpoint },
	{ "stream rsockets", try_streams }, { "datagram rsockets", try_datagrams },
};

/* The number below which so many are free. */
static rlim_t limit_with_free(unsigned n)
{
	int fd = 0;

	while (fcntl(fd, F_GETFD) >= 0 || n--)
		fd++;
	return (rlim_t)fd;
}

static bool with_so_many_free(unsigned n, bool (*try)(void))
{
	struct rlimit before, few;
	bool done;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ .rlim_cur = limit_with_free(n), .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	done = try();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	return done;
}

/* With no descriptor left, with one, and so on until there are enough. */
CASE(calls_that_fail_leave_nothing)
{
	char what[64];

	for (unsigned t = 0; t < sizeof(tries) / sizeof(tries[0]); t++) {
		struct holdings before;
		unsigned n = 0;
		bool done;

		assert_true(tries[t].try());
		before = look();
		do {
			snprintf(what, sizeof(what), "%s, %u descriptors left", tries[t].name, n);
			expect_soon(what);
			done = with_so_many_free(n++, tries[t].try);
			expect_soon(NULL);
			expect_no_more(what, &before, ROUNDS);
		} while (!done);
		assert_true(n > 1);
	}
}

/* ---- peers that die ---- */

/* Uses our memory as we use its own, by a connection and by an rsocket, and dies. */
static void meet_and_die(uint16_t port, union address stream)
{
	int rs = bound_rsocket(SOCK_STREAM, 1);
	struct end e = connected_end(port);
	char byte;

	if (rconnect(rs, &stream.sa, sizeof(stream.in)) || rsend(rs, "x", 1, 0) != 1 || !meet(&e) ||
	    rrecv(rs, &byte, 1, 0) != 1)
		_exit(1);
	raise(SIGKILL);
}

static void have_one_die(struct rdma_cm_id *listener, int listening)
{
	union address stream = own_name(listening);
	uint16_t port = port_of(listener);
	struct end e = { 0 };
	pid_t child = fork();
	int status, rs;
	char byte;

	assert_true(child >= 0);
	if (!child) {
		setenv("CMOCKA_TEST_ABORT", "1", 1);
		alarm(LATER_S);
		meet_and_die(port, stream);
	}
	assert_int_equal(rdma_get_request(listener, &e.id), 0);
	add_memory(&e);
	assert_int_equal(rdma_accept(e.id, NULL), 0);
	rs = raccept(listening, NULL, NULL);
	assert_true(rs >= 0);
	assert_true(meet(&e));
	assert_int_equal(rrecv(rs, &byte, 1, 0), 1);
	assert_int_equal(rsend(rs, "y", 1, 0), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	close_end(&e);
	assert_int_equal(rclose(rs), 0);
}

CASE(the_dead_leave_nothing)
{
	struct rdma_cm_id *listener = listen_at(2, 0);
	int listening = bound_rsocket(SOCK_STREAM, 2);
	struct holdings before;

	assert_int_equal(rlisten(listening, 8), 0);
	for (unsigned i = 0; i < DEATHS + WARM; i++) {
		expect_soon("a peer that dies");
		if (i == WARM)
			before = look();
		have_one_die(listener, listening);
		expect_soon(NULL);
	}
	expect_no_more("peers that died", &before, DEATHS);
	rdma_destroy_ep(listener);
	assert_int_equal(rclose(listening), 0);
}

/* ---- what stays ---- */

CASE(what_a_process_keeps_is_little)
{
	struct holdings now;

	assert_int_equal(ibv_destroy_cq(shared.cq), 0);
	assert_int_equal(ibv_dealloc_pd(shared.pd), 0);
	assert_int_equal(ibv_close_device(shared.context), 0);
	now = look();
	if (now.n_descriptors > at_first.n_descriptors + KEPT) {
		print_descriptors(&now);
		fail_msg("%u descriptors are kept", now.n_descriptors - at_first.n_descriptors);
	}
	assert_int_equal(now.n_threads, at_first.n_threads);
}

int main(void)
{
	return harness_run(open_shared, NULL);
}
