/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Import: ibv_import_device(3), ibv_import_pd(3), ibv_import_mr(3), ibv_import_dm(3), within a
 * process and between two.
 */
#include "lab.h"

#define BYTES   4096
#define THREADS 4
#define ROUNDS  100

static char memory[BYTES];

static void undo_close(void *context)
{
	ibv_close_device(context);
}

static void undo_unimport_pd(void *pd)
{
	ibv_unimport_pd(pd);
}

static void undo_unimport_mr(void *mr)
{
	ibv_unimport_mr(mr);
}

static struct ibv_context *import(struct ibv_context *context)
{
	struct ibv_context *imported;

	assert_true(context->cmd_fd >= 0);
	assert_non_null(imported = ibv_import_device(dup(context->cmd_fd)));
	lab_undo(undo_close, imported);
	return imported;
}

static struct ibv_pd *import_pd(struct ibv_context *context, const struct ibv_pd *pd)
{
	struct ibv_pd *imported = ibv_import_pd(context, pd->handle);

	assert_non_null(imported);
	lab_undo(undo_unimport_pd, imported);
	return imported;
}

static struct ibv_mr *import_mr(struct ibv_pd *pd, const struct ibv_mr *mr)
{
	struct ibv_mr *imported = ibv_import_mr(pd, mr->handle);

	assert_non_null(imported);
	lab_undo(undo_unimport_mr, imported);
	return imported;
}

static void expect_no_device(int fd, int error)
{
	errno = 0;
	assert_null(ibv_import_device(fd));
	assert_int_equal(errno, error);
}

static void expect_no_pd(struct ibv_context *context, uint32_t handle, int error)
{
	errno = 0;
	assert_null(ibv_import_pd(context, handle));
	assert_int_equal(errno, error);
}

static void expect_no_mr(struct ibv_pd *pd, uint32_t handle, int error)
{
	errno = 0;
	assert_null(ibv_import_mr(pd, handle));
	assert_int_equal(errno, error);
}

/* A message of @qp to @e, from its buffer, with this key. */
static void send_with_key(struct lab_end *e, struct ibv_qp *qp, struct ibv_ah *ah, uint32_t lkey)
{
	struct ibv_send_wr *bad;
	struct lab_request r;

	lab_post(e, 1);
	lab_request(e, &r, ah, e->qp->qp_num, "message", 7);
	r.sge.lkey = lkey;
	assert_int_equal(ibv_post_send(qp, &r.wr, &bad), 0);
	lab_complete(e->send_cq, IBV_WC_SUCCESS);
	lab_expect_text(e, "message");
}

/* ---- devices ---- */

LAB_CASE(an_imported_device_is_the_same_device)
{
	struct ibv_context *context = lab_open(2), *imported = import(context);
	struct ibv_pd *pd = lab_pd(imported);

	assert_ptr_not_equal(imported, context);
	assert_ptr_equal(imported->device, context->device);
	assert_int_not_equal(imported->async_fd, context->async_fd);
	lab_mr(pd, memory, BYTES);
	lab_cq(imported, 4, NULL);
}

LAB_CASE(closing_an_imported_device_closes_its_descriptor)
{
	struct ibv_context *context = lab_open(1), *imported;
	int fd = dup(context->cmd_fd);

	assert_non_null(imported = ibv_import_device(fd));
	assert_int_equal(imported->cmd_fd, fd);
	assert_int_equal(ibv_close_device(imported), 0);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	lab_pd(context);
}

LAB_CASE(an_imported_device_outlives_the_first)
{
	struct ibv_context *context = ibv_open_device(lab_device(1));
	struct ibv_context *imported = import(context);

	assert_int_equal(ibv_close_device(context), 0);
	lab_mr(lab_pd(imported), memory, BYTES);
}

/* As Linux has it: by the channel's descriptor the device has to be found that has made it. */
LAB_CASE(a_channel_is_for_its_device_and_those_imported)
{
	struct ibv_context *context = lab_open(1), *again = lab_open(1);
	struct ibv_context *imported = import(context);
	struct ibv_comp_channel *channel = lab_channel(context);

	lab_cq(context, 1, channel);
	lab_cq(imported, 1, channel);
	errno = 0;
	assert_null(ibv_create_cq(again, 1, NULL, channel, 0));
	assert_int_equal(errno, EBADF);
	errno = 0;
	assert_null(ibv_create_cq(lab_open(2), 1, NULL, channel, 0));
	assert_int_equal(errno, EBADF);
}

