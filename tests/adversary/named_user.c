/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tries, by the daemon's own protocol, all that a user named by the fabric's owner may not do: the
 * owner's requests, in whatever role, and another user's memory that is not connected.
 * named_users.sh runs it beside a program with a queue pair.
 */
#include "posix.h"
#include "base/util.h"
#include "control/client.h"
#include "control/join.h"
#include "control/umad_message.h"

static const struct {
	enum control_role role;
	unsigned type;
} owners[] = {
	{ CONTROL_ROLE_CLI, CONTROL_STOP },
	{ CONTROL_ROLE_CLI, CONTROL_SET },
	{ CONTROL_ROLE_CLI, CONTROL_LINK },
	{ CONTROL_ROLE_CLI, CONTROL_SWITCH },
	{ CONTROL_ROLE_CLI, CONTROL_SM_EVENT },
	{ CONTROL_ROLE_CLI, CONTROL_PARTITIONS },
	{ CONTROL_ROLE_CLI, CONTROL_CAPTURE },
	{ CONTROL_ROLE_CLI, CONTROL_ADD_FAULT },
	{ CONTROL_ROLE_CLI, CONTROL_CLEAR_FAULT },
	{ CONTROL_ROLE_UMAD, CONTROL_UMAD_OPEN_PORT },
	{ CONTROL_ROLE_UMAD, CONTROL_UMAD_REGISTER },
	{ CONTROL_ROLE_UMAD, CONTROL_UMAD_UNREGISTER },
	{ CONTROL_ROLE_UMAD, CONTROL_UMAD_CLOSED },
	{ CONTROL_ROLE_UMAD, CONTROL_UMAD_ISSM },
	{ CONTROL_ROLE_SYSFS, CONTROL_UMAD_ISSM },
};

static struct control_client *join(enum control_role role)
{
	struct control_client *c;
	int ret = control_join(&c, role, NULL, NULL);

	if (!ret)
		return c;
	printf("cannot join: %s\n", strerror(-ret));
	return NULL;
}

static int try_requests(void)
{
	int failed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(owners); i++) {
		struct control_client *c = join(owners[i].role);
		int ret;

		if (!c)
			return 1;
		ret = control_request(c, (enum control_type)owners[i].type, NULL, 0);
		if (ret != -EACCES) {
			printf("request %u of role %u: %s\n", owners[i].type, owners[i].role,
			       strerror(-ret));
			failed = 1;
		}
		control_close(c);
	}
	return failed;
}

/* Of all queue pairs, of which there is at least one. */
static int try_memory(void)
{
	struct control_client *c = join(CONTROL_ROLE_VERBS);
	unsigned n = 0, given = 0;

	if (!c)
		return 1;
	for (uint32_t qpn = 0; qpn < 65536; qpn++) {
		for (uint32_t kind = 0; kind < CONTROL_MEMORY_KINDS; kind++) {
			struct control_get_memory req = { .qpn = qpn, .kind = kind };
			int fd = -1, ret;

			ret = control_call(c, &(struct control_call){ .type = CONTROL_GET_MEMORY,
			                                              .request = &req,
			                                              .request_bytes = sizeof(req),
			                                              .fd = &fd });
			n += ret != -ENOENT;
			given += ret != -ENOENT && ret != -ENOTCONN;
			if (fd >= 0)
				close(fd);
		}
	}
	control_close(c);
	printf("memory: %u of %u\n", given, n);
	return !n || given;
}

int main(void)
{
	const int requests = try_requests();

	return try_memory() || requests;
}
