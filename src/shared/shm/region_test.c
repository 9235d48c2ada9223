/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The two parts of the shared memory: their tables do not overlap, other processes can map them
 * with their rights only, and records are read consistently while the daemon writes or dies.
 */
#include <harness.h>

#include "base/util.h"
#include "shm/connection.h"
#include "shm/region.h"
#include "shm/packets.h"

#define HCAS  3
#define PORTS 6

struct lab {
	struct shm_region daemon, process;
};

static int setup(void **state)
{
	struct lab *l = calloc(1, sizeof(*l));

	assert_int_equal(shm_region_create(&l->daemon, HCAS, PORTS), 0);
	assert_int_equal(
	        shm_region_map(&l->process, l->daemon.part.control.fd, l->daemon.part.data.fd), 0);
	*state = l;
	return 0;
}

static int teardown(void **state)
{
	struct lab *l = *state;

	shm_region_unmap(&l->process);
	shm_region_unmap(&l->daemon);
	free(l);
	return 0;
}

/* ---- layout ---- */

struct extent {
	uint64_t off, bytes;
};

static void check_apart(const struct extent *e, unsigned n, uint64_t size)
{
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(e[i].off % 4096, 0);
		assert_true(e[i].off >= 4096);
		assert_true(e[i].off + e[i].bytes <= (i + 1 < n ? e[i + 1].off : size));
	}
}

CASE_WITH(the_tables_do_not_overlap, setup, teardown)
{
	const struct shm_control *c = ((struct lab *)*state)->daemon.control;
	const struct extent control[] = {
		{ c->hcas_off, HCAS * sizeof(struct shm_hca) },
		{ c->ports_off, PORTS * sizeof(struct shm_port) },
		{ c->qps_off, SHM_MAX_QPS * sizeof(struct shm_qp) },
		{ c->srqs_off, SHM_MAX_SRQS * sizeof(struct shm_srq) },
		{ c->flows_off, SHM_MAX_FLOWS * sizeof(struct shm_flow) },
		{ c->lists_off, 1 },
	};
	const struct extent data[] = {
		{ c->port_counts_off, PORTS * sizeof(struct shm_port_count) },
		{ c->roce_ports_off, PORTS * sizeof(struct shm_roce_port) },
		{ c->cq_events_off, SHM_MAX_CQS / 8 },
		{ c->wire_busy_off, SHM_MAX_QPS / 8 },
		{ c->senders_off, SHM_MAX_QPS * sizeof(struct shm_sender) },
		{ c->connections_off, SHM_MAX_QPS * sizeof(struct shm_connection) },
		{ c->cqs_off, SHM_MAX_CQS * sizeof(struct shm_cq) },
		{ c->flow_counts_off, SHM_MAX_FLOWS * sizeof(struct shm_flow_count) },
		{ c->wires_off, SHM_MAX_QPS * sizeof(struct shm_wire) },
		{ c->rings_off, c->rings_size },
		{ c->payloads_off, c->payloads_size },
	};

	check_apart(control, ARRAY_SIZE(control), c->size);
	check_apart(data, ARRAY_SIZE(data), c->data_size);
}

CASE_WITH(what_one_writes_the_other_reads, setup, teardown)
{
	struct lab *l = *state;

	shm_qp_at(&l->daemon, SHM_MAX_QPS - 1)->qkey = 0x1234;
	assert_int_equal(shm_qp_at(&l->process, SHM_MAX_QPS - 1)->qkey, 0x1234);
	shm_sender_at(&l->process, 5)->target_qpn = 99;
	assert_int_equal(shm_sender_at(&l->daemon, 5)->target_qpn, 99);
}

CASE_WITH(an_offset_outside_the_payloads_is_refused, setup, teardown)
{
	const struct shm_region *r = &((struct lab *)*state)->process;
	uint64_t from = r->control->payloads_off, end = from + r->control->payloads_size;

	assert_ptr_equal(shm_payload_at(r, from, 4096), (char *)r->data + from);
	assert_non_null(shm_payload_at(r, end - 4096, 4096));
	assert_null(shm_payload_at(r, end - 4096, 4097));
	assert_null(shm_payload_at(r, from - 1, 1));
	assert_null(shm_payload_at(r, 0, 1));
	assert_null(shm_payload_at(r, end + 1, 0));
	assert_null(shm_payload_at(r, UINT64_MAX, UINT32_MAX));
}

