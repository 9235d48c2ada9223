/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RoCEv2 packets, built and parsed: see roce.h.
 */
#include <endian.h>
#include <string.h>

#include "wire/icrc.h"
#include "wire/roce.h"

/* Of IPv4; more would not fit its length field. */
#define MAX_UDP_PAYLOAD (UINT16_MAX - WIRE_IPV4_BYTES - WIRE_UDP_BYTES)

static const char *const status_names[WIRE_ROCE_STATUSES] = {
	[WIRE_ROCE_OK] = "ok",
	[WIRE_ROCE_TRUNCATED] = "truncated",
	[WIRE_ROCE_SHORT] = "too_short",
	[WIRE_ROCE_VERSION] = "bad_version",
	[WIRE_ROCE_OPCODE] = "unknown_opcode",
	[WIRE_ROCE_PAD] = "bad_pad",
	[WIRE_ROCE_ICRC] = "bad_icrc",
};

const char *wire_roce_status_name(enum wire_roce_status status)
{
	return status_names[status];
}

static unsigned pad_bytes(uint32_t payload)
{
	return -payload & 3;
}

uint16_t wire_roce_udp_payload(const struct wire_roce_packet *p)
{
	return wire_opcodes[p->h.bth.opcode].header_bytes + p->payload_bytes +
	       pad_bytes(p->payload_bytes) + WIRE_ICRC_BYTES;
}

void wire_roce_build(const struct wire_roce_packet *p, struct wire_roce_frame *f)
{
	unsigned pad = pad_bytes(p->payload_bytes);
	struct wire_headers h = p->h;
	uint32_t icrc;

	h.bth.pad = pad;
	h.bth.version = WIRE_BTH_VERSION;
	f->head_bytes = wire_headers_encode(&h, f->head);
	memset(f->trailer, 0, pad);
	f->trailer_bytes = pad + WIRE_ICRC_BYTES;

	icrc = wire_icrc_begin(&p->ip, wire_roce_udp_payload(p), f->head, f->head_bytes);
	if (p->payload_bytes)
		icrc = wire_icrc_add(icrc, p->payload, p->payload_bytes);
	else if (p->h.bth.opcode == WIRE_OPCODE_FLUSH && p->h.feth.rxe_icrc)
		icrc = wire_icrc_add(icrc, f->head, f->head_bytes);
	if (pad)
		icrc = wire_icrc_add(icrc, f->trailer, pad);
	icrc = htole32(icrc);
	memcpy(f->trailer + pad, &icrc, WIRE_ICRC_BYTES);
}

static bool is_served(const struct wire_roce_datagram *d, uint8_t opcode)
{
	if (!(d->transports >> wire_opcode_transport(opcode) & 1))
		return false;
	return wire_opcodes[opcode].name || (d->reserved && wire_opcode_is_reserved(opcode));
}

static uint32_t header_bytes(uint8_t opcode)
{
	return wire_opcodes[opcode].name ? wire_opcodes[opcode].header_bytes : WIRE_BTH_BYTES;
}

/* All but the ICRC. */
static enum wire_roce_status check(const struct wire_roce_datagram *d, const struct wire_bth *bth)
{
	uint32_t least = header_bytes(bth->opcode) + WIRE_ICRC_BYTES;

	if (bth->version != WIRE_BTH_VERSION)
		return WIRE_ROCE_VERSION;
	if (!is_served(d, bth->opcode))
		return WIRE_ROCE_OPCODE;
	if (d->bytes < least)
		return WIRE_ROCE_SHORT;
	if (d->bytes % 4 || d->bytes - least < bth->pad)
		return WIRE_ROCE_PAD;
	return WIRE_ROCE_OK;
}

/* Whether it is so if what the ICRC is of has @udp_payload bytes, itself counted. */
static bool is_icrc(uint32_t came, uint32_t icrc, uint32_t udp_payload, struct wire_ip *ip)
{
	if (came == icrc)
		return true;
	return wire_gid_is_ipv4(&ip->sgid) &&
	       wire_icrc_find_id(came ^ icrc, (uint16_t)udp_payload, ip);
}

static bool is_rxe_flush(const struct wire_roce_datagram *d)
{
	const uint32_t bytes = wire_opcodes[WIRE_OPCODE_FLUSH].header_bytes + WIRE_ICRC_BYTES;

	return d->rxe_flush && d->at[0] == WIRE_OPCODE_FLUSH && d->bytes == bytes;
}

static bool icrc_matches(const struct wire_roce_datagram *d, struct wire_ip *ip)
{
	uint32_t bytes = d->bytes - WIRE_ICRC_BYTES, icrc, came;

	ip->ipv4_fragmentable = false;
	icrc = wire_icrc_begin(ip, d->bytes, d->at, WIRE_BTH_BYTES);
	icrc = wire_icrc_add(icrc, d->at + WIRE_BTH_BYTES, bytes - WIRE_BTH_BYTES);
	memcpy(&came, d->at + bytes, WIRE_ICRC_BYTES);
	came = le32toh(came);
	if (is_icrc(came, icrc, d->bytes, ip))
		return true;
	return is_rxe_flush(d) &&
	       is_icrc(came, wire_icrc_add(icrc, d->at, bytes), bytes + d->bytes, ip);
}

enum wire_roce_status wire_roce_parse(const struct wire_roce_datagram *d,
                                      struct wire_roce_packet *p)
{
	enum wire_roce_status status;
	uint32_t head;

	if (d->truncated || d->bytes > MAX_UDP_PAYLOAD)
		return WIRE_ROCE_TRUNCATED;
	if (d->bytes < WIRE_BTH_BYTES + WIRE_ICRC_BYTES)
		return WIRE_ROCE_SHORT;
	wire_headers_decode(d->at, d->bytes - WIRE_ICRC_BYTES, &p->h);
	status = check(d, &p->h.bth);
	if (status != WIRE_ROCE_OK)
		return status;
	if (!icrc_matches(d, &p->ip))
		return WIRE_ROCE_ICRC;
	head = header_bytes(p->h.bth.opcode);
	p->payload = d->at + head;
	p->payload_bytes = d->bytes - head - p->h.bth.pad - WIRE_ICRC_BYTES;
	return WIRE_ROCE_OK;
}
