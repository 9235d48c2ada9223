/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls of programs built with rdma-core 59 and later: ibv_reg_mr_ex(), ibv_alloc_buf(),
 * ibv_query_port_speed(), and those that the device refuses. They are found by name and version, as
 * the loader finds them for such a program; older headers do not declare them.
 */
#include "lab.h"

#define BYTES 10000

/* The bits of comp_mask. */
enum { IOVA = 1, ADDR = 2, FD = 4, FD_OFFSET = 8, DMAH = 16, BUF = 32 };

/* struct ibv_mr_init_attr */
struct mr_attr {
	size_t length;
	int access;
	uint64_t comp_mask, iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	void *dmah, *buf;
};

typedef void *(*alloc_buf_fn)(struct ibv_pd *pd, size_t size, void **buf);
typedef void (*free_buf_fn)(void *buf);
typedef struct ibv_mr *(*reg_buf_fn)(struct ibv_pd *pd, void *buf, void *addr, size_t length,
                                     int access);
typedef int (*export_buf_fn)(void *buf);
typedef struct ibv_mr *(*reg_mr_ex_fn)(struct ibv_pd *pd, struct mr_attr *attr);
typedef int (*port_speed_fn)(struct ibv_context *context, uint32_t port_num, uint64_t *speed);
typedef void *(*make_fn)(struct ibv_context *context, void *attr);

static void *find(const char *name, const char *version)
{
	void *fn = dlvsym(RTLD_DEFAULT, name, version);

	if (!fn)
		fail_msg("%s", dlerror());
	return fn;
}

static char *alloc_buf(struct ibv_pd *pd, void **buf)
{
	char *addr = ((alloc_buf_fn)find("ibv_alloc_buf", "IBVERBS_1.17"))(pd, BYTES, buf);

	assert_non_null(addr);
	lab_undo((free_buf_fn)find("ibv_free_buf", "IBVERBS_1.17"), *buf);
	return addr;
}

static struct ibv_mr *reg_ex(struct ibv_pd *pd, struct mr_attr attr)
{
	errno = 0;
	return ((reg_mr_ex_fn)find("ibv_reg_mr_ex", "IBVERBS_1.15"))(pd, &attr);
}

static void expect_refused(struct ibv_pd *pd, struct mr_attr attr, int error)
{
	assert_null(reg_ex(pd, attr));
	assert_int_equal(errno, error);
}

/* A message from @addr, as requests call it, is what @text says. */
static void expect_sent(struct lab_end *e, const struct ibv_mr *mr, uint64_t addr, const char *text)
{
	struct lab_request r;

	lab_post(e, 1);
	lab_request(e, &r, lab_ah_to(e, e), e->qp->qp_num, NULL, (uint32_t)strlen(text));
	r.sge.addr = addr;
	r.sge.lkey = mr->lkey;
	lab_send_request(e, &r);
	lab_expect_text(e, text);
}