CASE_WITH(scribbling_over_the_data_part_moves_no_table, setup, teardown)
{
	struct lab *l = *state;
	struct shm_region later;

	memset((void *)l->process.data, 0xEE, 4096);
	assert_null(shm_payload_at(&l->daemon, 0xEEEEEEEEEEEEEEEE, 1));
	assert_int_equal(shm_region_map(&later, l->daemon.part.control.fd, l->daemon.part.data.fd),
	                 0);
	assert_int_equal((char *)later.all_cqs - (char *)later.data, l->daemon.control->cqs_off);
	shm_region_unmap(&later);
}

/* ---- pieces ---- */

static uint64_t pieces_of(const struct shm_part *p)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < p->pieces->n; i++)
		n += !!atomic_load(&p->pieces->state[i]);
	return n;
}

CASE_WITH(a_process_maps_what_it_uses, setup, teardown)
{
	const struct shm_region *r = &((struct lab *)*state)->process;
	const uint64_t ring = r->control->rings_off + SHM_PIECE - 64;

	assert_int_equal(pieces_of(&r->part.control), 1);
	assert_int_equal(pieces_of(&r->part.data), 1);
	shm_flow_at(r, SHM_MAX_FLOWS / 2);
	shm_flow_at(r, SHM_MAX_FLOWS / 2);
	assert_int_equal(pieces_of(&r->part.control), 2);
	assert_ptr_equal(shm_data_map(r, ring, 128), (char *)r->data + ring);
	assert_int_equal(pieces_of(&r->part.data), 3);
	assert_null(shm_data_map(r, r->part.data.size - 64, 128));
	assert_null(shm_data_map(r, UINT64_MAX, 1));
}

/* All records, so that one of them lies in two pieces. */
CASE_WITH(a_record_may_lie_in_two_pieces, setup, teardown)
{
	struct lab *l = *state;

	for (uint32_t i = 0; i < SHM_MAX_CQS; i++) {
		struct shm_cq *cq = shm_cq_at(&l->process, i);

		cq->arm = cq->reserved[0] = i;
		assert_int_equal(shm_cq_at(&l->daemon, i)->arm, i);
		assert_int_equal(shm_cq_at(&l->daemon, i)->reserved[0], i);
	}
}

