/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Posted requests (control/posts.h): a process writes datagrams to a ring, the daemon reads them,
 * and sleeps when it has read all. What it is told by goes through a socket. The process's store of
 * `head` may wait until its barrier, and the daemon's store of `asleep` until its own, as on ARM.
 *
 * What is proven: all is read that was posted, though nobody waits for it.
 *
 * Mutants:
 *  1 the daemon does not look at `head` once it has said that it sleeps
 *  2 no barrier between the process's store of `head` and its look at `asleep`
 *  3 no barrier between the daemon's store of `asleep` and its look at `head`
 *  4 the daemon gives up its turn with more to read, and comes back only when it is told
 *
 * Functions that it models (tools/check-models.py):
 *  src/shared/control/posts.c control_posts_put 9b077cb9d82f
 *  src/shared/control/posts.c control_posts_take e48901c46935
 *  src/shared/control/posts.c control_posts_sleep d9bd1f124b77
 *  src/server/daemon/clients/client.c serve_posts 4893bd1dcc00
 *  src/server/daemon/clients/client.c on_next_turn 394e3241e5be
 */
#ifndef MUTANT
#define MUTANT 0
#endif

#define POSTS 4

byte head, tail;
byte head_waits;		/* the process's store that nobody has seen yet */
bit asleep = 1, asleep_waits;	/* likewise */
byte told;			/* datagrams in the socket */
bit more;			/* the daemon's timer */
bit done;

inline barrier_of_process()
{
	d_step { head = head_waits }
}

active proctype store_buffers()
{
end:
	do
	:: d_step { head != head_waits -> head = head_waits }
	:: d_step { asleep_waits -> asleep = 1; asleep_waits = 0 }
	od
}

active proctype process()
{
	byte n;

	do
	:: n < POSTS ->
		n++;
		head_waits = n;
#if MUTANT != 2
		barrier_of_process();
#endif
		if
		:: asleep ->
			asleep = 0;
			told++
		:: else
		fi
	:: else -> break
	od;
	done = 1
}

inline read_all()
{
	/* what is there when it begins, one by one */
	until = head;
	do
	:: tail < until -> tail++
	:: else -> break
	od
}

inline leave()
{
	asleep_waits = 1;
#if MUTANT != 3
	d_step { asleep = 1; asleep_waits = 0 }
#endif
#if MUTANT != 1
	if
	:: head != tail ->
		d_step { asleep = 0; asleep_waits = 0 }
#if MUTANT != 4
		more = 1
#endif
	:: else
	fi
#endif
}

active proctype daemon()
{
	byte until;

end:
	do
	:: told -> told--; read_all(); leave()
	:: more -> more = 0; read_all(); leave()
	od
}

active proctype monitor()
{
	timeout -> assert(!done || tail == POSTS)
}
