/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The screen of `umbel top`: see top_screen.h. Called by top.c.
 */
#include <json-c/json.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/base/command.h"
#include "cli/base/json.h"
#include "cli/show/top_screen.h"

#define HEAD_LINES 4 /* fabric, views, order, titles */
#define FOOT_LINES 1
#define MIN_LINES  (HEAD_LINES + FOOT_LINES + 1)
#define CLOCK      8  /* columns */
#define ESC_MS     25 /* behind which an Esc is no longer the beginning of a key */
#define SILENT     3  /* seconds, after which the reader is told */

#define RED 1

static SCREEN *screen;

static const char *const help[] = {
	"1 ... 5, Tab     ports, groups, connections, queue pairs, processes",
	"< >, left right  the column that rows are sorted by",
	"r                reverse the order",
	"/                filter: rows with this text; Enter, or Esc for all",
	"p, blank         pause: the numbers stay as they are",
	"up down, PgUp PgDn, Home End",
	"                 other rows",
	"Ctrl-L           draw the screen anew",
	"q                quit",
	"",
	"B/s, P/s         bytes and packets a second since the last look",
	"SENT, RCVD       by a port; of others: by queue pairs, without headers",
	"DROPS            lost there; umbel show drops says why",
	"-                not known, or not yet",
	NULL,
};

int cli_top_screen_open(void)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");

	use_tioctl(TRUE); /* the size is the terminal's, whatever LINES and COLUMNS say */
	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		base_log("top: no terminal that it knows (TERM is '%s')", term ? term : "");
		return CLI_USAGE;
	}
	set_escdelay(ESC_MS);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	if (has_colors() && !(no_colour && *no_colour)) {
		start_color();
		use_default_colors();
		init_pair(RED, COLOR_RED, -1);
	}
	return 0;
}

void cli_top_screen_close(void)
{
	if (!screen)
		return;
	endwin();
	delscreen(screen);
	screen = NULL;
}

size_t cli_top_screen_rows(void)
{
	return LINES > MIN_LINES ? (size_t)(LINES - HEAD_LINES - FOOT_LINES) : 1;
}

/* ---- drawing ---- */

/* At most @width characters; a '?' stands for characters that no terminal should get. */
static void put(int y, int x, const char *text, int width)
{
	if (y < 0 || y >= LINES || x < 0 || x >= COLS)
		return;
	move(y, x);
	for (; *text && width > 0 && x < COLS; text++, width--, x++)
		addch((unsigned char)(*text < ' ' || *text > '~' ? '?' : *text));
}

static void put_right(int y, int x, const char *text, int width)
{
	int n = (int)strlen(text);

	put(y, n < width ? x + width - n : x, text, width);
}

static void draw_fabric(const struct cli_top_state *s)
{
	struct json_object *status = s->sample ? s->sample->status : NULL;
	char text[256];

	snprintf(text, sizeof(text), "umbel top  %s", s->fabric);
	attron(A_BOLD);
	put(0, 0, text, COLS);
	attroff(A_BOLD);
	if (!status)
		return;
	snprintf(text, sizeof(text), ": %s hosts, %s programs, %s queue pairs, %s groups",
	         cli_json_text(status, "hosts"), cli_json_text(status, "clients"),
	         cli_json_text(status, "qps"), cli_json_text(status, "groups"));
	put(0, (int)strlen("umbel top  ") + (int)strlen(s->fabric), text, COLS);
}

static void draw_views(const struct cli_top_state *s)
{
	const time_t now = time(NULL);
	char text[64];
	struct tm tm;
	int x = 0;

	for (unsigned i = 0; i < CLI_TOP_VIEWS; i++) {
		snprintf(text, sizeof(text), " %u %s ", i + 1, cli_top_views[i].name);
		if (i == s->view)
			attron(A_REVERSE);
		put(1, x, text, COLS);
		attroff(A_REVERSE);
		x += (int)strlen(text) + 1;
	}
	if (x + CLOCK > COLS) /* the views matter more */
		return;
	localtime_r(&now, &tm);
	strftime(text, sizeof(text), "%H:%M:%S", &tm);
	put_right(1, COLS - CLOCK, text, CLOCK);
}

static const char *order_name(const struct cli_top_order *order, enum cli_top_kind kind)
{
	if (kind == CLI_TOP_TEXT)
		return order->reverse ? "in reverse order" : "in order";
	return order->reverse ? "smallest first" : "largest first";
}

/* "by SENT B/s, largest first; every 1 s; 3 of 12 rows with 'h2'" */
static void draw_order(const struct cli_top_state *s, size_t n)
{
	const struct cli_top_order *order = &s->order[s->view];
	const struct cli_top_column *c = &cli_top_views[s->view].columns[order->column];
	char text[256];
	int at;

	at = snprintf(text, sizeof(text), "by %s, %s; every %ld s", c->title,
	              order_name(order, c->kind), s->interval);
	if (s->sample)
		at += snprintf(text + at, sizeof(text) - (size_t)at, "; %zu of %zu rows", n,
		               s->sample->n);
	if (*s->filter)
		snprintf(text + at, sizeof(text) - (size_t)at, " with '%s'", s->filter);
	put(2, 0, text, COLS);
	*text = '\0';
	if (s->paused)
		strcpy(text, "PAUSED");
	else if (s->silent >= SILENT)
		snprintf(text, sizeof(text), "no reply for %u s", s->silent);
	attron(A_BOLD);
	put(2, COLS - (int)strlen(text), text, COLS);
	attroff(A_BOLD);
}

