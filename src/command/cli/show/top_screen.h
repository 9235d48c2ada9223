/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The screen of `umbel top`, by ncurses, which no other file knows. From cli_top_screen_open() to
 * cli_top_screen_close() nothing else writes to the terminal. Single-threaded.
 */
#ifndef CLI_TOP_SCREEN_H
#define CLI_TOP_SCREEN_H

#include "cli/show/top_data.h"

/* The state that the screen shows. */
struct cli_top_state {
	const char *fabric;
	long interval; /* seconds */
	unsigned view;
	struct cli_top_sample *sample; /* NULL: there is none of the view yet */
	struct cli_top_order order[CLI_TOP_VIEWS];
	char filter[32];
	bool paused, typing, helping; /* typing: the filter */
	size_t first;                 /* row */
	unsigned silent;              /* seconds for which the daemon has not replied */
};

/* Keys that are no characters. */
enum cli_top_key {
	CLI_TOP_NO_KEY = -1,
	CLI_TOP_UP = 1000,
	CLI_TOP_DOWN,
	CLI_TOP_PAGE_UP,
	CLI_TOP_PAGE_DOWN,
	CLI_TOP_FIRST,
	CLI_TOP_LAST,
	CLI_TOP_LEFT,
	CLI_TOP_RIGHT,
	CLI_TOP_BACKSPACE,
	CLI_TOP_REDRAW,
};

/* 0, or CLI_USAGE, with a message: the terminal can do too little. */
int cli_top_screen_open(void);
/* The terminal is as it was. */
void cli_top_screen_close(void);

/* Shows the state; s->first becomes a row that is not too far down. */
void cli_top_screen_draw(struct cli_top_state *s);

/* Rows that there is room for. */
size_t cli_top_screen_rows(void);

/* The next key: a character, or one of enum cli_top_key. Does not wait. */
int cli_top_screen_key(void);

#endif
