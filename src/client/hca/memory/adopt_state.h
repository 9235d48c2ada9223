/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Adopted memory as two state machines, tables of pure values, which adopt.c follows: one of each
 * place of the table of objects, with its part of the file, and one of the file. The models
 * tests/models/adopt.pml and adopt_fork.pml have the same states.
 */
#ifndef HCA_ADOPT_STATE_H
#define HCA_ADOPT_STATE_H

enum hca_adopt_state {
	HCA_ADOPT_FREE,   /* nothing is adopted here; memory may be */
	HCA_ADOPT_SHARED, /* memory is adopted, and the program's mapping of the file is shared */
	HCA_ADOPT_PARTED, /* likewise, but some of the mapping is private by now */
	HCA_ADOPT_SPENT,  /* a private mapping may show this part of the file: never again */
	HCA_ADOPT_N_STATES
};

enum hca_adopt_event {
	HCA_ADOPT_MOVED_IN,   /* all pages lie in the file */
	HCA_ADOPT_DETACHED,   /* pages have become the process's own beside other threads */
	HCA_ADOPT_GIVEN_BACK, /* all of them are the process's own */
	HCA_ADOPT_CHILD,      /* this is a child by fork(), which has left the file */
	HCA_ADOPT_N_EVENTS
};

/* The state after the event; HCA_ADOPT_N_STATES: it cannot happen in that state. */
enum hca_adopt_state hca_adopt_next(enum hca_adopt_state state, enum hca_adopt_event event);

enum hca_adopt_file {
	HCA_ADOPT_UNOFFERED, /* there is no file, or peers cannot have it yet */
	HCA_ADOPT_OFFERED,   /* peers can have the file */
	HCA_ADOPT_OVER,      /* nothing is adopted any more */
	HCA_ADOPT_N_FILES
};

enum hca_adopt_file_event {
	HCA_ADOPT_FILE_OFFERED,
	HCA_ADOPT_FILE_OVER,  /* there is none, the program has forked or closed it, or registers
	                         often */
	HCA_ADOPT_FILE_CHILD, /* this is a child by fork(): it begins anew */
	HCA_ADOPT_N_FILE_EVENTS
};

enum hca_adopt_file hca_adopt_file_next(enum hca_adopt_file file, enum hca_adopt_file_event event);

#endif
