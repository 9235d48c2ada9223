/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Running litmus tests: see litmus.h. One thread of the process takes the steps of all threads of a
 * test, in an order that the round's number draws. Between them it polls now and then, so that what
 * a weak fabric has put off is done here or there.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "litmus/litmus.h"
#include "litmus/world.h"

#define DEADLINE_S 20

struct round {
	struct litmus_world *w;
	const struct litmus_parsed *p;
	struct litmus_state state; /* its registers */
	uint64_t random;
	char *failed;
};

/* xorshift64* */
static uint64_t draw(struct round *r, uint64_t below)
{
	r->random ^= r->random >> 12;
	r->random ^= r->random << 25;
	r->random ^= r->random >> 27;
	return (r->random * 2685821657736338717ull >> 33) % below;
}

static void fail(struct round *r, const char *what, const char *why)
{
	if (!*r->failed)
		snprintf(r->failed, 160, "%s: %s", what, why);
}

static uint64_t *word(const struct round *r, unsigned at)
{
	return &r->w->node[at / LITMUS_WORDS].word[at % LITMUS_WORDS];
}

/* ---- posting ---- */

static void post(struct round *r, const struct litmus_step *s, enum ibv_wr_opcode opcode,
                 unsigned local, unsigned remote, uint32_t words)
{
	struct litmus_end *e = &r->w->from[s->q];
	const struct litmus_node *peer = &r->w->node[r->w->to[s->q].node];
	struct ibv_sge sge = { (uintptr_t)word(r, local), words * 8, r->w->node[e->node].mr->lkey };
	struct ibv_send_wr wr = { .wr_id = s->q, .sg_list = &sge, .num_sge = 1, .opcode = opcode },
	                   *bad;
	int ret;

	wr.send_flags = (s->unsignaled ? 0 : IBV_SEND_SIGNALED) |
	                (s->is_inline ? IBV_SEND_INLINE : 0) | (s->fence ? IBV_SEND_FENCE : 0);
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)word(r, remote);
		wr.wr.atomic.rkey = peer->mr->rkey;
		wr.wr.atomic.compare_add = s->value;
	} else if (opcode != IBV_WR_SEND) {
		wr.wr.rdma.remote_addr = (uintptr_t)word(r, remote);
		wr.wr.rdma.rkey = peer->mr->rkey;
	}
	if (e->ah) {
		wr.wr.ud.ah = e->ah;
		wr.wr.ud.remote_qpn = r->w->to[s->q].qp->qp_num;
		wr.wr.ud.remote_qkey = LITMUS_QKEY;
	}
	ret = ibv_post_send(e->qp, &wr, &bad);
	if (ret)
		fail(r, "ibv_post_send", strerror(ret));
	e->sends++;
	e->signaled += !s->unsignaled;
}

static void post_receive(struct round *r, const struct litmus_step *s)
{
	struct litmus_end *e = &r->w->to[s->q];
	const struct litmus_node *node = &r->w->node[e->node];
	struct ibv_sge sge[] = { { (uintptr_t)&node->word[LITMUS_GRH], 40, node->mr->lkey },
		                 { (uintptr_t)word(r, s->to), 8, node->mr->lkey } };
	const bool has_grh = e->qp->qp_type == IBV_QPT_UD;
	struct ibv_recv_wr wr = { .sg_list = has_grh ? sge : sge + 1, .num_sge = has_grh ? 2 : 1 },
	                   *bad;
	const int ret = ibv_post_recv(e->qp, &wr, &bad);

	if (ret)
		fail(r, "ibv_post_recv", strerror(ret));
	e->receives++;
}

/* ---- completions ---- */

static bool poll_once(struct round *r, struct ibv_cq *cq, unsigned *left)
{
	struct ibv_wc wc;
	const int n = ibv_poll_cq(cq, 1, &wc);

	if (n < 0)
		fail(r, "ibv_poll_cq", strerror(errno));
	if (n > 0 && wc.status)
		fail(r, "a completion", ibv_wc_status_str(wc.status));
	if (n > 0 && left)
		--*left;
	return n;
}

static void wait_for_one(struct round *r, struct ibv_cq *cq, unsigned *left)
{
	const time_t until = time(NULL) + DEADLINE_S;

	while (!*r->failed && !poll_once(r, cq, left))
		if (time(NULL) > until)
			fail(r, "a completion", "it did not come within 20 s");
}

static void some_polls(struct round *r)
{
	static const uint8_t often[] = { 0, 0, 0, 1, 1, 2, 3, 6 };

	for (unsigned n = often[draw(r, sizeof(often))]; n; n--)
		poll_once(r, r->w->idle, NULL);
}

