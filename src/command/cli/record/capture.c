/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel capture`: writes the MADs that a fabric carries to a file for Wireshark. The daemon sends
 * the MADs of its ports (control/message.h); here they become packets. A signal ends the daemon's
 * stream, so MADs on their way are still written.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "cli/base/environ.h"
#include "cli/base/fabrics.h"
#include "cli/base/group.h"
#include "cli/base/options.h"
#include "cli/record/output.h"
#include "cli/record/pcapng.h"
#include "cli/base/port.h"
#include "cli/base/signals.h"
#include "cli/fabric/daemon_process.h"
#include "control/client.h"
#include "wire/frame.h"
#include "wire/mad.h"
#include "wire/packet.h"
#include "wire/roce.h"

static const char help[] =
        "Usage: umbel capture [OPTION]... [NODE[:PORT]]\n"
        "\n"
        "Writes the management datagrams (MADs) that a fabric carries to a file that Wireshark\n"
        "and tshark read: subnet management, the subnet administrator, connections of rdma_cm,\n"
        "performance counters. With NODE, a host, an HCA or a switch, those that it sends or\n"
        "receives. With --data, what queue pairs send, too. Ends by a signal (Ctrl-C), or when the "
        "fabric does.\n";

#define AT_ONCE (128 << 10) /* bytes that are read: more than the longest record */
/* of a packet or a frame */
#define MOST_BYTES WIRE_FRAME_BYTES
static_assert(MOST_BYTES >= WIRE_PACKET_MAX_OVERHEAD + WIRE_ROCE_MAX_PAYLOAD, "room for both");

struct run {
	const char *fabric, *output;
	struct control_capture which;
	const char *at; /* as written */
	bool data;
	long count; /* 0: no end */
	int fd;
	FILE *file; /* of fd */
	struct cli_pcapng pcapng;
	uint64_t captured, lost;
	bool cut; /* the daemon has not sent the end */
};

static int stream = -1; /* of records; the signal handler ends it */

/* ---- what is wanted ---- */

static void add_class(struct control_capture *which, unsigned class)
{
	which->classes[class / 64] |= 1ull << (class % 64);
}

static int store_class(const struct cli_value *v, void *which)
{
	static const struct {
		const char *name;
		uint8_t class, also;
	} names[] = {
		{ "smp", MAD_CLASS_SUBN_LID, MAD_CLASS_SUBN_DIRECTED },
		{ "sa", MAD_CLASS_SUBN_ADM, 0 },
		{ "cm", MAD_CLASS_COM_MGT, 0 },
		{ "perf", MAD_CLASS_PERF, 0 },
	};
	long number;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(names[i].name, v->text))
			continue;
		add_class(which, names[i].class);
		if (names[i].also)
			add_class(which, names[i].also);
		return 0;
	}
	if (base_parse_number(v->text, 1, UINT8_MAX, &number))
		return cli_usage_error(v->cmd, "'%s' is no class: smp, sa, cm, perf or a number",
		                       v->text);
	add_class(which, (unsigned)number);
	return 0;
}

static int store_group(const struct cli_value *v, void *to)
{
	struct control_capture *which = to;
	struct cli_group group;

	if (which->n_groups + WIRE_GROUP_GIDS > CONTROL_CAPTURE_GROUPS)
		return cli_usage_error(v->cmd, "at most %d groups",
		                       CONTROL_CAPTURE_GROUPS / WIRE_GROUP_GIDS);
	if (!cli_group_parse(v->text, &group))
		return cli_usage_error(v->cmd, CLI_NO_GROUP, v->text);
	/* each has room for the GIDs of an address, so that there may always be as many groups */
	for (unsigned i = 0; i < WIRE_GROUP_GIDS; i++)
		which->group[which->n_groups++] = group.gid[i < group.n ? i : 0];
	return 0;
}

/* "HOST:QPN" */
static int store_qp(const struct cli_value *v, void *to)
{
	struct control_capture *which = to;
	struct control_capture_qp *qp = &which->qp[which->n_qps];
	const char *colon = strrchr(v->text, ':');
	long number;

	if (which->n_qps == CONTROL_CAPTURE_MANY)
		return cli_usage_error(v->cmd, "at most %d queue pairs", CONTROL_CAPTURE_MANY);
	if (!colon || colon == v->text || base_parse_number(colon + 1, 1, IB_QPN_MASK, &number))
		return cli_usage_error(
		        v->cmd, "'%s' is no queue pair: write HOST:QPN, as in h1:0x105", v->text);
	/* a name that is too long is cut, and no host's then either */
	snprintf(qp->host, sizeof(qp->host), "%.*s", (int)(colon - v->text), v->text);
	qp->qpn = (uint32_t)number;
	which->n_qps++;
	return 0;
}

/* "NODE" or "NODE:PORT" */
static int parse_at(const struct cli_command *self, void *options, const char *text)
{
	struct run *r = options;
	struct control_port *at = &r->which.at;
	struct cli_port port = { .text = text };
	const char *node = text;

	if (r->at)
		return cli_usage_error(self, "one node at a time, not '%s' too", text);
	r->at = text;
	if (strchr(text, ':')) {
		if (cli_port_parse(self, text, &port))
			return CLI_USAGE;
		node = port.node;
	}
	if (strlen(node) >= sizeof(at->node))
		return cli_usage_error(self, "no node has so long a name as '%s'", node);
	strcpy(at->node, node);
	at->port = port.port;
	return 0;
}

/* ---- from the daemon to the file ---- */

/* The daemon sends what it has, and then the end; not so one that stands still. A busy one has a
 * minute. */
#define MOST_IN_VAIN (60000 / CONTROL_PATIENCE_MS)

static void on_signal(int number)
{
	const struct timeval patience = { .tv_sec = CONTROL_PATIENCE_MS / 1000 };

	(void)number;
	cli_output_end();
	setsockopt(stream, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	shutdown(stream, SHUT_WR);
}

/* As it is on an InfiniBand link. */
static size_t make_packet(const struct control_captured *c, uint8_t *bytes)
{
	const struct wire_grh grh = { .traffic_class = (uint8_t)(c->class_flow >> 20),
		                      .flow_label = c->class_flow & 0xFFFFF,
		                      .hop_limit = c->hop_limit,
		                      .sgid = c->sgid,
		                      .dgid = c->dgid };
	const struct wire_packet packet = {
		.vl = c->vl,
		.sl = c->sl & 0xF,
		.slid = c->slid,
		.dlid = c->dlid,
		.grh = c->has_grh ? &grh : NULL,
		.h = c->h,
		.payload = c + 1,
		.payload_bytes = c->payload_bytes,
	};

	return wire_packet_build(&packet, bytes);
}

/* As it is on Ethernet. */
static size_t make_frame(const struct control_captured *c, uint8_t *bytes)
{
	struct wire_frame frame = { .packet = {
		                            .ip = { .sgid = c->sgid,
		                                    .dgid = c->dgid,
		                                    .flow_label = c->class_flow & 0xFFFFF,
		                                    .udp_source = c->udp_source,
		                                    .traffic_class = (uint8_t)(c->class_flow >> 20),
		                                    .hop_limit = c->hop_limit },
		                            .h = c->h,
		                            .payload = c + 1,
		                            .payload_bytes = c->payload_bytes } };

	memcpy(frame.to, c->mac_to, sizeof(frame.to));
	memcpy(frame.from, c->mac_from, sizeof(frame.from));
	return wire_frame_build(&frame, bytes);
}

static int write_packet(struct run *r, const struct control_captured *c)
{
	uint8_t bytes[MOST_BYTES];
	char port[64];
	size_t n;

	snprintf(port, sizeof(port), "%.32s:%u", c->from.node, c->from.port);
	n = c->is_ethernet ? make_frame(c, bytes) : make_packet(c, bytes);
	return cli_pcapng_packet(&r->pcapng,
	                         &(struct cli_pcapng_packet){ .time_ns = c->time_ns,
	                                                      .port = port,
	                                                      .comment = c->note,
	                                                      .lost_before = c->lost,
	                                                      .at = bytes,
	                                                      .is_ethernet = c->is_ethernet,
	                                                      .bytes = (uint32_t)n });
}

static bool is_enough(const struct run *r)
{
	return r->count && r->captured >= (uint64_t)r->count;
}

/* Bytes of the record at @at, of which @have are there; 0: it is not whole yet. */
static size_t whole_record(const uint8_t *at, size_t have)
{
	const struct control_captured *c = (const void *)at;
	size_t bytes = have < sizeof(*c) ? SIZE_MAX : control_captured_bytes(c->payload_bytes);

	return bytes <= have ? bytes : 0;
}

/* Writes the records that are whole, *@done bytes. 0, or 1: that was all; -errno. */
static int write_records(struct run *r, const uint8_t *at, size_t have, size_t *done)
{
	size_t bytes;

	for (*done = 0; (bytes = whole_record(at + *done, have - *done)) != 0; *done += bytes) {
		const struct control_captured *c = (const void *)(at + *done);
		int ret;

		if (c->payload_bytes > WIRE_ROCE_MAX_PAYLOAD)
			return -EPROTO;
		r->lost += c->lost;
		if (c->end)
			return 1;
		ret = write_packet(r, c);
		if (ret)
			return ret;
		r->captured++;
		if (is_enough(r))
			return 1;
	}
	/* a reader of the file has all packets so far */
	return fflush(r->file) ? -errno : 0;
}

/* Whether the daemon, which has made the stream, was stopped by a signal or a debugger. If nobody
 * can tell, as in another PID namespace, it counts as stopped. */
static bool is_daemon_stopped(void)
{
	struct ucred daemon = { .pid = 0 };
	socklen_t bytes = sizeof(daemon);
	unsigned long memory;
	char state;

	if (getsockopt(stream, SOL_SOCKET, SO_PEERCRED, &daemon, &bytes) < 0 || daemon.pid <= 0)
		return true;
	return !cli_daemon_process_stat(daemon.pid, &state, &memory) || state == 'T' ||
	       state == 't';
}

/* Reads records up to the end. 0 or -errno, of reading or writing. */
static int copy(struct run *r)
{
	static _Alignas(8) uint8_t records[AT_ONCE];
	unsigned in_vain = 0; /* after a signal; a machine may be busy */
	size_t have = 0, done;
	int ret = 0;

	while (!ret) {
		ssize_t n = read(stream, records + have, sizeof(records) - have);

		if (n < 0 && errno == EINTR)
			continue;
		r->cut = n < 0 && errno == EAGAIN;
		if (r->cut && ++in_vain < MOST_IN_VAIN && !is_daemon_stopped())
			continue;
		if (r->cut)
			return 0;
		if (n <= 0)
			return n < 0 && errno != ECONNRESET ? -errno : 0;
		have += (size_t)n;
		ret = write_records(r, records, have, &done);
		have -= done;
		memmove(records, records + done, have);
	}
	return ret < 0 ? ret : 0;
}

static int finish(struct run *r, int error)
{
	if (!error) {
		cli_pcapng_end(&r->pcapng, r->captured, r->lost);
		error = fflush(r->file) ? -errno : 0;
	}
	if (error) /* nobody tries it again */
		__fpurge(r->file);
	cli_pcapng_fini(&r->pcapng);
	if (!cli_output_ends() && !error && !is_enough(r))
		base_log("the fabric has ended");
	base_log("%llu packets captured, %llu lost", (unsigned long long)r->captured,
	         (unsigned long long)r->lost);
	if (!error && r->cut)
		base_log("fabric '%s' does not answer: what its daemon had not sent is missing",
		         r->fabric);
	if (!error)
		return r->cut ? CLI_FAILED : CLI_OK;
	base_log("cannot write the capture: %s", strerror(-error));
	return CLI_FAILED;
}

/* ---- start ---- */

/* Of one of the queue pairs there is no host. */
static int refuse_host(const struct run *r)
{
	int ret = 0;

	for (unsigned i = 0; !ret && i < r->which.n_qps; i++)
		ret = cli_check_host(r->fabric, r->which.qp[i].host);
	return ret ? ret : CLI_FAILED;
}

static int refused(struct control_client *client, const struct run *r, int error)
{
	struct cli_port port = { .text = r->at ? r->at : "", .port = r->which.at.port };

	if (error == -EUSERS)
		base_log("too many captures of fabric '%s' run already", r->fabric);
	else if (error == -ESRCH)
		return refuse_host(r);
	else if (error == -EOPNOTSUPP)
		base_log("fabric '%s' is on Ethernet: its MADs are captured on its network device, "
		         "by tcpdump or dumpcap; messages of queue pairs by --data",
		         r->fabric);
	else if (r->at) {
		memcpy(port.node, r->which.at.node, sizeof(r->which.at.node));
		return cli_port_refused(client, &port, error);
	} else
		base_log("cannot capture: %s", cli_refusal(error));
	return CLI_FAILED;
}

static int open_file(struct run *r)
{
	r->fd = STDOUT_FILENO;
	if (!r->output && isatty(STDOUT_FILENO)) {
		base_log("a capture is no text: write it to a file by --output, or to a pipe");
		return CLI_USAGE;
	}
	if (r->output)
		r->fd = open(r->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	r->file = r->fd >= 0 ? cli_output_open(&r->fd) : NULL;
	if (r->file)
		return 0;
	return cli_cannot("write", r->output);
}

static int close_file(struct run *r)
{
	if (r->file)
		fclose(r->file);
	if (r->output && r->fd >= 0 && close(r->fd) < 0)
		return cli_cannot("write", r->output);
	return 0;
}

static int start(struct run *r)
{
	struct control_client *client;
	int ret = cli_connect(&client, r->fabric);

	if (ret)
		return ret;
	ret = control_capture(client, &r->which, &stream);
	if (ret)
		ret = refused(client, r, ret);
	control_close(client);
	return ret;
}

static int capture(struct run *r)
{
	int ret = start(r);

	if (ret)
		return ret;
	ret = open_file(r);
	if (!ret) {
		cli_signals_catch(on_signal); /* the first one has the stream end */
		signal(SIGPIPE, SIG_IGN);     /* an error that we tell */
		cli_pcapng_begin(&r->pcapng, r->file, r->fabric);
		/* a script that has started it in the background learns that it has begun */
		if (r->output || isatty(STDERR_FILENO))
			base_log("capturing on fabric '%s'; Ctrl-C ends it", r->fabric);
		ret = finish(r, fflush(r->file) ? -errno : copy(r));
	}
	if (close_file(r))
		ret = CLI_FAILED;
	close(stream);
	return ret;
}

static const struct cli_option options[] = {
	{ "  -n, --name NAME     the fabric (default: $UMBEL_FABRIC, else 'default')\n",
	  CLI_TEXT(struct run, fabric) },
	{ "  -o, --output FILE   the file (default: standard output, for '| tshark -r -')\n",
	  CLI_TEXT(struct run, output) },
	{ "  -c, --count N       ends after N of them\n",
	  CLI_NUMBER(struct run, count, 1, LONG_MAX), .wrong = "is no number of packets" },
	{ "      --class CLASS   those of a class: smp, sa, cm, perf, or its number; more than "
	  "one\n"
	  "                      may be given\n",
	  CLI_STORE(store_class, struct run, which) },
	{ "      --data          messages of queue pairs, too: they go by the daemon meanwhile, "
	  "and RC and\n"
	  "                      UC queue pairs that are connected from now on exchange packets\n",
	  CLI_FLAG(struct run, data) },
	{ "      --group GROUP   of these messages, those to the group; no MADs without --class\n",
	  CLI_STORE(store_group, struct run, which) },
	{ "      --qp HOST:QPN   of these, what the queue pair sends or gets; no MADs without "
	  "--class\n",
	  CLI_STORE(store_qp, struct run, which) },
	{ .line = "  -h, --help          this text\n" },
};

/* A user that chooses among messages wants messages, and only MADs that are asked for. */
static void choose(struct control_capture *which, bool data)
{
	static const uint64_t none[4];
	const bool chosen = which->n_groups || which->n_qps;

	which->data = data || chosen;
	which->no_mads = chosen && !memcmp(which->classes, none, sizeof(none));
}

static int capture_execute(const struct cli_command *self, void *from, int argc, char **argv)
{
	struct run *r = from;

	(void)self;
	(void)argc; /* parse_at() has had them */
	(void)argv;
	r->fabric = cli_fabric_name(r->fabric);
	choose(&r->which, r->data);
	return capture(r);
}

const struct cli_command cli_capture = {
	.name = "capture",
	.summary = "write the MADs that a fabric carries to a file for Wireshark",
	.help = help,
	CLI_OPTIONS(options, struct run),
	.word = parse_at,
	.execute = capture_execute,
};
