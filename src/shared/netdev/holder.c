/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The holder of a UDP port: see holder.h. /proc/net/udp has the sockets' inodes, /proc/PID/fd
 * which process has which inode.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "netdev/holder.h"

#define SOCKETS_MAX 32

struct udp_socket {
	unsigned long inode;
	unsigned uid;
};

struct found {
	struct udp_socket socket[SOCKETS_MAX];
	unsigned n;
};

/* Adds to @f the sockets that are bound to @port according to @path. */
static void read_sockets(const char *path, uint16_t port, struct found *f)
{
	FILE *file = fopen(path, "re");
	struct udp_socket s;
	char line[512];
	unsigned p;

	if (!file)
		return;
	/* "  2: 00000000:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 99 " */
	while (f->n < SOCKETS_MAX && fgets(line, sizeof(line), file))
		if (sscanf(line, " %*d: %*[0-9A-F]:%x %*s %*s %*s %*s %*s %u %*s %lu", &p, &s.uid,
		           &s.inode) == 3 &&
		    p == port)
			f->socket[f->n++] = s;
	fclose(file);
}

/* The number of the socket in @f that this link in /proc/PID/fd leads to, or -1. */
static int match(const struct found *f, int dir, const char *name)
{
	char to[64];
	ssize_t n = readlinkat(dir, name, to, sizeof(to) - 1);
	unsigned long inode;

	if (n < 0)
		return -1;
	to[n] = 0;
	if (sscanf(to, "socket:[%lu]", &inode) != 1)
		return -1;
	for (unsigned i = 0; i < f->n; i++)
		if (f->socket[i].inode == inode)
			return (int)i;
	return -1;
}

/* Whether process @pid, a name in /proc, has one of the sockets. */
static bool holds(const struct found *f, const char *pid)
{
	char path[64];
	const struct dirent *e;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%.16s/fd", pid);
	dir = opendir(path);
	if (!dir)
		return false;
	while (!found && (e = readdir(dir)))
		found = match(f, dirfd(dir), e->d_name) >= 0;
	closedir(dir);
	return found;
}

static void describe_process(const char *pid, char *out, size_t len)
{
	char path[64], name[64] = "?";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.16s/comm", pid);
	file = fopen(path, "re");
	if (file) {
		if (fgets(name, sizeof(name), file))
			name[strcspn(name, "\n")] = 0;
		fclose(file);
	}
	snprintf(out, len, "process %.16s (%s)", pid, name);
}

/* Whether another process has one; its description in @out. */
static bool find_process(const struct found *f, char *out, size_t len)
{
	const struct dirent *e;
	bool found = false;
	DIR *dir = opendir("/proc");

	if (!dir)
		return false;
	while (!found && (e = readdir(dir))) {
		if (!isdigit((unsigned char)e->d_name[0]) || atol(e->d_name) == getpid())
			continue;
		found = holds(f, e->d_name);
		if (found)
			describe_process(e->d_name, out, len);
	}
	closedir(dir);
	return found;
}

void netdev_holder_describe(uint16_t port, char *out, size_t len)
{
	struct found f = { .n = 0 };

	read_sockets("/proc/net/udp", port, &f);
	read_sockets("/proc/net/udp6", port, &f);
	if (!f.n)
		snprintf(out, len, "a socket that is not to be seen");
	else if (!find_process(&f, out, len))
		snprintf(out, len, "a process of user %u, or the kernel (rdma_rxe)",
		         f.socket[0].uid);
}
