/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel record`: writes the events of a fabric to a file that `umbel replay` reads. A line is an
 * object of JSON, as of `umbel monitor --json`. The first one is the fabric: its topology as a file
 * that --topology takes, and its settings. Its changes before the recording stand as events behind
 * that, so a reader of the file need not know the difference.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/base/command.h"
#include "cli/base/fabrics.h"
#include "cli/base/json.h"
#include "cli/record/monitor.h"
#include "cli/record/output.h"
#include "cli/base/options.h"
#include "control/client.h"

static const char help[] =
        "Usage: umbel record [OPTION]... FILE\n"
        "\n"
        "Writes to a file how a fabric is made, and what happens to it from now on: links,\n"
        "switches, members of groups, faults, settings, and all else that 'umbel monitor' tells.\n"
        "'umbel replay' does it again. Ends by a signal (Ctrl-C), or when the fabric does.\n";

#define NS_PER_S 1000000000ull

struct record {
	struct json_object *topology, *hosts, *status, *faults, *groups; /* the daemon's views */
	struct json_object *by_name;                                     /* nodes of the topology */
	struct json_object *hca_ports; /* by GID: an object with its HCA, host and number */
	struct json_object *hca_hosts; /* by the name of an HCA: its host */
	uint64_t began_ns;
	FILE *to;
};

/* ---- the topology, as a file ---- */

static const char *guid_of(struct json_object *node)
{
	const char *guid = cli_json_text(node, "guid");

	return strncmp(guid, "0x", 2) ? guid : guid + 2;
}

static char kind_of(struct json_object *node)
{
	return !strcmp(cli_json_text(node, "type"), "switch") ? 'S' : 'H';
}

/* The GUID of an HCA's port, out of its GID; 0: it is not known. */
static uint64_t port_guid(const struct record *r, const char *hca, long port)
{
	json_object_object_foreach(r->hca_ports, gid, at)
	{
		uint64_t raw[2];

		if (!strcmp(cli_json_text(at, "node"), hca) &&
		    cli_json_number(at, "port") == port && inet_pton(AF_INET6, gid, raw) == 1)
			return be64toh(raw[1]);
	}
	return 0;
}

/* "h1 umbel_h1_0": the HCA's host, and the device name that programs there see; the node's own name
 * is made of both. */
static void write_title(const struct record *r, struct json_object *node, FILE *to)
{
	const char *name = cli_json_text(node, "name"), *host;
	struct json_object *of;
	size_t n;

	if (kind_of(node) == 'S' || !json_object_object_get_ex(r->hca_hosts, name, &of)) {
		fprintf(to, "\t# \"%s\"\n", name);
		return;
	}
	host = json_object_get_string(of);
	n = strlen(host);
	if (!strncmp(name, host, n) && name[n] == '.')
		name += n + 1;
	fprintf(to, "\t# \"%s %s\"\n", host, name);
}

static void write_port(const struct record *r, struct json_object *node, struct json_object *port,
                       FILE *to)
{
	const char *rate = cli_json_text(port, "rate");
	struct json_object *peer;

	if (!json_object_object_get_ex(r->by_name, cli_json_text(port, "peer"), &peer))
		return;
	fprintf(to, "[%ld]", cli_json_number(port, "port"));
	if (kind_of(node) == 'H')
		fprintf(to, "(%llx)",
		        (unsigned long long)port_guid(r, cli_json_text(node, "name"),
		                                      cli_json_number(port, "port")));
	fprintf(to, "\t\"%c-%s\"[%ld]\t# ", kind_of(peer), guid_of(peer),
	        cli_json_number(port, "peer_port"));
	for (; *rate; rate++)
		if (*rate != ' ')
			fputc(*rate, to);
	fputc('\n', to);
}

static void write_topology(const struct record *r, FILE *to)
{
	struct json_object *nodes = cli_json_array(r->topology, "nodes");

	for (size_t i = 0; i < cli_json_count(nodes); i++) {
		struct json_object *node = cli_json_at(nodes, i), *ports;

		ports = cli_json_array(node, "ports");
		fprintf(to, "%s\t%ld \"%c-%s\"", kind_of(node) == 'S' ? "Switch" : "Ca",
		        cli_json_number(node, "n_ports"), kind_of(node), guid_of(node));
		write_title(r, node, to);
		for (size_t k = 0; k < cli_json_count(ports); k++)
			write_port(r, node, cli_json_at(ports, k), to);
		fputc('\n', to);
	}
}

/* ---- what stands ---- */

static struct json_object *event_new(const struct record *r, const char *kind, const char *what)
{
	struct json_object *e = json_object_new_object();

	json_object_object_add(e, "time_ns", json_object_new_int64((int64_t)r->began_ns));
	json_object_object_add(e, "event", json_object_new_string(kind));
	if (what)
		json_object_object_add(e, "what", json_object_new_string(what));
	return e;
}

/* Has @e say what @from says under the key. */
static void copy(struct json_object *e, struct json_object *from, const char *key)
{
	struct json_object *value;

	if (json_object_object_get_ex(from, key, &value))
		json_object_object_add(e, key, json_object_get(value));
}

static void write_event(const struct record *r, struct json_object *e)
{
	fprintf(r->to, "%s\n", json_object_to_json_string_ext(e, JSON_C_TO_STRING_PLAIN));
	json_object_put(e);
}

static void write_head(const struct record *r)
{
	struct json_object *e = event_new(r, "fabric", NULL);
	char *text = NULL;
	size_t n = 0;
	FILE *to = open_memstream(&text, &n);

	if (to) {
		write_topology(r, to);
		fclose(to);
	}
	copy(e, r->status, "name");
	json_object_object_add(e, "topology", json_object_new_string(text ? text : ""));
	copy(e, r->status, "settings");
	free(text);
	write_event(r, e);
}

static bool is_dead(const struct record *r, const char *name)
{
	struct json_object *node;

	return json_object_object_get_ex(r->by_name, name, &node) &&
	       json_object_object_get_ex(node, "dead", NULL);
}

/* A link is told at its first end. */
static void write_link(const struct record *r, struct json_object *node, struct json_object *port)
{
	const char *name = cli_json_text(node, "name"), *peer = cli_json_text(port, "peer");
	struct json_object *e;

	if (strcmp(cli_json_text(port, "state"), "down") != 0 || is_dead(r, name) ||
	    is_dead(r, peer) || strcmp(name, peer) > 0)
		return;
	e = event_new(r, "link", "down");
	json_object_object_add(e, "node", json_object_new_string(name));
	copy(e, port, "port");
	copy(e, port, "peer");
	copy(e, port, "peer_port");
	write_event(r, e);
}

static void write_node(const struct record *r, struct json_object *node)
{
	struct json_object *ports = cli_json_array(node, "ports"), *e;

	if (is_dead(r, cli_json_text(node, "name"))) {
		e = event_new(r, "switch", "killed");
		json_object_object_add(e, "node",
		                       json_object_new_string(cli_json_text(node, "name")));
		write_event(r, e);
		return;
	}
	for (size_t k = 0; k < cli_json_count(ports); k++)
		write_link(r, node, cli_json_at(ports, k));
}

static void write_members(const struct record *r, struct json_object *group)
{
	static const char *const keys[] = { "mgid", "qkey", "pkey", "mtu", "rate", "sl" };
	struct json_object *members = cli_json_array(group, "members"), *at;

	for (size_t i = 0; i < cli_json_count(members); i++) {
		struct json_object *member = cli_json_at(members, i), *e;

		if (!json_object_object_get_ex(r->hca_ports, cli_json_text(member, "port_gid"),
		                               &at))
			continue;
		e = event_new(r, "join", NULL);
		copy(e, member, "host");
		copy(e, at, "node");
		copy(e, at, "port");
		copy(e, member, "port_gid");
		for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
			copy(e, group, keys[k]);
		copy(e, member, "join_state");
		write_event(r, e);
	}
}

/* Faults first: changes of links by rules belong to the rules. */
static void write_standing(const struct record *r)
{
	struct json_object *nodes = cli_json_array(r->topology, "nodes"), *e;

	for (size_t i = 0; i < cli_json_count(r->faults); i++) {
		e = event_new(r, "fault", "added");
		copy(e, cli_json_at(r->faults, i), "number");
		copy(e, cli_json_at(r->faults, i), "rule");
		write_event(r, e);
	}
	for (size_t i = 0; i < cli_json_count(nodes); i++)
		write_node(r, cli_json_at(nodes, i));
	for (size_t i = 0; i < cli_json_count(r->groups); i++)
		write_members(r, cli_json_at(r->groups, i));
}

/* ---- the daemon's views ---- */

static void index_hca(const struct record *r, struct json_object *host, struct json_object *hca)
{
	struct json_object *ports = cli_json_array(hca, "ports"), *name;

	if (!json_object_object_get_ex(hca, "name", &name))
		return;
	json_object_object_add(r->hca_hosts, json_object_get_string(name),
	                       json_object_new_string(cli_json_text(host, "name")));
	for (size_t i = 0; i < cli_json_count(ports); i++) {
		struct json_object *port = cli_json_at(ports, i), *at = json_object_new_object();

		json_object_object_add(at, "node", json_object_get(name));
		copy(at, port, "port");
		json_object_object_add(r->hca_ports, cli_json_text(port, "gid"), at);
	}
}

static void index_all(struct record *r)
{
	struct json_object *nodes = cli_json_array(r->topology, "nodes");

	r->by_name = json_object_new_object();
	r->hca_ports = json_object_new_object();
	r->hca_hosts = json_object_new_object();
	for (size_t i = 0; i < cli_json_count(nodes); i++)
		json_object_object_add(r->by_name, cli_json_text(cli_json_at(nodes, i), "name"),
		                       json_object_get(cli_json_at(nodes, i)));
	for (size_t i = 0; i < cli_json_count(r->hosts); i++) {
		struct json_object *host = cli_json_at(r->hosts, i);
		struct json_object *hcas = cli_json_array(host, "hcas");

		for (size_t k = 0; k < cli_json_count(hcas); k++)
			index_hca(r, host, cli_json_at(hcas, k));
	}
}

/* Ports on network devices are nobody's but the machine's. */
static bool is_on_ethernet(const struct record *r)
{
	struct json_object *nodes = cli_json_array(r->topology, "nodes");

	for (size_t i = 0; i < cli_json_count(nodes); i++) {
		struct json_object *ports = cli_json_array(cli_json_at(nodes, i), "ports");

		for (size_t k = 0; k < cli_json_count(ports); k++)
			if (json_object_object_get_ex(cli_json_at(ports, k), "device", NULL))
				return true;
	}
	return false;
}

static int ask_all(struct record *r, struct control_client *client)
{
	r->topology = cli_request_json(client, "topology");
	r->hosts = r->topology ? cli_request_json(client, "hosts") : NULL;
	r->status = r->hosts ? cli_request_json(client, "status") : NULL;
	r->faults = r->status ? cli_request_json(client, "faults") : NULL;
	r->groups = r->faults ? cli_request_json(client, "groups") : NULL;
	if (!r->groups)
		return CLI_FAILED;
	if (!is_on_ethernet(r))
		return 0;
	base_log("a fabric with ports on Ethernet cannot be recorded: those belong to the machine");
	return CLI_FAILED;
}

static void record_fini(struct record *r)
{
	struct json_object *all[] = { r->topology, r->hosts,   r->status,    r->faults,
		                      r->groups,   r->by_name, r->hca_ports, r->hca_hosts };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		json_object_put(all[i]);
}

/* ---- from the daemon to the file ---- */

static int write_line(void *arg, const char *line)
{
	const struct record *r = arg;

	return fputs(line, r->to) < 0 ? CLI_FAILED : 0;
}

static int write_all(struct record *r, const char *path)
{
	int ret, error, fd;

	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	r->to = fd >= 0 ? cli_output_open(&fd) : NULL;
	if (!r->to) {
		base_log("cannot write '%s': %s", path, strerror(errno));
		return CLI_FAILED;
	}
	setvbuf(r->to, NULL, _IOLBF, 0);
	index_all(r);
	errno = 0;
	write_head(r);
	write_standing(r);
	ret = ferror(r->to) ? CLI_FAILED : 0;
	error = errno;
	if (isatty(STDERR_FILENO))
		base_log("recording to '%s'; Ctrl-C ends it", path);
	if (!ret) {
		ret = cli_monitor_read(write_line, r);
		error = errno;
	}
	if ((fclose(r->to) | close(fd)) && !ret) {
		error = errno;
		ret = CLI_FAILED;
	}
	if (ret)
		base_log("cannot write '%s': %s", path, strerror(error));
	return ret;
}

static int record_execute(const struct cli_command *self, void *options, int argc, char **argv)
{
	const struct cli_name_options *o = options;
	const char *fabric = cli_fabric_name(o->name);
	struct record r = { .topology = NULL };
	struct control_client *client;
	struct timespec now;
	int ret;

	if (argc != 1)
		return argc ? cli_usage_error(self, "one file, not '%s' too", argv[1])
		            : cli_usage_error(self, "to which file?");
	ret = cli_connect(&client, fabric);
	if (ret)
		return ret;
	clock_gettime(CLOCK_REALTIME, &now);
	r.began_ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
	/* first: an event that happens meanwhile is rather told twice than not at all */
	ret = cli_monitor_open(client, fabric);
	if (!ret)
		ret = ask_all(&r, client);
	control_close(client);
	if (!ret)
		ret = write_all(&r, argv[0]);
	cli_monitor_close();
	record_fini(&r);
	return ret;
}

const struct cli_command cli_record = {
	.name = "record",
	.summary = "write what happens to a fabric to a file, for replay",
	.help = help,
	CLI_OPTIONS(cli_name_options, struct cli_name_options),
	.execute = record_execute,
};
