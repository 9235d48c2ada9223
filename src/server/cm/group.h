/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The groups that ports are members of, as group.c, whose they are, and program.c share them.
 */
#ifndef CM_GROUP_H
#define CM_GROUP_H

#include "cm/group_state.h"
#include "cm/state.h"

#define CM_GROUP_STATES 4 /* bits of the join state */

struct cm_program_request;

struct cm_group {
	struct base_hash_node node;
	bool is_hashed; /* not while the SA chooses its MGID */
	TAILQ_ENTRY(cm_group) of_port;
	uint64_t seen; /* of the port's changes */
	struct cm_port *port;
	struct wire_mcmember rec; /* join_state: that the SA has given to us */
	uint8_t doubtful;         /* states that the SA may think we are in */
	uint8_t left_behind;      /* states that programs had joined in when they ended */
	struct {
		unsigned joins;    /* members, */
		unsigned programs; /* and programs that have joined by MADs of their own */
	} held[CM_GROUP_STATES];   /* by bit of the join state */
	TAILQ_HEAD(, cm_join) members, pending, lost;
	TAILQ_HEAD(, cm_program_request) requests; /* of programs; the first may be out */
	unsigned n_memberships;                    /* of programs */
	unsigned generation;                       /* grows when members become lost ones */
	TAILQ_ENTRY(cm_group) of_busy;
	bool is_busy;

	enum cm_group_state state;
	struct cm_transaction *asked; /* the request that is out, */
	uint8_t asked_states;         /* and the states that it is about */
	struct cm_join *asking;       /* JOINING: the join; NULL: that has ended */
	bool programs_turn;           /* the next request is to be a program's, if there is one */
	unsigned leave_retries;
	unsigned renew_round; /* how often there was no response to a renewal */
};

/* The group of that MGID, new if the port has none; without MGID always new. NULL: no memory. */
struct cm_group *cm_group_get(struct cm_port *p, const struct wire_mcmember *want);

/* Does what there is to do. The group may be freed. */
void cm_group_go_on(struct cm_group *g);

/* Asks the SA what a program asks, @mad, by which the port joins or leaves in @states. No other
 * request is out. g->state tells whether there was memory. */
void cm_group_ask(struct cm_group *g, const uint8_t *mad, uint8_t method, uint8_t states);

/* ---- program.c ---- */

/* The first of the group's requests is sent, or is over. */
void cm_program_begin(struct cm_group *g);

/* It has been answered. @response: NULL if it was not. */
void cm_program_answered(struct cm_group *g, int status, const struct fabric_mad *response);

/* Drops the group's requests. */
void cm_program_drop_requests(struct cm_group *g);

#endif