/* Where columns are: how many there is room for. */
static unsigned lay_out(const struct cli_top_view *view, int *width)
{
	const unsigned all = cli_top_n_columns(view);
	unsigned n = 0;
	int used = -1;

	for (; n < all && (!n || used + 1 + (int)view->columns[n].width <= COLS); n++) {
		width[n] = (int)view->columns[n].width;
		used += 1 + width[n];
	}
	/* the rest is the one's whose texts are longest, as far as these may be */
	if (n > view->stretch && used < COLS)
		width[view->stretch] += base_min(COLS - used, CLI_TOP_CELL - 24);
	return n;
}

static void draw_titles(const struct cli_top_state *s, const int *width, unsigned n)
{
	const struct cli_top_view *view = &cli_top_views[s->view];
	int x = 0;

	for (unsigned i = 0; i < n; i++, x += width[i - 1] + 1) {
		attrset(i == s->order[s->view].column ? A_REVERSE | A_BOLD : A_BOLD);
		if (view->columns[i].kind == CLI_TOP_TEXT)
			put(3, x, view->columns[i].title, width[i]);
		else
			put_right(3, x, view->columns[i].title, width[i]);
	}
	attrset(A_NORMAL);
}

static void draw_row(const struct cli_top_sample *s, const struct cli_top_row *row,
                     const int *width, unsigned n, int y)
{
	int x = 0;

	for (unsigned i = 0; i < n; i++, x += width[i - 1] + 1) {
		const struct cli_top_column *c = &s->view->columns[i];
		char text[CLI_TOP_CELL];
		const char *cell = cli_top_cell(s, row, i, text);

		if (c->kind == CLI_TOP_TEXT) {
			put(y, x, cell, width[i]);
			continue;
		}
		if (c->alarms && row->number[i] > 0)
			attron(A_BOLD | (has_colors() ? COLOR_PAIR(RED) : 0));
		put_right(y, x, cell, width[i]);
		attrset(A_NORMAL);
	}
}

static void draw_rows(struct cli_top_state *s, const uint32_t *which, size_t n)
{
	const struct cli_top_view *view = &cli_top_views[s->view];
	const size_t room = cli_top_screen_rows();
	int width[CLI_TOP_COLUMNS];
	unsigned columns = lay_out(view, width);

	draw_titles(s, width, columns);
	if (s->first + room > n)
		s->first = n > room ? n - room : 0;
	for (size_t i = 0; i < room && s->first + i < n; i++)
		draw_row(s->sample, &s->sample->row[which[s->first + i]], width, columns,
		         HEAD_LINES + (int)i);
	if (!s->sample)
		put(HEAD_LINES, 0, "...", COLS);
	else if (!n)
		put(HEAD_LINES, 0, *s->filter ? "no such rows" : "none", COLS);
}

static void draw_foot(const struct cli_top_state *s)
{
	char text[128];

	if (s->typing) {
		snprintf(text, sizeof(text), "filter: %s_", s->filter);
		put(LINES - 1, 0, text, COLS);
		return;
	}
	attron(A_REVERSE);
	put(LINES - 1, 0, "q quit  1-5 view  < > column  r reverse  / filter  p pause  h help",
	    COLS);
	attroff(A_REVERSE);
}

void cli_top_screen_draw(struct cli_top_state *s)
{
	uint32_t *which = s->sample ? calloc(s->sample->n + 1, sizeof(*which)) : NULL;
	size_t n = 0;

	s->order[s->view].filter = s->filter;
	if (which)
		n = cli_top_order(s->sample, &s->order[s->view], which);
	erase();
	draw_fabric(s);
	draw_views(s);
	draw_order(s, n);
	if (s->helping)
		for (int i = 0; help[i]; i++)
			put(HEAD_LINES + i, 2, help[i], COLS - 2);
	else
		draw_rows(s, which, n);
	draw_foot(s);
	refresh();
	free(which);
}

/* ---- keys ---- */

int cli_top_screen_key(void)
{
	static const struct {
		int curses, key;
	} keys[] = {
		{ ERR, CLI_TOP_NO_KEY },          { KEY_UP, CLI_TOP_UP },
		{ KEY_DOWN, CLI_TOP_DOWN },       { KEY_PPAGE, CLI_TOP_PAGE_UP },
		{ KEY_NPAGE, CLI_TOP_PAGE_DOWN }, { KEY_HOME, CLI_TOP_FIRST },
		{ KEY_END, CLI_TOP_LAST },        { KEY_LEFT, CLI_TOP_LEFT },
		{ KEY_RIGHT, CLI_TOP_RIGHT },     { KEY_BACKSPACE, CLI_TOP_BACKSPACE },
		{ 127, CLI_TOP_BACKSPACE },       { '\b', CLI_TOP_BACKSPACE },
		{ KEY_RESIZE, CLI_TOP_REDRAW },   { 'L' & 31, CLI_TOP_REDRAW },
	};
	int c = getch();

	if (c == ('L' & 31))
		clearok(curscr, TRUE);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i].curses == c)
			return keys[i].key;
	return c < 256 ? c : CLI_TOP_REDRAW;
}
