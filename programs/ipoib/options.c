/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The command line: see options.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "ipoib/options.h"

#define MAX_PORT 255
#define MAX_FD   1048576

bool ipoib_parse_address(const char *text, struct netdev_address *address)
{
	char copy[INET6_ADDRSTRLEN + 4];
	struct in6_addr ipv6;
	struct in_addr ipv4;
	char *slash;
	long prefix;

	if (strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	slash = strchr(copy, '/');
	if (!slash || base_parse_number(slash + 1, 1, 128, &prefix))
		return false;
	*slash = '\0';
	address->prefix = (uint8_t)prefix;
	if (inet_pton(AF_INET, copy, &ipv4) == 1) {
		address->gid = wire_gid_from_ipv4(ipv4.s_addr);
		return prefix <= 32;
	}
	if (inet_pton(AF_INET6, copy, &ipv6) != 1)
		return false;
	memcpy(address->gid.raw, &ipv6, sizeof(address->gid.raw));
	return true;
}

static bool read_number(const char *text, long min, long max, long *value)
{
	return !base_parse_number(text, min, max, value);
}

/* One option. False: its value is wrong. */
static bool take(struct ipoib_options *o, int option, const char *value)
{
	long number = 0;
	bool good;

	switch (option) {
	case 'P':
		good = read_number(value, 1, MAX_PORT, &number);
		o->port = (unsigned)number;
		return good;
	case 'p':
		good = read_number(value, 1, UINT16_MAX, &number);
		o->pkey = (uint16_t)number | IB_PKEY_FULL_MEMBER;
		return good && (number & IB_PKEY_BASE_MASK);
	case 'i':
		snprintf(o->interface, sizeof(o->interface), "%s", value);
		return *value && strlen(value) < sizeof(o->interface) && !strpbrk(value, "/% :");
	case 'a':
		return o->n_addresses < IPOIB_MAX_ADDRESSES &&
		       ipoib_parse_address(value, &o->address[o->n_addresses++]);
	case 's':
		good = read_number(value, 0, MAX_FD, &number);
		o->status_fd = (int)number;
		return good;
	case 'c':
		good = read_number(value, 0, MAX_FD, &number);
		o->control_fd = (int)number;
		return good;
	case 'm':
		o->connected = !strcmp(value, "connected");
		return o->connected || !strcmp(value, "datagram");
	case 'g':
		o->multicast = true;
		return true;
	case 'n':
		o->is_new = true;
		return true;
	case 'w':
		o->await = true;
		return true;
	case 'h':
		o->help = true;
		return true;
	default:
		o->version = true;
		return true;
	}
}

int ipoib_options_parse(struct ipoib_options *o, int argc, char **argv, char *why, size_t len)
{
	static const struct option known[] = {
		{ "port", required_argument, NULL, 'P' },
		{ "pkey", required_argument, NULL, 'p' },
		{ "interface", required_argument, NULL, 'i' },
		{ "address", required_argument, NULL, 'a' },
		{ "mode", required_argument, NULL, 'm' },
		{ "multicast", no_argument, NULL, 'g' },
		{ "new", no_argument, NULL, 'n' },
		{ "await-pkey", no_argument, NULL, 'w' },
		{ "status-fd", required_argument, NULL, 's' },
		{ "control-fd", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int option, index = 0;

	*o = (struct ipoib_options){
		.port = 1, .pkey = IB_PKEY_DEFAULT, .status_fd = -1, .control_fd = -1
	};
	optind = 0;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "h", known, &index)) != -1) {
		if (option == '?') {
			snprintf(why, len, "'%s' is no option, or lacks its value",
			         argv[optind - 1]);
			return -EINVAL;
		}
		if (!take(o, option, optarg)) {
			snprintf(why, len, "--%s does not take '%s'", known[index].name, optarg);
			return -EINVAL;
		}
	}
	if (o->help || o->version)
		return 0;
	if (optind < argc || !o->interface[0]) {
		snprintf(why, len, optind < argc ? "what is '%s'?" : "which --interface?",
		         argv[optind]);
		return -EINVAL;
	}
	return 0;
}

void ipoib_options_help(FILE *to)
{
	fputs("IP over InfiniBand: an interface for a port of this host.\n"
	      "\n"
	      "Usage: umbel exec HOST -- umbel-ipoib --interface NAME [OPTION]...\n"
	      "\n"
	      "  --interface NAME       the interface: ib0\n"
	      "  --address ADDRESS/PREFIX\n"
	      "                         an address of it, IPv4 or IPv6; may be repeated\n"
	      "  --port N               the host's port, from 1 over its HCAs (default 1)\n"
	      "  --pkey PKEY            the partition (default 0xffff)\n"
	      "  --mode MODE            datagram (default), or connected: large packets, by RC,\n"
	      "                         to neighbours that do so, too\n"
	      "  --multicast            a route: what is sent to IPv4 groups leaves by the\n"
	      "                         interface\n"
	      "  --new                  nobody knows its addresses yet: do not announce them\n"
	      "  --await-pkey           no interface until the port is in the partition\n"
	      "  --status-fd FD         write 'R' to this descriptor once the interface is up\n"
	      "  --control-fd FD        answer each byte from this socket with the status, as\n"
	      "                         JSON\n"
	      "  -h, --help             this text\n"
	      "  --version              the version\n",
	      to);
}
