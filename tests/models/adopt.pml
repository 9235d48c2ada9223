/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory that is adopted and given back (src/client/hca/memory/adopt.c, object.c) under a program that goes
 * on with its life. It registers a page, writes there, and deregisters it, again and again; it begins
 * and ends a second thread, which writes there too; it has the kernel pin the page, and write to it
 * later; it closes the descriptor of the file, and opens a file of its own, which gets the number;
 * and a signal's handler forks a child that goes on where its parent was. A peer in another process
 * reads the key, maps the file, and writes there; it dies at some step.
 *
 * What is proven: the page holds what was written there last, by whoever, wherever it has moved; a
 * file of the program's own is no_more written to; a child is no_more about to use its parent's file; and
 * when no region is left, the process is alone and nothing is pinned, the next region that comes or
 * goes has the page private again.
 *
 * How the owner waits for copies under way, and in which order stores become visible, is in
 * registration.pml: here the wait is a step. What becomes of memory in fork() is in adopt_fork.pml.
 * Of two regions on the page registration.pml tells, too. The program moves no mapping.
 *
 * Mutants:
 *  1 nobody looks whether the descriptor is still that of the file
 *  2 memory moves into the file beside another thread, whose writes nobody holds
 *  3 memory is given back beside another thread as if the process were alone
 *  4 a page that is pinned is adopted		5 a page that is pinned is given back
 *  6 nobody waits for the peer
 *  7 a signal is taken in the middle of adopting
 *  8 memory that could not be given back is not looked at again
 *  9 the memory is emptied in the file before it is the process's own
 * 10 nobody looks for what is pinned behind the moment from which on writes are held
 *
 * Functions that it models (tools/check-models.py):
 *  src/client/hca/memory/adopt.c forget_what_is_closed beec6a9d0736
 *  src/client/hca/memory/adopt.c has_files e6274fa183f1
 *  src/client/hca/memory/adopt.c can_adopt 25398d9198f2
 *  src/client/hca/memory/adopt.c adopt 6ebc7659af34
 *  src/client/hca/memory/adopt.c move_held f3910f86b680
 *  src/client/hca/memory/adopt.c move_range cd1edcbb3334
 *  src/client/hca/memory/adopt.c hca_adopt 5fab6c5fb251
 *  src/client/hca/memory/adopt.c move_in 9035dd139203
 *  src/client/hca/memory/adopt.c move_out 5ddb4a297910
 *  src/client/hca/memory/adopt.c move_by_another 269a52e10fc8
 *  src/client/hca/memory/adopt.c detach 47338eaae9ff
 *  src/client/hca/memory/adopt.c give_back 24afbccd5e54
 *  src/client/hca/memory/object.c find_free fdfcc0194638
 *  src/client/hca/memory/object.c adopt 5f89ecab7035
 *  src/client/hca/memory/object.c settle 25f70824add7
 *  src/client/hca/memory/object.c hca_object_put b2671afa58b8
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#ifndef TURNS
#define TURNS 2		/* how often the page is registered */
#endif
#define WRITES 3	/* of all: values of the page are 0: empty, 1 and more */

#define SLOTS 2		/* places of the table of objects, each with its part of the file */

/* How the program has the page mapped. OF_FILE: privately, and nothing was written there yet. */
mtype = { SHARED, OF_FILE, OWN };

/* ---- the process ---- */

mtype kind = OWN;
byte own = 1;		/* what the page holds if it is the process's own */
byte place;		/* else the part of the file */
byte file[SLOTS];	/* what is there; 0: a hole */
bit has_fd;		/* a descriptor of the file is open */
bit is_programs;	/* its number is that of a file of the program's */
bit known_fd;		/* adopted.fd is a number */
bit no_more;
bit is_adopted, is_left[SLOTS];	/* SHARED or PARTED; SPENT (adopt_state.h) */
byte adopted_at;	/* the slot */
bit threads;		/* there is another one */
bit pinned, pinned_file;	/* and it is the page in the file, not the process's own */
byte pinned_place;

/* ---- what peers see ---- */

bit key;
bit by_object;		/* the key's access names the object */
byte object;		/* and which */

/* ---- what nobody sees ---- */

byte last = 1;		/* what the page must hold */
byte n_writes;
bit at_work;		/* the peer copies */
bit adopting;		/* between the first look and the end */
bit held;		/* writes to the process's own page wait */
bit regions;
bit was_forked, was_closed, peer_dead, done;

#define VIEW (kind == OWN -> own : file[place])

inline write_there(value)
{
	if
	:: kind == SHARED -> file[place] = value
	:: else -> own = value; kind = OWN
	fi
}

#define MAY_WRITE (n_writes < WRITES && !done)

/* The other thread, the kernel by what it has pinned, the program that closes what it does not know,
 * and a signal. */
active proctype others()
{
end:
	do
	:: d_step { threads && MAY_WRITE && !(held && kind == OWN) ->
		assert(VIEW == last);
		n_writes++;
		last = 1 + n_writes;
		write_there(last)
	   }
	:: d_step { pinned && MAY_WRITE ->
		n_writes++;
		last = 1 + n_writes;
		if
		:: pinned_file -> file[pinned_place] = last
		:: else -> own = last
		fi
	   }
	:: d_step { threads && adopting && kind == OWN && !pinned && !held && !regions ->
		pinned = 1 }
	:: d_step { has_fd && !was_closed && !adopting && !done -> /* alone, it is not in two places */
		was_closed = 1;
		has_fd = 0;
		is_programs = 1
	   }
	:: d_step { adopting && MUTANT == 7 && !was_forked ->
		was_forked = 1;
		assert(!has_fd)
	   }
	od
}

