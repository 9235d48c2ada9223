/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The loops that measure a link: see measure.h.
 */
#include "common/util.h"
#include "common/measure.h"

#define MAX_EXCHANGES 20000
#define CHUNK         20
#define STRETCHES     64
#define LIST          32           /* looked for at once */
#define LOST_AFTER_NS 60000000000u /* without a message */
#define MEMCPY_COPIES 20000

const double bench_quantile_at[BENCH_QUANTILES] = { 0,    0.01,  0.05,  0.1,   0.2,    0.3,
	                                            0.4,  0.5,   0.6,   0.7,   0.75,   0.8,
	                                            0.85, 0.9,   0.925, 0.95,  0.97,   0.98,
	                                            0.99, 0.995, 0.998, 0.999, 0.9995, 0.9998 };

/* Ends the program when looking has been in vain for long. */
static void lose_patience(struct bench_end *end, uint64_t *looks, uint64_t *since)
{
	if (++*looks % (1 << 20))
		return;
	if (*looks == 1 << 20)
		*since = bench_now();
	else if (bench_now() - *since > LOST_AFTER_NS)
		errx(EXIT_FAILURE, "%s: no message for a minute", end->ops->name);
}

static void receive_one(struct bench_end *end)
{
	uint64_t looks = 0, since = 0;

	while (!end->ops->receive(end->link, 1))
		lose_patience(end, &looks, &since);
}

static void answer(struct bench_end *end, unsigned n)
{
	while (n--) {
		receive_one(end);
		end->ops->send(end->link, 1);
		end->ops->settle(end->link);
	}
}

/* The receive is posted anew while the message is on its way: not part of one way. */
static double ask(struct bench_end *end)
{
	uint64_t t = bench_ticks();

	end->ops->send(end->link, 1);
	end->ops->settle(end->link);
	receive_one(end);
	return (double)(bench_ticks() - t);
}

/* The median over groups of exchanges: the clock is coarser than what is measured. */
static double median_of_means(const double *taken, unsigned n)
{
	double mean[MAX_EXCHANGES / CHUNK];
	unsigned chunks = n / CHUNK;

	for (unsigned i = 0; i < chunks; i++) {
		mean[i] = 0;
		for (unsigned k = 0; k < CHUNK; k++)
			mean[i] += taken[i * CHUNK + k] / CHUNK;
	}
	bench_sort(mean, chunks);
	return bench_quantile(mean, chunks, 0.5);
}

void bench_measure_latency(struct bench_end *end, unsigned exchanges, struct bench_latency *result)
{
	static double taken[MAX_EXCHANGES];
	unsigned n = exchanges ? exchanges : end->ops->exchanges, warm = n / 10;

	if (n > MAX_EXCHANGES)
		n = MAX_EXCHANGES;
	bench_pair_meet(end->pair, end->side);
	if (end->side == 1) {
		answer(end, warm + n);
		return;
	}
	for (unsigned i = 0; i < warm; i++)
		ask(end);
	for (unsigned i = 0; i < n; i++)
		taken[i] = ask(end) * bench_tick_ns() / 2;
	result->ns = median_of_means(taken, n);
	bench_sort(taken, n);
	for (int i = 0; i < BENCH_QUANTILES; i++)
		result->quantile[i] = bench_quantile(taken, n, bench_quantile_at[i]);
	result->p99 = bench_quantile(taken, n, 0.99);
}

static unsigned messages_of(const struct bench_end *end)
{
	unsigned n = end->ops->messages / (1 + end->spec.bytes / 512);

	return (n / (LIST * STRETCHES) + 1) * LIST * STRETCHES;
}

static void send_all(struct bench_end *end, unsigned total)
{
	_Atomic uint32_t *credit = &end->pair->credit;
	uint32_t room = end->spec.depth;

	for (uint32_t sent = 0; sent < total; sent += end->list) {
		while (room - sent < end->list) {
			if (end->ops->wait)
				end->ops->wait(end->link);
			/* acquire: pairs with the release in receive_all() */
			room = end->spec.depth + atomic_load_explicit(credit, memory_order_acquire);
		}
		end->ops->send(end->link, end->list);
	}
}

/* Until @until messages have come, of which @got have. How many have. */
static uint32_t take(struct bench_end *end, uint32_t got, uint32_t until)
{
	uint64_t looks = 0, since = 0;

	while (got < until) {
		unsigned n = end->ops->receive(end->link, LIST);

		if (!n) {
			lose_patience(end, &looks, &since);
			continue;
		}
		looks = 0;
		got += n;
		end->ops->settle(end->link);
		/* release: pairs with the acquire in send_all() */
		atomic_store_explicit(&end->pair->credit, got, memory_order_release);
	}
	return got;
}

/* Ticks a message in each of the stretches. */
static void receive_all(struct bench_end *end, unsigned total, double stretch[STRETCHES])
{
	uint32_t got = 0;
	uint64_t t = bench_ticks();
	double ticks = 0;

	for (uint32_t i = 0; i < STRETCHES; i++) {
		uint32_t begin = got;
		uint64_t now;

		got = take(end, got, total / STRETCHES * (i + 1));
		now = bench_ticks();
		/* a list may have reached past the end of a stretch, and filled the next */
		if (got > begin)
			ticks = (double)(now - t) / (got - begin);
		stretch[i] = ticks;
		t = now;
	}
}

double bench_measure_rate(struct bench_end *end)
{
	double stretch[STRETCHES];
	unsigned total = messages_of(end);

	atomic_store(&end->pair->credit, 0);
	bench_pair_meet(end->pair, end->side);
	if (end->side == 0) {
		send_all(end, total);
	} else {
		receive_all(end, total, stretch);
		bench_sort(stretch, STRETCHES);
		end->pair->result[0] = stretch[STRETCHES / 2] * bench_tick_ns();
	}
	bench_pair_meet(end->pair, end->side);
	return end->pair->result[0];
}

double bench_measure_memcpy(uint32_t bytes, unsigned places)
{
	char *from = bench_alloc(bytes, 0), *to = bench_alloc((size_t)bytes * places, 0);
	uint64_t t = bench_ticks();

	for (unsigned i = 0; i < MEMCPY_COPIES; i++) {
		memcpy(to + (size_t)(i % places) * bytes, from, bytes);
		__asm__ volatile("" ::: "memory");
	}
	t = bench_ticks() - t;
	bench_free(from, bytes);
	bench_free(to, (size_t)bytes * places);
	return (double)t * bench_tick_ns() / MEMCPY_COPIES;
}
