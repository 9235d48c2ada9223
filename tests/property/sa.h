/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MCMemberRecord and NodeRecord by libibumad, from any port to whatever subnet administrator
 * there is. A call that fails, and does not depend on the administrator's response, ends the
 * program.
 */
#ifndef TESTS_PROPERTY_SA_H
#define TESTS_PROPERTY_SA_H

#include <stdint.h>

#define SA_NO_RESPONSE (-1)

struct sa_port {
	char ca[32];
	int num;
	int fd, agent;
	/* of the member: another port's, if another port is to be the member */
	uint8_t gid[16];
	uint32_t qkey; /* of groups that it joins: as librdmacm has it, unless it is set after
	                  sa_open() */
	int retries;   /* of a request, each after half a second: 3, likewise */
};

struct sa_member {
	uint8_t mgid[16], port_gid[16];
	uint8_t join_state;
};

void sa_open(struct sa_port *p, const char *ca, int num);

/* The response's status, or SA_NO_RESPONSE. Of a join, *mlid is the group's. */
int sa_join(const struct sa_port *p, const uint8_t mgid[16], uint8_t join_state, uint16_t *mlid);
/* Likewise; of MGID 0 the administrator makes a group, and says which. */
int sa_join_any(const struct sa_port *p, uint8_t mgid[16], uint8_t join_state, uint16_t *mlid);
int sa_leave(const struct sa_port *p, const uint8_t mgid[16], uint8_t join_state);

/* The path to @dgid: its LID, service level and hop limit. */
struct sa_path {
	uint16_t dlid;
	uint8_t sl, hop_limit;
};
int sa_path(const struct sa_port *p, const uint8_t dgid[16], struct sa_path *path);

/* All members of all groups. How many there are; SA_NO_RESPONSE also for an error. */
int sa_list(const struct sa_port *p, struct sa_member *member, int max);

/* How many ports of HCAs and switches it has, or SA_NO_RESPONSE. */
int sa_count_nodes(const struct sa_port *p);

#endif
