/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Capabilities of programs on hosts: see capabilities.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "hosts/capabilities.h"

/* SYS_ADMIN and SYS_CHROOT are what setns(2) wants for another host's mounts. */
static const unsigned kept[] = {
	CAP_NET_ADMIN, CAP_NET_RAW, CAP_NET_BIND_SERVICE, CAP_SYS_ADMIN, CAP_SYS_CHROOT,
};

int hosts_capabilities_keep(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct set[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, set))
		return -errno;
	/* what is inheritable may become ambient: kept by exec() of any program */
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		set[kept[i] / 32].inheritable |= set[kept[i] / 32].permitted & 1u << kept[i] % 32;
	if (syscall(SYS_capset, &header, set))
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		if (!(set[kept[i] / 32].permitted & 1u << kept[i] % 32))
			continue;
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, kept[i], 0, 0))
			return -errno;
	}
	return 0;
}
