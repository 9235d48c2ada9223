/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The reliable multi-packet transaction protocol (InfiniBand specification volume 1,
 * section 13.6): a message longer than a MAD's data goes as numbered segments; each repeats
 * the MAD header and the header of its class, and the receiver grants a window of them with
 * ACKs. A sender and a receiver, as state machines.
 *
 * They hold no memory and no clock: MADs and the time come in, MADs to send and pieces of
 * payload go out. Which transaction a MAD belongs to (transaction ID, class, method, peer)
 * the caller says. Any bytes may come in: what breaks the rules is answered with ABORT.
 */
#ifndef WIRE_RMPP_H
#define WIRE_RMPP_H

#include "wire/sa.h"

#define RMPP_VERSION     1
#define RMPP_AT          24  /* the RMPP header's place in a MAD */
#define RMPP_DATA_BYTES  220 /* what PayloadLength counts, of a full segment: all behind it */
#define RMPP_NO_RESPTIME 0x1F
#define RMPP_HEADER_MAX  64 /* the largest data_at */

enum rmpp_type { RMPP_DATA = 1, RMPP_ACK, RMPP_STOP, RMPP_ABORT };

enum rmpp_flag { RMPP_ACTIVE = 1, RMPP_FIRST = 2, RMPP_LAST = 4 };

/* RMPPStatus (section 13.6.2.2): 1 is STOP's, the others are ABORT's. */
enum rmpp_status {
	RMPP_STATUS_OK = 0,
	RMPP_STATUS_RESOURCES_EXHAUSTED = 1,
	RMPP_STATUS_TOTAL_TIME_TOO_LONG = 118,
	RMPP_STATUS_BAD_LENGTH = 119,  /* Last and PayloadLength disagree */
	RMPP_STATUS_BAD_SEGMENT = 120, /* First and SegmentNumber disagree */
	RMPP_STATUS_BAD_TYPE = 121,
	RMPP_STATUS_WINDOW_TOO_SMALL = 122,
	RMPP_STATUS_SEGMENT_TOO_BIG = 123,
	RMPP_STATUS_BAD_STATUS = 124,
	RMPP_STATUS_BAD_VERSION = 125,
	RMPP_STATUS_TOO_MANY_RETRIES = 126,
	RMPP_STATUS_UNSPECIFIED = 127,
};

/*
 * Where a class's data begins in the MAD: 56 for subnet administration; 0 for a class
 * that knows no RMPP. The bytes from 36 on to it count as payload in every segment.
 */
unsigned wire_rmpp_data_at(uint8_t mgmt_class);

/* Is the RMPP header of this MAD one, and active? Of a class without RMPP it never is. */
bool wire_rmpp_is_active(const uint8_t mad[static MAD_BYTES]);

/*
 * A message: @header is a whole MAD whose first data_at bytes (RRespTime with them) all
 * segments have; @payload, of n records of k bytes n * k bytes, may be empty. Both are the
 * caller's and must outlive the message.
 */
struct wire_rmpp_message {
	const uint8_t *header;
	const uint8_t *payload;
	uint32_t bytes;
	uint32_t segments; /* at least 1 */
	uint8_t data_at;
};

/* 0; -EINVAL: @header's class has no RMPP; -EMSGSIZE: PayloadLength cannot count so much. */
int wire_rmpp_message_init(struct wire_rmpp_message *m, const uint8_t header[static MAD_BYTES],
                           const uint8_t *payload, size_t bytes);

/* Writes segment @i, from 1 to m->segments. */
void wire_rmpp_segment(const struct wire_rmpp_message *m, uint32_t i,
                       uint8_t mad[static MAD_BYTES]);

/* What a state machine made of a MAD or of the time, and what state it is in. */
enum rmpp_event {
	RMPP_CONTINUE, /* an event: nothing new; a state: under way */
	RMPP_DONE,     /* all has arrived */
	RMPP_FAILED,   /* it is over: @status of the machine says why */
};

struct wire_rmpp_result {
	enum rmpp_event event;
	bool reply;          /* the reply was written, and is to be sent */
	const uint8_t *data; /* of the receiver: append these bytes to the message */
	uint32_t bytes;
};