LAB_CASE(a_descriptor_of_something_else_is_refused)
{
	struct ibv_context *context = lab_open(1);
	int fd = memfd_create("other", MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	expect_no_device(-1, EBADF);
	expect_no_device(context->async_fd, EINVAL);
	expect_no_device(fd, EINVAL);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	expect_no_device(fd, EINVAL);
	assert_int_equal(close(fd), 0);
}

LAB_CASE(nobody_can_cut_the_file_short)
{
	assert_int_equal(ftruncate(lab_open(1)->cmd_fd, 0), -1);
	assert_int_equal(errno, EPERM);
}

LAB_CASE(without_files_a_device_opens_without_a_descriptor)
{
	struct rlimit limit, none;
	struct ibv_context *context;
	struct ibv_pd *pd;

	lab_open(1); /* the process has joined */
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	context = ibv_open_device(lab_device(1));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_non_null(context);
	lab_undo(undo_close, context);
	assert_int_equal(context->cmd_fd, -1);
	pd = lab_pd(context);
	lab_mr(pd, memory, BYTES);
	import_pd(context, pd);
}

/* ---- protection domains and regions ---- */

LAB_CASE(imported_objects_are_those_that_were_exported)
{
	struct lab_end *e = lab_end(1);
	struct ibv_context *imported = import(e->context);
	struct ibv_pd *pd = import_pd(imported, e->pd);
	struct ibv_mr *mr = import_mr(pd, e->mr);
	struct ibv_ah_attr attr = lab_attr_to(e);
	struct ibv_ah *ah = lab_ah(pd, &attr);

	assert_int_equal(pd->handle, e->pd->handle);
	assert_ptr_equal(pd->context, imported);
	assert_null(mr->addr);
	assert_int_equal(mr->lkey, e->mr->lkey);
	assert_int_equal(mr->length, e->mr->length);
	/* address handles and regions of either handle fit the queue pair */
	send_with_key(e, e->qp, ah, mr->lkey);
	mr = lab_mr(pd, e->out, LAB_SLOT);
	send_with_key(e, e->qp, lab_ah_to(e, e), mr->lkey);
}

LAB_CASE(handles_that_name_nothing_are_refused)
{
	struct ibv_context *context = lab_open(1), *other = lab_open(1);
	struct ibv_pd *pd = lab_pd(context), *second = lab_pd(context);
	struct ibv_mr *mr = lab_mr(pd, memory, BYTES);
	struct ibv_pd *gone = ibv_alloc_pd(context);
	uint32_t handle = gone->handle;

	assert_int_equal(ibv_dealloc_pd(gone), 0);
	expect_no_pd(context, handle, ENOENT);
	expect_no_pd(context, UINT32_MAX, ENOENT);
	expect_no_mr(pd, mr->handle + 1000, ENOENT);
	expect_no_mr(pd, UINT32_MAX, ENOENT);
	expect_no_mr(second, mr->handle, EINVAL);
	/* a context that was opened by itself knows no handles of others */
	expect_no_mr(lab_pd(other), mr->handle, ENOENT);
}

LAB_CASE(unimport_leaves_the_object_as_it_is)
{
	struct lab_end *e = lab_end(1);
	struct ibv_context *imported = import(e->context);
	struct ibv_pd *pd = ibv_import_pd(imported, e->pd->handle);
	struct ibv_mr *mr = ibv_import_mr(pd, e->mr->handle);

	assert_non_null(mr);
	ibv_unimport_mr(mr);
	ibv_unimport_pd(pd);
	send_with_key(e, e->qp, lab_ah_to(e, e), e->mr->lkey);
}

/* ---- the order of destruction ---- */

LAB_CASE(a_pd_is_busy_whoever_made_what_is_in_it)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_pd *imported = ibv_import_pd(import(context), pd->handle);
	struct ibv_mr *mr = ibv_reg_mr(imported, memory, BYTES, 0);

	assert_non_null(mr);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dealloc_pd(imported), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	/* it is gone: the other handle can only be given up */
	assert_int_equal(ibv_dealloc_pd(imported), ENOENT);
	expect_no_pd(context, imported->handle, ENOENT);
	ibv_unimport_pd(imported);
}

LAB_CASE(a_handle_is_given_up_before_the_objects_that_were_made_with_it)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_pd *imported = ibv_import_pd(import(context), pd->handle);
	struct ibv_mr *mr = ibv_reg_mr(imported, memory, BYTES, 0);

	ibv_unimport_pd(imported);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

LAB_CASE(a_region_can_be_deregistered_by_any_handle_once)
{
	struct lab_end *e = lab_end(1);
	struct ibv_mr *mr = ibv_reg_mr(e->pd, e->out, LAB_SLOT, 0);
	struct ibv_mr *imported = ibv_import_mr(e->pd, mr->handle);
	struct ibv_send_wr *bad;
	struct lab_request r;

	assert_int_equal(ibv_rereg_mr(imported, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
	                 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_dereg_mr(imported), 0);
	assert_int_equal(ibv_dereg_mr(mr), ENOENT);
	lab_request(e, &r, lab_ah_to(e, e), e->qp->qp_num, "message", 7);
	r.sge.lkey = mr->lkey;
	assert_int_equal(ibv_post_send(e->qp, &r.wr, &bad), 0);
	lab_complete(e->send_cq, IBV_WC_LOC_PROT_ERR);
	ibv_unimport_mr(mr);
}

/* ---- device memory ---- */

LAB_CASE(imported_device_memory_is_the_same_memory)
{
	struct ibv_context *context = lab_open(1), *imported = import(context);
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_dm *dm = ibv_alloc_dm(context, &attr);
	struct ibv_dm *other = ibv_import_dm(imported, dm->handle);
	char back[4];

	assert_non_null(other);
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, "data", 4), 0);
	assert_int_equal(ibv_memcpy_from_dm(back, other, 0, 4), 0);
	assert_memory_equal(back, "data", 4);
	assert_int_equal(ibv_free_dm(other), 0);
	assert_int_equal(ibv_free_dm(dm), ENOENT);
	errno = 0;
	assert_null(ibv_import_dm(imported, dm->handle));
	assert_int_equal(errno, ENOENT);
	ibv_unimport_dm(dm);
}

