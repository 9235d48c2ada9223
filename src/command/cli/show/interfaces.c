/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Interfaces of hosts: see interfaces.h. An interface is an object with "host", "pid" and, if its
 * program answers, the members that programs/ipoib/main.c describes.
 */
#include <errno.h>
#include <json-c/json.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/show/interfaces.h"
#include "cli/base/json.h"
#include "control/client.h"

#define PATIENCE_S 10 /* for programs that do not answer */

struct json_object *cli_interfaces_request(struct control_client *client)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	struct json_object *all = NULL;
	int fd, ret = control_show_open(client, "interfaces", NULL, &fd);

	if (!ret) {
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		all = json_object_from_fd(fd);
		close(fd);
	}
	if (json_object_is_type(all, json_type_array))
		return all;
	json_object_put(all);
	if (ret != -EINVAL) /* an older daemon has none */
		base_log("the interfaces of the hosts do not answer%s%s", ret ? ": " : "",
		         ret ? strerror(-ret) : "");
	return json_object_new_array();
}

/* The "interfaces" of the host of that name, made if there are none yet. NULL: no such host. */
static struct json_object *find_list(struct json_object *hosts, const char *name, size_t *hint)
{
	size_t n = json_object_array_length(hosts);

	/* interfaces come in the order of hosts, mostly */
	for (size_t i = 0; i < n; i++) {
		struct json_object *host = json_object_array_get_idx(hosts, (*hint + i) % n), *list;

		if (strcmp(cli_json_text(host, "name"), name))
			continue;
		*hint = (*hint + i) % n;
		list = json_object_object_get(host, "interfaces");
		if (!list) {
			list = json_object_new_array();
			json_object_object_add(host, "interfaces", list);
		}
		return list;
	}
	return NULL;
}

void cli_interfaces_add(struct json_object *hosts, struct json_object *interfaces)
{
	size_t hint = 0;

	for (size_t i = 0; i < json_object_array_length(interfaces); i++) {
		struct json_object *one = json_object_array_get_idx(interfaces, i);
		struct json_object *list = find_list(hosts, cli_json_text(one, "host"), &hint);

		if (list)
			json_object_array_add(list, json_object_get(one));
	}
}

static void copy(struct json_object *to, struct json_object *from, const char *key)
{
	json_object_object_add(to, key, json_object_new_string(cli_json_text(from, key)));
}

static void copy_all(struct json_object *to, struct json_object *from)
{
	json_object_object_foreach(from, key, value)
	{
		json_object_object_add(to, key, json_object_get(value));
	}
}

struct json_object *cli_interfaces_neighbours(struct json_object *interfaces)
{
	struct json_object *all = json_object_new_array();

	for (size_t i = 0; i < json_object_array_length(interfaces); i++) {
		struct json_object *one = json_object_array_get_idx(interfaces, i);
		struct json_object *list = cli_json_array(one, "neighbours");

		for (size_t k = 0; k < json_object_array_length(list); k++) {
			struct json_object *row = json_object_new_object();

			copy(row, one, "host");
			copy(row, one, "interface");
			copy_all(row, json_object_array_get_idx(list, k));
			json_object_array_add(all, row);
		}
	}
	return all;
}

struct json_object *cli_interfaces_counters(struct json_object *hosts)
{
	struct json_object *all = json_object_new_array();

	for (size_t i = 0; i < json_object_array_length(hosts); i++) {
		struct json_object *host = json_object_array_get_idx(hosts, i);
		struct json_object *list = cli_json_array(host, "interfaces");

		for (size_t k = 0; k < json_object_array_length(list); k++) {
			struct json_object *one = json_object_array_get_idx(list, k), *counters;
			struct json_object *row = json_object_new_object();

			copy(row, one, "host");
			copy(row, one, "interface");
			copy(row, one, "state");
			if (json_object_object_get_ex(one, "counters", &counters))
				copy_all(row, counters);
			json_object_array_add(all, row);
		}
	}
	return all;
}
