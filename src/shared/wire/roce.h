/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A whole RoCEv2 packet: the contents of a UDP datagram to port 4791, from the BTH to the ICRC
 * (InfiniBand specification volume 1, annex A17). The opcode says which headers there are
 * (opcode.h), and with them where the payload begins.
 *
 *     BTH 12  [other headers]  payload  pad 0 to 3  ICRC 4
 *
 * The payload is never copied here: building makes what goes before and after it, for an
 * iovec of three; parsing points into the datagram. Pure functions. Nothing that a datagram
 * may hold does any harm.
 */
#ifndef WIRE_ROCE_H
#define WIRE_ROCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/headers.h"
#include "wire/ip.h"

#define WIRE_ROCE_MAX_PAYLOAD 4096
#define WIRE_ROCE_MAX_TRAILER (3 + WIRE_ICRC_BYTES)
/* A datagram that has more than this is no packet. */
#define WIRE_ROCE_MAX_BYTES (WIRE_HEADERS_MAX_BYTES + WIRE_ROCE_MAX_PAYLOAD + WIRE_ICRC_BYTES)

struct wire_roce_packet {
	struct wire_ip ip;
	struct wire_headers h;
	const void *payload;
	uint32_t payload_bytes;
};

/* Before and behind the payload. */
struct wire_roce_frame {
	uint8_t head[WIRE_HEADERS_MAX_BYTES];
	uint8_t trailer[WIRE_ROCE_MAX_TRAILER];
	uint8_t head_bytes, trailer_bytes;
};

/*
 * Makes @frame for @packet, whose opcode must be one of the table, with an ICRC for
 * identification @packet->ip.ipv4_id and DF. Pad and version of the BTH are filled in,
 * whatever @packet has there. The payload, at most WIRE_ROCE_MAX_PAYLOAD bytes, must not change
 * until the datagram is sent.
 *
 * Linux's rdma_rxe (6.2 to 6.12 at least) takes the headers of a FLUSH for its payload as well, and
 * adds them to the ICRC once more. With packet->h.feth.rxe_icrc that is done here, too.
 */
void wire_roce_build(const struct wire_roce_packet *packet, struct wire_roce_frame *frame);

/* UDP payload bytes of what wire_roce_build() would make. */
uint16_t wire_roce_udp_payload(const struct wire_roce_packet *packet);

/* A datagram as received. */
struct wire_roce_datagram {
	const uint8_t *at;
	uint32_t bytes;
	bool truncated;     /* it had more than there was room for */
	uint8_t transports; /* that the receiver serves: bits 1 << enum wire_transport */
	bool rxe_flush;     /* a FLUSH may also have rdma_rxe's ICRC */
	/* packets of RC whose opcode is reserved are packets as well, of which all behind the BTH
	 * is payload: responders have to answer them */
	bool reserved;
};

/* The errors of a datagram, in the order in which they are looked for. */
enum wire_roce_status {
	WIRE_ROCE_OK,
	WIRE_ROCE_TRUNCATED, /* more than there was room for, or than a UDP datagram can have */
	WIRE_ROCE_SHORT,     /* its headers and ICRC do not fit into it */
	WIRE_ROCE_VERSION,   /* TVer is not 0 */
	WIRE_ROCE_OPCODE,    /* none that there is, or of a transport that is not served */
	WIRE_ROCE_PAD,       /* no multiple of four bytes, or more pad than payload */
	WIRE_ROCE_ICRC,
	WIRE_ROCE_STATUSES,
};

/* Of a counter: "bad_icrc", ... ; of WIRE_ROCE_OK "ok". */
const char *wire_roce_status_name(enum wire_roce_status status);

/*
 * Checks and decodes a datagram. The caller has filled in packet->ip, with a guess at IPv4's
 * identification, which saves work if it is right. All else of it is filled in when the result
 * is WIRE_ROCE_OK: the headers that the opcode has, packet->payload pointing into the datagram,
 * and IPv4's identification and DF as far as the ICRC tells (icrc.h). Keys and queue pair
 * numbers are not checked.
 */
enum wire_roce_status wire_roce_parse(const struct wire_roce_datagram *datagram,
                                      struct wire_roce_packet *packet);

#endif
