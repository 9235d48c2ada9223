/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Making and mapping the shared memory: see region.h. Both parts are sparse: only pages that were
 * written use memory. A process maps the pieces that it comes to use, each where it would be if the
 * whole part were mapped. The addresses between them are not reserved: a reservation would count as
 * memory (ulimit -v, mlockall()). They lie far from where the kernel places mappings, and a piece
 * never replaces what else may be there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/pause.h"
#include "base/util.h"
#include "shm/region.h"

#define PAGE          4096
#define LISTS_SIZE    (256ull << 20)
#define RINGS_SIZE    (4ull << 30)
#define PAYLOADS_SIZE (4ull << 30)

/* Each region has a slot of the address space, this far from where the kernel places mappings, and
 * from the next slot. It has room for fabrics of any size: their tables of ports are the only ones
 * that grow. */
#define DISTANCE (64ull << 30)
#define SLOT     (16ull << 30)
#define UP       (1ull << 40) /* where mappings grow upwards: valgrind has its own at 64 GiB */
#define SLOTS    256          /* that are tried */

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static uint64_t reserve(uint64_t *end, uint64_t bytes)
{
	uint64_t off = *end;

	*end = base_align_up(off + bytes, PAGE);
	return off;
}

/* Finds a place for all that the parts hold. */
static void lay_out(struct shm_control *c)
{
	uint64_t control = PAGE, data = PAGE; /* the ends of both parts */

#define RESERVE(part, record, name, n) \
	c->name##_off = reserve(&(part), (n) * sizeof(struct shm_##record));
	SHM_TABLES(RESERVE);
	c->lists_off = reserve(&control, LISTS_SIZE);
	data = base_align_up(data, SHM_PIECE); /* no piece is of payloads in part */
	c->rings_off = reserve(&data, c->rings_size);
	c->payloads_off = reserve(&data, c->payloads_size);
	c->size = base_align_up(control, SHM_PIECE);
	c->data_size = data;
}

/* ---- pieces ---- */

/* Maps @bytes at @off where they belong. 0; -EEXIST: something else is there; or -errno of mmap().
 */
static int map_at(const struct shm_part *p, uint64_t off, uint64_t bytes)
{
	char *want = p->base + off;
	char *got = mmap(want, bytes, p->prot, MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
	                 p->fd, (off_t)off);

	if (got == MAP_FAILED)
		return -errno;
	if (got != want) { /* a kernel that does not know the flag takes the address for a hint */
		munmap(got, bytes);
		return -EEXIST;
	}
	/* as a device's memory, it is in no core dump */
	madvise(got, bytes, MADV_DONTDUMP);
	return 0;
}

/* In a child of fork() a thread of its parent may have the lock for ever: it is the child's then.
 */
static void lock(struct shm_pieces *pieces)
{
	const int32_t self = getpid();
	struct base_pause pause = { 0 };
	int32_t holder = 0;

	/* acquire: pairs with the release in unlock() */
	while (!atomic_compare_exchange_strong_explicit(
	        &pieces->lock, &holder, self, memory_order_acquire, memory_order_relaxed)) {
		if (holder != self)
			continue;
		base_pause(&pause);
		holder = 0;
	}
}

static void unlock(struct shm_pieces *pieces)
{
	atomic_store_explicit(&pieces->lock, 0, memory_order_release);
}

/* Bytes of @n pieces at @off: the last piece of a part may be shorter. */
static uint64_t length(const struct shm_part *p, uint64_t off, uint64_t n)
{
	uint64_t bytes = n << SHM_PIECE_SHIFT;

	return bytes < p->size - off ? bytes : p->size - off;
}

/* How many pieces from @first on, up to @end, are all mapped, or all not, as @mapped says. */
static uint64_t run(const struct shm_part *p, uint64_t first, uint64_t end, bool mapped)
{
	uint64_t n = 0;

	while (first + n < end && mapped == !!shm_piece_state(p, (first + n) << SHM_PIECE_SHIFT))
		n++;
	return n;
}

/* Which state the piece has once it is mapped. */
static uint8_t state_of(const struct shm_part *p, uint64_t piece)
{
	return piece >= p->payloads && piece < p->payloads_end ? SHM_PIECE_PAYLOAD
	                                                       : SHM_PIECE_MAPPED;
}

