/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Protection, parent and thread domains, and the file behind cmd_fd by which they are imported, by
 * another context and another process. The daemon is this program's own: it counts what it is told.
 */
#include <harness.h>

#include "base/util.h"
#include "control/client.h"
#include "control/socket.h"
#include "hca/process/command_file.h"
#include "hca/process/context.h"
#include "hca/process/domain.h"

#define HCA 1

struct lab {
	struct hca_process process;
	struct hca_context ctx[2]; /* the device, and the same imported */
	int fd;
	int shown; /* domains that the daemon shows */
};

static void serve(void *arg, struct control_packet *p)
{
	struct lab *l = arg;

	if (p->header.type == CONTROL_ALLOC_PD)
		l->shown++;
	else if (p->header.type == CONTROL_FREE_PD)
		l->shown--;
	p->header.bytes = 0;
}

static int begin(void **state)
{
	struct lab *l = aligned_alloc(128, base_align_up(sizeof(*l), 128));
	uint32_t hca = 0;

	assert_non_null(l);
	memset((void *)l, 0, sizeof(*l));
	*state = l;
	assert_int_equal(shm_region_create(&l->process.region, 2, 4), 0);
	assert_int_equal(control_local(&l->process.control, serve, l), 0);
	pthread_mutex_init(&l->process.file_lock, NULL);
	for (unsigned i = 0; i < 2; i++) {
		l->ctx[i].process = &l->process;
		pthread_mutex_init(&l->ctx[i].lock, NULL);
	}
	assert_int_equal(hca_command_file_new(&l->process, HCA, &l->ctx[0].file, &l->fd), 0);
	assert_true(l->fd >= 0);
	assert_int_equal(hca_command_file_import(&l->process, l->fd, &l->ctx[1].file, &hca), 0);
	assert_int_equal(hca, HCA);
	return 0;
}

/* Nothing is left. */
static int end(void **state)
{
	struct lab *l = *state;
	bool is_clean = !l->shown;

	for (unsigned i = 0; i < 2; i++) {
		is_clean = is_clean && !l->ctx[i].n_objects;
		hca_command_file_put(l->ctx[i].file);
	}
	is_clean = is_clean && LIST_EMPTY(&l->process.files);
	close(l->fd);
	control_close(l->process.control);
	shm_region_unmap(&l->process.region);
	free(l);
	return is_clean ? 0 : -1;
}

static struct ibv_pd *alloc(struct hca_context *ctx)
{
	int error;
	struct ibv_pd *pd = hca_pd_alloc(ctx, &error);

	assert_int_equal(error, 0);
	assert_non_null(pd);
	return pd;
}

static struct ibv_pd *import(struct hca_context *ctx, uint32_t handle)
{
	int error;
	struct ibv_pd *pd = hca_pd_import(ctx, handle, &error);

	assert_int_equal(!pd, error != 0);
	assert_true(pd || error == -ENOENT);
	return pd;
}

/* ---- files ---- */

CASE_WITH(a_file_that_the_process_has_is_found, begin, end)
{
	struct lab *l = *state;
	struct hca_command_file *file;
	int fd;

	assert_ptr_equal(l->ctx[1].file, l->ctx[0].file);
	assert_true(hca_context_shares(&l->ctx[0], &l->ctx[1].vctx.context));
	assert_int_equal(hca_command_file_new(&l->process, HCA, &file, &fd), 0);
	assert_ptr_not_equal(file, l->ctx[0].file);
	hca_command_file_put(file);
	close(fd);
}