/* ---- a round ---- */

static void take(struct round *r, const struct litmus_step *s)
{
	struct litmus_end *from = &r->w->from[s->q], *to = &r->w->to[s->q];

	switch (s->op) {
	case LITMUS_ST:
		*(volatile uint64_t *)word(r, s->to) = s->value;
		break;
	case LITMUS_LD:
		r->state.reg[s->reg] = *(volatile uint64_t *)word(r, s->from);
		break;
	case LITMUS_PUT:
		post(r, s, IBV_WR_RDMA_WRITE, s->from, s->to, (uint32_t)s->value);
		break;
	case LITMUS_GET:
		post(r, s, IBV_WR_RDMA_READ, s->to, s->from, (uint32_t)s->value);
		break;
	case LITMUS_FAA:
		post(r, s, IBV_WR_ATOMIC_FETCH_AND_ADD, s->to, s->from, 1);
		break;
	case LITMUS_RCV:
		post_receive(r, s);
		break;
	case LITMUS_SND:
		post(r, s, IBV_WR_SEND, s->from, s->from, 1);
		break;
	case LITMUS_POLL:
		wait_for_one(r, from->send_cq, &from->signaled);
		break;
	case LITMUS_TRY:
		r->state.reg[s->reg] = poll_once(r, from->send_cq, &from->signaled);
		break;
	case LITMUS_RPOLL:
		wait_for_one(r, to->recv_cq, &to->receives);
		break;
	case LITMUS_RTRY:
		r->state.reg[s->reg] = poll_once(r, to->recv_cq, &to->receives);
		break;
	}
}

/* Waits until all operations are done. An operation without a completion is done when the empty
 * WRITE posted behind it completes. */
static void finish(struct round *r)
{
	const struct litmus_step empty = { .value = 0 };

	for (unsigned i = 0; i < LITMUS_QPS; i++) {
		struct litmus_end *from = &r->w->from[i], *to = &r->w->to[i];
		struct litmus_step s = empty;

		s.q = i;
		if (from->sends && !from->ah && !*r->failed)
			post(r, &s, IBV_WR_RDMA_WRITE, from->node * LITMUS_WORDS,
			     to->node * LITMUS_WORDS, 0);
		while (from->signaled && !*r->failed)
			wait_for_one(r, from->send_cq, &from->signaled);
		if (from->ah && to->receives && !litmus_drop_receives(r->w, i))
			fail(r, "ibv_modify_qp", strerror(errno));
		while (to->receives && !*r->failed)
			wait_for_one(r, to->recv_cq, &to->receives);
		from->sends = 0;
	}
}

static void run_round(struct round *r)
{
	unsigned at[LITMUS_THREADS] = { 0 }, left = r->p->n, t;

	for (unsigned i = 0; i < LITMUS_NODES * LITMUS_WORDS; i++)
		*word(r, i) = r->p->init.word[i];
	while (left && !*r->failed) {
		t = (unsigned)draw(r, r->p->n);
		if (at[t] == r->p->thread[t].n)
			continue;
		some_polls(r);
		take(r, &r->p->thread[t].step[at[t]++]);
		left -= at[t] == r->p->thread[t].n;
	}
	finish(r);
	for (unsigned i = 0; i < LITMUS_NODES * LITMUS_WORDS; i++)
		r->state.word[i] = *word(r, i);
}

static void count(const struct litmus *t, const struct litmus_state *s, struct litmus_result *res)
{
	for (unsigned i = 0; i < LITMUS_OUTCOMES && t->outcome[i].is; i++) {
		if (litmus_holds(t->outcome[i].is, s)) {
			res->seen[i]++;
			return;
		}
	}
	res->other++;
	res->an_other = *s;
}

void litmus_run(struct litmus_world *w, const struct litmus *t, uint64_t rounds, uint64_t seed,
                struct litmus_result *res)
{
	struct litmus_parsed p;
	struct round r;

	*res = (struct litmus_result){ 0 };
	if (!litmus_parse(t, &p)) {
		snprintf(res->failed, sizeof(res->failed), "it is not well-formed");
		return;
	}
	for (uint64_t i = 0; i < rounds && !*res->failed; i++) {
		r = (struct round){ .w = w, .p = &p, .failed = res->failed };
		r.random = (seed + 1) * 0x9E3779B97F4A7C15ull + i * 0xD1B54A32D192ED03ull + 1;
		run_round(&r);
		if (!*res->failed)
			count(t, &r.state, res);
	}
}