/* 0 or -errno of map_at(). */
static int map_pieces(const struct shm_part *p, uint64_t first, uint64_t end)
{
	while ((first += run(p, first, end, true)) < end) {
		uint64_t n = run(p, first, end, false), off = first << SHM_PIECE_SHIFT;
		int ret = map_at(p, off, length(p, off, n));

		if (ret)
			return ret;
		for (; n; n--, first++)
			/* release: pairs with the acquire in shm_piece_state() */
			atomic_store_explicit(&p->pieces->state[first], state_of(p, first),
			                      memory_order_release);
	}
	return 0;
}

int shm_part_map(const struct shm_part *p, uint64_t off, uint64_t bytes)
{
	uint64_t first = off >> SHM_PIECE_SHIFT, end;
	int error = errno, ret;

	if (off > p->size || bytes > p->size - off)
		return -ENOMEM;
	end = (off + bytes + SHM_PIECE - 1) >> SHM_PIECE_SHIFT;
	if (run(p, first, end, true) == end - first)
		return 0;
	lock(p->pieces);
	ret = map_pieces(p, first, end);
	unlock(p->pieces);
	if (ret)
		base_log_warning(shm, "%llu bytes of the fabric's memory cannot be mapped: %s",
		                 (unsigned long long)bytes, strerror(-ret));
	errno = error;
	return ret ? -ENOMEM : 0;
}

BASE_COLD void *shm_record_map(const struct shm_part *p, void *record, uint64_t bytes)
{
	static _Alignas(64) char nothing[PAGE];

	if (!shm_part_map(p, (uint64_t)((char *)record - p->base), bytes))
		return record;
	return memset(nothing, 0, sizeof(nothing));
}

BASE_COLD void *shm_payload_map(const struct shm_region *r, uint64_t off, uint32_t bytes)
{
	uint64_t from = r->control->payloads_off, size = r->control->payloads_size;

	if (off < from || off - from > size || size - (off - from) < bytes)
		return NULL;
	return shm_data_map(r, off, bytes);
}

/* ---- regions ---- */

static void part_unmap(struct shm_part *p)
{
	uint64_t n = p->pieces ? p->pieces->n : 0, first = 0;

	while (n && (first += run(p, first, n, false)) < n) {
		uint64_t mapped = run(p, first, n, true), off = first << SHM_PIECE_SHIFT;

		munmap(p->base + off, length(p, off, mapped));
		first += mapped;
	}
	free(p->pieces);
	if (p->fd >= 0)
		close(p->fd);
	*p = (struct shm_part){ .fd = -1 };
}

void shm_region_unmap(struct shm_region *r)
{
	part_unmap(&r->part.data);
	part_unmap(&r->part.control);
	memset(r, 0, sizeof(*r));
	r->part.control.fd = r->part.data.fd = -1;
}

/* The part is of @size bytes behind @fd, which is its own from now on. 0 or -ENOMEM. */
static int part_init(struct shm_part *p, int fd, uint64_t size, int prot)
{
	uint64_t n = (size + SHM_PIECE - 1) >> SHM_PIECE_SHIFT;

	*p = (struct shm_part){ .size = size, .fd = fd, .prot = prot };
	p->pieces = calloc(1, sizeof(*p->pieces) + n);
	if (!p->pieces)
		return -ENOMEM;
	p->pieces->n = n;
	return 0;
}

/* Maps the first piece of the part if it lies at @base. 0 or -errno of map_at(). */
static int place(struct shm_part *p, char *base)
{
	p->base = base;
	return map_pieces(p, 0, 1);
}

