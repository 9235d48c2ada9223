/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The reliable multi-packet transaction protocol (InfiniBand specification volume 1, section
 * 13.6): a message longer than a MAD's data is sent as numbered segments. Each segment repeats the
 * MAD header and the header of its class. The receiver grants a window of segments with ACKs. This
 * file has a sender and a receiver, as state machines.
 *
 * They have no memory of their own and no clock: the caller passes in MADs and the time, sends the
 * MADs that they write, and collects the pieces of payload. The caller also finds the transaction
 * that a MAD belongs to (transaction ID, class, method, peer). Any bytes are safe as input; the
 * reply to a MAD that breaks the rules is an ABORT.
 */
#ifndef WIRE_RMPP_H
#define WIRE_RMPP_H

#include "wire/sa.h"

#define RMPP_VERSION     1
#define RMPP_DATA_BYTES  220 /* PayloadLength of a full segment: all bytes after the RMPP header */
#define RMPP_NO_RESPTIME 0x1F
#define RMPP_HEADER_MAX  64 /* the largest data_at */

enum rmpp_type { RMPP_DATA = 1, RMPP_ACK, RMPP_STOP, RMPP_ABORT };

enum rmpp_flag { RMPP_ACTIVE = 1, RMPP_FIRST = 2, RMPP_LAST = 4 };

/* RMPPStatus (section 13.6.2.2): 1 is for STOP, the others are for ABORT. */
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
 * The offset of a class's data in the MAD: 56 for subnet administration; 0: a class without RMPP.
 * The bytes from 36 to this offset count as payload in every segment.
 */
unsigned wire_rmpp_data_at(uint8_t mgmt_class);

/* Whether this MAD has an RMPP header that is active; false for classes without RMPP. */
bool wire_rmpp_is_active(const uint8_t mad[static MAD_BYTES]);

/*
 * A message. @header: a whole MAD; all segments begin with its first data_at bytes (with
 * RRespTime). @payload: the data of the message, without gaps; may be empty. The caller owns both
 * and keeps them as long as the message.
 */
struct wire_rmpp_message {
	const uint8_t *header;
	const uint8_t *payload;
	uint32_t bytes;
	uint32_t segments; /* at least 1 */
	uint8_t data_at;
};

/* Returns 0; -EINVAL: @header's class has no RMPP; -EMSGSIZE: too long for PayloadLength. */
int wire_rmpp_message_init(struct wire_rmpp_message *m, const uint8_t header[static MAD_BYTES],
                           const uint8_t *payload, size_t bytes);

/* Writes segment number @i, from 1 to m->segments, to @mad. */
void wire_rmpp_segment(const struct wire_rmpp_message *m, uint32_t i,
                       uint8_t mad[static MAD_BYTES]);

/* The result of an input to a state machine; and its state. */
enum rmpp_event {
	RMPP_CONTINUE, /* result: nothing new; state: under way */
	RMPP_DONE,     /* the whole message has arrived */
	RMPP_FAILED,   /* the transfer has failed; the machine's status is the reason */
};

struct wire_rmpp_result {
	enum rmpp_event event;
	bool reply;          /* the caller must send the reply that was written */
	const uint8_t *data; /* receiver: append these bytes to the message */
	uint32_t bytes;
};

/* The sender. */
struct wire_rmpp_sender {
	struct wire_rmpp_message message;
	uint64_t ack_timeout_ns;
	uint32_t next;     /* the segment to send next */
	uint32_t sent;     /* the highest segment that was ever sent */
	uint32_t acked;    /* all segments up to this one have arrived */
	uint32_t window;   /* NewWindowLast: the last segment that may be sent */
	uint64_t deadline; /* for an ACK, ns */
	uint8_t max_retries, retries;
	bool two_sided; /* the caller sets it if it expects a response of several segments: GetMulti
	                 */
	enum rmpp_event state;
	uint8_t status; /* enum rmpp_status */
};

struct wire_rmpp_limits {
	uint64_t timeout_ns; /* sender: for an ACK; receiver: for the whole message */
	uint32_t max_bytes;  /* receiver: of payload; the reply to more is a STOP */
	uint32_t window;     /* receiver: segments that an ACK grants; at least 1 */
	uint8_t max_retries; /* sender: in a row, without a new segment acknowledged */
};

/* Begins to send. Segment 1 is granted; a response may set s->window to the receiver's peer_window.
 */
void wire_rmpp_send_init(struct wire_rmpp_sender *s, const struct wire_rmpp_message *m,
                         const struct wire_rmpp_limits *limits, uint64_t now_ns);

/* Writes the next segment that the window allows to @mad. False: there is none now. */
bool wire_rmpp_send_next(struct wire_rmpp_sender *s, uint64_t now_ns,
                         uint8_t mad[static MAD_BYTES]);

/* Processes an ACK, STOP or ABORT of the receiver. RMPP_DONE: all segments are acknowledged. */
struct wire_rmpp_result wire_rmpp_send_input(struct wire_rmpp_sender *s,
                                             const uint8_t mad[static MAD_BYTES], uint64_t now_ns,
                                             uint8_t reply[static MAD_BYTES]);

/*
 * To be called at s->deadline: goes back to the segment after the last acknowledged one, which
 * wire_rmpp_send_next() then sends again; or fails after max_retries, with an ABORT to be sent.
 */
struct wire_rmpp_result wire_rmpp_send_expire(struct wire_rmpp_sender *s, uint64_t now_ns,
                                              uint8_t reply[static MAD_BYTES]);

/*
 * The receiver. It accepts segments in order. It drops a segment that is too early and
 * acknowledges a repeated one again, also after RMPP_DONE; so the caller keeps it for a while.
 */
struct wire_rmpp_receiver {
	struct wire_rmpp_limits limits;
	uint8_t header[RMPP_HEADER_MAX]; /* data_at bytes of the first segment */
	uint8_t data_at;
	uint32_t expected;    /* the next segment */
	uint32_t window;      /* NewWindowLast */
	uint32_t claimed;     /* PayloadLength of the first segment; 0: unknown */
	uint32_t bytes;       /* of payload, so far */
	uint32_t peer_window; /* how many segments of a response the sender grants; 1 at first */
	uint64_t deadline;    /* for the whole message, ns */
	enum rmpp_event state;
	uint8_t status; /* enum rmpp_status */
};

/* Begins to receive. The message must be complete within @limits->timeout_ns. */
void wire_rmpp_receive_init(struct wire_rmpp_receiver *r, const struct wire_rmpp_limits *limits,
                            uint64_t now_ns);

/*
 * Processes a MAD of the sender with RMPP active. result.data points into @mad. RMPP_DONE: the
 * message is r->header (data_at bytes) and the appended pieces (r->bytes).
 */
struct wire_rmpp_result wire_rmpp_receive_input(struct wire_rmpp_receiver *r,
                                                const uint8_t mad[static MAD_BYTES],
                                                uint8_t reply[static MAD_BYTES]);

/* To be called at r->deadline: fails, with an ABORT to be sent if a segment has arrived. */
struct wire_rmpp_result wire_rmpp_receive_expire(struct wire_rmpp_receiver *r, uint64_t now_ns,
                                                 uint8_t reply[static MAD_BYTES]);

/* Writes the ABORT (for RESOURCES_EXHAUSTED: STOP) that refuses @mad; needs no state machine. */
void wire_rmpp_refuse(const uint8_t mad[static MAD_BYTES], enum rmpp_status status,
                      uint8_t reply[static MAD_BYTES]);

#endif
