/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The embedded subnet manager and administrator as the fabric sees them: behind QP0 and QP1 of
 * the SM's port. Requests go to subnet/; responses go back over the fabric. All MADs go by the
 * queue: their effects, even the end of the response that they belong to, do not happen while the
 * sender still works on it.
 */
#ifndef DAEMON_SUBNET_MAD_H
#define DAEMON_SUBNET_MAD_H

#include "daemon/subnet/mads.h"
#include "daemon/subnet/subnet_response.h"
#include "subnet/sa.h"
#include "subnet/sa_segments.h"
#include "subnet/sm_role.h"

struct daemon_subnet_mad {
	struct fabric *f;
	struct daemon_mads *mads;
	struct sm_role *role;         /* subnet.c's; NULL: nobody manages the subnet */
	struct sa *sa;                /* likewise; NULL unless it is the master */
	bool is_taking_over;          /* likewise: there will be one soon */
	bool sweep_wanted;            /* a link or the master has changed */
	struct sa_segments *segments; /* of long requests */
	struct daemon_responses responses;
	struct daemon_loop *loop;
	TAILQ_HEAD(, subnet_job) jobs; /* requests that are being served; each has a turn */
	struct base_timer turn;
	uint64_t n_notices; /* for subscribers */
	struct base_timer report_turn;
};

int daemon_subnet_mad_init(struct daemon_subnet_mad *m, struct fabric *f, struct daemon_loop *loop,
                           struct daemon_mads *mads); /* 0 or -ENOMEM */

/* A MAD has come to a port and no program there wants it. Whether it was for us. */
bool daemon_subnet_mad(struct daemon_subnet_mad *m, struct fabric_port *at,
                       const struct fabric_mad *mad);

/* The SA is about to go: forgets the requests that it is serving. */
void daemon_subnet_mad_forget(struct daemon_subnet_mad *m);

/* Sends the SA's reports to subscribers, soon. */
struct sa_reports daemon_subnet_mad_reports(struct daemon_subnet_mad *m);

#endif
