// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A hostile peer of connected queue pairs (RC, UC) over RoCEv2.
 *
 * wire_fuzz LINES HERE VICTIM SEED SECONDS: sends a victim (wire_fuzz_victim.c) what a peer may and
 * may not send, and much of it. HERE and VICTIM are IPv4 addresses, LINES is the file of what the
 * victim prints. Nothing of Umbel's is used here. It fails if it is sent what lies outside of the
 * memory that it may read.
 */
#include "must.h"
#include "icrc.h"
#include "wire_fuzz.h"

#define MTU     1024
#define SOCKETS 4
#define UDP_AT  20
#define BTH_AT  28
#define MOST    1472 /* that UDP carries without being cut */
#define SEEN    8

enum operation {
	SEND_FIRST,
	SEND_MIDDLE,
	SEND_LAST,
	SEND_LAST_IMM,
	SEND_ONLY,
	SEND_ONLY_IMM,
	WRITE_FIRST,
	WRITE_MIDDLE,
	WRITE_LAST,
	WRITE_LAST_IMM,
	WRITE_ONLY,
	WRITE_ONLY_IMM,
	READ_REQUEST,
	READ_FIRST,
	READ_MIDDLE,
	READ_LAST,
	READ_ONLY,
	ACKNOWLEDGE,
	ATOMIC_ACKNOWLEDGE,
	COMPARE_SWAP,
	FETCH_ADD,
	SEND_LAST_INVALIDATE = 0x16,
	SEND_ONLY_INVALIDATE = 0x17,
	FLUSH = 0x1c,
	ATOMIC_WRITE = 0x1d,
};

/* A bit for each operation. */
#define HAS_RETH                                                                            \
	(1u << WRITE_FIRST | 1u << WRITE_ONLY | 1u << WRITE_ONLY_IMM | 1u << READ_REQUEST | \
	 IS_PLACED)
#define HAS_IMM                                                                                    \
	(1u << SEND_LAST_IMM | 1u << SEND_ONLY_IMM | 1u << WRITE_LAST_IMM | 1u << WRITE_ONLY_IMM | \
	 1u << SEND_LAST_INVALIDATE | 1u << SEND_ONLY_INVALIDATE)
#define HAS_AETH                                                                    \
	(1u << READ_FIRST | 1u << READ_LAST | 1u << READ_ONLY | 1u << ACKNOWLEDGE | \
	 1u << ATOMIC_ACKNOWLEDGE)
#define HAS_WORD (1u << COMPARE_SWAP | 1u << FETCH_ADD)
#define IS_FULL                                                                          \
	(1u << SEND_FIRST | 1u << SEND_MIDDLE | 1u << WRITE_FIRST | 1u << WRITE_MIDDLE | \
	 1u << READ_FIRST | 1u << READ_MIDDLE)
#define IS_RESPONSE (HAS_AETH | 1u << READ_MIDDLE)
#define IS_PLACED   (1u << FLUSH | 1u << ATOMIC_WRITE)

/* A packet that is to be sent. */
struct shot {
	uint8_t opcode, pad, version, syndrome;
	bool ack, solicited, damaged;
	uint16_t pkey;
	uint32_t psn, payload, rkey, length, imm, feth;
	uint64_t va, swap, compare;
};

/* A request of the victim's. */
struct seen {
	uint8_t operation;
	uint32_t psn, length;
};

struct target {
	uint32_t qpn, psn; /* psn: that it expects next, if all is as we think */
	bool is_uc;
	uint32_t left; /* bytes of our message that are to be sent */
	bool is_write, under_way;
	struct seen seen[SEEN];
	uint32_t n_seen;
};

struct region {
	uint64_t addr;
	uint32_t length, rkey;
};

static struct fuzzer {
	uint64_t state; /* of the random numbers */
	FILE *lines;
	int fd[SOCKETS]; /* the first one receives */
	uint16_t port[SOCKETS];
	struct sockaddr_in here, there;
	struct target target[FUZZ_QPS];
	struct region region[FUZZ_REGIONS];
	uint64_t sent, requests, acks, naks, rnrs, reads, atomics, connections;
	uint8_t packet[BTH_AT + MOST];
} fuzzer;

static uint64_t any(struct fuzzer *f)
{
	return fuzz_random(&f->state);
}

