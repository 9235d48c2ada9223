/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random bytes as packets of the link and of the kernel: whatever parses, cuts, merges or answers
 * them stays within them (each is in a block of its own, so that sanitizers see it otherwise). Each
 * byte that comes in goes out, in order. It runs for UMBEL_FUZZ_SECONDS, or for about a second.
 */
#include <harness.h>

#include "ipoib/icmp.h"
#include "ipoib/arp.h"
#include "ipoib/merge.h"
#include "ipoib/nd.h"
#include "ipoib/segment.h"
#include "ipoib/testing.h"

#define ROUNDS 20000
#define BATCH  16
#define MOST   600

static uint64_t seed = 1;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % n;
}

#define TESTS 3 /* which share the time */

/* When to end, in ns, if the environment says so. */
static uint64_t fuzz_end(void)
{
	const char *text = getenv("UMBEL_FUZZ_SECONDS");
	long seconds = 0;

	if (!text)
		return 0;
	assert_int_equal(base_parse_number(text, 0, 86400, &seconds), 0);
	return base_now_ns() + (uint64_t)seconds * 1000000000 / TESTS;
}

static bool go_on(unsigned round, uint64_t end)
{
	return round < ROUNDS || (end && (round % 1024 || base_now_ns() < end));
}

/* A packet: of one of a few connections, and right but for a byte or two; or anything. */
static uint8_t *make(unsigned *bytes)
{
	static const char *const hosts[][2] = { { "192.0.2.1", "192.0.2.2" },
		                                { "2001:db8::1", "2001:db8::2" } };
	static uint32_t sequence[2];
	unsigned family = below(2);
	struct testing_tcp t = { .source = hosts[family][0],
		                 .destination = hosts[family][1],
		                 .sequence = sequence[family],
		                 .flags = below(8) ? TCP_ACK : (uint8_t)below(256),
		                 .options = (below(8) ? 1 : below(3)) * 12,
		                 .payload = below(4) ? 300 : below(301) };
	uint8_t whole[MOST], *block;

	*bytes = testing_tcp_packet(&t, whole);
	sequence[family] += below(16) ? t.payload : below(1000);
	for (unsigned i = below(3) ? 0 : below(3); i; i--)
		whole[below(*bytes)] = (uint8_t)below(256);
	if (!below(16)) {
		*bytes = below(MOST);
		for (unsigned i = 0; i < *bytes; i++)
			whole[i] = (uint8_t)below(256);
	}
	if (!below(8))
		*bytes = below(*bytes + 1);
	block = malloc(*bytes ? *bytes : 1);
	assert_non_null(block);
	memcpy(block, whole, *bytes);
	return block;
}

/* The output of the merger: bytes of the packets that went in, and how many large ones. */
struct totals {
	unsigned bytes, large;
};

static void count(void *arg, const struct virtio_net_hdr *vnet, const struct iovec *piece,
                  unsigned n)
{
	struct totals *out = arg;
	unsigned bytes = 0, segments;

	assert_in_range(n, 1, IPOIB_MERGE_PIECES);
	for (unsigned i = 0; i < n; i++)
		bytes += (unsigned)piece[i].iov_len;
	assert_true(bytes <= UINT16_MAX);
	segments = 1;
	if (vnet->gso_type != VIRTIO_NET_HDR_GSO_NONE)
		segments = (bytes - vnet->hdr_len + vnet->gso_size - 1) / vnet->gso_size;
	assert_int_equal(segments, n);
	out->large += n > 1;
	out->bytes += bytes + (n - 1) * vnet->hdr_len;
}

CASE(received_packets_are_merged_without_loss)
{
	uint64_t end = fuzz_end();
	unsigned bytes, large = 0;

	for (unsigned round = 0; go_on(round, end); round++) {
		struct totals out = { 0 };
		struct ipoib_merge merge;
		uint8_t *block[BATCH];
		unsigned in = 0;

		ipoib_merge_init(&merge, count, &out);
		for (unsigned i = 0; i < BATCH; i++) {
			struct ipoib_ip ip;

			block[i] = make(&bytes);
			if (!ipoib_ip_parse(block[i], bytes, &ip))
				continue;
			in += ip.length;
			ipoib_merge_add(&merge, block[i], &ip);
		}
		ipoib_merge_flush(&merge);
		assert_int_equal(out.bytes, in);
		large += out.large;
		for (unsigned i = 0; i < BATCH; i++)
			free(block[i]);
	}
	assert_true(large > ROUNDS / 4);
}

CASE(what_the_kernel_says_of_a_packet_is_checked)
{
	uint64_t end = fuzz_end();
	unsigned cut = 0;

	for (unsigned round = 0; go_on(round, end); round++) {
		struct ipoib_packet p = {
			.vnet = { .flags = (uint8_t)below(2),
			          .gso_type = (uint8_t)(below(4) ? 1 : below(256)),
			          .gso_size = (uint16_t)below(200),
			          .csum_start = (uint16_t)(below(2) ? 20 : below(700)),
			          .csum_offset = (uint16_t)below(64) }
		};
		uint8_t header[IPOIB_SEGMENT_HEADER], message[IPOIB_ICMP_BYTES];
		struct ipoib_segmenter s;
		const uint8_t *payload;
		unsigned bytes;

		p.data = make(&p.bytes);
		if (ipoib_segment_begin(&s, &p, 252)) {
			unsigned n = 0;

			while (ipoib_segment_next(&s, header, &payload, &bytes)) {
				assert_true(payload + bytes <= p.data + p.bytes);
				n++;
			}
			assert_int_equal(n, ipoib_segment_count(&s));
			cut++;
		}
		ipoib_finish_checksum(&p);
		assert_true(ipoib_icmp_unreachable(p.data, p.bytes, message) <= sizeof(message));
		assert_true(ipoib_icmp_too_large(p.data, p.bytes, 2044, message) <=
		            sizeof(message));
		assert_true(ipoib_wire_bytes(&p) <= UINT16_MAX * 2);
		free(p.data);
	}
	assert_true(cut > ROUNDS / 16);
}

/* A message of ARP or neighbour discovery with some bytes changed, or cut off. */
CASE(resolution_is_read_within_its_packet)
{
	uint64_t end = fuzz_end();
	const struct ipoib_solicitation good = {
		.source = testing_ip("2001:db8::1"),
		.target = testing_ip("2001:db8::2"),
		.address = { .gid = { { 0xFE, 0x80, [15] = 1 } }, .qpn = 7 },
		.has_address = true,
	};
	unsigned accepted = 0;

	for (unsigned round = 0; go_on(round, end); round++) {
		bool is_arp = below(2);
		unsigned bytes = is_arp ? IPOIB_ARP_BYTES : IPOIB_ND_BYTES;
		struct ipoib_solicitation s;
		uint8_t whole[128], *block;
		struct ipoib_ip ip;

		if (is_arp)
			ipoib_arp_encode(&good, NULL, whole);
		else
			ipoib_nd_encode(&good, &good.target, whole);
		for (unsigned i = below(3); i; i--)
			whole[below(bytes)] = (uint8_t)below(256);
		if (!below(4))
			bytes = below(bytes);
		block = malloc(bytes ? bytes : 1);
		assert_non_null(block);
		memcpy(block, whole, bytes);
		if (is_arp)
			accepted += ipoib_arp_decode(block, bytes, &s);
		else if (ipoib_ip_parse(block, bytes, &ip) && ipoib_nd_is_one(&ip, block))
			accepted += ipoib_nd_decode(&ip, block, &s);
		free(block);
	}
	assert_true(accepted > ROUNDS / 16);
}
