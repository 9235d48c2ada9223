/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A library whose constructor calls the program that loads it (rough.c), which then posts requests:
 * the dynamic linker has its lock meanwhile.
 */
#include "posix.h"

static __attribute__((constructor)) void construct(void)
{
	void *at = dlsym(RTLD_DEFAULT, "constructed");
	void (*constructed)(void);

	memcpy(&constructed, &at, sizeof(constructed));
	constructed();
}