static uint32_t below(struct fuzzer *f, uint32_t n)
{
	return (uint32_t)(any(f) >> 16) % n;
}

static bool one_in(struct fuzzer *f, uint32_t n)
{
	return !below(f, n);
}

/* ---- packets ---- */

static uint8_t *put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return at + 2;
}

static uint8_t *put32(uint8_t *at, uint32_t value)
{
	return put16(put16(at, value >> 16), value);
}

static uint8_t *put64(uint8_t *at, uint64_t value)
{
	return put32(put32(at, (uint32_t)(value >> 32)), (uint32_t)value);
}

static uint32_t get32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void fill(struct fuzzer *f, uint8_t *to, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i += 8) {
		uint64_t r = any(f);

		memcpy(to + i, &r, bytes - i < 8 ? bytes - i : 8);
	}
}

/* Sends the @bytes behind the headers of UDP, with an ICRC behind them. */
static void send_bytes(struct fuzzer *f, uint32_t bytes, bool damaged)
{
	unsigned i = below(f, SOCKETS);
	uint8_t *ip = f->packet, *udp = ip + UDP_AT, *bth = ip + BTH_AT, bth4 = bth[4];
	uint32_t crc;

	memset(ip, 0, BTH_AT);
	ip[0] = 0x45;
	put16(ip + 2, BTH_AT + bytes + 4);
	put16(ip + 6, 0x4000);
	ip[9] = IPPROTO_UDP;
	memcpy(ip + 12, &f->here.sin_addr, 4);
	memcpy(ip + 16, &f->there.sin_addr, 4);
	put16(udp, f->port[i]);
	put16(udp + 2, ROCE_PORT);
	put16(udp + 4, 8 + bytes + 4);
	crc = roce_icrc(ip, udp, bth + bytes) ^ damaged;
	bth[4] = bth4;
	for (int k = 0; k < 4; k++)
		bth[bytes + (uint32_t)k] = (uint8_t)(crc >> 8 * k);
	/* errors of destinations that are not there come back by ICMP */
	sendto(f->fd[i], bth, bytes + 4, 0, (struct sockaddr *)&f->there, sizeof(f->there));
	f->sent++;
}

static void shoot(struct fuzzer *f, const struct target *t, const struct shot *s)
{
	const uint32_t bit = 1u << (s->opcode & 31);
	uint8_t *bth = f->packet + BTH_AT, *at = bth;
	uint32_t padding = -s->payload & 3;

	*at++ = s->opcode;
	*at++ = (uint8_t)(s->solicited << 7 | 1 << 6 | s->pad << 4 | s->version);
	at = put16(at, s->pkey);
	at = put32(at, t->qpn);
	at = put32(at, (s->psn & FUZZ_PSN_MASK) | (uint32_t)s->ack << 31);
	if (s->opcode >> 5 == 5 && !(bit & IS_RESPONSE))
		at = put32(at, s->imm);
	if (bit & 1u << FLUSH)
		at = put32(at, s->feth);
	if (bit & HAS_RETH)
		at = put32(put32(put64(at, s->va), s->rkey), s->length);
	if (bit & HAS_WORD)
		at = put64(put64(put32(put64(at, s->va), s->rkey), s->swap), s->compare);
	if (bit & HAS_AETH)
		at = put32(at, (uint32_t)s->syndrome << 24 | (s->imm & FUZZ_PSN_MASK));
	if ((s->opcode & 31) == ATOMIC_ACKNOWLEDGE)
		at = put64(at, s->swap);
	if (bit & HAS_IMM)
		at = put32(at, s->imm);
	fill(f, at, s->payload);
	memset(at + s->payload, 0, padding);
	send_bytes(f, (uint32_t)(at - bth) + s->payload + padding, s->damaged);
}

static struct shot plain(const struct target *t, unsigned operation, uint32_t payload)
{
	return (struct shot){ .opcode = (uint8_t)(operation | (t->is_uc ? 0x20 : 0)),
		              .psn = t->psn,
		              .payload = payload,
		              .pad = -payload & 3,
		              .pkey = 0xffff };
}

/* ---- what a well-behaved peer sends ---- */

