/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Checksums and segments: see segment.h.
 */
#include "base/util.h"
#include "ipoib/segment.h"
#include "ipoib/tcp.h"

#define AT_IPV4_LENGTH 2
#define AT_IPV4_ID     4
#define AT_IPV6_LENGTH 4

bool ipoib_finish_checksum(const struct ipoib_packet *p)
{
	unsigned start = p->vnet.csum_start, at = start + p->vnet.csum_offset;
	uint16_t sum;

	if (!(p->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
		return true;
	if (at + sizeof(sum) > p->bytes)
		return false;
	/* the field has the sum of the pseudo header */
	sum = (uint16_t)~ipoib_fold(ipoib_sum(p->data + start, p->bytes - start, 0));
	if (!sum)
		sum = UINT16_MAX; /* zero is UDP's "none"; the same number to all */
	memcpy(p->data + at, &sum, sizeof(sum));
	return true;
}

unsigned ipoib_wire_bytes(const struct ipoib_packet *p)
{
	unsigned start = p->vnet.csum_start;

	if (!ipoib_is_large(p) || start + TCP_MIN > p->bytes)
		return p->bytes;
	return (unsigned)base_min((int)p->bytes,
	                          (int)(start + TCP_HEADER(p->data + start) + p->vnet.gso_size));
}

bool ipoib_segment_begin(struct ipoib_segmenter *s, const struct ipoib_packet *p, unsigned mtu)
{
	unsigned kind = p->vnet.gso_type & ~VIRTIO_NET_HDR_GSO_ECN;
	bool is_ipv4 = kind == VIRTIO_NET_HDR_GSO_TCPV4;

	*s = (struct ipoib_segmenter){ .packet = p,
		                       .transport = p->vnet.csum_start,
		                       .size = p->vnet.gso_size };
	if ((!is_ipv4 && kind != VIRTIO_NET_HDR_GSO_TCPV6) || !s->size ||
	    !ipoib_ip_parse(p->data, p->bytes, &s->ip) || s->ip.length != p->bytes ||
	    is_ipv4 != (s->ip.type == IPOIB_TYPE_IPV4) || s->transport < s->ip.header ||
	    s->transport + TCP_MIN > p->bytes)
		return false;
	s->header = s->transport + TCP_HEADER(p->data + s->transport);
	return s->header >= s->transport + TCP_MIN && s->header < p->bytes &&
	       s->header + IPOIB_HEADER_BYTES <= IPOIB_SEGMENT_HEADER && s->header + s->size <= mtu;
}

unsigned ipoib_segment_count(const struct ipoib_segmenter *s)
{
	return (s->packet->bytes - s->header + s->size - 1) / s->size;
}

static void fix_ip(const struct ipoib_segmenter *s, uint8_t *ip, unsigned length)
{
	if (s->ip.type == IPOIB_TYPE_IPV6) {
		ipoib_put16(ip + AT_IPV6_LENGTH, length - IPOIB_IPV6_MIN);
		return;
	}
	ipoib_put16(ip + AT_IPV4_LENGTH, length);
	ipoib_put16(ip + AT_IPV4_ID, ipoib_get16(ip + AT_IPV4_ID) + s->number);
	ipoib_ipv4_checksum(ip, s->ip.header);
}

static void fix_tcp(const struct ipoib_segmenter *s, uint8_t *tcp, const uint8_t *payload,
                    unsigned bytes)
{
	unsigned header = s->header - s->transport;
	uint64_t sum = ipoib_pseudo_sum(&s->ip, IPOIB_TCP, header + bytes);
	uint16_t folded;

	ipoib_put32(tcp + TCP_AT_SEQUENCE, ipoib_get32(tcp + TCP_AT_SEQUENCE) + s->at);
	if (s->number)
		tcp[TCP_AT_FLAGS] &= (uint8_t)~TCP_CWR;
	if (s->header + s->at + bytes < s->packet->bytes)
		tcp[TCP_AT_FLAGS] &= (uint8_t) ~(TCP_FIN | TCP_PSH);
	memset(tcp + TCP_AT_CHECKSUM, 0, 2);
	sum = ipoib_sum(payload, bytes, ipoib_sum(tcp, header, sum));
	folded = (uint16_t)~ipoib_fold(sum);
	memcpy(tcp + TCP_AT_CHECKSUM, &folded, sizeof(folded));
}

unsigned ipoib_segment_next(struct ipoib_segmenter *s, uint8_t out[static IPOIB_SEGMENT_HEADER],
                            const uint8_t **payload, unsigned *bytes)
{
	unsigned left = s->packet->bytes - s->header - s->at;
	uint8_t *ip = out + IPOIB_HEADER_BYTES;

	if (!left)
		return 0;
	*bytes = left < s->size ? left : s->size;
	*payload = s->packet->data + s->header + s->at;
	ipoib_header_encode(s->ip.type, out);
	memcpy(ip, s->packet->data, s->header);
	fix_ip(s, ip, s->header + *bytes);
	fix_tcp(s, ip + s->transport, *payload, *bytes);
	s->at += *bytes;
	s->number++;
	return IPOIB_HEADER_BYTES + s->header;
}
