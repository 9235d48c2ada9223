/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random bytes as a RoCEv2 datagram: the parser stays within them (each piece is in a block of its
 * own, so that sanitizers see it otherwise), and what it accepts is complete. It runs for
 * UMBEL_FUZZ_SECONDS, or for about a second.
 */
#include <harness.h>

#include "base/util.h"
#include "wire/icrc.h"
#include "wire/roce.h"

#define N_FUZZ 200000

static uint64_t seed = 1;

static uint32_t random_number(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 32);
}

static uint32_t below(uint32_t n)
{
	return random_number() % n;
}

/* When to end, in ns, if the environment says so. */
static uint64_t fuzz_end(void)
{
	const char *text = getenv("UMBEL_FUZZ_SECONDS");
	long seconds = 0;

	if (!text)
		return 0;
	assert_int_equal(base_parse_number(text, 0, 86400, &seconds), 0);
	return base_now_ns() + (uint64_t)seconds * 1000000000;
}

static bool go_on(unsigned round, uint64_t end)
{
	if (round < N_FUZZ || round % 1024)
		return true;
	return base_now_ns() < end;
}

static void fuzz_ip(struct wire_ip *ip)
{
	*ip = (struct wire_ip){ .udp_source = (uint16_t)random_number(),
		                .ipv4_id = (uint16_t)random_number() };
	for (unsigned i = 0; i < 16; i++) {
		ip->sgid.raw[i] = (uint8_t)random_number();
		ip->dgid.raw[i] = (uint8_t)random_number();
	}
	if (below(2))
		ip->sgid = ip->dgid = wire_gid_from_ipv4(random_number());
}

/* Bytes of which most begin like a packet of some transport, half of them UD. */
static void fuzz_bytes(uint8_t *at, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)random_number();
	if (bytes > 0 && below(16))
		at[0] = below(2) ? WIRE_OPCODE_UD_SEND_ONLY + (uint8_t)below(2)
		                 : (uint8_t)below(256);
	if (bytes > 1 && below(16))
		at[1] &= 0xF0;
}

/* Makes the ICRC right for @ip, so that what is behind its check is reached. */
static void sign(uint8_t *at, uint32_t bytes, const struct wire_ip *ip)
{
	uint32_t icrc;

	if (bytes < WIRE_BTH_BYTES + WIRE_ICRC_BYTES)
		return;
	icrc = wire_icrc_begin(ip, (uint16_t)bytes, at, WIRE_BTH_BYTES);
	icrc = wire_icrc_add(icrc, at + WIRE_BTH_BYTES, bytes - WIRE_BTH_BYTES - WIRE_ICRC_BYTES);
	icrc = htole32(icrc);
	memcpy(at + bytes - WIRE_ICRC_BYTES, &icrc, WIRE_ICRC_BYTES);
}

static uint8_t *block(const uint8_t *from, uint32_t bytes)
{
	uint8_t *b = malloc(bytes ? bytes : 1);

	assert_non_null(b);
	memcpy(b, from, bytes);
	return b;
}

static void check(const struct wire_roce_packet *p, const struct wire_roce_datagram *d)
{
	const uint8_t *payload = p->payload;

	assert_non_null(wire_opcodes[p->h.bth.opcode].name);
	assert_true(d->transports >> wire_opcode_transport(p->h.bth.opcode) & 1);
	assert_true(payload == d->at + wire_opcodes[p->h.bth.opcode].header_bytes);
	assert_true(payload + p->payload_bytes + p->h.bth.pad + WIRE_ICRC_BYTES ==
	            d->at + d->bytes);
}

/* One datagram, in a block of exactly its size. */
static enum wire_roce_status fuzz_one(uint32_t bytes)
{
	struct wire_roce_datagram d = { .bytes = bytes,
		                        .truncated = !below(64),
		                        .transports = (uint8_t)random_number() };
	enum wire_roce_status status;
	struct wire_roce_packet p;
	uint8_t raw[512];

	fuzz_ip(&p.ip);
	fuzz_bytes(raw, bytes);
	if (below(4))
		sign(raw, bytes, &p.ip);
	d.at = block(raw, bytes);
	status = wire_roce_parse(&d, &p);
	assert_true((unsigned)status < WIRE_ROCE_STATUSES);
	if (status == WIRE_ROCE_OK)
		check(&p, &d);
	free((void *)d.at);
	return status;
}

CASE(no_datagram_gets_the_parser_out_of_its_bounds)
{
	unsigned count[WIRE_ROCE_STATUSES] = { 0 };
	uint64_t end = fuzz_end();

	for (unsigned round = 0; go_on(round, end); round++)
		count[fuzz_one(below(4) ? below(128) * 4 : below(512))]++;
	for (unsigned i = 0; i < WIRE_ROCE_STATUSES; i++)
		assert_true(count[i] > N_FUZZ / 1000);
}
