/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cutting and merging TCP packets: a packet that is cut and merged again is the same as before, and
 * every packet in between is sound by itself.
 */
#include <harness.h>

#include "base/util.h"
#include "ipoib/merge.h"
#include "ipoib/segment.h"
#include "ipoib/testing.h"

#define MTU    2044
#define MOST   64
#define LARGE  65536
#define STRIDE 2304

/* A packet that the merger has handed on. */
struct handed {
	struct virtio_net_hdr vnet;
	uint8_t data[LARGE];
	unsigned bytes;
};

struct fixture {
	uint8_t large[LARGE];
	uint8_t packet[MOST][STRIDE]; /* on the wire, with IPoIB's header */
	unsigned bytes[MOST], n;
	struct ipoib_merge merge;
	struct handed handed[MOST];
	unsigned n_handed;
};

static void hand(void *arg, const struct virtio_net_hdr *vnet, const struct iovec *piece,
                 unsigned n)
{
	struct fixture *f = arg;
	struct handed *h = &f->handed[f->n_handed++];

	assert_true(f->n_handed <= MOST);
	h->vnet = *vnet;
	h->bytes = 0;
	for (unsigned i = 0; i < n; i++) {
		memcpy(h->data + h->bytes, piece[i].iov_base, piece[i].iov_len);
		h->bytes += (unsigned)piece[i].iov_len;
	}
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	ipoib_merge_init(&f->merge, hand, f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

/* Has the packet of @t cut. */
static void cut(struct fixture *f, const struct testing_tcp *t, unsigned size)
{
	struct ipoib_packet p = { .data = f->large, .bytes = testing_tcp_packet(t, f->large) };
	bool is_ipv4 = f->large[0] >> 4 == 4;
	struct ipoib_segmenter s;
	const uint8_t *payload;
	unsigned header, bytes;

	p.vnet = (struct virtio_net_hdr){ .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		                          .gso_type = is_ipv4 ? VIRTIO_NET_HDR_GSO_TCPV4
		                                              : VIRTIO_NET_HDR_GSO_TCPV6,
		                          .gso_size = (uint16_t)size,
		                          .csum_start = is_ipv4 ? 20 : 40,
		                          .csum_offset = TCP_AT_CHECKSUM };
	assert_true(ipoib_segment_begin(&s, &p, MTU));
	f->n = 0;
	while ((header = ipoib_segment_next(&s, f->packet[f->n], &payload, &bytes))) {
		memcpy(f->packet[f->n] + header, payload, bytes);
		f->bytes[f->n++] = header + bytes;
	}
	assert_int_equal(f->n, ipoib_segment_count(&s));
}

/* Hands the packets @from to @to to the merger. */
static void merge(struct fixture *f, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		struct ipoib_ip ip;

		assert_true(ipoib_ip_parse(f->packet[i] + 4, f->bytes[i] - 4, &ip));
		ipoib_merge_add(&f->merge, f->packet[i] + 4, &ip);
	}
}

/* Puts the packet of @t at the end of those on the wire. */
static void add(struct fixture *f, const struct testing_tcp *t)
{
	f->bytes[f->n] = 4 + testing_tcp_packet(t, f->packet[f->n] + 4);
	f->n++;
}

static const struct testing_tcp ipv4 = { .source = "192.0.2.1",
	                                 .destination = "192.0.2.2",
	                                 .sequence = 0xFFFFF000,
	                                 .flags = TCP_ACK | TCP_PSH,
	                                 .options = 12,
	                                 .payload = 20001 };
static const struct testing_tcp ipv6 = { .source = "2001:db8::1",
	                                 .destination = "2001:db8::2",
	                                 .sequence = 5,
	                                 .flags = TCP_ACK,
	                                 .payload = 60000 };

CASE_WITH(every_segment_is_sound, setup, teardown)
{
	static const struct testing_tcp *const all[] = { &ipv4, &ipv6 };
	struct fixture *f = *state;

	for (unsigned k = 0; EACH_ROW(k, all); k++) {
		cut(f, all[k], 1900);
		assert_int_equal(f->n, (all[k]->payload + 1899) / 1900);
		for (unsigned i = 0; i < f->n; i++) {
			const uint8_t *ip = f->packet[i] + 4;

			assert_int_equal(ipoib_get16(f->packet[i]), k ? 0x86DD : 0x0800);
			assert_true(f->bytes[i] <= MTU + 4);
			assert_int_equal(testing_tcp_remainder(ip), 0);
			if (!k) {
				assert_int_equal(testing_checksum(ip, 20, 0), 0);
				assert_int_equal(ipoib_get16(ip + 4), (0xFFFE + i) & 0xFFFF);
			}
		}
	}
}

CASE_WITH(a_packet_is_on_the_wire_what_its_segments_are, setup, teardown)
{
	struct fixture *f = *state;
	struct ipoib_packet p = { .data = f->large, .bytes = testing_tcp_packet(&ipv4, f->large) };

	assert_int_equal(ipoib_wire_bytes(&p), 20 + 32 + 20001);
	p.vnet.gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
	p.vnet.gso_size = 1900;
	p.vnet.csum_start = 20;
	assert_int_equal(ipoib_wire_bytes(&p), 20 + 32 + 1900);
	p.vnet.gso_size = UINT16_MAX; /* one segment */
	assert_int_equal(ipoib_wire_bytes(&p), 20 + 32 + 20001);
}

CASE_WITH(flags_of_an_end_are_in_the_last_segment_alone, setup, teardown)
{
	struct testing_tcp t = ipv4;
	struct fixture *f = *state;

	t.flags |= TCP_FIN | TCP_CWR;
	cut(f, &t, 1900);
	for (unsigned i = 0; i < f->n; i++) {
		uint8_t flags = f->packet[i][4 + 20 + TCP_AT_FLAGS];

		assert_int_equal(flags & TCP_CWR, i ? 0 : TCP_CWR);
		assert_int_equal(flags & (TCP_FIN | TCP_PSH),
		                 i == f->n - 1 ? TCP_FIN | TCP_PSH : 0);
	}
}

CASE_WITH(what_was_cut_is_merged_again, setup, teardown)
{
	static const struct testing_tcp *const all[] = { &ipv4, &ipv6 };
	struct fixture *f = *state;

	for (unsigned k = 0; EACH_ROW(k, all); k++) {
		unsigned header = k ? 40 : 20;
		struct handed *h = &f->handed[0];

		cut(f, all[k], 1900);
		f->n_handed = 0;
		merge(f, 0, f->n);
		ipoib_merge_flush(&f->merge);
		assert_int_equal(f->n_handed, 1);
		assert_int_equal(h->vnet.gso_size, 1900);
		assert_int_equal(h->vnet.csum_start, header);
		assert_int_equal(h->bytes, header + 20 + all[k]->options + all[k]->payload);
		/* to the receiver's kernel the checksum is still to be finished */
		assert_true(ipoib_finish_checksum(
		        &(struct ipoib_packet){ h->vnet, h->data, h->bytes, 0 }));
		assert_memory_equal(h->data, f->large, h->bytes);
	}
}

CASE_WITH(a_damaged_segment_goes_on_by_itself, setup, teardown)
{
	struct fixture *f = *state;

	cut(f, &ipv4, 1900);
	f->packet[3][1000] ^= 1;
	merge(f, 0, f->n);
	ipoib_merge_flush(&f->merge);
	assert_int_equal(f->n_handed, 3);
	assert_int_equal(f->handed[0].bytes, 52 + 3 * 1900);
	assert_int_equal(f->handed[1].bytes, 52 + 1900);
	/* the kernel shall look itself */
	assert_int_equal(f->handed[1].vnet.flags, 0);
	assert_int_equal(f->handed[2].bytes, 52 + 20001 - 4 * 1900);
}

CASE_WITH(a_gap_ends_a_large_packet, setup, teardown)
{
	struct fixture *f = *state;

	cut(f, &ipv4, 1900);
	merge(f, 0, 2);
	merge(f, 3, 5);
	ipoib_merge_flush(&f->merge);
	assert_int_equal(f->n_handed, 2);
	assert_int_equal(f->handed[0].bytes, 52 + 3800);
	assert_int_equal(f->handed[1].bytes, 52 + 3800);
}

CASE_WITH(other_options_end_a_large_packet, setup, teardown)
{
	struct fixture *f = *state;
	struct testing_tcp t = ipv4;

	t.payload = 1000;
	t.flags = TCP_ACK;
	add(f, &t);
	t.sequence += 1000;
	add(f, &t);
	f->packet[1][4 + 20 + 20] = 2;
	ipoib_put16(f->packet[1] + 4 + 20 + TCP_AT_CHECKSUM, 0);
	ipoib_put16(f->packet[1] + 4 + 20 + TCP_AT_CHECKSUM,
	            testing_tcp_remainder(f->packet[1] + 4));
	merge(f, 0, 2);
	ipoib_merge_flush(&f->merge);
	assert_int_equal(f->n_handed, 2);
}

CASE_WITH(a_sound_segment_alone_has_its_checksum_to_be_finished, setup, teardown)
{
	struct fixture *f = *state;
	struct testing_tcp t = ipv4;
	struct handed *h = &f->handed[0];

	t.payload = 1000;
	t.flags = TCP_ACK;
	add(f, &t);
	testing_tcp_packet(&t, f->large);
	merge(f, 0, 1);
	ipoib_merge_flush(&f->merge);
	assert_int_equal(f->n_handed, 1);
	assert_int_equal(h->vnet.flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
	assert_int_equal(h->vnet.gso_type, VIRTIO_NET_HDR_GSO_NONE);
	assert_true(ipoib_finish_checksum(&(struct ipoib_packet){ h->vnet, h->data, h->bytes, 0 }));
	assert_memory_equal(h->data, f->large, h->bytes);
}

CASE_WITH(an_acknowledgement_does_not_overtake, setup, teardown)
{
	struct fixture *f = *state;
	struct testing_tcp t = ipv4;

	t.payload = 1000;
	t.flags = TCP_ACK;
	add(f, &t);
	t.sequence += 1000;
	t.payload = 0;
	add(f, &t);
	merge(f, 0, 2);
	assert_int_equal(f->n_handed, 2);
	assert_int_equal(f->handed[0].bytes, 52 + 1000);
	assert_int_equal(f->handed[1].bytes, 52);
}

CASE_WITH(connections_are_merged_side_by_side, setup, teardown)
{
	static char names[MOST][INET_ADDRSTRLEN];
	struct fixture *f = *state;
	struct testing_tcp t = ipv4;

	t.payload = 1000;
	t.flags = TCP_ACK;
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < IPOIB_MERGE_FLOWS + 1; i++) {
			snprintf(names[i], sizeof(names[i]), "192.0.2.%u", 10 + i);
			t.source = names[i];
			t.sequence = 1000 * round;
			add(f, &t);
		}
	}
	merge(f, 0, IPOIB_MERGE_FLOWS);
	merge(f, IPOIB_MERGE_FLOWS + 1, 2 * IPOIB_MERGE_FLOWS + 1);
	assert_int_equal(f->n_handed, 0);
	ipoib_merge_flush(&f->merge);
	assert_int_equal(f->n_handed, IPOIB_MERGE_FLOWS);
	for (unsigned i = 0; i < f->n_handed; i++)
		assert_int_equal(f->handed[i].bytes, 52 + 2000);
}

