/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fork() of a process with adopted memory (src/client/hca/memory/adopt.c). A thread forks; another one
 * deregisters the memory, so that it is given back beside other threads; both the parent's thread and
 * the child may be interrupted by a signal, whose handler looks at the memory and writes there, or
 * forks. The child may be stopped, go on, or die at every step.
 *
 * What is proven: the child has what was there when it was made, and in its signal handler, too;
 * the parent has what it wrote last, and nothing of what the child writes; fork() returns in the
 * parent, if the child dies as well. A child that stands still for longer than the parent waits is
 * left out: it shares the memory until it goes on, which the log says.
 *
 * One page is all the memory. What peers write is left out: a child may have it, or not.
 *
 * Mutants:
 *  1 the child takes signals before it has the memory
 *  2 the parent's thread takes signals before the child has the memory
 *  3 memory is given back while a thread forks
 *  4 nobody waits for the child
 *  5 the parent keeps its copy of the child's end
 *  6 the child empties the file
 *  7 the child says that it has the memory before it has copied it
 *  8 the parent counts itself as forking until the child is made only
 *
 * Functions that it models (tools/check-models.py):
 *  src/client/hca/memory/adopt.c before_fork 797ae45efd87
 *  src/client/hca/memory/adopt.c after_fork_in_parent b1a44e39cc33
 *  src/client/hca/memory/adopt.c after_fork_in_child c77799c13835
 *  src/client/hca/memory/adopt.c wait_for_child 40ce39168348
 *  src/client/hca/memory/adopt.c hold_signals 76d1e62716ba
 *  src/client/hca/memory/adopt.c release_signals 233b26b14e82
 *  src/client/hca/memory/adopt.c move_out 5ddb4a297910
 *  src/client/hca/memory/adopt.c read_pieces 72e7d2a75835
 *  src/client/hca/memory/adopt.c free_pages e383974dd066
 *  src/client/hca/memory/adopt.c detach 47338eaae9ff
 *  src/client/hca/memory/adopt.c give_back 24afbccd5e54
 */
#ifndef MUTANT
#define MUTANT 0
#endif

/* How a process has the page mapped. OF_FILE: privately, and nothing was written there yet. */
mtype = { SHARED, OF_FILE, OWN };

#define FIRST	   1 /* values of the page: 0: it is empty */
#define OF_PARENT  2
#define OF_HANDLER 3
#define OF_CHILD   4

#define PARENT 0
#define CHILD  1

byte file = FIRST;
mtype kind[2] = SHARED; /* of each process */
byte own[2];		/* what the page holds if it is the process's own */

bit lock, forking;	/* adopted.lock, .forking */
bit is_adopted = 1;	/* adopted.n */
bit blocked[2];		/* signals of the forking thread, of the child */
bit pair;		/* the forking thread knows of its pair of sockets */
bit has_end[2];	/* who has the child's end of it open */
bit has_memory;		/* the child has said so */

/* ---- what nobody sees ---- */

byte expected[2] = FIRST; /* what the process wrote last, or had when it was made */
bit lives, was_made, stopped, was_stopped, may_die;
bit late;		/* the parent has not waited to the end */
bit handled[2], returned[2];

#define VIEW(who) (kind[who] == OWN -> own[who] : file)

inline write(who, value)
{
	d_step {
		if
		:: kind[who] == SHARED -> file = value
		:: else -> own[who] = value; kind[who] = OWN
		fi;
		expected[who] = value
	}
}

#define HOLDS(who) (late || VIEW(who) == expected[who])

/* A handler that writes, or, in the parent, forks and ends: the thread knows of no pair then. */
inline handle(who)
{
	handled[who] = 1;
	assert(HOLDS(who));
	if
	:: write(who, OF_HANDLER)
	:: who == PARENT && pair -> pair = 0; has_end[PARENT] = 0
	fi
}

#define MAY_TAKE(who) (!blocked[who] && !handled[who] && !returned[who])

active proctype signals()
{
end:
	do
	:: atomic { MAY_TAKE(PARENT) -> handle(PARENT) }
	:: atomic { MAY_TAKE(CHILD) && lives -> handle(CHILD) }
	:: d_step { lives && !was_stopped -> stopped = 1; was_stopped = 1 }
	:: d_step { stopped -> stopped = 0 }
	od
}

/* after_fork_in_child(), move_out() */
proctype child() provided (!stopped)
{
	{
#if MUTANT == 1
		blocked[CHILD] = 0;
#endif
#if MUTANT == 7
		has_memory = 1;
#endif
		if
		:: kind[CHILD] == SHARED ->
			d_step { kind[CHILD] = OWN; own[CHILD] = 0 };
			own[CHILD] = file;
#if MUTANT == 6
			file = 0
#endif
		:: else
		fi;
		has_memory = 1;
		has_end[CHILD] = 0;
		blocked[CHILD] = 0;
		assert(HOLDS(CHILD));
		write(CHILD, OF_CHILD);
		assert(HOLDS(CHILD));
		atomic { returned[CHILD] = 1; lives = 0 }
	} unless {
		may_die
	};
	atomic { lives = 0; has_end[CHILD] = 0; stopped = 0 }
}

active proctype reaper()
{
	if
	:: lives -> may_die = 1
	:: returned[PARENT]
	fi
}

/* With the lock held, where others write: give_back(), detach(). */
active proctype other()
{
	atomic { !lock -> lock = 1 };
	if
	:: is_adopted && (!forking || MUTANT == 3) ->
		kind[PARENT] = OF_FILE;
		d_step {	/* MADV_POPULATE_WRITE; the other thread may have written */
			if
			:: kind[PARENT] == OF_FILE -> own[PARENT] = file; kind[PARENT] = OWN
			:: else
			fi
		};
		file = 0;
		is_adopted = 0
	:: else
	fi;
	lock = 0
}

active proctype parent()
{
	/* before_fork() */
	atomic { !lock -> lock = 1 };
	d_step {
		forking = 1;
		if
		:: is_adopted ->
			pair = 1;
			has_end[PARENT] = 1;
			blocked[PARENT] = 1
		:: else
		fi
	};
	d_step {
#if MUTANT == 2
		blocked[PARENT] = 0;
#endif
		lock = 0
	};
	if
	:: atomic {
		kind[CHILD] = kind[PARENT];
		own[CHILD] = own[PARENT];
		expected[CHILD] = VIEW(PARENT);
		has_end[CHILD] = has_end[PARENT];
		blocked[CHILD] = blocked[PARENT];
		lives = 1;
		was_made = 1;
		run child()
	   }
	:: skip /* there is no memory for it */
	fi;
#if MUTANT == 8
	forking = 0;
#endif
	/* after_fork_in_parent() */
	if
	:: pair ->
#if MUTANT != 5
		has_end[PARENT] = 0;
#endif
#if MUTANT != 4
		if
		:: has_memory
		:: !has_end[PARENT] && !has_end[CHILD]
		:: stopped -> late = 1
		fi;
#endif
		pair = 0
	:: else
	fi;
	atomic { !lock -> lock = 1 };
	forking = 0;
	lock = 0;
	blocked[PARENT] = 0;
	assert(VIEW(PARENT) == expected[PARENT]);
	write(PARENT, OF_PARENT);
	!lives;
	assert(VIEW(PARENT) == expected[PARENT]);
	returned[PARENT] = 1
}
