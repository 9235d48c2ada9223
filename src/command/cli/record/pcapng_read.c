/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reading capture files: see pcapng_read.h. Called by ladder.c. Nothing that the file says is
 * believed: each length is checked against what there is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/record/pcapng_read.h"

#define SECTION          0x0A0D0D0Au
#define BYTE_ORDER_MAGIC 0x1A2B3C4Du
#define INTERFACE        1
#define PACKET           6
#define COMMENT          1 /* options */
#define NAME             2
#define LINKTYPE_ERF     197
#define ERF_BYTES        16
#define ERF_INFINIBAND   21
#define PACKET_HEAD      20 /* interface, time, two lengths */

/* The rest of a block's body. */
struct body {
	const uint8_t *at;
	size_t bytes;
};

struct interface {
	bool is_erf;
	char name[64];
};

struct reading {
	struct interface *interface; /* by number */
	uint32_t n_interfaces, interfaces_room;
	int (*each)(void *arg, const struct cli_pcapng_packet *packet);
	void *arg;
};

static uint32_t get32(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

/* Copies the text of the first option of this code; "" if there is none. */
static void find_text(struct body b, uint16_t code, char *text, size_t room)
{
	text[0] = '\0';
	while (b.bytes >= 4) {
		uint16_t head[2];
		size_t padded;

		memcpy(head, b.at, sizeof(head));
		padded = (head[1] + 3u) & ~3u;
		if (padded > b.bytes - 4)
			return;
		if (head[0] == code && head[1] < room) {
			memcpy(text, b.at + 4, head[1]);
			text[head[1]] = '\0';
			return;
		}
		b.at += 4 + padded;
		b.bytes -= 4 + padded;
	}
}

static int read_interface(struct reading *r, struct body b)
{
	struct interface *new;
	uint16_t link;

	if (b.bytes < 8)
		return -EINVAL;
	if (base_array_reserve(&r->interface, &r->interfaces_room, (size_t)r->n_interfaces + 1))
		return -ENOMEM;
	new = &r->interface[r->n_interfaces++];
	memcpy(&link, b.at, sizeof(link));
	new->is_erf = link == LINKTYPE_ERF;
	find_text((struct body){ b.at + 8, b.bytes - 8 }, NAME, new->name, sizeof(new->name));
	return 0;
}

static int read_packet(struct reading *r, struct body b)
{
	uint32_t interface, captured;
	char comment[128];
	size_t padded;

	if (b.bytes < PACKET_HEAD)
		return -EINVAL;
	interface = get32(b.at);
	captured = get32(b.at + 12);
	padded = ((size_t)captured + 3) & ~(size_t)3;
	if (interface >= r->n_interfaces || padded > b.bytes - PACKET_HEAD)
		return -EINVAL;
	if (!r->interface[interface].is_erf || captured < ERF_BYTES ||
	    (b.at[PACKET_HEAD + 8] & 0x7F) != ERF_INFINIBAND)
		return 0;
	find_text((struct body){ b.at + PACKET_HEAD + padded, b.bytes - PACKET_HEAD - padded },
	          COMMENT, comment, sizeof(comment));
	return r->each(r->arg, &(struct cli_pcapng_packet){
	                               .time_ns = (uint64_t)get32(b.at + 4) << 32 | get32(b.at + 8),
	                               .port = r->interface[interface].name,
	                               .comment = comment,
	                               .at = b.at + PACKET_HEAD + ERF_BYTES,
	                               .bytes = captured - ERF_BYTES });
}

int cli_pcapng_each(const uint8_t *file, size_t bytes,
                    int (*each)(void *arg, const struct cli_pcapng_packet *packet), void *arg)
{
	struct reading r = { .each = each, .arg = arg };
	int ret = bytes < 12 || get32(file) != SECTION || get32(file + 8) != BYTE_ORDER_MAGIC
	                  ? -EINVAL
	                  : 0;

	while (!ret && bytes >= 12) {
		uint32_t type = get32(file), length = get32(file + 4);
		const struct body b = { file + 8, (size_t)length - 12 };

		if (length < 12 || length % 4)
			ret = -EINVAL;
		if (ret || length > bytes)
			break;
		if (type == INTERFACE)
			ret = read_interface(&r, b);
		else if (type == PACKET)
			ret = read_packet(&r, b);
		file += length;
		bytes -= length;
	}
	free(r.interface);
	return ret;
}
