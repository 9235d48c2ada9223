/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A descriptor that the loop watches, and what it calls when something happens there.
 */
#ifndef IBSIM_SOURCE_H
#define IBSIM_SOURCE_H

#include <stdint.h>

struct ibsim_source {
	int fd; /* -1: none */
	/* @events: of epoll(7). May free the source. */
	void (*ready)(struct ibsim_source *s, uint32_t events);
};

/* Watches s->fd for @events, which may be 0, with the epoll descriptor @loop; again: for others.
 * 0 or -errno. */
int ibsim_source_watch(int loop, struct ibsim_source *s, uint32_t events);

/* The loop lets go of it, for good. */
void ibsim_source_forget(int loop, struct ibsim_source *s);

/* Waits for one event and serves it. 0 or -errno. */
int ibsim_source_dispatch(int loop);

#endif