static void choose_inside(struct fuzzer *f, struct shot *s)
{
	const struct region *r = &f->region[FUZZ_OPEN];

	s->rkey = r->rkey;
	s->length = one_in(f, 8) ? 0 : below(f, one_in(f, 4) ? r->length : 3000);
	s->va = r->addr + below(f, r->length - s->length);
}

/* The next packet of the message under way. */
static struct shot next_of_message(struct fuzzer *f, struct target *t)
{
	bool is_last = t->left <= MTU, has_imm = is_last && one_in(f, 3);
	unsigned operation = t->is_write ? WRITE_MIDDLE : SEND_MIDDLE;
	struct shot s;

	if (is_last)
		operation += 1 + has_imm;
	s = plain(t, operation, is_last ? t->left : MTU);
	t->left -= s.payload;
	t->under_way = !is_last;
	return s;
}

static struct shot first_of_message(struct fuzzer *f, struct target *t)
{
	struct shot s = { 0 };
	uint32_t length;
	unsigned operation;

	t->is_write = one_in(f, 2);
	choose_inside(f, &s);
	if (t->is_write && one_in(f, 4)) /* RDMA WRITEs are longer than receives */
		length = s.length;
	else
		length = below(f, 3000);
	if (length > s.length)
		s.va = f->region[FUZZ_OPEN].addr + below(f, 4000);
	t->under_way = length > MTU;
	operation = t->under_way ? SEND_FIRST : one_in(f, 3) ? SEND_ONLY_IMM : SEND_ONLY;
	operation += t->is_write ? WRITE_FIRST - SEND_FIRST : 0;
	s.length = length;
	length = t->under_way ? MTU : length;
	t->left = s.length - length;
	return (struct shot){ .opcode = plain(t, operation, 0).opcode,
		              .psn = t->psn,
		              .payload = length,
		              .pad = -length & 3,
		              .pkey = 0xffff,
		              .va = s.va,
		              .rkey = s.rkey,
		              .length = s.length };
}

static struct shot read_or_word(struct fuzzer *f, struct target *t)
{
	static const uint8_t words[] = { COMPARE_SWAP, FETCH_ADD, ATOMIC_WRITE, FLUSH };
	const unsigned operation = one_in(f, 2) ? READ_REQUEST : words[below(f, 4)];
	struct shot s = plain(t, operation, operation == ATOMIC_WRITE ? 8 : 0);

	choose_inside(f, &s);
	s.feth = one_in(f, 4) ? 1 << 4 | 1 : 1;
	if (operation != READ_REQUEST && operation != FLUSH) {
		s.length = 8;
		s.va = (f->region[FUZZ_OPEN].addr + below(f, 30000) + 7) & ~7ull;
		s.swap = any(f);
		s.compare = one_in(f, 2) ? 0 : any(f);
	}
	return s;
}

static struct shot next_valid(struct fuzzer *f, struct target *t)
{
	struct shot s;

	if (t->under_way)
		s = next_of_message(f, t);
	else if (!t->is_uc && one_in(f, 3))
		s = read_or_word(f, t);
	else
		s = first_of_message(f, t);
	s.ack = one_in(f, 3);
	s.solicited = one_in(f, 4);
	s.imm = (uint32_t)any(f);
	return s;
}

/* It is carried out: so many PSNs are used. */
static void advance(struct target *t, const struct shot *s)
{
	uint32_t n = 1;

	if ((s->opcode & 31) == READ_REQUEST && s->length)
		n = (s->length - 1) / MTU + 1;
	t->psn = (t->psn + n) & FUZZ_PSN_MASK;
}

/* ---- what others send ---- */

static uint32_t some_psn(struct fuzzer *f, const struct target *t)
{
	switch (below(f, 8)) {
	case 0:
	case 1:
		return t->psn;
	case 2:
		return t->psn + below(f, 20);
	case 3:
		return t->psn - below(f, 40);
	case 4:
		return t->psn + (1 << 23) - 2 + below(f, 4);
	case 5:
		return t->n_seen ? t->seen[below(f, SEEN)].psn : 0;
	case 6:
		return t->psn + 1;
	default:
		return (uint32_t)any(f);
	}
}

