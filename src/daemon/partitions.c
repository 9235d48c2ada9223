/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Partitions of the fabric: read from a text when it starts and whenever somebody brings other
 * ones, and given to the embedded subnet manager, which writes them into the ports' P_Key
 * tables while it is the master.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/state.h"
#include "subnet/partitions.h"

#define MAX_BYTES (16 << 20)

int daemon_partitions_read(struct daemon *d, const struct partitions_file *file, char *why,
                           size_t len)
{
	struct partitions *p, *old = d->partitions;
	int ret = partitions_parse(&p, file, why, len);

	if (ret)
		return ret;
	ret = sm_partitions_check(d->f, p, why, len);
	if (ret) {
		partitions_free(p);
		return ret;
	}
	d->partitions = p;
	if (d->sm)
		sm_set_partitions(d->sm, p);
	if (old)
		partitions_free(old);
	return 0;
}

/* Ports and groups are as they say now. */
static void follow(struct daemon *d)
{
	if (!d->sa)
		return;
	if (daemon_subnet_sweep(d) || sa_partitions_changed(d->sa))
		base_log("the new partitions are not in all ports, or lack groups");
	daemon_tell_states(d);
}

/* All of a file that somebody has brought. 0 and @text to be freed; -EINVAL: none to read. */
static int read_text(int fd, char **text, size_t *bytes)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > MAX_BYTES)
		return -EINVAL;
	*text = malloc((size_t)st.st_size + 1);
	if (!*text)
		return -ENOMEM;
	n = pread(fd, *text, (size_t)st.st_size, 0);
	if (n < 0) {
		free(*text);
		return -errno;
	}
	*bytes = (size_t)n;
	return 0;
}

int daemon_partitions_set(struct daemon *d, const struct control_packet *request,
                          struct control_packet *reply)
{
	struct control_partitions_reply rep = { 0 };
	struct control_partitions req;
	struct partitions_file file;
	char *text;
	int ret;

	if (request->header.bytes != sizeof(req) || request->n_fds != 1)
		return -EPROTO;
	memcpy(&req, request->body, sizeof(req));
	req.name[sizeof(req.name) - 1] = '\0';
	ret = read_text(request->fd[0], &text, &file.bytes);
	if (ret)
		return ret;
	file.name = req.name;
	file.text = text;
	rep.error = daemon_partitions_read(d, &file, rep.why, sizeof(rep.why));
	free(text);
	if (!rep.error)
		follow(d);
	memcpy(reply->body, &rep, sizeof(rep));
	reply->header.bytes = sizeof(rep);
	return 0;
}

void daemon_partitions_fini(struct daemon *d)
{
	if (d->partitions)
		partitions_free(d->partitions);
}
