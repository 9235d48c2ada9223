/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * RMPP: see rmpp.h. After a loss the sender goes back to the last acknowledged segment, and the
 * receiver accepts segments in order only; so neither stores segments.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "wire/rmpp.h"

#define METHOD_AT      3
#define PAYLOAD_AT     (MAD_BYTES - RMPP_DATA_BYTES)
#define FIRST_WINDOW   1 /* before the first ACK */
#define DEVICE_DATA_AT 64
#define VENDOR_DATA_AT 40
#define FLAGS_AT       (RMPP_AT + WIRE_AT(rmpp, flags))

static_assert(PAYLOAD_AT == RMPP_AT + wire_rmpp_bytes, "payload is what follows the header");
static_assert(DEVICE_DATA_AT <= RMPP_HEADER_MAX, "no class has more");

static const struct wire_rmpp_result nothing = { .event = RMPP_CONTINUE };

unsigned wire_rmpp_data_at(uint8_t mgmt_class)
{
	if (mgmt_class >= MAD_CLASS_VENDOR2_FIRST && mgmt_class <= MAD_CLASS_VENDOR2_LAST)
		return VENDOR_DATA_AT;
	switch (mgmt_class) {
	case MAD_CLASS_SUBN_ADM:
		return SA_DATA_AT;
	case MAD_CLASS_DEV_MGT:
	case MAD_CLASS_DEV_ADM:
	case MAD_CLASS_BIS:
		return DEVICE_DATA_AT;
	default:
		return 0;
	}
}

bool wire_rmpp_is_active(const uint8_t mad[static MAD_BYTES])
{
	return wire_rmpp_data_at(wire_mad_class(mad)) && mad[FLAGS_AT] & RMPP_ACTIVE;
}

int wire_rmpp_message_init(struct wire_rmpp_message *m, const uint8_t header[static MAD_BYTES],
                           const uint8_t *payload, size_t bytes)
{
	unsigned data_at = wire_rmpp_data_at(wire_mad_class(header));
	size_t room, segments;

	if (!data_at)
		return -EINVAL;
	room = MAD_BYTES - data_at;
	if (bytes > UINT32_MAX)
		return -EMSGSIZE;
	segments = bytes ? (bytes + room - 1) / room : 1;
	if (bytes + segments * (data_at - PAYLOAD_AT) > UINT32_MAX)
		return -EMSGSIZE;
	*m = (struct wire_rmpp_message){ .header = header,
		                         .payload = payload,
		                         .bytes = bytes,
		                         .segments = segments,
		                         .data_at = data_at };
	return 0;
}

void wire_rmpp_segment(const struct wire_rmpp_message *m, uint32_t i, uint8_t mad[static MAD_BYTES])
{
	uint32_t room = MAD_BYTES - m->data_at, class_bytes = m->data_at - PAYLOAD_AT;
	uint32_t at = (i - 1) * room;
	uint32_t n = m->bytes - at < room ? m->bytes - at : room;
	struct wire_rmpp h;

	wire_rmpp_decode(m->header + RMPP_AT, &h);
	h = (struct wire_rmpp){ .version = RMPP_VERSION,
		                .type = RMPP_DATA,
		                .resp_time = h.resp_time,
		                .flags = RMPP_ACTIVE,
		                .data1 = i };
	if (i == 1) {
		h.flags |= RMPP_FIRST;
		h.data2 = m->bytes + m->segments * class_bytes;
	}
	if (i == m->segments) {
		h.flags |= RMPP_LAST;
		h.data2 = n + class_bytes;
	}
	memset(mad, 0, MAD_BYTES);
	memcpy(mad, m->header, m->data_at);
	wire_rmpp_encode(&h, mad + RMPP_AT);
	if (n)
		memcpy(mad + m->data_at, m->payload + at, n);
}

/* Writes a MAD with the headers of @mad, the RMPP header @h, and no data. */
static void write_control(const uint8_t *mad, const struct wire_rmpp *h, uint8_t *out)
{
	struct wire_rmpp old, new = *h;
	unsigned data_at = wire_rmpp_data_at(wire_mad_class(mad));

	wire_rmpp_decode(mad + RMPP_AT, &old);
	new.version = RMPP_VERSION;
	new.resp_time = old.resp_time;
	new.flags = RMPP_ACTIVE;
	memset(out, 0, MAD_BYTES);
	memcpy(out, mad, data_at ? data_at : PAYLOAD_AT);
	wire_rmpp_encode(&new, out + RMPP_AT);
}

