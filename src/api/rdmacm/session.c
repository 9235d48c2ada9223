/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The process's session with the manager: one connection, made when first needed, and
 * again after a fork() in the child. The one registry of the library, with the lock
 * that guards it.
 */
#include <errno.h>
#include <unistd.h>

#include "api/rdmacm/rdmacm.h"
#include "control/client.h"
#include "control/join.h"

static struct {
	pthread_mutex_t lock;
	struct control_client *client;
	bool forks_watched;
} session = { .lock = PTHREAD_MUTEX_INITIALIZER };

int rdmacm_return(int err)
{
	if (!err)
		return 0;
	errno = err < 0 ? -err : err;
	return -1;
}

void rdmacm_session_lock(void)
{
	pthread_mutex_lock(&session.lock);
}

void rdmacm_session_unlock(void)
{
	pthread_mutex_unlock(&session.lock);
}

/*
 * The connection is the parent's: two processes cannot share it. What it is made of
 * is left alone, as another thread may have been using it.
 */
static void in_child(void)
{
	if (session.client)
		close(control_fd(session.client));
	session.client = NULL;
	pthread_mutex_unlock(&session.lock);
}

static int connect_manager(struct control_client **client)
{
	/* the shared memory is libibverbs's to use */
	int ret = control_join(client, CONTROL_ROLE_CM, NULL, NULL);

	/* as on a machine without a card */
	return ret == -ENOENT || ret == -ECONNREFUSED ? -ENODEV : ret;
}

/* The connection, made if it is not there; with the lock held. */
static int get_client(struct control_client **client)
{
	int ret;

	if (!session.client) {
		ret = connect_manager(&session.client);
		if (ret)
			return ret;
	}
	if (!session.forks_watched) {
		pthread_atfork(rdmacm_session_lock, rdmacm_session_unlock, in_child);
		session.forks_watched = true;
	}
	*client = session.client;
	return 0;
}

static int client_now(struct control_client **client)
{
	int ret;

	rdmacm_session_lock();
	ret = get_client(client);
	rdmacm_session_unlock();
	return ret;
}

int rdmacm_session_call(enum control_cm_type type, const void *request, uint32_t bytes, void *reply,
                        uint32_t reply_bytes)
{
	struct control_client *client;
	int ret = client_now(&client);

	if (ret)
		return ret;
	return control_call(client, &(struct control_call){ .type = (enum control_type)type,
	                                                    .request = request,
	                                                    .request_bytes = bytes,
	                                                    .reply = reply,
	                                                    .reply_bytes = reply_bytes });
}

int rdmacm_session_channel(uint32_t *handle, int *fd)
{
	struct control_cm_channel reply;
	struct control_client *client;
	int ret = client_now(&client);

	if (ret)
		return ret;
	ret = control_call(client, &(struct control_call){
	                                   .type = (enum control_type)CONTROL_CM_CREATE_CHANNEL,
	                                   .reply = &reply,
	                                   .reply_bytes = sizeof(reply),
	                                   .fd = fd });
	if (!ret)
		*handle = reply.channel;
	return ret;
}