static uint32_t some_length(struct fuzzer *f)
{
	static const uint32_t special[] = { 0,
		                            1,
		                            4,
		                            7,
		                            8,
		                            MTU - 1,
		                            MTU,
		                            MTU + 1,
		                            2 * MTU,
		                            FUZZ_OPEN_BYTES,
		                            FUZZ_OPEN_BYTES + 1,
		                            1 << 20,
		                            1u << 30,
		                            0x7fffffff,
		                            1u << 31,
		                            0x80000001,
		                            0xfffffc00,
		                            UINT32_MAX };

	if (one_in(f, 4))
		return (uint32_t)any(f);
	return special[below(f, sizeof(special) / sizeof(special[0]))];
}

static uint64_t some_address(struct fuzzer *f, uint32_t length)
{
	const struct region *r = &f->region[below(f, FUZZ_REGIONS)];

	switch (below(f, 10)) {
	case 0:
		return r->addr - 1 - below(f, 9);
	case 1:
		return r->addr + r->length - length;
	case 2:
		return r->addr + r->length - length + 1 + below(f, 9);
	case 3:
		return r->addr + r->length;
	case 4:
		return 0 - (uint64_t)below(f, 2000);
	case 5:
		return r->addr & ~4095ull;
	case 6:
		return any(f);
	case 7:
		return r->addr + (1ull << 32) * below(f, 4);
	default:
		return r->addr + below(f, r->length);
	}
}

static uint32_t some_rkey(struct fuzzer *f)
{
	uint32_t rkey = f->region[below(f, FUZZ_REGIONS)].rkey;

	switch (below(f, 8)) {
	case 0:
		return rkey ^ 1u << below(f, 32);
	case 1:
		return (uint32_t)any(f);
	case 2:
		return rkey + 1 + below(f, 8);
	default:
		return rkey;
	}
}

static void mutate(struct fuzzer *f, const struct target *t, struct shot *s)
{
	switch (below(f, 15)) {
	case 0:
		s->opcode = (uint8_t)((s->opcode & 0xe0) | below(f, 32));
		break;
	case 1:
		s->opcode = (uint8_t)any(f);
		break;
	case 2:
		s->psn = some_psn(f, t);
		break;
	case 3:
		s->payload = below(f, 3) ? MTU - 4 + below(f, 9) : below(f, 1400);
		s->pad = -s->payload & 3;
		break;
	case 4:
		s->pad = (uint8_t)below(f, 4);
		break;
	case 5:
		s->payload = 0;
		break;
	case 6:
		s->length = some_length(f);
		break;
	case 7:
	case 8:
		s->va = some_address(f, s->length);
		break;
	case 9:
		s->rkey = some_rkey(f);
		break;
	case 10:
		s->version = (uint8_t)below(f, 16);
		break;
	case 11:
		s->pkey = (uint16_t)any(f);
		break;
	case 12:
		s->damaged = true;
		break;
	case 13:
		s->feth = one_in(f, 2) ? below(f, 64) : (uint32_t)any(f);
		break;
	default:
		s->syndrome = (uint8_t)any(f);
	}
}

static void send_valid(struct fuzzer *f, struct target *t)
{
	struct shot s = next_valid(f, t);

	advance(t, &s);
	shoot(f, t, &s);
}

static void send_mutated(struct fuzzer *f, struct target *t)
{
	const struct target before = *t;
	struct shot s = next_valid(f, t);

	if (one_in(f, 4)) { /* as if it had been carried out */
		advance(t, &s);
	} else {
		t->left = before.left;
		t->is_write = before.is_write;
		t->under_way = before.under_way;
	}
	for (uint32_t n = 1 + below(f, 2); n; n--)
		mutate(f, &before, &s);
	shoot(f, t, &s);
}

/* Now and then another queue pair, one that is somebody else's perhaps, or none. */
static struct target some_target(struct fuzzer *f, const struct target *t)
{
	struct target other = *t;

	switch (below(f, 32)) {
	case 0:
		other.qpn += below(f, 40) - 20;
		break;
	case 1:
		other.qpn ^= 1u << below(f, 24);
		break;
	case 2:
		other.qpn = below(f, 3);
		break;
	case 3:
		other.qpn = (uint32_t)any(f);
	}
	return other;
}

