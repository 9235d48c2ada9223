/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two processes flood each other with requests of all kinds over RC; one of them is killed or
 * stopped at a random moment. The other one's requests and receives all end, no byte outside of a
 * region changes, and the daemon then holds no more than before.
 *
 * UMBEL_KILLS: how many, instead of the usual number. UMBEL_SEED: where chance begins.
 */
#include "peer_lab.h"

#include "base/util.h"

#define SAME  40 /* readings */
#define KILLS 200
#define STOPS 40

static unsigned number_of(const char *name, unsigned usual)
{
	const char *text = getenv(name);

	return text ? (unsigned)strtoul(text, NULL, 0) : usual;
}

/* Riots for so long, ns, or until something fails. */
static void riot_for(struct lab_peer *p[2], struct lab_riot *r, uint64_t ns)
{
	uint64_t end = base_now_ns() + ns;

	while (!r->error && !r->receive_error && base_now_ns() < end)
		lab_peer_riot_step(p[0], p[1], r);
}

/* The survivor's requests end: with errors from the first error on, which there will be. */
static void expect_end(struct lab_peer *p[2], struct lab_riot *r, uint64_t seed)
{
	uint64_t end = base_now_ns() + LAB_SECONDS * 1000000000ull;

	while (!r->error && !r->receive_error && base_now_ns() < end)
		lab_peer_riot_step(p[0], p[1], r);
	while (!lab_peer_riot_ends(p[0], r) && base_now_ns() < end)
		;
	if (r->sent || r->received)
		fail_msg("seed %llu: %u requests and %u receives have not ended",
		         (unsigned long long)seed, r->sent, r->received);
	if (r->error != IBV_WC_RETRY_EXC_ERR && r->error != IBV_WC_RNR_RETRY_EXC_ERR &&
	    r->error != IBV_WC_WR_FLUSH_ERR && r->error)
		fail_msg("seed %llu: a request ends with '%s'", (unsigned long long)seed,
		         ibv_wc_status_str(r->error));
	if (r->receive_error && r->receive_error != IBV_WC_WR_FLUSH_ERR)
		fail_msg("seed %llu: a receive ends with '%s'", (unsigned long long)seed,
		         ibv_wc_status_str(r->receive_error));
}

static void one_death(uint64_t seed, int sig)
{
	const struct lab_peer_options o = {
		.bytes = 256 << 10,
		.timeout = 10,
		.retry_cnt = 2,
		.rnr_retry = 6,
		.min_rnr_timer = 14,
	};
	struct lab_riot r = { .random = seed };
	struct lab_peer **p = lab_peers(&o, (void *[]){ (void *)1 });

	lab_peer_riot(p[1], p[0], seed + 1);
	riot_for(p, &r, (seed * 2654435761u) % 15000000);
	lab_peer_signal(p[1], sig);
	expect_end(p, &r, seed);
	lab_peer_to(p[0], IBV_QPS_RESET);
	if (sig == SIGSTOP && seed % 2) { /* the peer harms nobody when it goes on */
		lab_peer_signal(p[1], SIGCONT);
		lab_peer_connect(p[0], p[0]);
	}
	if (sig != SIGKILL)
		lab_peer_signal(p[1], SIGKILL);
	lab_clean_up(NULL);
}

static const char *const held[] = {
	"clients", "qps", "cqs", "flows", "ring_bytes", "payload_bytes"
};

/* The value when the daemon has freed all that the dead process had, also in reserve, which it does
 * in its turns: these come between requests, however late they are. */
static uint64_t settled(const char *name)
{
	uint64_t value = lab_status(name);

	for (unsigned same = 0; same < SAME;) {
		const uint64_t now = lab_status(name);

		same = now == value ? same + 1 : 0;
		value = now;
	}
	return value;
}

static void many_deaths(int sig, unsigned n)
{
	uint64_t seed = number_of("UMBEL_SEED", (unsigned)time(NULL)), before[LAB_ARRAY(held)];

	one_death(seed, sig); /* this process itself is a client from now on */
	lab_await_status("qps", 0);
	for (unsigned i = 0; i < LAB_ARRAY(held); i++)
		before[i] = settled(held[i]);
	for (unsigned i = 1; i < n; i++)
		one_death(seed + i, sig);
	for (unsigned i = 0; i < LAB_ARRAY(held); i++)
		lab_await_status(held[i], before[i]);
}

LAB_CASE(a_peer_that_is_killed_harms_nobody)
{
	many_deaths(SIGKILL, number_of("UMBEL_KILLS", KILLS));
}

LAB_CASE(a_peer_that_is_stopped_harms_nobody)
{
	many_deaths(SIGSTOP, number_of("UMBEL_KILLS", STOPS));
}

int main(void)
{
	lab_peers_begin();
	return harness_run(NULL, NULL);
}
