/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ending fabrics, for `umbel run`. Single-threaded.
 */
#ifndef CLI_DOWN_H
#define CLI_DOWN_H

/* Ends all fabrics in the runtime directory but @except, and waits until they are down. It prints
 * what goes wrong, and nothing else. */
void cli_end_fabrics(const char *except);

#endif
