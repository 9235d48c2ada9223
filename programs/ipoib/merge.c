/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Merging segments: see merge.h. Only what can be cut again into the very same packets is merged.
 */
#include "ipoib/merge.h"
#include "ipoib/tcp.h"

#define DO_NOT_FRAGMENT 0x40
#define MAX_BYTES       UINT16_MAX

/* A received segment, as long as it is looked at. */
struct segment {
	uint8_t *data;
	const struct ipoib_ip *ip;
	uint8_t *tcp;
	unsigned header, payload;
	bool sound; /* its checksum has been checked */
};

void ipoib_merge_init(struct ipoib_merge *m, ipoib_merged *merged, void *arg)
{
	m->merged = merged;
	m->arg = arg;
	m->next = 0;
	for (unsigned i = 0; i < IPOIB_MERGE_FLOWS; i++)
		m->flow[i].n = 0;
}

/* The first packet's length, and its checksum, become those of all. */
static void set_length(struct ipoib_merge_flow *f)
{
	if (f->ip.type == IPOIB_TYPE_IPV6) {
		ipoib_put16(f->first + 4, f->bytes - f->ip.header);
		return;
	}
	ipoib_put16(f->first + 2, f->bytes);
	ipoib_ipv4_checksum(f->first, f->ip.header);
}

/* TCP's checksum has been checked. A TUN device tells the kernel of that only if it is still to be
 * finished: to one that is done the kernel would look again. */
static void hand_on(struct ipoib_merge *m, struct ipoib_merge_flow *f)
{
	unsigned tcp_bytes = f->bytes - f->ip.header;
	uint16_t sum = ipoib_fold(ipoib_pseudo_sum(&f->ip, IPOIB_TCP, tcp_bytes));
	struct virtio_net_hdr vnet = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.csum_start = (uint16_t)f->ip.header,
		.csum_offset = TCP_AT_CHECKSUM,
	};

	if (f->n > 1) {
		vnet.gso_type = f->ip.type == IPOIB_TYPE_IPV4 ? VIRTIO_NET_HDR_GSO_TCPV4
		                                              : VIRTIO_NET_HDR_GSO_TCPV6;
		vnet.hdr_len = (uint16_t)f->header;
		vnet.gso_size = (uint16_t)f->size;
		set_length(f);
	}
	memcpy(f->first + f->ip.header + TCP_AT_CHECKSUM, &sum, sizeof(sum));
	m->merged(m->arg, &vnet, f->piece, f->n);
	f->n = 0;
}

void ipoib_merge_flush(struct ipoib_merge *m)
{
	for (unsigned i = 0; i < IPOIB_MERGE_FLOWS; i++) {
		if (m->flow[i].n)
			hand_on(m, &m->flow[i]);
	}
}

/* ---- which segments go together ---- */

/* Whether it is a TCP segment at all: @s. */
static bool read_segment(uint8_t *data, const struct ipoib_ip *ip, struct segment *s)
{
	unsigned tcp_header;

	if (ip->protocol != IPOIB_TCP || ip->fragment || ip->length < ip->header + TCP_MIN)
		return false;
	s->data = data;
	s->ip = ip;
	s->tcp = data + ip->header;
	tcp_header = TCP_HEADER(s->tcp);
	s->header = ip->header + tcp_header;
	if (tcp_header < TCP_MIN || s->header > ip->length)
		return false;
	s->payload = ip->length - s->header;
	return true;
}

/* Whether it could be the first of a large packet. */
static bool can_begin(struct segment *s)
{
	bool plain = s->ip->type == IPOIB_TYPE_IPV6 ||
	             (s->ip->header == IPOIB_IPV4_MIN && s->data[6] == DO_NOT_FRAGMENT);

	if (!plain || !s->payload || (s->tcp[TCP_AT_FLAGS] & ~TCP_PSH) != TCP_ACK)
		return false;
	s->sound = ipoib_transport_is_sound(s->ip, s->tcp, s->ip->length - s->ip->header);
	return s->sound;
}

