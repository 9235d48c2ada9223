// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * forge SOURCE DESTINATION [KEY=VALUE]...: sends UD messages by RoCEv2, right ones or, as the keys
 * say, wrong ones, through eth0. Addresses are IPv4 or IPv6, SOURCE is the host's own. Nothing of
 * Umbel's is used. The payload is "message PSN" and zero bytes.
 */
#include "must.h"

#include <net/if.h>

#include "icrc.h"

#define DEVICE "eth0"

/* IP header, UDP header, and what UDP carries. */
#define MAX_HEADERS 48
#define MAX_BYTES   5000

enum key {
	QPN,
	QKEY,
	PKEY,
	OPCODE,
	VERSION,
	PAD,
	PSN,
	SIZE,
	SOURCE_QPN,
	IMM,  /* of a message with immediate data */
	ICRC, /* what the right one is changed by (exclusive or) */
	CUT,  /* bytes that are missing at the end; the ICRC among them */
	TIMES,
	KEYS,
};

static const char *const key_name[KEYS] = {
	[QPN] = "qpn",       [QKEY] = "qkey",       [PKEY] = "pkey",
	[OPCODE] = "opcode", [VERSION] = "version", [PAD] = "pad",
	[PSN] = "psn",       [SIZE] = "size",       [SOURCE_QPN] = "source_qpn",
	[IMM] = "imm",       [ICRC] = "icrc",       [CUT] = "cut",
	[TIMES] = "times",
};

struct forge {
	uint32_t value[KEYS];
	struct sockaddr_storage source, destination;
	socklen_t address_bytes;
	uint8_t packet[MAX_HEADERS + MAX_BYTES];
	uint8_t *ip, *udp;
	uint32_t bytes; /* that UDP carries */
};

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value)
{
	put16(at, value >> 16);
	put16(at + 2, value);
}

static bool parse_address(const char *text, uint16_t port, struct sockaddr_storage *address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;

	memset(address, 0, sizeof(*address));
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		return true;
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	in6->sin6_scope_id = if_nametoindex(DEVICE);
	return inet_pton(AF_INET6, text, &in6->sin6_addr) == 1;
}

static void parse_key(struct forge *f, const char *argument)
{
	size_t length = strcspn(argument, "=");
	char *end;

	for (unsigned i = 0; i < KEYS; i++)
		if (strlen(key_name[i]) == length && !strncmp(argument, key_name[i], length)) {
			f->value[i] = (uint32_t)strtoul(argument + length + 1, &end, 0);
			if (!*end && end != argument + length + 1)
				return;
		}
	errx(EXIT_FAILURE, "'%s' is not understood", argument);
}

static void write_ip_headers(struct forge *f)
{
	if (f->source.ss_family == AF_INET) {
		f->ip = f->packet;
		f->udp = f->ip + 20;
		f->ip[0] = 0x45;
		put16(f->ip + 2, 28 + f->bytes);
		put16(f->ip + 6, 0x4000); /* Don't Fragment; the identification is 0 then */
		f->ip[9] = IPPROTO_UDP;
		memcpy(f->ip + 12, &((struct sockaddr_in *)&f->source)->sin_addr, 4);
		memcpy(f->ip + 16, &((struct sockaddr_in *)&f->destination)->sin_addr, 4);
	} else {
		f->ip = f->packet;
		f->udp = f->ip + 40;
		f->ip[0] = 0x60;
		put16(f->ip + 4, 8 + f->bytes);
		f->ip[6] = IPPROTO_UDP;
		memcpy(f->ip + 8, &((struct sockaddr_in6 *)&f->source)->sin6_addr, 16);
		memcpy(f->ip + 24, &((struct sockaddr_in6 *)&f->destination)->sin6_addr, 16);
	}
	/* the ports are at the same place in both kinds of address */
	memcpy(f->udp, &((struct sockaddr_in *)&f->source)->sin_port, 2);
	put16(f->udp + 2, ROCE_PORT);
	put16(f->udp + 4, 8 + f->bytes);
}

