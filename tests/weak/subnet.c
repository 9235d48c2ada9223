/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A weak fabric whose subnet changes (--weak=SEED,subnet): a program hears of each kind of change
 * by ibv_get_async_event(). A member of a group that joins anew whenever it is asked to register
 * again receives again; one that does not is lost to its group.
 */
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "../deadline.h"
#include "verbs/lab.h"

#define HOSTS 3

/* The next event of the port, or 0: there is none now. */
static int next_event(struct ibv_context *context)
{
	struct ibv_async_event event;

	if (ibv_get_async_event(context, &event))
		return 0;
	ibv_ack_async_event(&event);
	return (int)event.event_type;
}

static struct ibv_context *open_without_waiting(int host)
{
	struct ibv_context *context = lab_open(host);
	const int flags = fcntl(context->async_fd, F_GETFL);

	assert_int_equal(fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK), 0);
	return context;
}

LAB_CASE(each_change_is_told)
{
	struct ibv_context *context[HOSTS];
	struct deadline deadline = { 0 };
	unsigned n_register = 0, n_lid = 0, n_sm = 0;

	for (int i = 0; i < HOSTS; i++)
		context[i] = open_without_waiting(i + 1);
	while (!n_register || !n_lid || !n_sm) {
		for (int i = 0; i < HOSTS; i++) {
			const int event = next_event(context[i]);

			n_register += event == IBV_EVENT_CLIENT_REREGISTER;
			n_lid += event == IBV_EVENT_LID_CHANGE;
			n_sm += event == IBV_EVENT_SM_CHANGE;
		}
		DEADLINE_LOOK(&deadline, "an event of each kind");
	}
}

struct members {
	struct ibv_context *context[2];
	struct lab_end *from, *to;
	struct lab_group *g;
	unsigned n_joined;
};

/* Both hosts. The group may have another MLID than before. */
static void join(struct members *m)
{
	const uint16_t before = m->g ? m->g->mlid : 0;

	m->g = lab_join(1, "224.1.2.5");
	lab_join(2, "224.1.2.5");
	if (m->g->mlid != before && m->to)
		lab_attach(m->to->qp, &m->g->mgid, m->g->mlid);
	m->n_joined++;
}

static void make_members(struct members *m)
{
	for (int i = 0; i < 2; i++)
		m->context[i] = open_without_waiting(i + 1);
	join(m);
	m->from = lab_end_with(&(struct lab_options){ .host = 1, .qkey = m->g->qkey });
	m->to = lab_end_with(&(struct lab_options){ .host = 2, .qkey = m->g->qkey });
	lab_post(m->to, LAB_SLOTS);
	lab_attach(m->to->qp, &m->g->mgid, m->g->mlid);
}

/* Does what an event asks for. Whether there was one. */
static bool follow(struct members *m)
{
	bool any = false;

	for (int i = 0; i < 2; i++)
		while (next_event(m->context[i]))
			any = true;
	if (any)
		join(m);
	return any;
}

static void send_one(struct members *m)
{
	struct ibv_ah *ah = ibv_create_ah(m->from->pd, &m->g->attr);
	struct lab_request r;

	assert_non_null(ah);
	lab_request(m->from, &r, ah, LAB_MCAST, "text", 5);
	r.wr.wr.ud.remote_qkey = m->g->qkey;
	lab_send_request(m->from, &r);
	ibv_destroy_ah(ah);
}

/* Each time that something has changed, messages come again. */
LAB_CASE(members_that_join_anew_receive)
{
	struct members m = { 0 };
	struct deadline deadline = { 0 };
	struct ibv_wc wc;

	make_members(&m);
	while (m.n_joined < 4) {
		send_one(&m);
		if (ibv_poll_cq(m.to->cq, 1, &wc) == 1) {
			lab_post(m.to, 1);
			deadline = (struct deadline){ 0 };
			while (!follow(&m))
				DEADLINE_LOOK(&deadline, "a change of the subnet");
			deadline = (struct deadline){ 0 };
		}
		follow(&m);
		DEADLINE_LOOK(&deadline, "a message to a member that has joined anew");
	}
}

int main(void)
{
	return harness_run(NULL, NULL);
}