/* The sender. */
struct wire_rmpp_sender {
	struct wire_rmpp_message message;
	uint64_t ack_timeout_ns;
	uint32_t next;     /* the segment to send next */
	uint32_t sent;     /* the last that was sent, before a step back too */
	uint32_t acked;    /* all up to this one have arrived */
	uint32_t window;   /* NewWindowLast: may send up to this one */
	uint64_t deadline; /* for an ACK */
	uint8_t max_retries, retries;
	bool two_sided; /* set it if an answer of several segments is expected: GetMulti */
	enum rmpp_event state;
	uint8_t status; /* enum rmpp_status */
};

struct wire_rmpp_limits {
	uint64_t timeout_ns; /* sender: for an ACK; receiver: for the whole message */
	uint32_t max_bytes;  /* receiver: of payload; more is answered with STOP */
	uint32_t window;     /* receiver: segments it grants with an ACK; at least 1 */
	uint8_t max_retries; /* sender: in a row, each from the last acknowledged segment */
};

/* The peer grants segment 1; for an answer, s->window may be set to its peer_window. */
void wire_rmpp_send_init(struct wire_rmpp_sender *s, const struct wire_rmpp_message *m,
                         const struct wire_rmpp_limits *limits, uint64_t now_ns);

/* The next segment that the window allows: written to @mad, true. Call until false. */
bool wire_rmpp_send_next(struct wire_rmpp_sender *s, uint64_t now_ns,
                         uint8_t mad[static MAD_BYTES]);

/* A MAD from the receiver: an ACK, STOP or ABORT. DONE when all is acknowledged. */
struct wire_rmpp_result wire_rmpp_send_input(struct wire_rmpp_sender *s,
                                             const uint8_t mad[static MAD_BYTES], uint64_t now_ns,
                                             uint8_t reply[static MAD_BYTES]);

/*
 * When s->deadline has come: goes back to the last acknowledged segment, so that
 * wire_rmpp_send_next() has more; or gives up, with an ABORT to be sent.
 */
struct wire_rmpp_result wire_rmpp_send_expire(struct wire_rmpp_sender *s, uint64_t now_ns,
                                              uint8_t reply[static MAD_BYTES]);

/*
 * The receiver. Segments are taken in order; what comes before its turn is dropped, what
 * comes again is acknowledged again, also when all is done: keep it for a while then.
 */
struct wire_rmpp_receiver {
	struct wire_rmpp_limits limits;
	uint8_t header[RMPP_HEADER_MAX]; /* data_at bytes of the first segment */
	uint8_t data_at;
	uint32_t expected;    /* segment */
	uint32_t window;      /* NewWindowLast */
	uint32_t claimed;     /* PayloadLength of the first segment; 0: it did not say */
	uint32_t bytes;       /* of payload, so far */
	uint32_t peer_window; /* what the sender grants for an answer: 1 unless it said more */
	uint64_t deadline;    /* for the whole message */
	enum rmpp_event state;
	uint8_t status; /* enum rmpp_status */
};

void wire_rmpp_receive_init(struct wire_rmpp_receiver *r, const struct wire_rmpp_limits *limits,
                            uint64_t now_ns);

/*
 * A MAD from the sender, with RMPP active. result.data lies within @mad. DONE: r->header
 * (data_at bytes) and the appended pieces (r->bytes) are the message.
 */
struct wire_rmpp_result wire_rmpp_receive_input(struct wire_rmpp_receiver *r,
                                                const uint8_t mad[static MAD_BYTES],
                                                uint8_t reply[static MAD_BYTES]);

/* When r->deadline has come: it is over, with an ABORT to be sent. */
struct wire_rmpp_result wire_rmpp_receive_expire(struct wire_rmpp_receiver *r, uint64_t now_ns,
                                                 uint8_t reply[static MAD_BYTES]);

/* An ABORT (or, for RESOURCES_EXHAUSTED, STOP) that answers @mad, for want of a machine. */
void wire_rmpp_refuse(const uint8_t mad[static MAD_BYTES], enum rmpp_status status,
                      uint8_t reply[static MAD_BYTES]);

#endif