/* The same in the other direction: the R bit is inverted. */
static void write_reply(const uint8_t *mad, const struct wire_rmpp *h, uint8_t *reply)
{
	write_control(mad, h, reply);
	reply[METHOD_AT] ^= MAD_METHOD_RESPONSE;
}

void wire_rmpp_refuse(const uint8_t mad[static MAD_BYTES], enum rmpp_status status,
                      uint8_t reply[static MAD_BYTES])
{
	struct wire_rmpp h = { .type = RMPP_ABORT, .status = status };

	if (status == RMPP_STATUS_RESOURCES_EXHAUSTED)
		h.type = RMPP_STOP;
	write_reply(mad, &h, reply);
}

/* The status of a STOP or ABORT; BAD_STATUS if the number is not valid there. */
static enum rmpp_status end_status(const struct wire_rmpp *h)
{
	if (h->type == RMPP_STOP)
		return h->status == RMPP_STATUS_RESOURCES_EXHAUSTED
		               ? RMPP_STATUS_RESOURCES_EXHAUSTED
		               : RMPP_STATUS_BAD_STATUS;
	if (h->status < RMPP_STATUS_TOTAL_TIME_TOO_LONG || h->status > RMPP_STATUS_UNSPECIFIED)
		return RMPP_STATUS_BAD_STATUS;
	return h->status;
}

/* The sender. */

void wire_rmpp_send_init(struct wire_rmpp_sender *s, const struct wire_rmpp_message *m,
                         const struct wire_rmpp_limits *limits, uint64_t now_ns)
{
	*s = (struct wire_rmpp_sender){ .message = *m,
		                        .ack_timeout_ns = limits->timeout_ns,
		                        .max_retries = limits->max_retries,
		                        .next = 1,
		                        .window = FIRST_WINDOW,
		                        .deadline = now_ns + limits->timeout_ns,
		                        .state = RMPP_CONTINUE };
}

bool wire_rmpp_send_next(struct wire_rmpp_sender *s, uint64_t now_ns, uint8_t mad[static MAD_BYTES])
{
	if (s->state != RMPP_CONTINUE || s->next > s->window || s->next > s->message.segments)
		return false;
	wire_rmpp_segment(&s->message, s->next, mad);
	if (s->sent < s->next)
		s->sent = s->next;
	s->next++;
	s->deadline = now_ns + s->ack_timeout_ns;
	return true;
}

/* Fails. An ABORT tells the receiver; @reply is NULL if the receiver has ended the transfer. */
static struct wire_rmpp_result sender_fail(struct wire_rmpp_sender *s, enum rmpp_status status,
                                           uint8_t *reply)
{
	struct wire_rmpp h = { .type = RMPP_ABORT, .status = status };

	s->state = RMPP_FAILED;
	s->status = status;
	if (reply)
		write_control(s->message.header, &h, reply);
	return (struct wire_rmpp_result){ .event = RMPP_FAILED, .reply = reply };
}

/* A sender that expects a response of several segments grants its first one. */
static struct wire_rmpp_result sender_turn(const struct wire_rmpp_sender *s, enum rmpp_event event,
                                           const uint8_t *ack, uint8_t *reply)
{
	struct wire_rmpp h = { .type = RMPP_ACK, .data1 = 0, .data2 = FIRST_WINDOW };

	if (s->two_sided)
		write_reply(ack, &h, reply);
	return (struct wire_rmpp_result){ .event = event, .reply = s->two_sided };
}

static struct wire_rmpp_result sender_ack(struct wire_rmpp_sender *s, const struct wire_rmpp *h,
                                          const uint8_t *mad, uint64_t now_ns, uint8_t *reply)
{
	uint32_t segment = h->data1, window = h->data2;

	if (h->status != RMPP_STATUS_OK)
		return sender_fail(s, RMPP_STATUS_BAD_STATUS, reply);
	if (window < segment)
		return sender_fail(s, RMPP_STATUS_WINDOW_TOO_SMALL, reply);
	if (segment > s->sent)
		return sender_fail(s, RMPP_STATUS_SEGMENT_TOO_BIG, reply);
	if (segment < s->acked || window < s->window)
		return nothing; /* an old ACK */
	if (segment > s->acked) {
		s->acked = segment;
		s->retries = 0;
		s->deadline = now_ns + s->ack_timeout_ns;
	}
	if (s->next <= s->acked) /* the ACK came after the sender went back */
		s->next = s->acked + 1;
	s->window = window;
	if (s->acked < s->message.segments)
		return nothing;
	s->state = RMPP_DONE;
	return sender_turn(s, RMPP_DONE, mad, reply);
}