CASE_WITH(one_connection_too_many_displaces_another, setup, teardown)
{
	static char names[MOST][INET_ADDRSTRLEN];
	struct fixture *f = *state;
	struct testing_tcp t = ipv4;

	t.payload = 1000;
	t.flags = TCP_ACK;
	for (unsigned i = 0; i < IPOIB_MERGE_FLOWS + 1; i++) {
		snprintf(names[i], sizeof(names[i]), "192.0.2.%u", 10 + i);
		t.source = names[i];
		add(f, &t);
	}
	merge(f, 0, IPOIB_MERGE_FLOWS + 1);
	assert_int_equal(f->n_handed, 1);
	ipoib_merge_flush(&f->merge);
	assert_int_equal(f->n_handed, IPOIB_MERGE_FLOWS + 1);
}

CASE_WITH(nothing_is_larger_than_ip_allows, setup, teardown)
{
	struct fixture *f = *state;
	struct testing_tcp t = ipv6;
	unsigned bytes = 0;

	t.payload = 1900;
	for (unsigned i = 0; i < MOST; i++) {
		add(f, &t);
		t.sequence += t.payload;
	}
	merge(f, 0, f->n);
	ipoib_merge_flush(&f->merge);
	assert_int_equal(f->n_handed, 2);
	for (unsigned i = 0; i < f->n_handed; i++)
		bytes += f->handed[i].bytes - 60;
	assert_int_equal(bytes, MOST * 1900);
}