static void send_anything(struct fuzzer *f, struct target *t)
{
	static const uint8_t transports[] = { 0, 0, 0, 0x20, 0x20, 0xa0, 0x60, 0x80 };
	struct target to = some_target(f, t);
	struct shot s = plain(t, 0, one_in(f, 3) ? MTU : below(f, 1300));

	s.opcode = (uint8_t)(transports[below(f, 8)] | below(f, 32));
	s.opcode = one_in(f, 16) ? 0x81 : s.opcode;
	s.psn = some_psn(f, t);
	s.ack = one_in(f, 2);
	s.length = some_length(f);
	s.va = some_address(f, s.length);
	s.rkey = some_rkey(f);
	s.imm = one_in(f, 2) ? some_rkey(f) : (uint32_t)any(f);
	s.swap = any(f);
	s.feth = below(f, 64);
	s.syndrome = (uint8_t)any(f);
	shoot(f, &to, &s);
}

static void send_garbage(struct fuzzer *f, struct target *t)
{
	uint32_t bytes = below(f, one_in(f, 2) ? 60 : MOST - 4);

	fill(f, f->packet + BTH_AT, bytes < 12 ? 12 : bytes);
	if (bytes >= 12 && !one_in(f, 4)) {
		f->packet[BTH_AT + 1] &= 0xf0;
		put16(f->packet + BTH_AT + 2, 0xffff);
		put32(f->packet + BTH_AT + 4, t->qpn);
		f->packet[BTH_AT] &= 0x1f;
	}
	send_bytes(f, bytes, false);
}

/* Answers a request of the victim, or nearly. */
static void respond(struct fuzzer *f, struct target *t)
{
	const struct seen *q = &t->seen[t->n_seen ? (t->n_seen - 1 - below(f, 4)) % SEEN : 0];
	uint32_t n = q->length ? (q->length - 1) / MTU + 1 : 1, i = below(f, n + one_in(f, 8));
	struct shot s = plain(t, ACKNOWLEDGE, 0);

	s.psn = q->psn;
	s.syndrome = one_in(f, 3) ? (uint8_t)any(f) : 0x1f;
	s.swap = any(f);
	s.imm = (uint32_t)any(f);
	if (one_in(f, 40))
		s.syndrome = (uint8_t)(0x60 + below(f, 5));
	if (q->operation == READ_REQUEST && !one_in(f, 8)) {
		s.opcode = (uint8_t)(n == 1       ? READ_ONLY
		                     : !i         ? READ_FIRST
		                     : i + 1 >= n ? READ_LAST
		                                  : READ_MIDDLE);
		s.psn += i;
		s.payload = i + 1 < n ? MTU : q->length - i * MTU;
		s.payload = s.payload > MTU ? MTU : s.payload;
	} else if ((q->operation == COMPARE_SWAP || q->operation == FETCH_ADD) && !one_in(f, 8)) {
		s.opcode = ATOMIC_ACKNOWLEDGE;
	} else if ((1u << q->operation & IS_PLACED) && !one_in(f, 8)) {
		s.opcode = READ_ONLY;
	}
	if (one_in(f, 8))
		s.opcode = (uint8_t)(READ_FIRST + below(f, 6));
	if (one_in(f, 16))
		s.payload = MTU - 2 + below(f, 5);
	if (one_in(f, 8))
		s.psn += below(f, 5) - 2;
	s.pad = -s.payload & 3;
	if (one_in(f, 24))
		mutate(f, t, &s);
	shoot(f, t, &s);
}

/* All that a READ, or what else is answered, gets, in order. */
static void respond_in_full(struct fuzzer *f, struct target *t)
{
	const struct seen *q = &t->seen[t->n_seen ? (t->n_seen - 1 - below(f, 2)) % SEEN : 0];
	uint32_t n = q->length ? (q->length - 1) / MTU + 1 : 1;
	struct shot s = plain(t, ACKNOWLEDGE, 0);

	s.syndrome = 0x1f;
	for (uint32_t i = 0; q->operation == READ_REQUEST && i < n && i < 64; i++) {
		s.opcode = n == 1       ? READ_ONLY
		           : !i         ? READ_FIRST
		           : i + 1 == n ? READ_LAST
		                        : READ_MIDDLE;
		if (one_in(f, 16)) /* as long as it must be, but not what it must be */
			s.opcode = (uint8_t)(READ_FIRST + below(f, 4));
		s.psn = q->psn + i;
		s.payload = i + 1 < n ? MTU : q->length - i * MTU;
		s.pad = -s.payload & 3;
		shoot(f, t, &s);
	}
	s.psn = q->psn;
	if (q->operation == COMPARE_SWAP || q->operation == FETCH_ADD)
		s.opcode = ATOMIC_ACKNOWLEDGE;
	if (1u << q->operation & IS_PLACED)
		s.opcode = READ_ONLY;
	if (q->operation != READ_REQUEST)
		shoot(f, t, &s);
}