CASE_WITH(what_the_program_has_mapped_stays, setup, teardown)
{
	const struct shm_region *r = &((struct lab *)*state)->process;
	const uint64_t off = r->control->rings_off + (1ull << 30);
	char *there = (char *)r->data + off;

	assert_ptr_equal(mmap(there, 4096, PROT_READ | PROT_WRITE,
	                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
	                 there);
	*there = 'x';
	assert_null(shm_data_map(r, off, 1));
	assert_int_equal(*there, 'x');
	munmap(there, 4096);
	assert_non_null(shm_data_map(r, off, 1));
}

/* The kernel places a page elsewhere for each of them: it has no hole left where the last one was.
 */
CASE_WITH(regions_have_nothing_in_common, setup, teardown)
{
	const struct shm_region *d = &((struct lab *)*state)->daemon;
	struct shm_region r[4];

	for (unsigned i = 0; i < ARRAY_SIZE(r); i++) {
		for (unsigned k = 0; k < 4096; k++)
			assert_ptr_not_equal(
			        mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			        MAP_FAILED);
		assert_int_equal(shm_region_map(&r[i], d->part.control.fd, d->part.data.fd), 0);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(r); i++) {
		const struct shm_control *c = r[i].control;

		assert_int_equal(shm_part_map(&r[i].part.control, 0, c->size), 0);
		for (uint64_t off = 0; off < c->data_size; off += 64 * SHM_PIECE)
			assert_non_null(shm_data_map(&r[i], off, 1));
	}
	for (unsigned i = 0; i < ARRAY_SIZE(r); i++)
		shm_region_unmap(&r[i]);
}

/* There is nothing left of the address space. */
CASE_WITH(a_record_that_cannot_be_mapped_is_of_zeros, setup, teardown)
{
	const struct shm_region *r = &((struct lab *)*state)->process;
	const struct rlimit none = { 0, RLIM_INFINITY };
	struct rlimit before;
	struct shm_qp *qp;

	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	qp = shm_qp_at(r, SHM_MAX_QPS - 1);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_int_equal(qp->qpn, 0);
	assert_ptr_not_equal(qp, shm_qp_at(r, SHM_MAX_QPS - 1));
}

static void *map_all(void *arg)
{
	const struct shm_region *r = arg;

	for (uint32_t i = 0; i < SHM_MAX_QPS; i += 64)
		shm_wire_at(r, i)->open = 1;
	return NULL;
}

CASE_WITH(threads_map_the_same_pieces, setup, teardown)
{
	struct shm_region *r = &((struct lab *)*state)->process;
	pthread_t thread[4];

	for (unsigned i = 0; i < ARRAY_SIZE(thread); i++)
		assert_int_equal(pthread_create(&thread[i], NULL, map_all, r), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(thread); i++)
		pthread_join(thread[i], NULL);
	for (uint32_t i = 0; i < SHM_MAX_QPS; i += 64)
		assert_int_equal(shm_wire_at(&((struct lab *)*state)->daemon, i)->open, 1);
}

/* As if another thread of its parent had been mapping a piece. */
CASE_WITH(a_child_need_not_wait_for_its_parents_threads, setup, teardown)
{
	const struct shm_region *r = &((struct lab *)*state)->process;

	atomic_store(&r->part.data.pieces->lock, getppid());
	assert_non_null(shm_data_map(r, r->control->rings_off, 1));
	assert_int_equal(atomic_load(&r->part.data.pieces->lock), 0);
}

CASE_WITH(ports_are_mapped_without_descriptors, setup, teardown)
{
	struct lab *l = *state;
	struct shm_region r;

	assert_int_equal(
	        shm_region_map_ports(&r, l->daemon.part.control.fd, l->daemon.part.data.fd), 0);
	assert_int_equal(r.part.control.fd, -1);
	assert_int_equal(r.part.data.fd, -1);
	shm_port_at(&l->daemon, PORTS - 1)->lid = 7;
	assert_int_equal(shm_port_at(&r, PORTS - 1)->lid, 7);
	assert_null(shm_data_map(&r, r.control->rings_off, 1));
	shm_region_unmap(&r);
}

/* ---- rights of other processes ---- */

CASE_WITH(nobody_else_maps_the_control_part_writable, setup, teardown)
{
	struct lab *l = *state;
	int fd = l->daemon.part.control.fd;
	void *p;

	assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	assert_int_equal(errno, EPERM);
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(mprotect(p, 4096, PROT_READ | PROT_WRITE), -1);
	assert_int_equal(errno, EACCES);
	munmap(p, 4096);
	assert_int_equal(mprotect(l->process.control, 4096, PROT_READ | PROT_WRITE), -1);
}

CASE_WITH(nobody_else_writes_or_punches_the_control_part, setup, teardown)
{
	int fd = ((struct lab *)*state)->daemon.part.control.fd;

	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
}

CASE_WITH(nobody_resizes_either_part, setup, teardown)
{
	struct lab *l = *state;
	int fds[] = { l->daemon.part.control.fd, l->daemon.part.data.fd };

	for (size_t i = 0; EACH_ROW(i, fds); i++) {
		assert_int_equal(ftruncate(fds[i], 4096), -1);
		assert_int_equal(ftruncate(fds[i], 1ll << 40), -1);
	}
}

CASE_WITH(what_is_no_fabric_is_refused, setup, teardown)
{
	struct lab *l = *state;
	struct shm_region r;
	int fd = memfd_create("something", 0);

	assert_int_equal(shm_region_map(&r, fd, fd), -EPROTO);
	assert_int_equal(ftruncate(fd, 8192), 0);
	assert_int_equal(shm_region_map(&r, fd, fd), -EPROTO);
	assert_int_equal(shm_region_map(&r, l->daemon.part.control.fd, fd), -EPROTO);
	assert_int_not_equal(shm_region_map(&r, l->daemon.part.data.fd, l->daemon.part.control.fd),
	                     0);
	l->daemon.control->version++;
	assert_int_equal(shm_region_map(&r, l->daemon.part.control.fd, l->daemon.part.data.fd),
	                 -EPROTO);
	close(fd);
}

/* Each of these would lead a process that maps it out of the memory. */
CASE_WITH(tables_that_lie_outside_are_refused, setup, teardown)
{
	struct lab *l = *state;
	struct shm_control *c = l->daemon.control;
	const struct shm_control good = *c;
	uint64_t *const offsets[] = {
		&c->hcas_off,        &c->ports_off,       &c->qps_off,        &c->srqs_off,
		&c->flows_off,       &c->lists_off,       &c->senders_off,    &c->cqs_off,
		&c->flow_counts_off, &c->port_counts_off, &c->roce_ports_off, &c->connections_off,
		&c->rings_off,       &c->payloads_off,    &c->wires_off,      &c->wire_busy_off,
	};
	const uint64_t bad[] = { 0, 4096 + 1, good.data_size + 64, 1ull << 46, -64ull };
	struct shm_region r;

	for (size_t i = 0; i < ARRAY_SIZE(offsets) * ARRAY_SIZE(bad); i++) {
		*offsets[i / ARRAY_SIZE(bad)] = bad[i % ARRAY_SIZE(bad)];
		assert_int_equal(
		        shm_region_map(&r, l->daemon.part.control.fd, l->daemon.part.data.fd),
		        -EPROTO);
		*c = good;
	}
	c->n_hcas = UINT32_MAX;
	assert_int_equal(shm_region_map(&r, l->daemon.part.control.fd, l->daemon.part.data.fd),
	                 -EPROTO);
	*c = good;
	c->rings_size = UINT64_MAX;
	assert_int_equal(shm_region_map(&r, l->daemon.part.control.fd, l->daemon.part.data.fd),
	                 -EPROTO);
	*c = good;
	c->payloads_size = UINT64_MAX;
	assert_int_equal(shm_region_map(&r, l->daemon.part.control.fd, l->daemon.part.data.fd),
	                 -EPROTO);
	*c = good;
	shm_hca_at(&l->daemon, 1)->first_port = PORTS;
	shm_hca_at(&l->daemon, 1)->n_ports = 1;
	assert_int_equal(shm_region_map(&r, l->daemon.part.control.fd, l->daemon.part.data.fd),
	                 -EPROTO);
	shm_hca_at(&l->daemon, 1)->first_port = PORTS + 1;
	shm_hca_at(&l->daemon, 1)->n_ports = 0;
	assert_int_equal(shm_region_map(&r, l->daemon.part.control.fd, l->daemon.part.data.fd),
	                 -EPROTO);
}

/* It may end where its part ends, and not behind that. */
CASE_WITH(a_table_lies_in_its_part_with_all_its_records, setup, teardown)
{
	struct lab *l = *state;
	struct shm_control *c = l->daemon.control;
	const struct shm_control good = *c;
	const struct {
		uint64_t *off, bytes, size;
	} tables[] = {
		{ &c->hcas_off, HCAS * sizeof(struct shm_hca), c->size },
		{ &c->ports_off, PORTS * sizeof(struct shm_port), c->size },
		{ &c->qps_off, SHM_MAX_QPS * sizeof(struct shm_qp), c->size },
		{ &c->srqs_off, SHM_MAX_SRQS * sizeof(struct shm_srq), c->size },
		{ &c->flows_off, SHM_MAX_FLOWS * sizeof(struct shm_flow), c->size },
		{ &c->senders_off, SHM_MAX_QPS * sizeof(struct shm_sender), c->data_size },
		{ &c->cqs_off, SHM_MAX_CQS * sizeof(struct shm_cq), c->data_size },
		{ &c->flow_counts_off, SHM_MAX_FLOWS * sizeof(struct shm_flow_count),
		  c->data_size },
		{ &c->port_counts_off, PORTS * sizeof(struct shm_port_count), c->data_size },
		{ &c->roce_ports_off, PORTS * sizeof(struct shm_roce_port), c->data_size },
		{ &c->connections_off, SHM_MAX_QPS * sizeof(struct shm_connection), c->data_size },
		{ &c->wires_off, SHM_MAX_QPS * sizeof(struct shm_wire), c->data_size },
		{ &c->wire_busy_off, SHM_MAX_QPS / 8, c->data_size },
		{ &c->cq_events_off, SHM_MAX_CQS / 8, c->data_size },
		{ &c->rings_off, c->rings_size, c->data_size },
		{ &c->payloads_off, c->payloads_size, c->data_size },
	};
	struct shm_region r;

	for (size_t i = 0; EACH_ROW(i, tables); i++) {
		*tables[i].off = (tables[i].size - tables[i].bytes) & ~63ull;
		assert_int_equal(
		        shm_region_map(&r, l->daemon.part.control.fd, l->daemon.part.data.fd), 0);
		shm_region_unmap(&r);
		*tables[i].off += 64;
		assert_int_equal(
		        shm_region_map(&r, l->daemon.part.control.fd, l->daemon.part.data.fd),
		        -EPROTO);
		*c = good;
	}
}

CASE_WITH(memory_that_could_shrink_is_refused, setup, teardown)
{
	struct lab *l = *state;
	struct shm_region r;
	int fd = memfd_create("unsealed", MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, (off_t)l->daemon.part.control.size), 0);
	assert_int_equal(pwrite(fd, l->daemon.control, 65536, 0), 65536);
	assert_int_equal(shm_region_map(&r, fd, l->daemon.part.data.fd), -EPROTO);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_int_equal(shm_region_map(&r, fd, l->daemon.part.data.fd), 0);
	shm_region_unmap(&r);
	close(fd);
}

