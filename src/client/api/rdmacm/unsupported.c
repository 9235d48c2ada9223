/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions that programs built with rdma-core 60 and later may call and this library refuses:
 * resolution of names that ends in an event, events of the program's own, and epoll for rsockets.
 * Each returns -1 with errno EOPNOTSUPP. Older headers do not declare them.
 *
 * Thread safety: no state; any thread, any time.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>

#include "api/rdmacm/rdmacm.h"

struct epoll_event;

int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
                          const struct rdma_addrinfo *hints);
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
                        uint64_t arg);
int repoll_create(int flags);
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int repoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout);

/* rdma_getaddrinfo() is there, which waits. */
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
                          const struct rdma_addrinfo *hints)
{
	(void)id;
	(void)node;
	(void)service;
	(void)hints;
	return rdmacm_return(-EOPNOTSUPP);
}

int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info)
{
	(void)id;
	(void)info;
	return rdmacm_return(-EOPNOTSUPP);
}

int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
                        uint64_t arg)
{
	(void)id;
	(void)event;
	(void)status;
	(void)arg;
	return rdmacm_return(-EOPNOTSUPP);
}

int repoll_create(int flags)
{
	(void)flags;
	return rdmacm_return(-EOPNOTSUPP);
}

int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	(void)epfd;
	(void)op;
	(void)fd;
	(void)event;
	return rdmacm_return(-EOPNOTSUPP);
}

int repoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout)
{
	(void)epfd;
	(void)events;
	(void)maxevents;
	(void)timeout;
	return rdmacm_return(-EOPNOTSUPP);
}
