/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon's replies to `show` requests, which are JSON texts. A daemon that is older or newer is
 * no error: a key that is not there reads as "-", as 0 or as an empty array. Single-threaded.
 */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stddef.h>

struct cli_table;
struct control_client;
struct json_object;

/* A column of a table: its header, and the key of what is below it. */
struct cli_column {
	const char *header, *key;
	/* Adds the cell to the table, mostly the text under the key. */
	void (*add)(struct cli_table *t, struct json_object *element, const char *key);
	unsigned depth; /* of the element: 0 is in the outermost array */
};

void cli_add_text(struct cli_table *t, struct json_object *element, const char *key);

/* The daemon's reply to "show @what", parsed; the caller puts it. NULL after an error. */
struct json_object *cli_request_json(struct control_client *client, const char *what);

/* The same of fabric @name, to whose daemon it connects for that. 0, or as cli_connect(). */
int cli_ask(const char *name, const char *what, struct json_object **reply);

/* A descriptor from which the daemon's reply to "show @what" of the switch @of (NULL: of all) can
 * be read, which is the caller's to close; or -1 after an error. */
int cli_request_text(struct control_client *client, const char *what, const char *of);

/* The text, number or array under @key. */
const char *cli_json_text(struct json_object *o, const char *key);
long cli_json_number(struct json_object *o, const char *key);
struct json_object *cli_json_array(struct json_object *o, const char *key);

/* How many elements the array has, and element @i, from 0. */
size_t cli_json_count(struct json_object *array);
struct json_object *cli_json_at(struct json_object *array, size_t i);

/* Prints a table. Its rows are the elements of @array; with @inner, say { "hcas", "ports", NULL },
 * the ports in the HCAs in them. After the last of @columns comes one that is all zero. 0 or
 * CLI_FAILED.
 */
int cli_json_print_table(struct json_object *array, const struct cli_column *columns,
                         const char *const *inner);

/* Prints @o to standard output, indented. 0 or CLI_FAILED. */
int cli_json_print(struct json_object *o);

/* Likewise, of JSON text that is read from @fd; of any length, as none of it is kept. */
int cli_json_print_text(int fd);

#endif
