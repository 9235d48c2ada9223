/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's lists of groups: see members.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "ipoib/members.h"

/* The next line of *@text, without its end; NULL: there is none. */
static char *next_line(char **text)
{
	char *line = strsep(text, "\n");

	return line && (*line || *text) ? line : NULL;
}

/* Whether @name, which may have a colon at its end, is @device. */
static bool is_device(const char *name, const char *device)
{
	size_t bytes = strlen(device);

	return !strncmp(name, device, bytes) && (!name[bytes] || !strcmp(name + bytes, ":"));
}

/* A line without a tab or blank in front begins a device: "2\tib0       :     3      V3"; the
 * others are its groups: "\t\t\t\tFB0000E0     1 0:00000000\t\t0", as memory has the address. */
void ipoib_members_parse_ipv4(char *text, const char *device, ipoib_member *member, void *arg)
{
	bool ours = false;
	char *line;

	while ((line = next_line(&text))) {
		char name[64];
		unsigned index, group;
		struct ib_gid gid;

		if (line[0] != '\t' && line[0] != ' ') {
			ours = sscanf(line, "%u %63s", &index, name) == 2 &&
			       is_device(name, device);
			continue;
		}
		if (!ours || sscanf(line, "%x", &group) != 1)
			continue;
		gid = wire_gid_from_ipv4((in_addr_t)group);
		member(arg, &gid);
	}
}

/* "2    ib0             ff020000000000000000000000000001     1 0000000C 0" */
void ipoib_members_parse_ipv6(char *text, const char *device, ipoib_member *member, void *arg)
{
	char *line;

	while ((line = next_line(&text))) {
		char name[64], group[33];
		struct ib_gid gid;
		unsigned index, byte;

		if (sscanf(line, "%u %63s %32s", &index, name, group) != 3 ||
		    strcmp(name, device) || strlen(group) != 32)
			continue;
		for (unsigned i = 0; i < sizeof(gid.raw); i++) {
			if (sscanf(group + 2 * i, "%2x", &byte) != 1)
				break;
			gid.raw[i] = (uint8_t)byte;
		}
		member(arg, &gid);
	}
}

/* The whole file, which free() frees; NULL, and errno. */
static char *read_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret = fd < 0 ? -errno : 0;
	char *text = NULL;
	size_t bytes;

	if (!ret) {
		ret = base_read_all(fd, SIZE_MAX, &text, &bytes);
		close(fd);
	}
	errno = -ret;
	return text;
}

int ipoib_members_read(const char *device, ipoib_member *member, void *arg)
{
	char *ipv4 = read_file("/proc/net/igmp");
	char *ipv6 = read_file("/proc/net/igmp6"); /* NULL, if the kernel has no IPv6 */
	int ret = ipv4 ? 0 : -errno;

	if (ipv4)
		ipoib_members_parse_ipv4(ipv4, device, member, arg);
	if (ipv6)
		ipoib_members_parse_ipv6(ipv6, device, member, arg);
	free(ipv4);
	free(ipv6);
	return ret;
}
