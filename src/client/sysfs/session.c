/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The fabric behind the files: see session.h. The one registry of this library's fabric is here.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "control/join.h"
#include "control/path.h"
#include "control/umad_message.h"
#include "sysfs/libraries.h"
#include "sysfs/session.h"

/* The registry. A session whose daemon is gone is replaced, but not freed: other threads may be
 * reading there. */
static _Atomic(struct sysfs_session *) current;

/* To join opens files itself, in a directory that may be anywhere. */
static _Thread_local bool joining;

/*
 * A daemon that is stopped or stuck answers nobody: a program that looks at many files must not
 * wait at each. The time, in ns, until which nobody tries.
 */
static _Atomic uint64_t try_again_at;

static bool must_not_try(void)
{
	uint64_t at = atomic_load_explicit(&try_again_at, memory_order_relaxed);

	return at && base_now_ns() < at;
}

static struct sysfs_session *session_new(void)
{
	struct sysfs_session *s = joining || must_not_try() ? NULL : calloc(1, sizeof(*s));
	struct control_client *c;
	int ret;

	if (!s)
		return NULL;
	joining = true;
	ret = control_join(&c, CONTROL_ROLE_SYSFS, &s->region, &s->host_index);
	joining = false;
	if (!ret) {
		control_close(c);
		sysfs_libraries_explain();
		return s;
	}
	if (ret == -ETIMEDOUT)
		atomic_store(&try_again_at, base_now_ns() + CONTROL_PATIENCE_MS * 1000000ull);
	base_log_warning(sysfs, "fabric '%s' cannot be reached, so /sys shows no HCAs: %s",
	                 control_fabric_name(), strerror(-ret));
	free(s);
	return NULL;
}

static void session_free(struct sysfs_session *s)
{
	shm_region_unmap(&s->region);
	free(s);
}

const struct sysfs_session *sysfs_session(void)
{
	/* acquire: pairs with the exchange below */
	struct sysfs_session *old = atomic_load_explicit(&current, memory_order_acquire), *s;
	int error = errno;

	if (old && !shm_daemon_gone(&old->region))
		return old;
	s = session_new();
	errno = error;
	if (!s)
		return NULL;
	if (atomic_compare_exchange_strong(&current, &old, s))
		return s;
	session_free(s); /* another thread was faster; old is its session now */
	return old;
}

bool sysfs_session_sees(const struct sysfs_session *s, uint32_t hca)
{
	return s->host_index < 0 ||
	       shm_hca_at(&s->region, hca)->host_index == (uint32_t)s->host_index;
}

const char *sysfs_session_hca(const struct sysfs_session *s, uint32_t hca)
{
	return shm_hca_called(shm_hca_at(&s->region, hca), s->host_index);
}

/* One request on a connection of its own. 0 or -errno. */
static int ask(const struct control_call *call)
{
	struct control_client *c;
	int ret = control_join(&c, CONTROL_ROLE_SYSFS, NULL, NULL);

	if (ret)
		return ret;
	ret = control_call(c, call);
	control_close(c);
	return ret;
}

int sysfs_session_describe(uint32_t port, struct control_describe_port_reply *reply)
{
	struct control_describe_port req = { .port = port };

	return ask(&CONTROL_CALL(CONTROL_DESCRIBE_PORT, &req, reply));
}

int sysfs_session_objects(uint32_t hca, enum control_object_kind kind, sysfs_each_object *each,
                          void *arg)
{
	struct control_list_objects req = { .hca = hca, .kind = kind };
	struct control_list_objects_reply page = { 0 };
	struct control_client *c;
	int ret = control_join(&c, CONTROL_ROLE_SYSFS, NULL, NULL);

	if (ret)
		return ret;
	do {
		ret = control_ask(c, CONTROL_LIST_OBJECTS, &req, &page);
		for (uint32_t i = 0; !ret && i < page.n && i < CONTROL_OBJECTS_PAGE; i++)
			each(arg, &page.object[i]);
		req.from = page.from;
		req.at = page.at;
	} while (!ret && page.more);
	control_close(c);
	return ret;
}

int sysfs_session_look_at_issm(uint32_t port)
{
	struct control_umad_at req = { .index = port };

	return ask(&(struct control_call){ .type = (enum control_type)CONTROL_UMAD_ISSM,
	                                   .request = &req,
	                                   .request_bytes = sizeof(req) });
}

void sysfs_session_read_port(const struct sysfs_session *s, uint32_t port, struct shm_port *copy)
{
	shm_port_read(&s->region, port, copy);
	if (copy->has_issm_open && !sysfs_session_look_at_issm(port))
		shm_port_read(&s->region, port, copy);
}

int sysfs_session_issm(uint32_t port, char *path, size_t room)
{
	char leaf[32];
	int ret = sysfs_session_look_at_issm(port);

	if (ret)
		return ret;
	snprintf(leaf, sizeof(leaf), CONTROL_UMAD_ISSM_LEAF, port);
	return control_path(path, room, control_fabric_name(), leaf);
}
