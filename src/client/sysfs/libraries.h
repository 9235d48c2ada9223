/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Libraries for RDMA that a program has loaded from elsewhere, and not ours: by a DT_RPATH, which
 * counts more than LD_LIBRARY_PATH, or by an LD_LIBRARY_PATH of its own. They see no device.
 *
 * Of two libraries of one name the dynamic linker keeps the first. So the program is started again
 * with ours preloaded, before its main(): it is the same process, and only such a program pays for
 * it. A program that loads them later, by dlopen(3), is told.
 */
#ifndef SYSFS_LIBRARIES_H
#define SYSFS_LIBRARIES_H

/* Before main(): starts the program again if it has loaded such libraries, or says why they see
 * nothing. */
void sysfs_libraries_mend(char **argv);

/* Says it, once, if the program has loaded some by now. Thread-safe. */
void sysfs_libraries_explain(void);

#endif
