/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Graphviz's program dot, which makes pictures of text. Single-threaded. A function that fails has
 * printed its one line.
 */
#ifndef CLI_GRAPHVIZ_H
#define CLI_GRAPHVIZ_H

#include <stddef.h>

/* A descriptor from which the picture of @dot in @format, "svg" or "png", can be read from its
 * begin on; the caller closes it. -1 after an error. */
int cli_graphviz(const char *dot, size_t bytes, const char *format);

#endif