/* ---- records that the daemon rewrites ---- */

static void *rewrite(void *arg)
{
	struct lab *l = arg;
	struct shm_qp *q = shm_qp_at(&l->daemon, 5);

	for (uint32_t i = 1; i <= 200000; i++) {
		shm_write_begin(&q->seq);
		q->qpn = i;
		q->qkey = i;
		q->ring_off = i;
		q->client = i;
		shm_write_end(&q->seq);
	}
	return NULL;
}

CASE_WITH(a_record_that_is_being_rewritten_is_read_whole, setup, teardown)
{
	struct lab *l = *state;
	struct shm_qp q = { 0 };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, rewrite, l), 0);
	while (q.qpn < 200000) {
		shm_qp_read(&l->process, 5, &q);
		assert_int_equal(q.qkey, q.qpn);
		assert_int_equal(q.ring_off, q.qpn);
		assert_int_equal(q.client, q.qpn);
	}
	pthread_join(thread, NULL);
}

/* Sets what the kernel sets when the daemon dies. */
static void die(struct lab *l)
{
	l->daemon.control->daemon_futex = 0x40000000u;
}

CASE_WITH(a_qp_record_that_the_daemon_died_writing_is_no_qp, setup, teardown)
{
	struct lab *l = *state;
	struct shm_qp *q = shm_qp_at(&l->daemon, 5), copy;

	q->qpn = 5;
	q->flags = SHM_QP_LIVE | SHM_QP_RECEIVES;
	shm_write_begin(&q->seq);
	die(l);
	shm_qp_read(&l->process, 5, &copy);
	assert_int_equal(copy.flags, 0);
	assert_int_equal(copy.qpn, 0);
}

CASE_WITH(a_port_record_that_the_daemon_died_writing_is_down, setup, teardown)
{
	struct lab *l = *state;
	struct shm_port *p = shm_port_at(&l->daemon, 1), copy;

	p->state = IB_PORT_ACTIVE;
	shm_write_begin(&p->seq);
	die(l);
	shm_port_read(&l->process, 1, &copy);
	assert_int_equal(copy.state, IB_PORT_DOWN);
}

CASE_WITH(the_daemons_end_can_be_seen, setup, teardown)
{
	struct lab *l = *state;

	assert_false(shm_daemon_gone(&l->process));
	l->daemon.control->daemon_futex = (uint32_t)getpid();
	assert_false(shm_daemon_gone(&l->process));
	l->daemon.control->daemon_stopped = 1;
	assert_true(shm_daemon_gone(&l->process));
	l->daemon.control->daemon_stopped = 0;
	die(l);
	assert_true(shm_daemon_gone(&l->process));
}
