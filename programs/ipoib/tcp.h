/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where things are in a TCP header (RFC 9293), for cutting and merging.
 */
#ifndef IPOIB_TCP_H
#define IPOIB_TCP_H

enum {
	IPOIB_TCP = 6, /* the protocol's number */
	TCP_AT_SEQUENCE = 4,
	TCP_AT_ACK = 8,
	TCP_AT_OFFSET = 12,
	TCP_AT_FLAGS = 13,
	TCP_AT_CHECKSUM = 16,
	TCP_MIN = 20,
};

enum {
	TCP_FIN = 0x01,
	TCP_PSH = 0x08,
	TCP_ACK = 0x10,
	TCP_CWR = 0x80,
};

/* The bytes of the header at @tcp. */
#define TCP_HEADER(tcp) (((tcp)[TCP_AT_OFFSET] >> 4) * 4u)

#endif