LAB_CASE(a_buffer_of_the_library_can_be_registered_and_sent_from)
{
	reg_buf_fn reg = (reg_buf_fn)find("ibv_reg_buf_mr", "IBVERBS_1.17");
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr;
	void *buf;
	char *addr = alloc_buf(e->pd, &buf);

	assert_int_equal((uintptr_t)addr % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
	assert_non_null(mr = reg(e->pd, buf, addr + 100, BYTES - 100, IBV_ACCESS_LOCAL_WRITE));
	strcpy(addr + 100, "from a buffer");
	expect_sent(e, mr, (uintptr_t)addr + 100, "from a buffer");
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

LAB_CASE(a_buffer_of_no_bytes_or_without_a_place_is_refused)
{
	alloc_buf_fn alloc = (alloc_buf_fn)find("ibv_alloc_buf", "IBVERBS_1.17");
	struct ibv_pd *pd = lab_pd(lab_open(1));
	void *buf = pd;

	errno = 0;
	assert_null(alloc(pd, 0, &buf));
	assert_int_equal(errno, EINVAL);
	assert_ptr_equal(buf, pd); /* nothing was written there */
	errno = 0;
	assert_null(alloc(pd, BYTES, NULL));
	assert_int_equal(errno, EINVAL);
}

LAB_CASE(a_buffers_region_must_lie_within_it_and_in_its_pd)
{
	reg_buf_fn reg = (reg_buf_fn)find("ibv_reg_buf_mr", "IBVERBS_1.17");
	struct ibv_context *context = lab_open(1);
	struct ibv_pd *pd = lab_pd(context), *other = lab_pd(context);
	void *buf;
	char *addr = alloc_buf(pd, &buf);

	assert_null(reg(pd, buf, addr, BYTES + 1, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(reg(pd, buf, addr - 1, 1, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(reg(pd, buf, addr + BYTES, 1, 0));
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_null(reg(other, buf, addr, BYTES, 0));
	assert_int_equal(errno, EINVAL);
}

LAB_CASE(a_buffer_has_no_dma_buf_to_export)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));
	void *buf;

	alloc_buf(pd, &buf);
	errno = 0;
	assert_int_equal(((export_buf_fn)find("ibv_export_buf_dmabuf_fd", "IBVERBS_1.18"))(buf),
	                 -1);
	assert_int_equal(errno, ENODATA);
}

LAB_CASE(reg_mr_ex_registers_memory_under_another_address)
{
	struct lab_end *e = lab_end(1);
	char memory[] = "at another address";
	const uint64_t iova = 0x1000 + (uintptr_t)memory % 4096; /* pages as the memory has them */
	struct ibv_mr *mr = reg_ex(e->pd, (struct mr_attr){ .length = sizeof(memory),
	                                                    .access = IBV_ACCESS_LOCAL_WRITE,
	                                                    .comp_mask = ADDR | IOVA,
	                                                    .iova = iova,
	                                                    .addr = memory });

	assert_non_null(mr);
	expect_sent(e, mr, iova, "at another address");
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

LAB_CASE(reg_mr_ex_registers_buffers)
{
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr;
	void *buf;
	char *addr = alloc_buf(e->pd, &buf);

	strcpy(addr, "a buffer");
	mr = reg_ex(e->pd,
	            (struct mr_attr){
	                    .length = BYTES, .comp_mask = ADDR | BUF, .addr = addr, .buf = buf });
	assert_non_null(mr);
	expect_sent(e, mr, (uintptr_t)addr, "a buffer");
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

LAB_CASE(reg_mr_ex_refuses_what_contradicts_itself)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));
	void *buf;
	char *addr = alloc_buf(pd, &buf);
	struct mr_attr attr = { .length = BYTES, .addr = addr, .buf = buf };

	expect_refused(pd, attr, EINVAL);
	attr.comp_mask = ADDR | FD | FD_OFFSET;
	expect_refused(pd, attr, EINVAL);
	attr.comp_mask = BUF;
	expect_refused(pd, attr, EINVAL);
	attr.comp_mask = BUF | FD | FD_OFFSET;
	expect_refused(pd, attr, EINVAL);
	attr.comp_mask = ADDR | BUF;
	attr.length++;
	expect_refused(pd, attr, EINVAL);
}

LAB_CASE(reg_mr_ex_refuses_what_the_device_lacks)
{
	struct ibv_pd *pd = lab_pd(lab_open(1));
	char memory[64];
	struct mr_attr attr = { .length = sizeof(memory), .addr = memory };

	attr.comp_mask = FD | FD_OFFSET;
	expect_refused(pd, attr, EOPNOTSUPP);
	attr.comp_mask = ADDR | DMAH;
	expect_refused(pd, attr, EOPNOTSUPP);
	attr.comp_mask = ADDR | 64;
	expect_refused(pd, attr, EOPNOTSUPP);
}

/* Four lanes of EDR. */
LAB_CASE(a_ports_speed_is_that_of_its_link)
{
	port_speed_fn speed_of = (port_speed_fn)find("ibv_query_port_speed", "IBVERBS_1.16");
	struct ibv_context *context = lab_open(1);
	uint64_t speed = 0;

	assert_int_equal(speed_of(context, 1, &speed), 0);
	assert_int_equal(speed, 1000);
	assert_int_equal(speed_of(context, 2, &speed), EINVAL);
	assert_int_equal(speed_of(context, 257, &speed), EINVAL);
}

LAB_CASE(dma_handles_are_refused)
{
	struct ibv_context *context = lab_open(1);
	char attr[64] = "";

	errno = 0;
	assert_null(((make_fn)find("ibv_alloc_dmah", "IBVERBS_1.15"))(context, attr));
	assert_int_equal(errno, EOPNOTSUPP);
}
