/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory objects: memory of this process that the processes of peers can map, and then reach
 * without a system call. There are two kinds. Memory of a System V segment is shared already: a
 * peer attaches the segment. Private memory is moved to a file that peers map, if nobody can notice
 * (adopt.h). Other memory is in no object, and is reached by system calls (memory.h).
 *
 * Files and shared mappings that a program made itself are in no object: a process that can make
 * such a file shorter could kill the peers that had mapped it, by SIGBUS.
 *
 * With the lock of the table of regions held.
 */
#ifndef HCA_OBJECT_H
#define HCA_OBJECT_H

#include "hca/process/maps.h"
#include "hca/process/mr_table.h"

struct hca_process;

/* The object that the region's memory lies in, from now on or already; NULL: none. Of an adopted
 * one it may be the region's whole pages only. */
struct hca_object *hca_object_get(struct hca_process *p, const void *start, size_t length);

/* A region is gone that had @object, and nobody is using it any more. */
void hca_object_put(struct hca_process *p, struct hca_object *object);

/* Gives adopted memory back to the program where no region is left (also none that had no object).
 */
void hca_object_settle(struct hca_process *p);

/* The bits of a key's access that name the object; NULL: none. */
uint32_t hca_object_access(const struct hca_process *p, const struct hca_object *object);

/* Whether that mapping of a System V segment, which is there, has huge pages: they may run out when
 * they are touched. Costs no walk over the process's memory. */
bool hca_object_is_huge(const struct hca_vma *v);

/* The IPC namespace of this process, by its inode. */
uint64_t hca_object_space(void);

#endif
