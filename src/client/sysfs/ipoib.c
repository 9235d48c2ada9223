/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Interfaces of IPoIB: see ipoib.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/signals.h"
#include "sysfs/ipoib.h"
#include "sysfs/real.h"

static bool read_alias(const char *name, struct wire_ipoib_alias *a)
{
	char path[sizeof("/sys/class/net//ifalias") + IF_NAMESIZE];
	char text[WIRE_IPOIB_ALIAS_ROOM];
	int fd, cancel_state = base_cancel_off();
	ssize_t n = -1;

	snprintf(path, sizeof(path), "/sys/class/net/%s/ifalias", name);
	fd = sysfs_real()->open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	base_cancel_restore(cancel_state);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return wire_ipoib_alias_decode(text, a);
}

static bool find_hca(const struct sysfs_session *s, const char *name, uint32_t *hca)
{
	for (*hca = 0; *hca < s->region.control->n_hcas; ++*hca)
		if (sysfs_session_sees(s, *hca) && !strcmp(sysfs_session_hca(s, *hca), name))
			return true;
	return false;
}

bool sysfs_ipoib_find(const struct sysfs_session *s, uint32_t ifindex, struct wire_ipoib_alias *a,
                      uint32_t *hca)
{
	char name[IF_NAMESIZE];
	int error = errno;
	bool found =
	        if_indextoname(ifindex, name) && read_alias(name, a) && find_hca(s, a->device, hca);

	errno = error;
	return found;
}

uint32_t sysfs_ipoib_index(const char *name, size_t length)
{
	const struct sysfs_session *s;
	struct wire_ipoib_alias a;
	char copy[IF_NAMESIZE];
	uint32_t ifindex, hca;
	int error = errno;

	if (length >= sizeof(copy))
		return 0;
	memcpy(copy, name, length);
	copy[length] = '\0';
	ifindex = if_nametoindex(copy);
	errno = error;
	if (!ifindex || !read_alias(copy, &a))
		return 0;
	s = sysfs_session();
	return s && find_hca(s, a.device, &hca) ? ifindex : 0;
}

uint32_t sysfs_ipoib_last(void)
{
	struct if_nameindex *list = if_nameindex();
	uint32_t last = 0;

	for (struct if_nameindex *i = list; i && i->if_index; i++)
		if (i->if_index > last)
			last = i->if_index;
	if (list)
		if_freenameindex(list);
	return last;
}
