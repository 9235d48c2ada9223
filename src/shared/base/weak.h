/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A weak fabric (docs/weak.md). Where the specification leaves the time or the order of a step
 * open, a weak fabric takes the step later, or in another order. Each choice is about one step of
 * one request. It is a function of the seed and of the request's place: the host, the number of the
 * process there, the number of the object in the process, and the number of the request of that
 * object. So the same program meets the same choices each time, on any machine. These are pure
 * functions, but for files of choices.
 */
#ifndef BASE_WEAK_H
#define BASE_WEAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Set by `umbel run --weak` and `umbel exec --weak`: as base_weak_parse() reads it. */
#define BASE_WEAK_VARIABLE "UMBEL_WEAK"
/* A file of choices. The process makes these choices and no others. */
#define BASE_WEAK_CHOICES "UMBEL_WEAK_CHOICES"
/* A folder: each process leaves a file there with the choices that it has met. */
#define BASE_WEAK_FOLDER "UMBEL_WEAK_DIR"

/* The kinds of weakness that a user can ask for by name. */
enum base_weak_kind {
	BASE_WEAK_GATHER,   /* when the bytes of a message are read at the sender */
	BASE_WEAK_PLACE,    /* when, and in which order, they are written at the receiver */
	BASE_WEAK_COMPLETE, /* when completions appear */
	BASE_WEAK_GROUPS,   /* datagrams that are lost, or overtake others */
	BASE_WEAK_CM,       /* events of connections that come late */
	BASE_WEAK_SUBNET,   /* what a subnet manager does at any time; only if it is named */
	BASE_WEAK_KINDS
};
#define BASE_WEAK_USUAL ((1u << BASE_WEAK_SUBNET) - 1)

extern const char *const base_weak_kind_names[BASE_WEAK_KINDS];

/* The step that a choice is about: weak_steps.def. */
enum base_weak_step {
#define WEAK_STEP(name, ...) BASE_WEAK_STEP_##name,
#include "base/weak_steps.def"
#undef WEAK_STEP
	BASE_WEAK_STEPS
};

struct base_weak {
	uint32_t seed;
	uint32_t kinds; /* a bit for each enum base_weak_kind; 0: the fabric is not weak */
};

/* Reads "SEED", or "SEED,KIND,..."; without kinds it is BASE_WEAK_USUAL. False: *@why says what is
 * wrong. */
bool base_weak_parse(const char *text, struct base_weak *w, char *why, size_t room);

enum base_weak_kind base_weak_kind_of(enum base_weak_step step);

/* The host of choices that the daemon meets. The object is a port, the request a MAD that leaves
 * there; or the object is the MLID of a group, the request a change of its tree; or the object is
 * a port, the request a moment (daemon/detour/weak_events.h). */
#define BASE_WEAK_DAEMON "daemon"

struct base_weak_place {
	char host[32]; /* "": the program sees all hosts */
	uint32_t process, object, request;
};

struct base_weak_choice {
	struct base_weak_place at;
	uint8_t step;    /* enum base_weak_step */
	uint8_t amount;  /* not 0 */
	uint8_t by_time; /* it ended by a time limit, not by what the program did */
};

/* The file of a process in BASE_WEAK_FOLDER, whose name is "HOST.PROCESS": choices as they are
 * made. Sparse. */
struct base_weak_noted {
	_Atomic uint32_t n; /* may be more than there is room for */
	struct base_weak_note {
		uint32_t object, request;
		uint8_t step, amount; /* amount 0, by_time: of a choice before */
		uint8_t by_time;
	} at[];
};

/* Numbers that stand for the place's host and process, to draw by. */
uint64_t base_weak_hash_process(uint32_t seed, const char *host, uint32_t process);

/* The amount that is drawn for a step of a request; 0: the step is not delayed. */
uint8_t base_weak_draw(uint64_t process, uint32_t object, uint32_t request,
                       enum base_weak_step step);
/* Likewise, how long a process that does nothing else waits for that step, in us. */
uint32_t base_weak_patience_us(uint64_t process, uint32_t object, uint32_t request,
                               enum base_weak_step step);

/* Write a line of a file of choices, and read the next one. 1: read; 0: the file has ended; -1: the
 * line is wrong. Comments begin with '#'. */
void base_weak_write(FILE *to, const struct base_weak_choice *c);
int base_weak_read(FILE *from, struct base_weak_choice *c);

/* Writes the meaning of the choice, in words. */
void base_weak_say(const struct base_weak_choice *c, char *text, size_t room);

#endif
