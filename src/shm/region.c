/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Making and mapping the shared memory: see region.h. Both parts are sparse: only pages that were
 * written use memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fast.h"
#include "base/util.h"
#include "shm/connection.h"
#include "shm/region.h"

#define PAGE          4096
#define LISTS_SIZE    (256ull << 20)
#define RINGS_SIZE    (4ull << 30)
#define PAYLOADS_SIZE (4ull << 30)

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

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

static void set_tables(struct shm_region *r)
{
	char *control = (char *)r->control, *data = (char *)r->data;

	r->hcas = (void *)(control + r->control->hcas_off);
	r->ports = (void *)(control + r->control->ports_off);
	r->qps = (void *)(control + r->control->qps_off);
	r->srqs = (void *)(control + r->control->srqs_off);
	r->flows = (void *)(control + r->control->flows_off);
	r->senders = (void *)(data + r->control->senders_off);
	r->cqs = (void *)(data + r->control->cqs_off);
	r->connections = (void *)(data + r->control->connections_off);
	r->flow_counts = (void *)(data + r->control->flow_counts_off);
	r->port_counts = (void *)(data + r->control->port_counts_off);
	r->roce_ports = (void *)(data + r->control->roce_ports_off);
}

int shm_region_create(struct shm_region *r, uint32_t n_hcas, uint32_t n_ports)
{
	struct shm_control c = { .magic = SHM_MAGIC, .version = SHM_VERSION };
	struct shm_data d = { .magic = SHM_MAGIC, .version = SHM_VERSION };
	void *map;
	int ret;

	c.n_hcas = n_hcas;
	c.n_ports = n_ports;
	c.size = PAGE;
	c.hcas_off = reserve(&c.size, n_hcas * sizeof(struct shm_hca));
	c.ports_off = reserve(&c.size, n_ports * sizeof(struct shm_port));
	c.qps_off = reserve(&c.size, SHM_MAX_QPS * sizeof(struct shm_qp));
	c.srqs_off = reserve(&c.size, SHM_MAX_SRQS * sizeof(struct shm_srq));
	c.flows_off = reserve(&c.size, SHM_MAX_FLOWS * sizeof(struct shm_flow));
	c.lists_off = reserve(&c.size, LISTS_SIZE);

	c.data_size = PAGE;
	c.senders_off = reserve(&c.data_size, SHM_MAX_QPS * sizeof(struct shm_sender));
	c.cqs_off = reserve(&c.data_size, SHM_MAX_CQS * sizeof(struct shm_cq));
	c.flow_counts_off = reserve(&c.data_size, SHM_MAX_FLOWS * sizeof(struct shm_flow_count));
	c.port_counts_off = reserve(&c.data_size, n_ports * sizeof(struct shm_port_count));
	c.roce_ports_off = reserve(&c.data_size, n_ports * sizeof(struct shm_roce_port));
	c.connections_off = reserve(&c.data_size, SHM_MAX_QPS * sizeof(struct shm_connection));
	c.rings_size = RINGS_SIZE;
	c.rings_off = reserve(&c.data_size, RINGS_SIZE);
	c.payloads_size = PAYLOADS_SIZE;
	c.payloads_off = reserve(&c.data_size, PAYLOADS_SIZE);

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

static int map_part(int fd, int prot, void **map, size_t *size)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < PAGE)
		return -EPROTO;
	*size = (size_t)st.st_size;
	*map = mmap(NULL, *size, prot, MAP_SHARED | MAP_NORESERVE, fd, 0);
	return *map == MAP_FAILED ? -errno : 0;
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
	const uint64_t size = r->control_size, data_size = r->data_size;

	if (!lie_within(c->hcas_off, c->n_hcas, sizeof(struct shm_hca), size) ||
	    !lie_within(c->ports_off, c->n_ports, sizeof(struct shm_port), size) ||
	    !lie_within(c->qps_off, SHM_MAX_QPS, sizeof(struct shm_qp), size) ||
	    !lie_within(c->srqs_off, SHM_MAX_SRQS, sizeof(struct shm_srq), size) ||
	    !lie_within(c->flows_off, SHM_MAX_FLOWS, sizeof(struct shm_flow), size) ||
	    !lie_within(c->lists_off, 0, 1, size) ||
	    !lie_within(c->senders_off, SHM_MAX_QPS, sizeof(struct shm_sender), data_size) ||
	    !lie_within(c->cqs_off, SHM_MAX_CQS, sizeof(struct shm_cq), data_size) ||
	    !lie_within(c->flow_counts_off, SHM_MAX_FLOWS, sizeof(struct shm_flow_count),
	                data_size) ||
	    !lie_within(c->port_counts_off, c->n_ports, sizeof(struct shm_port_count), data_size) ||
	    !lie_within(c->roce_ports_off, c->n_ports, sizeof(struct shm_roce_port), data_size) ||
	    !lie_within(c->connections_off, SHM_MAX_QPS, sizeof(struct shm_connection),
	                data_size) ||
	    !lie_within(c->rings_off, c->rings_size, 1, data_size) ||
	    !lie_within(c->payloads_off, c->payloads_size, 1, data_size))
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
	for (uint32_t spins = 1; *start & 1; spins++) {
		if (spins % 1024) {
			base_relax();
		} else if (shm_daemon_gone(r)) {
			return false;
		} else {
			sched_yield(); /* the daemon may be waiting for this processor */
		}
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