/* READs, and what is answered otherwise, more than may be under way, of much; new ones and such as
 * come again. */
static void flood(struct fuzzer *f, struct target *t)
{
	bool again = one_in(f, 2);

	for (uint32_t n = 4 + below(f, one_in(f, 10) ? 1000 : 40); n; n--) {
		static const uint8_t words[] = { FETCH_ADD, ATOMIC_WRITE, FLUSH };
		const unsigned operation = one_in(f, 5) ? words[below(f, 3)] : READ_REQUEST;
		struct shot s = plain(t, operation, operation == ATOMIC_WRITE ? 8 : 0);

		choose_inside(f, &s);
		s.feth = 1;
		if (operation != READ_REQUEST) {
			s.length = 8;
			s.va = f->region[FUZZ_OPEN].addr;
		} else if (one_in(f, 2)) {
			s.va = f->region[FUZZ_OPEN].addr;
			s.length = f->region[FUZZ_OPEN].length;
		}
		if (again)
			s.psn -= 1 + below(f, 60);
		else if (!t->under_way)
			advance(t, &s);
		shoot(f, t, &s);
	}
}

/* ---- what comes ---- */

static void hear_response(struct fuzzer *f, struct target *t, unsigned operation, uint32_t psn,
                          uint8_t syndrome)
{
	if (operation >= READ_FIRST && operation <= READ_ONLY) {
		f->reads++;
		return;
	}
	f->atomics += operation == ATOMIC_ACKNOWLEDGE;
	if (operation == ACKNOWLEDGE && syndrome >> 5 == 3) {
		f->naks++;
		if (!(syndrome & 31))
			t->psn = psn;
	} else if (operation == ACKNOWLEDGE && syndrome >> 5 == 1) {
		f->rnrs++;
		t->psn = psn;
		t->under_way = t->under_way && one_in(f, 2);
	} else if (operation == ACKNOWLEDGE) {
		f->acks++;
		if (((psn + 1 - t->psn) & FUZZ_PSN_MASK) < 1 << 20)
			t->psn = (psn + 1) & FUZZ_PSN_MASK;
	}
}

static void hear_packet(struct fuzzer *f, const uint8_t *at, uint32_t bytes)
{
	const unsigned operation = at[0] & 31;
	uint32_t number = get32(at + 4) & FUZZ_PSN_MASK, psn = get32(at + 8) & FUZZ_PSN_MASK;
	struct target *t;

	must(!memmem(at, bytes, FUZZ_SECRET, strlen(FUZZ_SECRET)),
	     "PSN %u, opcode 0x%02x, to 0x%06x, tells a secret", psn, at[0], number);
	must(number >= FUZZ_PEER_QPN && number < FUZZ_PEER_QPN + FUZZ_QPS,
	     "a packet is for a queue pair 0x%06x", number);
	t = &f->target[number - FUZZ_PEER_QPN];
	if (1u << operation & IS_RESPONSE) {
		hear_response(f, t, operation, psn, at[12]);
		return;
	}
	f->requests++;
	t->seen[t->n_seen++ % SEEN] = (struct seen){
		.operation = (uint8_t)operation,
		.psn = psn,
		.length = operation == READ_REQUEST ? get32(at + 24) : 0,
	};
}

static void hear(struct fuzzer *f)
{
	uint8_t bytes[2048];
	ssize_t n;

	for (int i = 0; i < 64; i++) {
		n = recv(f->fd[0], bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n < 16)
			return;
		hear_packet(f, bytes, (uint32_t)n);
	}
}

