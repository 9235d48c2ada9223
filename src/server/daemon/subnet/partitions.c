/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Partitions of the fabric: see partitions.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "daemon/subnet/partitions.h"
#include "fabric/model/event.h"

#define MAX_BYTES (16 << 20)

int daemon_partitions_read(struct daemon_subnet *subnet, const struct partitions_file *file,
                           char *why, size_t len)
{
	struct partitions *p, *old = subnet->partitions;
	int ret = partitions_parse(&p, file, why, len);

	if (ret)
		return ret;
	ret = daemon_subnet_set_partitions(subnet, p, why, len);
	if (ret)
		partitions_free(p);
	else if (old)
		partitions_free(old);
	return ret;
}

/* Reads all of a file that came with a request. 0 and @text to be freed; -EINVAL: no file that can
 * be read. */
static int read_text(int fd, char **text, size_t *bytes)
{
	struct stat st;
	ssize_t n;

	/* only memory has seals: reading another file could block */
	if (fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &st) < 0 || st.st_size > MAX_BYTES)
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

static int set(struct daemon_call *call)
{
	struct control_partitions req = *(const struct control_partitions *)call->body;
	struct daemon_subnet *subnet = call->module;
	struct control_partitions_reply rep = { 0 };
	struct partitions_file file;
	char *text;
	int ret;

	if (daemon_subnet_is_sweeping(subnet))
		return DAEMON_SERVE_AGAIN;
	req.name[sizeof(req.name) - 1] = '\0';
	ret = read_text(call->request->fd[0], &text, &file.bytes);
	if (ret)
		return ret;
	file.name = req.name;
	file.text = text;
	rep.error = daemon_partitions_read(subnet, &file, rep.why, sizeof(rep.why));
	free(text);
	if (!rep.error) {
		fabric_tell(subnet->f,
		            &(struct fabric_event){ .kind = "sm", .what = "partitions" });
		daemon_subnet_partitions_changed(subnet);
	}
	*(struct control_partitions_reply *)daemon_call_reply(call, sizeof(rep)) = rep;
	return daemon_subnet_is_sweeping(subnet) ? DAEMON_REPLY_THEN : 0;
}

static const struct daemon_request requests[] = {
	{ .type = CONTROL_PARTITIONS,
	  .bytes = sizeof(struct control_partitions),
	  .n_fds = 1,
	  .is_owners = true,
	  .who = DAEMON_CLI,
	  .serve = set },
};

void daemon_partitions_init(struct daemon_subnet *subnet, struct daemon_requests *all)
{
	daemon_requests_add(all, requests, ARRAY_SIZE(requests), subnet);
}