static void write_message(struct forge *f, uint32_t psn)
{
	const uint32_t *value = f->value;
	uint32_t imm = value[OPCODE] == 0x65 ? 4 : 0;
	uint8_t *bth, *icrc;
	uint32_t crc;

	memset(f->packet, 0, sizeof(f->packet));
	f->bytes = 12 + 8 + imm + ((value[SIZE] + 3) & ~3u) + 4;
	write_ip_headers(f);
	bth = f->udp + 8;
	bth[0] = (uint8_t)value[OPCODE];
	bth[1] = (uint8_t)(value[PAD] << 4 | value[VERSION]);
	put16(bth + 2, value[PKEY]);
	put32(bth + 4, value[QPN]);
	put32(bth + 8, psn);
	put32(bth + 12, value[QKEY]);
	put32(bth + 16, value[SOURCE_QPN]);
	if (imm)
		put32(bth + 20, value[IMM]);
	snprintf((char *)bth + 20 + imm, value[SIZE], "message %u", psn);
	icrc = bth + f->bytes - 4;
	crc = roce_icrc(f->ip, f->udp, icrc) ^ value[ICRC];
	bth[4] = 0; /* roce_icrc() has put ones there */
	for (int i = 0; i < 4; i++)
		icrc[i] = (uint8_t)(crc >> 8 * i);
	f->bytes -= value[CUT] < f->bytes ? value[CUT] : f->bytes;
}

/* A socket on the device, from any port of RoCEv2's; f->source says which. */
static int open_socket(struct forge *f)
{
	int probe = IP_PMTUDISC_PROBE, no = 0;
	int family = f->source.ss_family;
	int fd = socket(family, SOCK_DGRAM, 0);

	f->address_bytes =
	        family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, DEVICE, sizeof(DEVICE)))
		err(EXIT_FAILURE, "a socket on " DEVICE);
	if (family == AF_INET && setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(int)))
		err(EXIT_FAILURE, "IP_MTU_DISCOVER");
	if (family == AF_INET && setsockopt(fd, IPPROTO_IP, IP_MULTICAST_LOOP, &no, sizeof(no)))
		err(EXIT_FAILURE, "IP_MULTICAST_LOOP");
	check(!bind(fd, (struct sockaddr *)&f->source, f->address_bytes), "bind");
	check(!getsockname(fd, (struct sockaddr *)&f->source, &f->address_bytes), "getsockname");
	return fd;
}

int main(int argc, char **argv)
{
	static struct forge f = { .value = { [QKEY] = 0x11111111,
		                             [PKEY] = 0xffff,
		                             [OPCODE] = 0x64, /* UD SEND ONLY */
		                             [PAD] = UINT32_MAX,
		                             [SIZE] = 64,
		                             [SOURCE_QPN] = 0x1234,
		                             [TIMES] = 1 } };
	int fd;

	if (argc < 3 || !parse_address(argv[1], 0, &f.source) ||
	    !parse_address(argv[2], ROCE_PORT, &f.destination) ||
	    f.source.ss_family != f.destination.ss_family)
		errx(EXIT_FAILURE, "usage: forge SOURCE DESTINATION [KEY=VALUE]...");
	for (int i = 3; i < argc; i++)
		parse_key(&f, argv[i]);
	if (f.value[PAD] == UINT32_MAX)
		f.value[PAD] = -f.value[SIZE] & 3;
	must(f.value[SIZE] <= MAX_BYTES - 40, "at most %u bytes", MAX_BYTES - 40);
	fd = open_socket(&f);
	for (uint32_t i = 0; i < f.value[TIMES]; i++) {
		write_message(&f, f.value[PSN] + i);
		check(sendto(fd, f.udp + 8, f.bytes, 0, (struct sockaddr *)&f.destination,
		             f.address_bytes) >= 0,
		      "sendto");
	}
	return EXIT_SUCCESS;
}