struct wire_rmpp_result wire_rmpp_send_input(struct wire_rmpp_sender *s,
                                             const uint8_t mad[static MAD_BYTES], uint64_t now_ns,
                                             uint8_t reply[static MAD_BYTES])
{
	struct wire_rmpp h;

	wire_rmpp_decode(mad + RMPP_AT, &h);
	if (s->state == RMPP_FAILED || !wire_rmpp_is_active(mad))
		return nothing;
	if (s->state == RMPP_DONE) {
		if (h.type == RMPP_ACK &&
		    h.data1 == s->acked) /* our grant of the response was lost */
			return sender_turn(s, RMPP_CONTINUE, mad, reply);
		return nothing;
	}
	if (h.version != RMPP_VERSION)
		return sender_fail(s, RMPP_STATUS_BAD_VERSION, reply);
	switch (h.type) {
	case RMPP_DATA: /* not of this transfer: a response comes after the last ACK */
		return nothing;
	case RMPP_ACK:
		return sender_ack(s, &h, mad, now_ns, reply);
	case RMPP_STOP:
	case RMPP_ABORT:
		return sender_fail(s, end_status(&h), NULL);
	default:
		return sender_fail(s, RMPP_STATUS_BAD_TYPE, reply);
	}
}

struct wire_rmpp_result wire_rmpp_send_expire(struct wire_rmpp_sender *s, uint64_t now_ns,
                                              uint8_t reply[static MAD_BYTES])
{
	if (s->state != RMPP_CONTINUE || now_ns < s->deadline)
		return nothing;
	if (s->retries == s->max_retries)
		return sender_fail(s, RMPP_STATUS_TOO_MANY_RETRIES, reply);
	s->retries++;
	s->next = s->acked + 1;
	s->deadline = now_ns + s->ack_timeout_ns;
	return nothing;
}

/* The receiver. */

void wire_rmpp_receive_init(struct wire_rmpp_receiver *r, const struct wire_rmpp_limits *limits,
                            uint64_t now_ns)
{
	*r = (struct wire_rmpp_receiver){ .limits = *limits,
		                          .expected = 1,
		                          .window = FIRST_WINDOW,
		                          .peer_window = FIRST_WINDOW,
		                          .deadline = now_ns + limits->timeout_ns,
		                          .state = RMPP_CONTINUE };
}

static struct wire_rmpp_result receiver_fail(struct wire_rmpp_receiver *r, const uint8_t *mad,
                                             enum rmpp_status status, uint8_t *reply)
{
	r->state = RMPP_FAILED;
	r->status = status;
	wire_rmpp_refuse(mad, status, reply);
	return (struct wire_rmpp_result){ .event = RMPP_FAILED, .reply = true };
}

static struct wire_rmpp_result receiver_ack(const struct wire_rmpp_receiver *r, const uint8_t *mad,
                                            uint8_t *reply)
{
	struct wire_rmpp h = { .type = RMPP_ACK, .data1 = r->expected - 1, .data2 = r->window };

	write_reply(mad, &h, reply);
	return (struct wire_rmpp_result){ .event = RMPP_CONTINUE, .reply = true };
}

/* Checks PayloadLength against First, Last, and the first segment. */
static enum rmpp_status check_length(struct wire_rmpp_receiver *r, const struct wire_rmpp *h)
{
	uint32_t class_bytes = r->data_at - PAYLOAD_AT;
	uint64_t before = (uint64_t)(h->data1 - 1) * RMPP_DATA_BYTES;

	if ((h->flags & RMPP_FIRST) && !(h->flags & RMPP_LAST)) {
		r->claimed = h->data2;
		return r->claimed == 0 || r->claimed > RMPP_DATA_BYTES ? RMPP_STATUS_OK
		                                                       : RMPP_STATUS_BAD_LENGTH;
	}
	if (!(h->flags & RMPP_LAST))
		return r->claimed == 0 || before + RMPP_DATA_BYTES < r->claimed
		               ? RMPP_STATUS_OK
		               : RMPP_STATUS_BAD_LENGTH;
	if (h->data2 < class_bytes || h->data2 > RMPP_DATA_BYTES)
		return RMPP_STATUS_BAD_LENGTH;
	return r->claimed == 0 || before + h->data2 == r->claimed ? RMPP_STATUS_OK
	                                                          : RMPP_STATUS_BAD_LENGTH;
}

static enum rmpp_status check_segment(const struct wire_rmpp *h)
{
	if (h->status != RMPP_STATUS_OK)
		return RMPP_STATUS_BAD_STATUS;
	if (h->data1 == 0 || (h->data1 == 1) != !!(h->flags & RMPP_FIRST))
		return RMPP_STATUS_BAD_SEGMENT;
	return RMPP_STATUS_OK;
}