CASE_WITH(what_cannot_be_cut_is_refused, setup, teardown)
{
	struct fixture *f = *state;
	struct ipoib_packet p = { .data = f->large, .bytes = testing_tcp_packet(&ipv4, f->large) };
	struct ipoib_segmenter s;

	p.vnet = (struct virtio_net_hdr){ .gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
		                          .gso_size = 1900,
		                          .csum_start = 20 };
	assert_true(ipoib_segment_begin(&s, &p, MTU));
	assert_false(ipoib_segment_begin(&s, &p, 1900));
	p.vnet.gso_size = 0;
	assert_false(ipoib_segment_begin(&s, &p, MTU));
	p.vnet.gso_size = 1900;
	p.vnet.gso_type = VIRTIO_NET_HDR_GSO_UDP;
	assert_false(ipoib_segment_begin(&s, &p, MTU));
	p.vnet.gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
	p.vnet.csum_start = UINT16_MAX;
	assert_false(ipoib_segment_begin(&s, &p, MTU));
}

CASE_WITH(a_checksum_is_finished_where_it_is_said_to_be, setup, teardown)
{
	struct fixture *f = *state;
	struct ipoib_packet p = { .data = f->large };
	struct testing_tcp t = ipv6;
	uint8_t *field = f->large + 40 + TCP_AT_CHECKSUM;
	uint16_t right;
	uint32_t pseudo;

	t.payload = 1001;
	p.bytes = testing_tcp_packet(&t, f->large);
	p.vnet = (struct virtio_net_hdr){ .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		                          .csum_start = 40,
		                          .csum_offset = TCP_AT_CHECKSUM };
	/* what the kernel leaves there: the sum of the pseudo header, that is of all without TCP */
	right = ipoib_get16(field);
	ipoib_put16(field, 0);
	pseudo = (uint16_t)~right + (uint32_t)testing_checksum(f->large + 40, p.bytes - 40, 0);
	ipoib_put16(field, (pseudo & 0xFFFF) + (pseudo >> 16));
	assert_true(ipoib_finish_checksum(&p));
	assert_int_equal(ipoib_get16(field), right);
	p.vnet.csum_offset = UINT16_MAX;
	assert_false(ipoib_finish_checksum(&p));
}
