/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table of requests: see request.h.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/reason.h"
#include "daemon/clients/request.h"

void daemon_requests_add(struct daemon_requests *all, const struct daemon_request *row, size_t n,
                         void *module)
{
	for (size_t i = 0; i < n; i++) {
		unsigned last = row[i].last ? row[i].last : row[i].type;

		for (unsigned type = row[i].type; type <= last; type++) {
			all->of[type].row = &row[i];
			all->of[type].module = module;
		}
	}
}

static const struct daemon_request *find(const struct daemon_requests *all, uint32_t type)
{
	return type <= UINT8_MAX ? all->of[type].row : NULL;
}

/* Finds what the request is about. False: it is not the client's, or there is no such thing. */
static bool find_object(const struct daemon_request *row, struct daemon_call *call)
{
	uint32_t handle;

	if (!row->find)
		return true;
	memcpy(&handle, (const char *)call->body + row->about_at, sizeof(handle));
	call->about = row->find(call, handle);
	return call->about;
}

int daemon_requests_serve(const struct daemon_requests *all, uint32_t who, struct daemon_call *call)
{
	const struct control_packet *request = call->request;
	const struct daemon_request *row = find(all, request->header.type);

	if (!row || !(row->who & who))
		return who & DAEMON_STRANGER ? -EPROTO : -ENOSYS;
	if (row->is_owners && !(who & DAEMON_OWNER))
		return base_because(-EACCES, "only the fabric's owner may do that");
	if (row->bytes != DAEMON_ANY_BYTES && request->header.bytes != row->bytes)
		return -EPROTO;
	if (row->n_fds && request->n_fds != row->n_fds)
		return -EPROTO;
	call->body = request->body;
	call->module = all->of[request->header.type].module;
	return find_object(row, call) ? row->serve(call) : -EINVAL;
}

void *daemon_call_reply(struct daemon_call *call, size_t bytes)
{
	call->reply->header.bytes = (uint32_t)bytes;
	return call->reply->body;
}

void daemon_call_give(struct daemon_call *call, int fd)
{
	call->reply->fd[call->reply->n_fds++] = fd;
}

int daemon_call_give_copy(struct daemon_call *call, int fd)
{
	int copy = dup(fd);

	if (copy < 0)
		return -errno;
	daemon_call_give(call, copy);
	return 0;
}
