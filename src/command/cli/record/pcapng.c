/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Capture files: see pcapng.h. Numbers are in this machine's byte order, as the format lets the
 * writer choose.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cli/record/pcapng.h"

/* A record of Endace's format ERF, in which Wireshark knows InfiniBand packets.
 * (LINKTYPE_INFINIBAND, 247, is reserved for them, but it cannot read that.) */
#define LINKTYPE_ERF      197
#define LINKTYPE_ETHERNET 1
#define ERF_BYTES         16
#define ERF_INFINIBAND    21
#define ERF_VARIES        0x04 /* flag: records are as long as they are */
#define NS_PER_S          1000000000ull

enum block { SECTION = 0x0A0D0D0A, INTERFACE = 1, STATISTICS = 5, PACKET = 6 };
enum option {
	OPTION_END = 0,
	OPTION_COMMENT = 1,
	SECTION_WRITER = 4,
	INTERFACE_NAME = 2,
	INTERFACE_RESOLUTION = 9,
	PACKET_LOST = 4,
	STATISTICS_RECEIVED = 4,
	STATISTICS_LOST = 5,
};

/* A block that is being made: nothing of ours is longer than a packet of 4 KiB with its options. */
struct text {
	uint8_t at[8192];
	size_t n;
};

struct interface {
	uint32_t number;
	char name[];
};

static void put(struct text *t, const void *at, size_t bytes)
{
	memcpy(t->at + t->n, at, bytes);
	t->n += bytes;
	while (t->n % 4)
		t->at[t->n++] = 0;
}

static void put32(struct text *t, uint32_t v)
{
	put(t, &v, sizeof(v));
}

static void put_option(struct text *t, uint16_t code, const void *at, size_t bytes)
{
	const uint16_t head[] = { code, (uint16_t)bytes };

	put(t, head, sizeof(head));
	put(t, at, bytes);
}

static void put_text(struct text *t, uint16_t code, const char *text)
{
	put_option(t, code, text, strnlen(text, 256));
}

static void put_time(struct text *t, uint64_t ns)
{
	put32(t, (uint32_t)(ns >> 32));
	put32(t, (uint32_t)ns);
}

/* Ends the options of a block and writes it. */
static void write_block(struct cli_pcapng *p, enum block type, struct text *t)
{
	uint32_t head[2] = { type };

	put_option(t, OPTION_END, "", 0);
	head[1] = (uint32_t)(sizeof(head) + t->n + sizeof(uint32_t));
	put32(t, head[1]);
	fwrite(head, sizeof(head), 1, p->file);
	fwrite(t->at, t->n, 1, p->file);
}

static void write_section(struct cli_pcapng *p)
{
	const uint16_t version[] = { 1, 0 };
	const uint64_t length = UINT64_MAX; /* unknown */
	struct text t = { .n = 0 };

	put32(&t, 0x1A2B3C4D);
	put(&t, version, sizeof(version));
	put(&t, &length, sizeof(length));
	put_text(&t, SECTION_WRITER, "umbel");
	write_block(p, SECTION, &t);
}

static void write_interface(struct cli_pcapng *p, const char *name, uint16_t type,
                            const char *comment)
{
	const uint16_t link[] = { type, 0 };
	const uint8_t nanoseconds = 9;
	struct text t = { .n = 0 };

	put(&t, link, sizeof(link));
	put32(&t, 0); /* packets are whole */
	if (*comment)
		put_text(&t, OPTION_COMMENT, comment);
	put_text(&t, INTERFACE_NAME, name);
	put_option(&t, INTERFACE_RESOLUTION, &nanoseconds, sizeof(nanoseconds));
	write_block(p, INTERFACE, &t);
	p->n_interfaces++;
}

void cli_pcapng_begin(struct cli_pcapng *p, FILE *file, const char *fabric)
{
	*p = (struct cli_pcapng){ .file = file };
	write_section(p);
	write_interface(p, fabric, LINKTYPE_ERF,
	                "the fabric; each port that has sent is an interface");
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct interface *)a)->name, ((const struct interface *)b)->name);
}

/* The number of the interface, which is written if it is new. -1: no memory. */
static int64_t interface_of(struct cli_pcapng *p, const char *name, bool is_ethernet)
{
	size_t bytes = strlen(name) + 1;
	struct interface *new = malloc(sizeof(*new) + bytes), **found;

	if (!new)
		return -1;
	new->number = p->n_interfaces;
	memcpy(new->name, name, bytes);
	found = tsearch(new, &p->interfaces, compare);
	if (!found || *found != new)
		free(new);
	else
		write_interface(p, name, is_ethernet ? LINKTYPE_ETHERNET : LINKTYPE_ERF, "");
	return found ? (int64_t)(*found)->number : -1;
}

/* The header of an ERF record: the time is one of seconds, in units of 2^-32, low byte first. */
static void put_erf(struct text *t, const struct cli_pcapng_packet *packet)
{
	const uint64_t time = htole64(packet->time_ns / NS_PER_S << 32 |
	                              (packet->time_ns % NS_PER_S << 32) / NS_PER_S);
	const uint32_t lost = packet->lost_before < UINT16_MAX ? packet->lost_before : UINT16_MAX;
	const uint16_t counts[] = { htobe16((uint16_t)(ERF_BYTES + packet->bytes)),
		                    htobe16((uint16_t)lost), htobe16((uint16_t)packet->bytes) };
	const uint8_t kind[] = { ERF_INFINIBAND, ERF_VARIES };

	memcpy(t->at + t->n, &time, sizeof(time));
	memcpy(t->at + t->n + 8, kind, sizeof(kind));
	memcpy(t->at + t->n + 10, counts, sizeof(counts));
	t->n += ERF_BYTES;
}

int cli_pcapng_packet(struct cli_pcapng *p, const struct cli_pcapng_packet *packet)
{
	int64_t interface = interface_of(p, packet->port, packet->is_ethernet);
	const uint32_t bytes = packet->bytes + (packet->is_ethernet ? 0 : ERF_BYTES);
	const uint64_t lost = packet->lost_before;
	struct text t = { .n = 0 };

	if (interface < 0)
		return -ENOMEM;
	put32(&t, (uint32_t)interface);
	put_time(&t, packet->time_ns);
	put32(&t, bytes); /* all of it is captured */
	put32(&t, bytes);
	if (!packet->is_ethernet)
		put_erf(&t, packet);
	put(&t, packet->at, packet->bytes);
	if (*packet->comment)
		put_text(&t, OPTION_COMMENT, packet->comment);
	if (lost)
		put_option(&t, PACKET_LOST, &lost, sizeof(lost));
	write_block(p, PACKET, &t);
	return 0;
}

void cli_pcapng_end(struct cli_pcapng *p, uint64_t captured, uint64_t lost)
{
	const uint64_t received = captured + lost;
	struct text t = { .n = 0 };

	put32(&t, 0);
	put_time(&t, base_real_ns());
	put_option(&t, STATISTICS_RECEIVED, &received, sizeof(received));
	put_option(&t, STATISTICS_LOST, &lost, sizeof(lost));
	write_block(p, STATISTICS, &t);
}

void cli_pcapng_fini(struct cli_pcapng *p)
{
	tdestroy(p->interfaces, free);
	p->interfaces = NULL;
}
