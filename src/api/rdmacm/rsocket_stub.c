/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rsocket API, refused: it carries its bytes over reliable connected queue pairs, which the
 * device lacks. Applications call it; librdmacm must export it, because programs and preloaded
 * libraries import it with BIND_NOW. Every call returns -1 with errno EOPNOTSUPP, also rpoll() and
 * rselect(): no descriptor can be an rsocket, and one who asks here expects some to be. Prototypes
 * and contracts: rsocket(7) and rdma/rsocket.h.
 *
 * Thread safety: no state; any thread, any time.
 */
#include <errno.h>
#include <rdma/rsocket.h>

/* Defines a call that refuses; params is its parenthesized list, which marks each one unused. */
#define REFUSE(type, name, params)  \
	type name params            \
	{                           \
		errno = EOPNOTSUPP; \
		return (type)-1;    \
	}
#define UNUSED __attribute__((unused))

/* clang-format off */
REFUSE(int, rsocket, (int domain UNUSED, int type UNUSED, int protocol UNUSED))
REFUSE(int, rbind, (int fd UNUSED, const struct sockaddr *addr UNUSED, socklen_t len UNUSED))
REFUSE(int, rlisten, (int fd UNUSED, int backlog UNUSED))
REFUSE(int, raccept, (int fd UNUSED, struct sockaddr *addr UNUSED, socklen_t *len UNUSED))
REFUSE(int, rconnect, (int fd UNUSED, const struct sockaddr *addr UNUSED, socklen_t len UNUSED))
REFUSE(int, rshutdown, (int fd UNUSED, int how UNUSED))
REFUSE(int, rclose, (int fd UNUSED))

REFUSE(ssize_t, rrecv, (int fd UNUSED, void *buf UNUSED, size_t len UNUSED, int flags UNUSED))
REFUSE(ssize_t, rrecvfrom, (int fd UNUSED, void *buf UNUSED, size_t len UNUSED, int flags UNUSED,
			    struct sockaddr *addr UNUSED, socklen_t *addrlen UNUSED))
REFUSE(ssize_t, rrecvmsg, (int fd UNUSED, struct msghdr *msg UNUSED, int flags UNUSED))
REFUSE(ssize_t, rread, (int fd UNUSED, void *buf UNUSED, size_t count UNUSED))
REFUSE(ssize_t, rreadv, (int fd UNUSED, const struct iovec *iov UNUSED, int count UNUSED))

REFUSE(ssize_t, rsend, (int fd UNUSED, const void *buf UNUSED, size_t len UNUSED, int flags UNUSED))
REFUSE(ssize_t, rsendto, (int fd UNUSED, const void *buf UNUSED, size_t len UNUSED,
			  int flags UNUSED, const struct sockaddr *addr UNUSED,
			  socklen_t addrlen UNUSED))
REFUSE(ssize_t, rsendmsg, (int fd UNUSED, const struct msghdr *msg UNUSED, int flags UNUSED))
REFUSE(ssize_t, rwrite, (int fd UNUSED, const void *buf UNUSED, size_t count UNUSED))
REFUSE(ssize_t, rwritev, (int fd UNUSED, const struct iovec *iov UNUSED, int count UNUSED))

REFUSE(int, rpoll, (struct pollfd *fds UNUSED, nfds_t count UNUSED, int timeout UNUSED))
REFUSE(int, rselect, (int nfds UNUSED, fd_set *reads UNUSED, fd_set *writes UNUSED,
		      fd_set *exceptions UNUSED, struct timeval *timeout UNUSED))

REFUSE(int, rgetpeername, (int fd UNUSED, struct sockaddr *addr UNUSED, socklen_t *len UNUSED))
REFUSE(int, rgetsockname, (int fd UNUSED, struct sockaddr *addr UNUSED, socklen_t *len UNUSED))
REFUSE(int, rsetsockopt, (int fd UNUSED, int level UNUSED, int name UNUSED,
			  const void *value UNUSED, socklen_t len UNUSED))
REFUSE(int, rgetsockopt, (int fd UNUSED, int level UNUSED, int name UNUSED,
			  void *value UNUSED, socklen_t *len UNUSED))
REFUSE(int, rfcntl, (int fd UNUSED, int cmd UNUSED, ...))

REFUSE(off_t, riomap, (int fd UNUSED, void *buf UNUSED, size_t len UNUSED, int prot UNUSED,
		       int flags UNUSED, off_t offset UNUSED))
REFUSE(int, riounmap, (int fd UNUSED, void *buf UNUSED, size_t len UNUSED))
REFUSE(size_t, riowrite, (int fd UNUSED, const void *buf UNUSED, size_t count UNUSED,
			  off_t offset UNUSED, int flags UNUSED))
/* clang-format on */
