/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * File system places of a fabric: see path.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/path.h"

#define NAME_MAX_LEN 32

int control_own_dir(char *buf, size_t len)
{
	const char *xdg = secure_getenv("XDG_RUNTIME_DIR");
	int n;

	if (xdg && *xdg)
		n = snprintf(buf, len, "%s/umbel", xdg);
	else
		n = snprintf(buf, len, "/tmp/umbel-%u", (unsigned)geteuid());
	return n < 0 || (size_t)n >= len ? -ENAMETOOLONG : 0;
}

int control_runtime_dir(char *buf, size_t len)
{
	const char *dir = secure_getenv("UMBEL_RUNTIME_DIR");

	if (!dir || !*dir)
		return control_own_dir(buf, len);
	return (size_t)snprintf(buf, len, "%s", dir) >= len ? -ENAMETOOLONG : 0;
}

static int check_name(const char *name)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	                              "0123456789_.-";
	size_t n = strlen(name);

	if (!n || n > NAME_MAX_LEN || *name == '.' || *name == '-' || strspn(name, allowed) != n)
		return -EINVAL;
	return 0;
}

int control_path(char *buf, size_t len, const char *fabric, const char *leaf)
{
	size_t used;
	int n, ret = check_name(fabric);

	if (!ret)
		ret = control_runtime_dir(buf, len);
	if (ret)
		return ret;
	used = strlen(buf);
	n = snprintf(buf + used, len - used, "/%s%s%s", fabric, leaf ? "/" : "", leaf ? leaf : "");
	return n < 0 || (size_t)n >= len - used ? -ENAMETOOLONG : 0;
}

const char *control_fabric_name(void)
{
	const char *name = secure_getenv("UMBEL_FABRIC");

	return name && *name ? name : CONTROL_DEFAULT_FABRIC;
}

const char *control_host_name(char buf[static CONTROL_HOST_ROOM])
{
	const char *host = secure_getenv("UMBEL_HOST"), *own = secure_getenv("UMBEL_HOST_IS_NAME");

	if (!host || !*host)
		return NULL;
	buf[CONTROL_HOST_ROOM - 1] = '\0';
	if (own && *own && !gethostname(buf, CONTROL_HOST_ROOM - 1))
		return buf;
	return host;
}