CASE_WITH(what_is_no_such_file_is_not_imported, begin, end)
{
	struct lab *l = *state;
	struct hca_command_file *file;
	uint32_t hca;
	int other = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char byte;

	assert_int_equal(hca_command_file_import(&l->process, -1, &file, &hca), -EBADF);
	assert_int_equal(hca_command_file_import(&l->process, other, &file, &hca), -EINVAL);
	assert_int_equal(ftruncate(other, lseek(l->fd, 0, SEEK_END)), 0);
	assert_int_equal(hca_command_file_import(&l->process, other, &file, &hca), -EINVAL);
	/* sealed, and empty */
	assert_int_equal(fcntl(other, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	assert_int_equal(hca_command_file_import(&l->process, other, &file, &hca), -EINVAL);
	/* of another device than there is, as anybody can write there */
	assert_int_equal(pread(l->fd, &byte, 1, 12), 1);
	assert_int_equal(pwrite(l->fd, "\xff", 1, 12), 1);
	assert_int_equal(hca_command_file_import(&l->process, l->fd, &file, &hca), -ENODEV);
	assert_int_equal(pwrite(l->fd, &byte, 1, 12), 1);
	/* of another fabric, or daemon */
	atomic_store(&l->process.region.control->daemon_futex, 77);
	assert_int_equal(hca_command_file_import(&l->process, l->fd, &file, &hca), -ENODEV);
	atomic_store(&l->process.region.control->daemon_futex, 0);
	close(other);
}

CASE_WITH(memory_has_handles_of_its_process, begin, end)
{
	struct lab *l = *state;
	const struct hca_command_file *f = l->ctx[0].file;
	uint32_t handle = hca_command_file_handle(f, 17), index = 0;

	assert_int_equal(hca_command_file_index(f, handle, &index), 0);
	assert_int_equal(index, 17);
	assert_int_equal(hca_command_file_index(f, handle + HCA_FILE_INDEXES, &index), -ENOENT);
}

/* ---- protection domains ---- */

CASE_WITH(two_handles_name_one_domain, begin, end)
{
	struct lab *l = *state;
	struct ibv_pd *pd = alloc(&l->ctx[0]), *other = alloc(&l->ctx[0]);
	struct ibv_pd *imported = import(&l->ctx[1], pd->handle);

	assert_int_not_equal(pd->handle, other->handle);
	assert_ptr_equal(hca_pd(imported)->domain, hca_pd(pd)->domain);
	assert_ptr_not_equal(hca_pd(other)->domain, hca_pd(pd)->domain);
	assert_int_equal(l->shown, 2);
	/* the domain stays for the handle that is left */
	hca_pd_unimport(pd);
	assert_int_equal(l->shown, 2);
	assert_int_equal(hca_pd_dealloc(imported), 0);
	assert_int_equal(l->shown, 1);
	assert_int_equal(hca_pd_dealloc(other), 0);
}

CASE_WITH(a_domain_that_is_used_stays, begin, end)
{
	struct lab *l = *state;
	struct ibv_pd *pd = alloc(&l->ctx[0]), *imported = import(&l->ctx[1], pd->handle);

	hca_pd_use(imported);
	assert_int_equal(hca_pd_dealloc(imported), -EBUSY);
	assert_int_equal(hca_pd_dealloc(pd), -EBUSY); /* by whatever handle */
	hca_pd_unimport(imported);                    /* the object keeps the handle */
	hca_pd_unuse(imported);
	assert_int_equal(hca_pd_dealloc(pd), 0);
}

CASE_WITH(a_domain_that_is_deallocated_is_found_no_more, begin, end)
{
	struct lab *l = *state;
	struct ibv_pd *pd = alloc(&l->ctx[0]), *imported = import(&l->ctx[1], pd->handle);
	const uint32_t handle = pd->handle;

	assert_int_equal(hca_pd_dealloc(pd), 0);
	assert_null(import(&l->ctx[0], handle));
	assert_int_equal(l->shown, 0);
	assert_int_equal(hca_pd_dealloc(imported), -ENOENT);
	hca_pd_unimport(imported);
	assert_null(import(&l->ctx[0], HCA_FILE_PDS));
	assert_null(import(&l->ctx[0], UINT32_MAX));
}

CASE_WITH(handles_run_out_and_come_back, begin, end)
{
	struct lab *l = *state;
	struct hca_command_file *f = l->ctx[0].file;
	uint32_t handle;

	for (uint32_t i = 0; i < HCA_FILE_PDS; i++)
		assert_int_equal(hca_command_file_add_pd(f, &handle), 0);
	assert_int_equal(hca_command_file_add_pd(f, &handle), -ENOSPC);
	assert_int_equal(hca_command_file_remove_pd(f, 1234), 0);
	assert_int_equal(hca_command_file_remove_pd(f, 1234), -ENOENT);
	assert_false(hca_command_file_has_pd(f, 1234));
	assert_int_equal(hca_command_file_add_pd(f, &handle), 0);
	assert_int_equal(handle, 1234);
}

static void *takes_handles(void *arg)
{
	uintptr_t n = 0;
	uint32_t handle;

	while (!hca_command_file_add_pd(arg, &handle))
		n++;
	return (void *)n;
}

CASE_WITH(no_handle_is_given_twice, begin, end)
{
	struct lab *l = *state;
	pthread_t thread[2];
	void *n[2];

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, takes_handles, l->ctx[0].file),
		                 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_join(thread[i], &n[i]), 0);
	assert_int_equal((uintptr_t)n[0] + (uintptr_t)n[1], HCA_FILE_PDS);
}