/* Reads the victim's lines about itself. */
static void read_lines(struct fuzzer *f)
{
	unsigned i, qpn, psn, type, length, rkey;
	unsigned long addr;
	char line[200];
	long at = ftell(f->lines);

	clearerr(f->lines);
	while (fgets(line, sizeof(line), f->lines)) {
		if (!strchr(line, '\n')) { /* half of it is written */
			fseek(f->lines, at, SEEK_SET);
			return;
		}
		at = ftell(f->lines);
		if (sscanf(line, "qp %u %u %u %u", &i, &type, &qpn, &psn) == 4 && i < FUZZ_QPS) {
			f->target[i] =
			        (struct target){ .qpn = qpn, .psn = psn, .is_uc = type == FUZZ_UC };
			f->connections++;
		}
		if (sscanf(line, "region %u %lu %u %u", &i, &addr, &length, &rkey) == 4 &&
		    i < FUZZ_REGIONS)
			f->region[i] = (struct region){ addr, length, rkey };
	}
}

/* ---- all ---- */

static void open_sockets(struct fuzzer *f, const char *here, const char *there)
{
	int probe = IP_PMTUDISC_PROBE;

	f->here = (struct sockaddr_in){ .sin_family = AF_INET };
	f->there = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(ROCE_PORT) };
	if (inet_pton(AF_INET, here, &f->here.sin_addr) != 1 ||
	    inet_pton(AF_INET, there, &f->there.sin_addr) != 1)
		errx(EXIT_FAILURE, "addresses");
	for (int i = 0; i < SOCKETS; i++) {
		struct sockaddr_in a = f->here;
		socklen_t bytes = sizeof(a);

		a.sin_port = htons(i ? 0 : ROCE_PORT);
		f->fd[i] = socket(AF_INET, SOCK_DGRAM, 0);
		if (f->fd[i] < 0 || bind(f->fd[i], (struct sockaddr *)&a, sizeof(a)) ||
		    setsockopt(f->fd[i], IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe)) ||
		    getsockname(f->fd[i], (struct sockaddr *)&a, &bytes))
			err(EXIT_FAILURE, "socket");
		f->port[i] = ntohs(a.sin_port);
	}
}

/* @late: nothing that asks the victim for anything, so what it asks for itself comes further. */
static void step(struct fuzzer *f, bool late)
{
	static void (*const steps[32])(struct fuzzer * f, struct target * t) = {
		send_valid,      send_valid,      send_valid,      send_valid, send_valid,
		send_valid,      send_valid,      send_valid,      send_valid, send_valid,
		send_valid,      send_valid,      send_valid,      send_valid, send_mutated,
		send_mutated,    send_anything,   send_garbage,    flood,      respond,
		respond,         respond,         respond,         respond,    respond_in_full,
		respond_in_full, respond_in_full, respond_in_full,
	};
	struct target *t = &f->target[below(f, FUZZ_QPS)];
	unsigned i = late ? 19 + below(f, 9) : below(f, 32);
	/* a few that go on with one queue pair come deeper */
	uint32_t n = 1 + below(f, 12);

	if (t->is_uc && late)
		return;
	if (t->is_uc && i >= 18)
		i = 0;
	if (steps[i] == send_valid || !steps[i])
		while (n--)
			send_valid(f, t);
	else
		steps[i](f, t);
}

int main(int argc, char **argv)
{
	struct fuzzer *f = &fuzzer;
	time_t end, late;

	must(argc == 6, "usage: wire_fuzz LINES HERE VICTIM SEED SECONDS");
	f->lines = fopen(argv[1], "r");
	if (!f->lines)
		err(EXIT_FAILURE, "%s", argv[1]);
	open_sockets(f, argv[2], argv[3]);
	f->state = strtoull(argv[4], NULL, 0);
	end = time(NULL) + atoi(argv[5]);
	late = end - atoi(argv[5]) / 4;
	for (uint64_t i = 0; time(NULL) < end; i++) {
		if (i % 16 == 0)
			read_lines(f);
		step(f, time(NULL) >= late);
		hear(f);
		if (i % 32 == 31)
			usleep(1 + below(f, one_in(f, 64) ? 20000 : 500));
	}
	printf("sent %lu packets; %lu connections; heard %lu requests, %lu acknowledgements, %lu "
	       "NAKs, "
	       "%lu RNR NAKs, %lu READ responses, %lu atomic ones\n",
	       f->sent, f->connections, f->requests, f->acks, f->naks, f->rnrs, f->reads,
	       f->atomics);
	if (!f->requests || !f->acks || !f->naks || !f->reads || !f->atomics)
		errx(EXIT_FAILURE, "the victim is not what it should be");
	return EXIT_SUCCESS;
}
