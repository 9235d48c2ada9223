/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Making and mapping the shared memory: see region.h. Both parts are sparse: only pages that were
 * written use memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fast.h"
#include "base/pause.h"
#include "base/util.h"
#include "base/valgrind.h"
#include "shm/connection.h"
#include "shm/region.h"
#include "shm/wire.h"

#define PAGE          4096
#define LISTS_SIZE    (256ull << 20)
#define RINGS_SIZE    (4ull << 30)
#define PAYLOADS_SIZE (4ull << 30)

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

/*
 * The tables of both parts in the order in which they lie there: T(part, name, record, how many
 * records). A table's NAME_off in struct shm_control, *c, says where it begins, and its NAME in
 * struct shm_region points there.
 */
#define TABLES(T)                                                  \
	T(control, hcas, struct shm_hca, c->n_hcas)                \
	T(control, ports, struct shm_port, c->n_ports)             \
	T(control, qps, struct shm_qp, SHM_MAX_QPS)                \
	T(control, srqs, struct shm_srq, SHM_MAX_SRQS)             \
	T(control, flows, struct shm_flow, SHM_MAX_FLOWS)          \
	T(data, senders, struct shm_sender, SHM_MAX_QPS)           \
	T(data, cqs, struct shm_cq, SHM_MAX_CQS)                   \
	T(data, flow_counts, struct shm_flow_count, SHM_MAX_FLOWS) \
	T(data, port_counts, struct shm_port_count, c->n_ports)    \
	T(data, roce_ports, struct shm_roce_port, c->n_ports)      \
	T(data, connections, struct shm_connection, SHM_MAX_QPS)   \
	T(data, wires, struct shm_wire, SHM_MAX_QPS)               \
	T(data, wire_busy, struct shm_wire_busy, SHM_MAX_QPS / 64) \
	T(data, cq_events, struct shm_cq_events, SHM_MAX_CQS / 64)

static uint64_t reserve(uint64_t *end, uint64_t bytes)
{
	uint64_t off = *end;

	*end = base_align_up(off + bytes, PAGE);
	return off;
}

static int make(const char *name, uint64_t size, void **map, int *fd)
{
	int ret;

	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return -errno;
	if (ftruncate(*fd, (off_t)size) < 0)
		goto err_close;
	*map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, *fd, 0);
	if (*map == MAP_FAILED)
		goto err_close;
	return 0;
err_close:
	ret = -errno;
	close(*fd);
	*fd = -1;
	return ret;
}

/* Finds a place for all that the parts hold. */
static void lay_out(struct shm_control *c)
{
	uint64_t control = PAGE, data = PAGE; /* the ends of both parts */

#define RESERVE(part, name, record, n) c->name##_off = reserve(&(part), (n) * sizeof(record));
	TABLES(RESERVE);
	c->lists_off = reserve(&control, LISTS_SIZE);
	c->rings_off = reserve(&data, c->rings_size);
	c->payloads_off = reserve(&data, c->payloads_size);
	c->size = control;
	c->data_size = data;
}

static void set_tables(struct shm_region *r)
{
	char *control = (char *)r->control, *data = (char *)r->data;

#define POINT(part, name, record, n) r->name = (void *)((part) + r->control->name##_off);
	TABLES(POINT);
}