/* Another process has the descriptor: it names the domains by their handles, and takes others. */
CASE_WITH(another_process_shares_the_domains, begin, end)
{
	struct lab *l = *state;
	struct ibv_pd *pd = alloc(&l->ctx[0]);
	uint32_t handle, index = 0;
	int status;
	pid_t pid = fork();

	if (!pid) {
		struct hca_process *p = &l->process;
		struct hca_command_file *file;

		LIST_INIT(&p->files); /* it begins anew */
		if (hca_command_file_import(p, l->fd, &file, &handle) || handle != HCA ||
		    file->member == l->ctx[0].file->member ||
		    !hca_command_file_has_pd(file, pd->handle) ||
		    hca_command_file_index(file, hca_command_file_handle(l->ctx[0].file, 5),
		                           &index) != -EOPNOTSUPP ||
		    hca_command_file_add_pd(file, &handle) || handle == pd->handle)
			_exit(1);
		_exit(hca_command_file_remove_pd(file, pd->handle) ? 2 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(hca_pd_dealloc(pd), -ENOENT); /* the other process has */
	hca_pd_unimport(pd);
}

/* ---- parent and thread domains ---- */

static unsigned n_allocated, n_freed;
static char own_memory[64];

static void *allocate(struct ibv_pd *pd, void *context, size_t bytes, size_t alignment,
                      uint64_t type)
{
	assert_true(hca_pd_is_parent(pd));
	assert_int_equal(alignment, 4096);
	assert_int_equal(type, HCA_PD_RECEIVE_QUEUE);
	n_allocated++;
	if (context == own_memory)
		return bytes <= sizeof(own_memory) ? own_memory : NULL;
	return IBV_ALLOCATOR_USE_DEFAULT;
}

static void give_back(struct ibv_pd *pd, void *context, void *memory, uint64_t type)
{
	(void)pd, (void)type;
	assert_ptr_equal(context, own_memory);
	assert_ptr_equal(memory, own_memory);
	n_freed++;
}

static struct ibv_pd *parent_of(struct lab *l, struct ibv_parent_domain_init_attr attr)
{
	int error;
	struct ibv_pd *pd = hca_pd_alloc_parent(&l->ctx[0], &attr, &error);

	assert_int_equal(error, 0);
	return pd;
}

CASE_WITH(a_parent_domain_is_of_the_same_domain_and_keeps_it, begin, end)
{
	struct lab *l = *state;
	int error;
	struct ibv_pd *pd = alloc(&l->ctx[0]), *parent;
	struct ibv_td *td = hca_td_alloc(&l->ctx[0], &error);

	parent = parent_of(l, (struct ibv_parent_domain_init_attr){ .pd = pd, .td = td });
	assert_true(hca_pd_is_parent(parent));
	assert_ptr_equal(hca_pd(parent)->domain, hca_pd(pd)->domain);
	assert_int_equal(hca_pd_dealloc(pd), -EBUSY);
	assert_int_equal(hca_td_dealloc(td), -EBUSY);
	assert_int_equal(hca_pd_dealloc(parent), 0);
	assert_int_equal(hca_td_dealloc(td), 0);
	assert_int_equal(hca_pd_dealloc(pd), 0);
}

CASE_WITH(a_parent_domain_of_something_else_is_refused, begin, end)
{
	struct lab *l = *state;
	int error;
	struct ibv_pd *pd = alloc(&l->ctx[0]), *elsewhere = alloc(&l->ctx[1]);
	struct ibv_pd *parent = parent_of(l, (struct ibv_parent_domain_init_attr){ .pd = pd });
	struct ibv_td *td = hca_td_alloc(&l->ctx[1], &error);
	const struct {
		struct ibv_parent_domain_init_attr attr;
		int error;
	} attrs[] = {
		{ { .pd = NULL }, -EINVAL },
		{ { .pd = elsewhere }, -EINVAL },
		{ { .pd = parent }, -EINVAL },
		{ { .pd = pd, .td = td }, -EINVAL },
		{ { .pd = pd, .comp_mask = 1u << 31 }, -EOPNOTSUPP },
		{ { .pd = pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS }, -EINVAL },
	};

	for (size_t i = 0; EACH_ROW(i, attrs); i++) {
		struct ibv_parent_domain_init_attr attr = attrs[i].attr;

		assert_null(hca_pd_alloc_parent(&l->ctx[0], &attr, &error));
		assert_int_equal(error, attrs[i].error);
	}
	assert_int_equal(hca_td_dealloc(td), 0);
	assert_int_equal(hca_pd_dealloc(parent), 0);
	assert_int_equal(hca_pd_dealloc(pd), 0);
	assert_int_equal(hca_pd_dealloc(elsewhere), 0);
}

CASE_WITH(queues_lie_in_memory_of_the_program_s_allocator, begin, end)
{
	struct lab *l = *state;
	struct ibv_parent_domain_init_attr attr = {
		.pd = alloc(&l->ctx[0]),
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
		             IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = allocate,
		.free = give_back,
		.pd_context = own_memory,
	};
	struct ibv_pd *parent = parent_of(l, attr), *heap;
	struct hca_pd_block block;

	assert_int_equal(hca_pd_block_get(parent, 64, HCA_PD_RECEIVE_QUEUE, &block), 0);
	assert_ptr_equal(block.memory, own_memory);
	hca_pd_block_put(&block, HCA_PD_RECEIVE_QUEUE);
	assert_int_equal(hca_pd_block_get(parent, 65, HCA_PD_RECEIVE_QUEUE, &block), -ENOMEM);
	hca_pd_block_put(&block, HCA_PD_RECEIVE_QUEUE);
	assert_int_equal(n_allocated, 2);
	assert_int_equal(n_freed, 1);
	/* without a context it leaves that to us */
	attr.comp_mask &= ~(uint32_t)IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	heap = parent_of(l, attr);
	assert_int_equal(hca_pd_block_get(heap, 64, HCA_PD_RECEIVE_QUEUE, &block), 0);
	assert_ptr_not_equal(block.memory, own_memory);
	hca_pd_block_put(&block, HCA_PD_RECEIVE_QUEUE);
	assert_int_equal(hca_pd_block_get(attr.pd, 64, HCA_PD_RECEIVE_QUEUE, &block), 0);
	hca_pd_block_put(&block, HCA_PD_RECEIVE_QUEUE);
	assert_int_equal(n_freed, 1);
	assert_int_equal(hca_pd_dealloc(heap), 0);
	assert_int_equal(hca_pd_dealloc(parent), 0);
	assert_int_equal(hca_pd_dealloc(attr.pd), 0);
}
