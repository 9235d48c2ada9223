/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * gid_index wrong|right: makes an address handle by GID index 0, as a program does that has its
 * peer's GID from a socket; right: once it has looked at what is there. It has no librdmacm, which
 * would choose an index by itself. For cards.sh.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

static struct ibv_context *open_first(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = devices && *devices ? ibv_open_device(*devices) : NULL;

	if (!context)
		exit(1);
	ibv_free_device_list(devices);
	return context;
}

/* The GID of the peer, who has looked at its own. */
static void ask_peer(union ibv_gid *gid)
{
	int ends[2];

	if (pipe(ends))
		exit(1);
	if (!fork()) {
		if (ibv_query_gid(open_first(), 1, 0, gid) ||
		    write(ends[1], gid, sizeof(*gid)) != (ssize_t)sizeof(*gid))
			_exit(1);
		_exit(0);
	}
	close(ends[1]);
	if (read(ends[0], gid, sizeof(*gid)) != (ssize_t)sizeof(*gid))
		exit(1);
	close(ends[0]);
	wait(NULL);
}

int main(int argc, char **argv)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	struct ibv_context *context;
	union ibv_gid own;
	struct ibv_pd *pd;
	struct ibv_ah *ah;

	ask_peer(&attr.grh.dgid);
	context = open_first();
	pd = ibv_alloc_pd(context);
	if (argc == 2 && !strcmp(argv[1], "right") && ibv_query_gid(context, 1, 0, &own))
		return 1;
	ah = ibv_create_ah(pd, &attr);
	if (!ah)
		return 1;
	ibv_destroy_ah(ah);
	ibv_dealloc_pd(pd);
	ibv_close_device(context);
	return 0;
}
