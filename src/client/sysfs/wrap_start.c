/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The work before the program's main(): see libraries.h. The C library passes a constructor what it
 * passes to main().
 */
#include "sysfs/libraries.h"

__attribute__((constructor)) static void start(int argc, char **argv)
{
	(void)argc;
	sysfs_libraries_mend(argv);
}
