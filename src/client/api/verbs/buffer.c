/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Buffers that the library allocates, and ibv_reg_mr_ex(), which registers them and other memory:
 * versions 1.15 to 1.18 of the interface, which programs built with rdma-core 59 and later call.
 * Debian 12 and 13 have no header for them, so the structures that they share with programs are
 * declared here, under names of its own: a newer header must not collide with them. Safe from any
 * thread.
 *
 * A buffer is memory of the process, never a DMA-buf, so none has a descriptor to export.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "api/verbs/verbs.h"

/* The bits of verbs_mr_attr.comp_mask. */
enum {
	MR_IOVA = 1 << 0,
	MR_ADDR = 1 << 1,
	MR_FD = 1 << 2,
	MR_FD_OFFSET = 1 << 3,
	MR_BUF = 1 << 5,
};
#define MR_KNOWN ((uint64_t)(MR_IOVA | MR_ADDR | MR_FD | MR_FD_OFFSET | MR_BUF))

/* struct ibv_mr_init_attr */
struct verbs_mr_attr {
	size_t length;
	int access;
	uint64_t comp_mask;
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	void *dmah;
	struct ibv_buf *buf;
};

struct ibv_buf {
	struct ibv_pd *pd;
	char *addr;
	size_t size;
};

void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
void ibv_free_buf(struct ibv_buf *buf);
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length,
                              int access);
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf);
struct ibv_mr *verbs_reg_mr_ex(struct ibv_pd *pd,
                               struct verbs_mr_attr *attr) __asm__("ibv_reg_mr_ex");

/* The address, of a page, and *@buf; or NULL and errno. ibv_alloc_buf(3) */
void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf)
{
	struct ibv_buf *b;
	void *addr;

	if (!size || !buf)
		return verbs_null(-EINVAL);
	b = malloc(sizeof(*b));
	if (!b)
		return verbs_null(-ENOMEM);
	addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (addr == MAP_FAILED) {
		free(b);
		return verbs_null(-ENOMEM);
	}
	*b = (struct ibv_buf){ .pd = pd, .addr = addr, .size = size };
	*buf = b;
	return addr;
}

/* Its regions must be deregistered before. */
void ibv_free_buf(struct ibv_buf *buf)
{
	if (!buf)
		return;
	munmap(buf->addr, buf->size);
	free(buf);
}

static bool is_within(const struct ibv_buf *buf, const void *addr, size_t length)
{
	uintptr_t offset = (uintptr_t)addr - (uintptr_t)buf->addr;

	return (uintptr_t)addr >= (uintptr_t)buf->addr && offset <= buf->size &&
	       length <= buf->size - offset;
}

/* EINVAL: the buffer is of another PD, or ends before the region. */
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length,
                              int access)
{
	if (!buf || buf->pd != pd || !is_within(buf, addr, length))
		return verbs_null(-EINVAL);
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

/* -1, errno ENODATA: no DMA-buf is behind it. */
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf)
{
	return verbs_minus_one(buf ? -ENODATA : -EINVAL);
}

/* 0, or -errno: this combination has no meaning, or we have no such thing. */
static int check_attr(const struct ibv_pd *pd, const struct verbs_mr_attr *a)
{
	bool fd = a->comp_mask & (MR_FD | MR_FD_OFFSET);

	if (a->comp_mask & ~MR_KNOWN)
		return -EOPNOTSUPP; /* also a DMA handle: there are none */
	if (fd == !!(a->comp_mask & MR_ADDR))
		return -EINVAL; /* one of the two there must be */
	if (fd)
		return a->comp_mask & MR_BUF ? -EINVAL : -EOPNOTSUPP;
	if ((a->comp_mask & MR_BUF) &&
	    (!a->buf || a->buf->pd != pd || !is_within(a->buf, a->addr, a->length)))
		return -EINVAL;
	return 0;
}

/* Memory by its address, also with another I/O virtual address, also of a buffer. ibv_reg_mr(3) */
struct ibv_mr *verbs_reg_mr_ex(struct ibv_pd *pd, struct verbs_mr_attr *attr)
{
	int ret = check_attr(pd, attr);

	if (ret)
		return verbs_null(ret);
	return ibv_reg_mr_iova2(pd, attr->addr, attr->length,
	                        attr->comp_mask & MR_IOVA ? attr->iova : (uintptr_t)attr->addr,
	                        (unsigned)attr->access);
}
