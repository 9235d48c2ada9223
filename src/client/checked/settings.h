/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a checked program is told what to check: variables of its environment, which `umbel run` and
 * `umbel exec` set.
 */
#ifndef CHECKED_SETTINGS_H
#define CHECKED_SETTINGS_H

#define CHECKED_LIBRARY "libumbel-checked.so" /* preloaded, it sees memory that moves, too */

#define CHECKED_VARIABLE     "UMBEL_CHECKED"              /* not empty: the program is checked */
#define CHECKED_FOLDER       "UMBEL_CHECKED_DIR"          /* where its reports go, as JSON */
#define CHECKED_SUPPRESSIONS "UMBEL_CHECKED_SUPPRESSIONS" /* a file */
#define CHECKED_CARD         "UMBEL_CHECKED_CARD"         /* a card's name, or its file */

#endif
