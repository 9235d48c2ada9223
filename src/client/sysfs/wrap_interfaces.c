/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * getifaddrs(3): see wrap.h. An interface of IPoIB is a TUN device, of which the kernel knows no
 * link-layer address, so the C library gives an entry without any; programs that never met one read
 * it all the same. The entry gets the address that is in sysfs, as a device of IPoIB has it.
 *
 * And a TUN device is from point to point. Programs that look for an interface with RDMA pass over
 * such ones, as MVAPICH2 does. So all entries of the interface have the flags of a device of IPoIB;
 * the C library gives the broadcast address already.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netpacket/packet.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/signals.h"
#include "sysfs/wrap.h"

#define BYTES 20 /* of a link-layer address of IPoIB (RFC 4391, section 9.1.1) */
#define TEXT  (BYTES * 3)

/* A struct sockaddr_ll has room for 8 bytes; a program that looks at sll_halen finds all of
 * them. */
union address {
	struct sockaddr_ll ll;
	uint8_t room[offsetof(struct sockaddr_ll, sll_addr) + BYTES];
};

/* Those that were given away: freeifaddrs() does not know them. They are few: each is there once.
 */
struct given {
	struct given *next;
	union address address;
};

static _Atomic(struct given *) all;

/* The text in sysfs, by our own calls. */
static bool read_text(const char *name, char text[static TEXT])
{
	char path[sizeof("/sys/class/net//address") + IF_NAMESIZE];
	ssize_t n = -1;
	int fd, cancel_state;

	snprintf(path, sizeof(path), "/sys/class/net/%s/address", name);
	cancel_state = base_cancel_off();
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, TEXT);
		close(fd);
	}
	base_cancel_restore(cancel_state);
	return n == TEXT; /* the last byte is the newline */
}

static bool read_address(const char *name, union address *a)
{
	char text[TEXT];

	memset(a, 0, sizeof(*a));
	if (!read_text(name, text))
		return false;
	a->ll.sll_family = AF_PACKET;
	a->ll.sll_ifindex = (int)if_nametoindex(name);
	a->ll.sll_hatype = ARPHRD_INFINIBAND;
	a->ll.sll_halen = BYTES;
	for (unsigned i = 0; i < BYTES; i++)
		a->room[offsetof(struct sockaddr_ll, sll_addr) + i] =
		        (uint8_t)strtoul(text + 3 * (size_t)i, NULL, 16);
	return true;
}

/* The address, which lives as long as the process; each is kept once. NULL: the interface has none,
 * or there is no memory. */
static struct sockaddr *address_of(const char *name)
{
	struct given *first = atomic_load(&all), *g;
	union address a;

	if (!read_address(name, &a))
		return NULL;
	for (g = first; g; g = g->next)
		if (!memcmp(&g->address, &a, sizeof(a)))
			return (struct sockaddr *)&g->address;
	g = malloc(sizeof(*g));
	if (!g)
		return NULL;
	g->address = a;
	do
		g->next = first;
	while (!atomic_compare_exchange_weak(&all, &first, g));
	return (struct sockaddr *)&g->address;
}

static void correct_flags(struct ifaddrs *list, const char *name)
{
	for (struct ifaddrs *i = list; i; i = i->ifa_next)
		if (!strcmp(i->ifa_name, name)) {
			i->ifa_flags &= ~(unsigned)(IFF_POINTOPOINT | IFF_NOARP);
			i->ifa_flags |= IFF_BROADCAST;
		}
}

int getifaddrs(struct ifaddrs **list)
{
	int ret = sysfs_real()->getifaddrs(list), error = errno;

	for (struct ifaddrs *i = ret ? NULL : *list; i; i = i->ifa_next)
		if (!i->ifa_addr && (i->ifa_addr = address_of(i->ifa_name)) != NULL)
			correct_flags(*list, i->ifa_name);
	errno = error;
	return ret;
}
