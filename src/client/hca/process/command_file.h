/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The file behind the cmd_fd of a context: a small file in memory. A program that has a duplicate
 * of the descriptor, in this process or another one, can open the same HCA by it
 * (ibv_import_device(3)) and name objects by their handles.
 *
 * The file lists the protection domains. Memory regions and device memory exist only in the process
 * that made them, as no other process has that memory. Their handles begin with the number of that
 * process, which is a member of the file.
 *
 * A process maps a file once, even if several of its contexts use it. Every program that has the
 * descriptor can write the file, so its contents decide about imports and about nothing else.
 *
 * Thread-safe.
 */
#ifndef HCA_COMMAND_FILE_H
#define HCA_COMMAND_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/hash.h"

struct hca_dm_memory;
struct hca_process;
struct hca_shared_file;

#define HCA_FILE_PDS 65536 /* protection domains of a file */

/* The handle of memory: member << HCA_FILE_INDEX_BITS | index. */
#define HCA_FILE_INDEX_BITS 20
#define HCA_FILE_INDEXES    (1u << HCA_FILE_INDEX_BITS)

struct hca_command_file {
	LIST_ENTRY(hca_command_file) entry;
	struct hca_process *process;
	struct hca_shared_file *shared;
	unsigned refs; /* contexts */
	uint32_t member;
	/* under the process's file_lock: */
	struct base_hash domains; /* struct hca_domain, by handle; not those that are deallocated */
	LIST_HEAD(, hca_dm_memory) dms;
	uint64_t dm_bytes;
	uint32_t next_dm;
};

/*
 * A new file for HCA @hca. *@fd is the caller's; -1: the process may make no files (RLIMIT_FSIZE, a
 * sandbox), and nothing can be imported. 0 or -errno.
 */
int hca_command_file_new(struct hca_process *p, uint32_t hca, struct hca_command_file **file,
                         int *fd);

/* The file of @fd, which stays the caller's. *@hca: what it is of. -EBADF; -EINVAL: it is no such
 * file; -ENODEV: of another fabric; -ENOSPC: too many processes had it. */
int hca_command_file_import(struct hca_process *p, int fd, struct hca_command_file **file,
                            uint32_t *hca);
void hca_command_file_put(struct hca_command_file *file);

/* Reserves the handle of a PD: -ENOSPC. */
int hca_command_file_add_pd(struct hca_command_file *file, uint32_t *handle);
bool hca_command_file_has_pd(const struct hca_command_file *file, uint32_t handle);
/* -ENOENT: somebody else has destroyed it. */
int hca_command_file_remove_pd(struct hca_command_file *file, uint32_t handle);

/* The index in the handle of memory. -EOPNOTSUPP: it is another process's; -ENOENT: nobody's. */
int hca_command_file_index(const struct hca_command_file *file, uint32_t handle, uint32_t *index);

static inline uint32_t hca_command_file_handle(const struct hca_command_file *file, uint32_t index)
{
	return file->member << HCA_FILE_INDEX_BITS | index;
}

#endif