int shm_region_create(struct shm_region *r, uint32_t n_hcas, uint32_t n_ports)
{
	struct shm_control c = { .magic = SHM_MAGIC,
		                 .version = SHM_VERSION,
		                 .n_hcas = n_hcas,
		                 .n_ports = n_ports,
		                 .rings_size = RINGS_SIZE,
		                 .payloads_size = PAYLOADS_SIZE };
	struct shm_data d = { .magic = SHM_MAGIC, .version = SHM_VERSION };
	void *map;
	int ret;

	lay_out(&c);
	memset(r, 0, sizeof(*r));
	ret = make("umbel-control", c.size, &map, &r->control_fd);
	if (ret)
		return ret;
	r->control = map;
	r->control_size = c.size;
	ret = make("umbel-data", c.data_size, &map, &r->data_fd);
	if (ret)
		goto err_unmap_control;
	r->data = map;
	r->data_size = c.data_size;
	*r->control = c;
	*r->data = d;
	set_tables(r);
	/* From here on nobody else can map the control part writable, or resize either. */
	if (fcntl(r->control_fd, F_ADD_SEALS,
	          F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0 ||
	    fcntl(r->data_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		ret = -errno;
		goto err_unmap_data;
	}
	return 0;
err_unmap_data:
	munmap(r->data, r->data_size);
	close(r->data_fd);
err_unmap_control:
	munmap(r->control, r->control_size);
	close(r->control_fd);
	return ret;
}

/* helgrind, for which memory that may be accessed when it is mapped has no races yet, would prepare
 * for some in 8 GB: minutes. What may be accessed later only it leaves alone. */
static int map_part(int fd, int prot, void **map, size_t *size)
{
	const bool is_watched = base_valgrind_runs();
	struct stat st;
	int ret;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < PAGE)
		return -EPROTO;
	*size = (size_t)st.st_size;
	*map = mmap(NULL, *size, is_watched ? PROT_NONE : prot, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (*map == MAP_FAILED)
		return -errno;
	if (!is_watched || !mprotect(*map, *size, prot))
		return 0;
	ret = -errno;
	munmap(*map, *size);
	return ret;
}

/* Whether @n records of @bytes each lie at @off, after the header and before @size. */
static bool lie_within(uint64_t off, uint64_t n, uint64_t bytes, uint64_t size)
{
	return off >= PAGE && off % 64 == 0 && off <= size && n <= (size - off) / bytes;
}

/*
 * Whether all tables, and the ports of all HCAs, lie where there is memory. This is checked once:
 * from then on the control part is trusted, as it belongs to the daemon of the same user.
 */
static bool is_well_formed(const struct shm_region *r)
{
	const struct shm_control *c = r->control;
	const struct shm_hca *hcas = (void *)((char *)r->control + c->hcas_off);
	const uint64_t control = r->control_size, data = r->data_size;
	bool fits = lie_within(c->lists_off, 0, 1, control) &&
	            lie_within(c->rings_off, c->rings_size, 1, data) &&
	            lie_within(c->payloads_off, c->payloads_size, 1, data);

#define CHECK(part, name, record, n) \
	fits = fits && lie_within(c->name##_off, n, sizeof(record), part);
	TABLES(CHECK);
	if (!fits)
		return false;
	for (uint32_t i = 0; i < c->n_hcas; i++)
		if (hcas[i].first_port > c->n_ports ||
		    hcas[i].n_ports > c->n_ports - hcas[i].first_port)
			return false;
	return true;
}

/* Whether nobody can shrink the memory of @fd: access to a missing page would raise SIGBUS. */
static bool keeps_size(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_SHRINK);
}

int shm_region_map(struct shm_region *r, int control_fd, int data_fd)
{
	void *map;
	int ret;

	memset(r, 0, sizeof(*r));
	r->control_fd = r->data_fd = -1;
	if (!keeps_size(control_fd) || !keeps_size(data_fd))
		return -EPROTO;
	ret = map_part(control_fd, PROT_READ, &map, &r->control_size);
	if (ret)
		return ret;
	r->control = map;
	ret = map_part(data_fd, PROT_READ | PROT_WRITE, &map, &r->data_size);
	if (ret)
		goto err_unmap_control;
	r->data = map;
	if (r->control->magic != SHM_MAGIC || r->control->version != SHM_VERSION ||
	    r->control->size != r->control_size || r->control->data_size != r->data_size ||
	    !is_well_formed(r)) {
		ret = -EPROTO;
		goto err_unmap_data;
	}
	set_tables(r);
	return 0;
err_unmap_data:
	munmap(r->data, r->data_size);
err_unmap_control:
	munmap(r->control, r->control_size);
	return ret;
}

void shm_region_unmap(struct shm_region *r)
{
	munmap(r->data, r->data_size);
	munmap(r->control, r->control_size);
	if (r->control_fd >= 0)
		close(r->control_fd);
	if (r->data_fd >= 0)
		close(r->data_fd);
	memset(r, 0, sizeof(*r));
	r->control_fd = r->data_fd = -1;
}

bool shm_read_wait(const struct shm_region *r, const _Atomic uint32_t *seq, uint32_t *start)
{
	struct base_pause pause = { 0 };

	while (*start & 1) {
		if (base_pause(&pause) && shm_daemon_gone(r))
			return false;
		*start = atomic_load_explicit((_Atomic uint32_t *)seq, memory_order_acquire);
	}
	return true;
}

void shm_port_read(const struct shm_region *r, uint32_t port, struct shm_port *copy)
{
	const struct shm_port *p = &r->ports[port];
	uint32_t seq;
	bool alive;

	do {
		alive = shm_read_begin(r, &p->seq, &seq);
		memcpy((void *)copy, p, sizeof(*copy));
	} while (alive && shm_read_retry(&p->seq, seq));
	if (!alive)
		copy->state = IB_PORT_DOWN;
}

void shm_srq_read(const struct shm_region *r, uint32_t srq, struct shm_srq *copy)
{
	const struct shm_srq *s = &r->srqs[srq];
	uint32_t seq;
	bool alive;

	do {
		alive = shm_read_begin(r, &s->seq, &seq);
		memcpy((void *)copy, s, sizeof(*copy));
	} while (alive && shm_read_retry(&s->seq, seq));
}