/* ---- another process ---- */

static void send_descriptor(int by, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(fd))] = "";
	struct iovec data = { &byte, 1 };
	struct msghdr m = { .msg_iov = &data,
		            .msg_iovlen = 1,
		            .msg_control = control,
		            .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	assert_int_equal(sendmsg(by, &m, 0), 1);
}

static int receive_descriptor(int by)
{
	char byte, control[CMSG_SPACE(sizeof(int))] = "";
	struct iovec data = { &byte, 1 };
	struct msghdr m = { .msg_iov = &data,
		            .msg_iovlen = 1,
		            .msg_control = control,
		            .msg_controllen = sizeof(control) };
	int fd;

	if (recvmsg(by, &m, 0) != 1 || !CMSG_FIRSTHDR(&m))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

struct names {
	uint32_t pd, mr, dm;
};

/* Uses the descriptor and the handles of another process. 0, or the number of the failed step. */
static int use_what_was_sent(int by)
{
	struct ibv_context *context = ibv_import_device(receive_descriptor(by));
	struct names names;
	struct ibv_pd *pd, *own;
	struct ibv_mr *mr;

	if (!context || read(by, &names, sizeof(names)) != sizeof(names))
		return 1;
	pd = ibv_import_pd(context, names.pd);
	own = ibv_alloc_pd(context);
	if (!pd || !own || own->handle == pd->handle)
		return 2;
	mr = ibv_reg_mr(pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE);
	if (!mr || mr->handle == names.mr || ibv_dealloc_pd(pd) != EBUSY || ibv_dereg_mr(mr))
		return 3;
	if (ibv_import_mr(pd, names.mr) || errno != EOPNOTSUPP)
		return 4;
	if (ibv_import_dm(context, names.dm) || errno != EOPNOTSUPP)
		return 5;
	ibv_unimport_pd(pd);
	if (ibv_dealloc_pd(own) || ibv_close_device(context))
		return 6;
	return 0;
}

LAB_CASE(another_process_imports_the_device_and_the_pd)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_mr *mr = lab_mr(pd, memory, BYTES);
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_dm *dm = ibv_alloc_dm(context, &attr);
	struct names names = { .pd = pd->handle, .mr = mr->handle, .dm = dm->handle };
	int pair[2];
	pid_t child;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(use_what_was_sent(pair[1]));
	send_descriptor(pair[0], context->cmd_fd);
	assert_int_equal(write(pair[0], &names, sizeof(names)), sizeof(names));
	harness_expect_success(child);
	assert_int_equal(ibv_free_dm(dm), 0);
	lab_forget(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	close(pair[0]);
	close(pair[1]);
}

/* The child ends the PD, which is then gone for both. */
LAB_CASE(a_pd_that_another_process_deallocates_is_gone)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		struct ibv_context *imported = ibv_import_device(dup(context->cmd_fd));
		struct ibv_pd *handle = imported ? ibv_import_pd(imported, pd->handle) : NULL;

		_exit(!handle || ibv_dealloc_pd(handle));
	}
	harness_expect_success(child);
	expect_no_pd(context, pd->handle, ENOENT);
	assert_int_equal(ibv_dealloc_pd(pd), ENOENT);
	ibv_unimport_pd(pd);
}

/* ---- threads ---- */

struct work {
	int cmd_fd;
	uint32_t pd, mr;
};

static void *import_everything(void *arg)
{
	const struct work *w = arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_context *context = ibv_import_device(dup(w->cmd_fd));
		struct ibv_pd *pd = context ? ibv_import_pd(context, w->pd) : NULL;
		struct ibv_mr *mr = pd ? ibv_import_mr(pd, w->mr) : NULL;

		if (!mr)
			return NULL;
		ibv_unimport_mr(mr);
		ibv_unimport_pd(pd);
		if (ibv_close_device(context))
			return NULL;
	}
	return arg;
}

LAB_CASE(threads_import_at_the_same_time)
{
	struct ibv_context *context = lab_open(1);
	struct ibv_pd *pd = lab_pd(context);
	struct ibv_mr *mr = lab_mr(pd, memory, BYTES);
	struct work w = { context->cmd_fd, pd->handle, mr->handle };
	pthread_t thread[THREADS];
	void *result;

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, import_everything, &w), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(thread[i], &result), 0);
		assert_ptr_equal(result, &w);
	}
}