/* Finds a slot for the region and maps the first piece of both parts. 0 or -errno of mmap(). */
static int find_slot(struct shm_region *r)
{
	struct shm_part *control = &r->part.control, *data = &r->part.data;
	char *here = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *base;
	int ret = here == MAP_FAILED ? -errno : -EEXIST;
	bool down;

	if (here == MAP_FAILED)
		return ret;
	munmap(here, PAGE);
	/* slots of one grid: two regions of a process have the same one, which the second finds
	 * taken, or have nothing in common */
	here -= (uintptr_t)here % SLOT;
	/* mappings grow downwards; under valgrind, or by a setting of the kernel's, upwards */
	down = (uintptr_t)here > DISTANCE;
	for (unsigned i = 0; i < SLOTS && ret == -EEXIST; i++) {
		if (down && (uintptr_t)here <= DISTANCE + i * SLOT)
			return -ENOMEM; /* address spaces of 39 bits have fewer slots */
		base = down ? here - DISTANCE - i * SLOT : here + UP + i * SLOT;
		ret = place(control, base);
		if (ret)
			continue;
		ret = place(data, base + base_align_up(control->size, SHM_PIECE) + SHM_PIECE);
		if (ret) {
			munmap(base, length(control, 0, 1));
			atomic_store(&control->pieces->state[0], 0);
		}
	}
	return ret;
}

/* Takes over the descriptors and finds a place for both parts, which have these sizes. */
static int place_parts(struct shm_region *r, int fd[2], const uint64_t size[2], int control_prot)
{
	int ret = part_init(&r->part.control, fd[0], size[0], control_prot);
	int ret2 = part_init(&r->part.data, fd[1], size[1], PROT_READ | PROT_WRITE);

	if (!ret)
		ret = ret2;
	if (!ret)
		ret = find_slot(r);
	r->control = (void *)r->part.control.base;
	r->data = (void *)r->part.data.base;
	return ret;
}

/* The control part says where all is. */
static void finish(struct shm_region *r)
{
	const struct shm_control *c = r->control;

	r->part.data.payloads = (c->payloads_off + SHM_PIECE - 1) >> SHM_PIECE_SHIFT;
	r->part.data.payloads_end = (c->payloads_off + c->payloads_size) >> SHM_PIECE_SHIFT;
#define POINT(of, record, name, n) \
	r->all_##name = (void *)(r->part.of.base + r->control->name##_off);
	SHM_TABLES(POINT);
}

static int make(const char *name, uint64_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING), ret;

	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, (off_t)size))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