/* Appends the expected segment. */
static struct wire_rmpp_result receiver_append(struct wire_rmpp_receiver *r,
                                               const struct wire_rmpp *h, const uint8_t *mad,
                                               uint8_t *reply)
{
	struct wire_rmpp_result result = nothing;
	enum rmpp_status status = check_length(r, h);
	bool last = h->flags & RMPP_LAST;
	uint32_t n = (last ? h->data2 : RMPP_DATA_BYTES) - (r->data_at - PAYLOAD_AT);

	if (status != RMPP_STATUS_OK)
		return receiver_fail(r, mad, status, reply);
	if (n > r->limits.max_bytes - r->bytes)
		return receiver_fail(r, mad, RMPP_STATUS_RESOURCES_EXHAUSTED, reply);
	if (r->expected == 1)
		memcpy(r->header, mad, r->data_at);
	r->expected++;
	r->bytes += n;
	if (last || r->expected > r->window) {
		r->window = r->expected - 1 + r->limits.window;
		result = receiver_ack(r, mad, reply);
	}
	if (last)
		result.event = r->state = RMPP_DONE;
	result.data = mad + r->data_at;
	result.bytes = n;
	return result;
}

static struct wire_rmpp_result receiver_data(struct wire_rmpp_receiver *r,
                                             const struct wire_rmpp *h, const uint8_t *mad,
                                             uint8_t *reply)
{
	enum rmpp_status status = check_segment(h);

	if (status != RMPP_STATUS_OK)
		return receiver_fail(r, mad, status, reply);
	if (h->data1 < r->expected)
		return receiver_ack(r, mad, reply);
	if (h->data1 > r->expected)
		return nothing;
	return receiver_append(r, h, mad, reply);
}

/* After RMPP_DONE: a segment is repeated, or the sender grants the response. */
static struct wire_rmpp_result receiver_afterwards(struct wire_rmpp_receiver *r,
                                                   const struct wire_rmpp *h, const uint8_t *mad,
                                                   uint8_t *reply)
{
	if (h->type == RMPP_DATA && check_segment(h) == RMPP_STATUS_OK && h->data1 < r->expected)
		return receiver_ack(r, mad, reply);
	if (h->type == RMPP_ACK && h->data1 == 0 && h->data2 > r->peer_window)
		r->peer_window = h->data2;
	return nothing;
}

struct wire_rmpp_result wire_rmpp_receive_input(struct wire_rmpp_receiver *r,
                                                const uint8_t mad[static MAD_BYTES],
                                                uint8_t reply[static MAD_BYTES])
{
	struct wire_rmpp h;

	wire_rmpp_decode(mad + RMPP_AT, &h);
	if (r->state == RMPP_FAILED || !wire_rmpp_is_active(mad))
		return nothing;
	if (r->state == RMPP_DONE)
		return receiver_afterwards(r, &h, mad, reply);
	if (r->expected == 1)
		r->data_at = wire_rmpp_data_at(wire_mad_class(mad));
	if (h.version != RMPP_VERSION)
		return receiver_fail(r, mad, RMPP_STATUS_BAD_VERSION, reply);
	switch (h.type) {
	case RMPP_DATA:
		return receiver_data(r, &h, mad, reply);
	case RMPP_ACK: /* a receiver sends no segments */
		return nothing;
	case RMPP_STOP:
	case RMPP_ABORT:
		r->state = RMPP_FAILED;
		r->status = end_status(&h);
		return (struct wire_rmpp_result){ .event = RMPP_FAILED };
	default:
		return receiver_fail(r, mad, RMPP_STATUS_BAD_TYPE, reply);
	}
}

struct wire_rmpp_result wire_rmpp_receive_expire(struct wire_rmpp_receiver *r, uint64_t now_ns,
                                                 uint8_t reply[static MAD_BYTES])
{
	uint8_t mad[MAD_BYTES] = { 0 };

	if (r->state != RMPP_CONTINUE || now_ns < r->deadline)
		return nothing;
	if (r->expected > 1) {
		memcpy(mad, r->header, sizeof(r->header));
		return receiver_fail(r, mad, RMPP_STATUS_TOTAL_TIME_TOO_LONG, reply);
	}
	r->state = RMPP_FAILED; /* without a segment there is no peer to tell */
	r->status = RMPP_STATUS_TOTAL_TIME_TOO_LONG;
	return (struct wire_rmpp_result){ .event = RMPP_FAILED };
}
