/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A whole RoCEv2 UD message: what a UDP datagram to port 4791 holds, from the BTH to the ICRC
 * (InfiniBand specification volume 1, annex A17). The payload is never copied here: building
 * makes what goes before and after it, for an iovec of three; parsing takes the datagram in
 * two pieces, the first being as long as the headers of every UD message are, so that an iovec
 * of two puts the payload where it is to stay.
 *
 *     head (20 bytes)                body
 *     BTH 12  DETH 8  |  [immediate 4]  payload  pad 0 to 3  ICRC 4
 *
 * Pure functions. Nothing that a datagram may hold does any harm.
 */
#ifndef WIRE_ROCE_H
#define WIRE_ROCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/bth.h"
#include "wire/ip.h"

#define WIRE_ROCE_HEAD_BYTES (WIRE_BTH_BYTES + WIRE_DETH_BYTES)
/* What a body may hold besides the payload: a receive buffer for it is so much larger. */
#define WIRE_ROCE_BODY_MORE   (WIRE_IMM_BYTES + WIRE_ICRC_BYTES)
#define WIRE_ROCE_MAX_PAYLOAD 4096

struct wire_roce_packet {
	struct wire_ip ip;
	struct wire_bth bth;
	struct wire_deth deth;
	uint32_t imm_data; /* network order, as verbs has it; with WIRE_OPCODE_UD_SEND_ONLY_IMM */
	const void *payload;
	uint32_t payload_bytes;
};

#define WIRE_ROCE_MAX_TRAILER (3 + WIRE_ICRC_BYTES)

/* Before and behind the payload. */
struct wire_roce_frame {
	uint8_t head[WIRE_ROCE_HEAD_BYTES + WIRE_IMM_BYTES];
	uint8_t trailer[WIRE_ROCE_MAX_TRAILER];
	uint8_t head_bytes, trailer_bytes;
};

/*
 * Makes @frame for @packet, with an ICRC for identification @packet->ip.ipv4_id and DF. Pad
 * and version of the BTH are filled in, whatever @packet has there. The payload, at most
 * WIRE_ROCE_MAX_PAYLOAD bytes, must not change until the datagram is sent.
 */
void wire_roce_build(const struct wire_roce_packet *packet, struct wire_roce_frame *frame);

/* UDP payload bytes of what wire_roce_build() would make. */
uint16_t wire_roce_udp_payload(const struct wire_roce_packet *packet);

/* A datagram as received. */
struct wire_roce_datagram {
	const uint8_t *head; /* the first WIRE_ROCE_HEAD_BYTES of it */
	const uint8_t *body; /* the rest */
	uint32_t bytes;      /* of both that there are */
	bool truncated;      /* it had more than there was room for */
};

/* What is wrong with a datagram, in the order in which it is looked at. */
enum wire_roce_status {
	WIRE_ROCE_OK,
	WIRE_ROCE_TRUNCATED, /* more than there was room for, or than a UDP datagram can have */
	WIRE_ROCE_SHORT,     /* its headers and ICRC do not fit into it */
	WIRE_ROCE_VERSION,   /* TVer is not 0 */
	WIRE_ROCE_OPCODE,    /* no UD message */
	WIRE_ROCE_PAD,       /* no multiple of four bytes, or more pad than payload */
	WIRE_ROCE_ICRC,
	WIRE_ROCE_STATUSES,
};

/* Of a counter: "bad_icrc", ... ; of WIRE_ROCE_OK "ok". */
const char *wire_roce_status_name(enum wire_roce_status status);

/*
 * Checks and takes apart a datagram. The caller has filled in packet->ip, IPv4's
 * identification with a guess, which saves work if it is right; all else of it is filled in when
 * the result is WIRE_ROCE_OK, packet->payload pointing into the body; so are IPv4's
 * identification and DF, as far as the ICRC tells (icrc.h). P_Key, Q_Key and QPN are
 * not looked at.
 */
enum wire_roce_status wire_roce_parse(const struct wire_roce_datagram *datagram,
                                      struct wire_roce_packet *packet);

#endif