/* ---- the peer ---- */

active proctype peer()
{
	byte at;
	bit found, file_too;

	{
end:
		do
		:: MAY_WRITE && key ->
			/* it says that it deals with the owner, before it looks at the key */
			at_work = 1;
			d_step { found = key; file_too = by_object; at = object };
			if
			:: found ->
				d_step {
					if
					:: MAY_WRITE ->
						n_writes++;
						last = 1 + n_writes;
						if
						:: file_too -> file[at] = last
						:: else -> write_there(last)
						fi
					:: else
					fi
				}
			:: else
			fi;
			d_step { at_work = 0; found = 0; file_too = 0; at = 0 }
		od
	} unless {
		peer_dead
	};
	at_work = 0	/* the daemon */
}

active proctype death()
{
end:
	peer_dead = 1
}

/* ---- the program ---- */

inline forget_what_is_closed()
{
	d_step {
		if
		:: known_fd && is_programs && MUTANT != 1 -> known_fd = 0; no_more = 1
		:: else
		fi
	}
}

/* Without signals, or what is pinned: hca_adopt(), move_held(). */
inline adopt(slot)
{
	adopting = 1;
	if
	:: !no_more && (!pinned || MUTANT == 4) && kind == OWN ->
		forget_what_is_closed();
		if
		:: no_more
		:: !no_more && !known_fd -> has_fd = 1; known_fd = 1
		:: !no_more && known_fd
		fi;
		held = (threads && MUTANT != 2);
		if
		:: no_more
		:: held && pinned && MUTANT != 10
		:: !no_more && !(held && pinned && MUTANT != 10) ->
			assert(!is_programs);
			moved = own;
			file[slot] = moved;
			if
			:: d_step { kind = SHARED; place = slot };
				is_adopted = 1;
				adopted_at = slot
			:: file[slot] = 0	/* there is no memory */
			fi;
			moved = 0
		fi;
		held = 0
	:: else
	fi;
	adopting = 0
}

inline find_free()
{
	atomic {
		slot = 0;
		do
		:: slot < SLOTS && is_left[slot] -> slot++
		:: else -> break
		od
	}
}

inline move_out()
{
	moved = file[place];
	if
	:: known_fd && is_programs -> moved = 0	/* what is in the program's file there */
	:: else
	fi;
	own = moved;
	d_step { kind = OWN; moved = 0 };
	if
	:: known_fd -> file[adopted_at] = 0
	:: else		/* it goes with its last mapping */
	fi;
	is_adopted = 0
}

inline detach()
{
	if
	:: known_fd ->
		d_step { kind = OF_FILE; is_left[adopted_at] = 1 };
#if MUTANT == 9
		file[adopted_at] = 0;
#endif
		if
		:: d_step {
			if
			:: kind == OF_FILE -> own = file[place]; kind = OWN
			:: else
			fi
		   };
			file[adopted_at] = 0
		:: skip /* no memory, or an older kernel: what nobody writes stays there */
		fi;
		is_adopted = 0
	:: else	/* not now */
	fi
}

/* settle(), give_back() */
inline settle()
{
	if
	:: is_adopted && !regions && (!pinned || MUTANT == 5) ->
		adopting = 1;
		forget_what_is_closed();
		if
		:: !threads || MUTANT == 3 -> move_out()
		:: threads && MUTANT != 3 -> detach()
		fi;
		adopting = 0
	:: else
	fi
}

inline live()
{
	do
	:: d_step { !threads && !done -> threads = 1 }
	:: d_step { threads -> threads = 0 }
	:: d_step { !pinned && kind != OF_FILE ->
		pinned = 1; pinned_file = (kind == SHARED); pinned_place = place }
	:: d_step { pinned -> pinned = 0; pinned_file = 0; pinned_place = 0 }
	:: MAY_WRITE ->
		d_step {
			assert(VIEW == last);
			n_writes++;
			last = 1 + n_writes;
			write_there(last)
		}
	:: break
	od
}

active proctype program()
{
	byte turn, slot, moved;

	do
	:: turn == TURNS -> break
	:: else ->
		turn++;
		live();
		/* hca_object_get() */
		if
		:: MUTANT != 8 -> settle()
		:: else
		fi;
		if
		:: is_adopted
		:: !is_adopted ->
			find_free();
			if
			:: slot < SLOTS ->
				adopt(slot)
			:: else
			fi
		fi;
		regions = 1;
		d_step { by_object = is_adopted; object = adopted_at };
		key = 1;
		assert(VIEW == last || at_work || threads || pinned);
		live();
		key = 0;
#if MUTANT != 6
		!at_work;
#endif
		d_step { by_object = 0; object = 0; slot = 0; regions = 0 };
		settle();
		assert(VIEW == last || MAY_WRITE || threads || pinned)
	od;
	done = 1;
	d_step { threads = 0; pinned = 0; pinned_file = 0 };
	if
	:: MUTANT != 8 -> settle()
	:: else
	fi;
	assert(VIEW == last);
	assert(!is_adopted && kind != SHARED)
}