/* From here on nobody can map the control part writable, or resize either. */
static int seal(const struct shm_region *r)
{
	return fcntl(r->part.control.fd, F_ADD_SEALS,
	             F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0 ||
	                       fcntl(r->part.data.fd, F_ADD_SEALS,
	                             F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0
	               ? -errno
	               : 0;
}

int shm_region_create(struct shm_region *r, uint32_t n_hcas, uint32_t n_ports)
{
	struct shm_control c = { .magic = SHM_MAGIC,
		                 .version = SHM_VERSION,
		                 .n_hcas = n_hcas,
		                 .n_ports = n_ports,
		                 .rings_size = RINGS_SIZE,
		                 .payloads_size = PAYLOADS_SIZE };
	int ret, fd[2];

	lay_out(&c);
	memset(r, 0, sizeof(*r));
	r->part.control.fd = r->part.data.fd = -1;
	fd[0] = make("umbel-control", c.size);
	fd[1] = make("umbel-data", c.data_size);
	if (fd[0] < 0 || fd[1] < 0) {
		ret = base_min(fd[0], fd[1]);
		for (int i = 0; i < 2; i++)
			if (fd[i] >= 0)
				close(fd[i]);
		return ret;
	}
	ret = place_parts(r, fd, (uint64_t[]){ c.size, c.data_size }, PROT_READ | PROT_WRITE);
	if (!ret)
		ret = shm_part_map(&r->part.control, 0, c.size); /* later it could not be written */
	if (!ret) {
		*r->control = c;
		r->data->magic = SHM_MAGIC;
		r->data->version = SHM_VERSION;
		finish(r);
		ret = seal(r);
	}
	if (ret)
		shm_region_unmap(r);
	return ret;
}

/* Whether @n records of @bytes each lie at @off, after the header and before @size. */
static bool lie_within(uint64_t off, uint64_t n, uint64_t bytes, uint64_t size)
{
	return off >= PAGE && off % 64 == 0 && off <= size && n <= (size - off) / bytes;
}

/*
 * Whether all tables lie where there is memory. This is checked once: from then on the control part
 * is trusted, as it belongs to the daemon of the same user.
 */
static bool is_well_formed(const struct shm_region *r)
{
	const struct shm_control *c = r->control;
	const uint64_t control = r->part.control.size, data = r->part.data.size;
	bool fits = lie_within(c->lists_off, 0, 1, control) &&
	            lie_within(c->rings_off, c->rings_size, 1, data) &&
	            lie_within(c->payloads_off, c->payloads_size, 1, data);

#define CHECK(part, record, name, n) \
	fits = fits && lie_within(c->name##_off, n, sizeof(struct shm_##record), part);
	SHM_TABLES(CHECK);
	return fits;
}

/* Whether nobody can shrink the memory of @fd: access to a missing page would raise SIGBUS. */
static bool keeps_size(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_SHRINK);
}

/* Whether the ports of all HCAs are in the table of ports. */
static bool ports_fit(const struct shm_region *r)
{
	for (uint32_t i = 0; i < r->control->n_hcas; i++) {
		const struct shm_hca *h = shm_hca_at(r, i);

		if (h->first_port > r->control->n_ports ||
		    h->n_ports > r->control->n_ports - h->first_port)
			return false;
	}
	return true;
}

/* The size of the part behind @fd. 0 or -errno. */
static int size_of(int fd, uint64_t *size)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*size = (uint64_t)st.st_size;
	return st.st_size < PAGE ? -EPROTO : 0;
}

/* Whether what is mapped is a fabric of this version. Its tables are there from then on. */
static bool is_fabric(struct shm_region *r)
{
	const struct shm_control *c = r->control;

	if (c->magic != SHM_MAGIC || c->version != SHM_VERSION || c->size != r->part.control.size ||
	    c->data_size != r->part.data.size || !is_well_formed(r))
		return false;
	finish(r);
	return !shm_part_map(&r->part.control, c->hcas_off, c->n_hcas * sizeof(struct shm_hca)) &&
	       !shm_part_map(&r->part.control, c->ports_off,
	                     c->n_ports * sizeof(struct shm_port)) &&
	       ports_fit(r);
}

int shm_region_map(struct shm_region *r, int control_fd, int data_fd)
{
	int given[] = { control_fd, data_fd }, fd[2], ret = 0;
	uint64_t size[2];

	memset(r, 0, sizeof(*r));
	r->part.control.fd = r->part.data.fd = -1;
	for (int i = 0; i < 2 && !ret; i++)
		ret = keeps_size(given[i]) ? size_of(given[i], &size[i]) : -EPROTO;
	if (ret)
		return ret;
	fd[0] = fcntl(control_fd, F_DUPFD_CLOEXEC, 0);
	fd[1] = fd[0] < 0 ? -1 : fcntl(data_fd, F_DUPFD_CLOEXEC, 0);
	if (fd[1] < 0)
		ret = -errno;
	if (ret && fd[0] >= 0)
		close(fd[0]);
	if (ret)
		return ret;
	ret = place_parts(r, fd, size, PROT_READ);
	if (!ret && !is_fabric(r))
		ret = -EPROTO;
	if (ret)
		shm_region_unmap(r);
	return ret;
}

int shm_region_map_ports(struct shm_region *r, int control_fd, int data_fd)
{
	int ret = shm_region_map(r, control_fd, data_fd);
	const struct shm_control *c = r->control;

	if (ret)
		return ret;
	ret = shm_part_map(&r->part.data, c->port_counts_off,
	                   c->n_ports * sizeof(struct shm_port_count));
	if (!ret)
		ret = shm_part_map(&r->part.data, c->roce_ports_off,
		                   c->n_ports * sizeof(struct shm_roce_port));
	if (ret) {
		shm_region_unmap(r);
		return ret;
	}
	close(r->part.control.fd);
	close(r->part.data.fd);
	r->part.control.fd = r->part.data.fd = -1;
	return 0;
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
	const struct shm_port *p = shm_port_at(r, port);
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
	const struct shm_srq *s = shm_srq_at(r, srq);
	uint32_t seq;
	bool alive;

	do {
		alive = shm_read_begin(r, &s->seq, &seq);
		memcpy((void *)copy, s, sizeof(*copy));
	} while (alive && shm_read_retry(&s->seq, seq));
}