static bool same_flow(const struct ipoib_merge_flow *f, const struct segment *s)
{
	return !memcmp(f->first + f->ip.header, s->tcp, 4) && f->ip.type == s->ip->type &&
	       ib_gid_equal(&f->ip.source, &s->ip->source) &&
	       ib_gid_equal(&f->ip.destination, &s->ip->destination);
}

/* Whether @s, which can_begin(), is what comes after all in @f. */
static bool continues(const struct ipoib_merge_flow *f, const struct segment *s)
{
	const uint8_t *tcp = f->first + f->ip.header;
	bool is_ipv4 = s->ip->type == IPOIB_TYPE_IPV4;

	if (f->n == IPOIB_MERGE_PIECES || f->header != s->header || s->payload > f->size ||
	    f->bytes + s->payload > MAX_BYTES ||
	    ipoib_get32(s->tcp + TCP_AT_SEQUENCE) != f->next_sequence ||
	    (tcp[TCP_AT_FLAGS] & TCP_PSH))
		return false;
	/* type of service and time to live; traffic class, flow label and hop limit */
	if (is_ipv4 ? f->first[1] != s->data[1] || f->first[8] != s->data[8]
	            : memcmp(f->first, s->data, 4) || f->first[7] != s->data[7])
		return false;
	return !memcmp(tcp + TCP_AT_ACK, s->tcp + TCP_AT_ACK, 4) &&
	       !memcmp(tcp + TCP_AT_CHECKSUM + 2, s->tcp + TCP_AT_CHECKSUM + 2,
	               f->header - f->ip.header - TCP_AT_CHECKSUM - 2) &&
	       tcp[TCP_AT_OFFSET] == s->tcp[TCP_AT_OFFSET];
}

static void begin(struct ipoib_merge *m, const struct segment *s)
{
	struct ipoib_merge_flow *f = &m->flow[0];

	for (unsigned i = 0; i < IPOIB_MERGE_FLOWS && f->n; i++)
		f = &m->flow[i];
	if (f->n) {
		f = &m->flow[m->next++ % IPOIB_MERGE_FLOWS];
		hand_on(m, f);
	}
	f->ip = *s->ip;
	f->first = s->data;
	f->header = s->header;
	f->size = s->payload;
	f->bytes = s->ip->length;
	f->next_sequence = ipoib_get32(s->tcp + TCP_AT_SEQUENCE) + s->payload;
	f->piece[0] = (struct iovec){ s->data, s->ip->length };
	f->n = 1;
}

static void append(struct ipoib_merge *m, struct ipoib_merge_flow *f, const struct segment *s)
{
	uint8_t *tcp = f->first + f->ip.header;

	f->piece[f->n++] = (struct iovec){ s->data + s->header, s->payload };
	f->bytes += s->payload;
	f->next_sequence += s->payload;
	/* the last one's window is the newest */
	memcpy(tcp + TCP_AT_FLAGS + 1, s->tcp + TCP_AT_FLAGS + 1, 2);
	tcp[TCP_AT_FLAGS] |= s->tcp[TCP_AT_FLAGS] & TCP_PSH;
	if (s->payload < f->size || (tcp[TCP_AT_FLAGS] & TCP_PSH))
		hand_on(m, f);
}

void ipoib_merge_add(struct ipoib_merge *m, uint8_t *data, const struct ipoib_ip *ip)
{
	struct iovec all = { data, ip->length };
	struct virtio_net_hdr vnet = { 0 };
	struct segment s = { 0 };
	bool mergeable = false;

	if (read_segment(data, ip, &s)) {
		mergeable = can_begin(&s);
		for (unsigned i = 0; i < IPOIB_MERGE_FLOWS; i++) {
			struct ipoib_merge_flow *f = &m->flow[i];

			if (!f->n || !same_flow(f, &s))
				continue;
			if (mergeable && continues(f, &s)) {
				append(m, f, &s);
				return;
			}
			hand_on(m, f);
			break;
		}
	}
	if (mergeable) {
		begin(m, &s);
		return;
	}
	m->merged(m->arg, &vnet, &all, 1);
}
