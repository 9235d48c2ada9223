/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ports that go down, come back, and are changed by the subnet manager: what their
 * programs hear (ibv_get_async_event(3)), what ibv_query_port(3) says, and where
 * messages go meanwhile. `umbel` breaks the fabric.
 */
#include "lab.h"
#include "deadline.h"

#define GROUP        "239.3.3.3"
#define PHYS_POLLING 2
#define PHYS_LINK_UP 5

static void umbel(const char *command)
{
	char text[128];

	snprintf(text, sizeof(text), "umbel %s", command);
	if (system(text))
		fail_msg("it fails: %s", text);
}

/* A test that fails leaves the fabric whole. */
static void mend(void *nothing)
{
	(void)nothing;
	if (system("for h in 1 2 3 4; do umbel link up h$h:1; done 2>/dev/null") ||
	    system("umbel switch revive sw1 2>/dev/null"))
		return; /* there was nothing to mend */
}

static void breaks(void)
{
	lab_undo(mend, NULL);
}

/* The next event of the context, which must be this one, of port 1. */
static void expect_event(struct ibv_context *context, enum ibv_event_type type)
{
	struct ibv_async_event event;

	if (!deadline_allows(context->async_fd))
		fail_msg("no event; expected: %s", ibv_event_type_str(type));
	assert_int_equal(ibv_get_async_event(context, &event), 0);
	assert_string_equal(ibv_event_type_str(event.event_type), ibv_event_type_str(type));
	assert_int_equal(event.element.port_num, 1);
	ibv_ack_async_event(&event);
}

/* `umbel` returns when all has been told. */
static void expect_no_event(struct ibv_context *context)
{
	struct pollfd p = { .fd = context->async_fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 0), 0);
}

static struct ibv_port_attr port_of(struct ibv_context *context)
{
	struct ibv_port_attr attr;

	assert_int_equal(ibv_query_port(context, 1, &attr), 0);
	return attr;
}

/* ---- events and states ---- */

LAB_CASE(a_link_that_goes_down_is_port_err_and_then_port_active)
{
	struct ibv_context *context = lab_open(2);

	breaks();
	umbel("link down h2:1");
	expect_event(context, IBV_EVENT_PORT_ERR);
	expect_no_event(context);
	umbel("link up h2:1");
	expect_event(context, IBV_EVENT_PORT_ACTIVE);
	expect_no_event(context);
}

LAB_CASE(the_switch_s_end_of_the_link_does_the_same)
{
	struct ibv_context *context = lab_open(2);

	breaks();
	umbel("link down sw1:2");
	expect_event(context, IBV_EVENT_PORT_ERR);
	umbel("link up umbel_h2_0:1");
	expect_event(context, IBV_EVENT_PORT_ACTIVE);
}

LAB_CASE(every_context_of_the_hca_hears_and_no_other_hca_s)
{
	struct ibv_context *one = lab_open(2), *two = lab_open(2), *other = lab_open(3);

	breaks();
	umbel("link down h2:1");
	expect_event(one, IBV_EVENT_PORT_ERR);
	expect_event(two, IBV_EVENT_PORT_ERR);
	expect_no_event(other);
}

LAB_CASE(query_port_says_down_and_polling_then_active_with_the_old_lid)
{
	struct ibv_context *context = lab_open(2);
	struct ibv_port_attr before = port_of(context), attr;

	breaks();
	umbel("link down h2:1");
	attr = port_of(context);
	assert_int_equal(attr.state, IBV_PORT_DOWN);
	assert_int_equal(attr.phys_state, PHYS_POLLING);
	umbel("link up h2:1");
	attr = port_of(context);
	assert_int_equal(attr.state, IBV_PORT_ACTIVE);
	assert_int_equal(attr.phys_state, PHYS_LINK_UP);
	assert_int_equal(attr.lid, before.lid);
}

LAB_CASE(a_dead_switch_takes_all_its_ports_down)
{
	struct ibv_context *context[4];

	breaks();
	for (int h = 0; h < 4; h++)
		context[h] = lab_open(h + 1);
	umbel("switch kill sw1");
	for (int h = 0; h < 4; h++) {
		expect_event(context[h], IBV_EVENT_PORT_ERR);
		assert_int_equal(port_of(context[h]).state, IBV_PORT_DOWN);
	}
	umbel("switch revive sw1");
	for (int h = 0; h < 4; h++) {
		expect_event(context[h], IBV_EVENT_PORT_ACTIVE);
		assert_int_equal(port_of(context[h]).state, IBV_PORT_ACTIVE);
	}
}

LAB_CASE(another_lid_is_lid_change)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_ah *old = lab_ah_to(a, b);
	uint16_t lid = port_of(b->context).lid;

	umbel("sm event lid-change h2:1");
	expect_event(b->context, IBV_EVENT_LID_CHANGE);
	expect_no_event(a->context);
	assert_int_not_equal(port_of(b->context).lid, lid);
	lab_post(b, 1);
	lab_send_text(a, old, b->qp->qp_num, "to the old LID: nobody's");
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "to the new one");
	lab_expect_text(b, "to the new one");
}

LAB_CASE(what_is_sent_has_the_lid_of_now)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_ah *ah = lab_ah_to(a, b);

	lab_post(b, 3);
	lab_send_text(a, ah, b->qp->qp_num, "first");
	lab_send_text(a, ah, b->qp->qp_num, "second");
	assert_int_equal(lab_receive(b).wc.slid, port_of(a->context).lid);
	assert_int_equal(lab_receive(b).wc.slid, port_of(a->context).lid);
	umbel("sm event lid-change h1:1");
	lab_send_text(a, ah, b->qp->qp_num, "third");
	assert_int_equal(lab_receive(b).wc.slid, port_of(a->context).lid);
}

LAB_CASE(another_sm_is_sm_change_for_all)
{
	struct ibv_context *a = lab_open(1), *b = lab_open(4);
	uint16_t sm_lid = port_of(a).sm_lid;

	umbel("sm event sm-change");
	expect_event(a, IBV_EVENT_SM_CHANGE);
	expect_event(b, IBV_EVENT_SM_CHANGE);
	assert_int_not_equal(port_of(a).sm_lid, sm_lid);
	assert_int_equal(port_of(a).sm_lid, port_of(b).sm_lid);
}

LAB_CASE(client_reregister_is_told)
{
	struct ibv_context *a = lab_open(1), *b = lab_open(2);

	umbel("sm event client-reregister h2:1");
	expect_event(b, IBV_EVENT_CLIENT_REREGISTER);
	expect_no_event(a);
}

/* ---- messages ---- */

LAB_CASE(what_is_sent_to_a_port_that_is_down_is_lost)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_ah *ah = lab_ah_to(a, b);

	breaks();
	lab_post(b, 1);
	umbel("link down h2:1");
	lab_send_text(a, ah, b->qp->qp_num, "lost");
	umbel("link up h2:1");
	lab_send_text(a, ah, b->qp->qp_num, "arrives");
	lab_expect_text(b, "arrives");
}

LAB_CASE(what_a_port_that_is_down_sends_is_discarded_and_counted)
{
	struct lab_end *a = lab_end(1), *b = lab_end(2);
	struct ibv_ah *ah = lab_ah_to(a, b), *to_self = lab_ah_to(a, a);
	uint64_t discards = lab_counter(1, "xmit_discards"), sent = lab_counter(1, "xmit_pkts");

	breaks();
	lab_post(a, 1);
	lab_post(b, 1);
	umbel("link down h1:1");
	lab_send_text(a, ah, b->qp->qp_num, "discarded");
	lab_send_text(a, to_self, a->qp->qp_num, "discarded as well");
	lab_quiet(a->cq);
	assert_int_equal(lab_counter(1, "xmit_discards"), discards + 2);
	assert_int_equal(lab_counter(1, "xmit_pkts"), sent);
	umbel("link up h1:1");
	lab_send_text(a, ah, b->qp->qp_num, "arrives");
	lab_expect_text(b, "arrives");
	assert_int_equal(lab_counter(1, "xmit_discards"), discards + 2);
	assert_int_equal(lab_counter(1, "xmit_pkts"), sent + 1);
}

LAB_CASE(multicast_of_a_port_that_is_down_is_discarded_and_counted)
{
	struct lab_end *a = lab_end_with(&(struct lab_options){ .host = 1, .qkey = 0x01234567 });
	struct lab_end *b = lab_end_with(&(struct lab_options){ .host = 2, .qkey = 0x01234567 });
	struct lab_group *g = lab_join(1, GROUP), *h = lab_join(2, GROUP);
	uint64_t discards = lab_counter(1, "xmit_discards");
	struct ibv_ah *ah = lab_ah_group(a, g);

	breaks();
	lab_attach(b->qp, &h->mgid, h->mlid);
	lab_post(b, 2);
	lab_send_text(a, ah, LAB_MCAST, "first");
	lab_expect_text(b, "first");
	umbel("link down h1:1");
	lab_send_text(a, ah, LAB_MCAST, "discarded");
	assert_int_equal(lab_counter(1, "xmit_discards"), discards + 1);
	umbel("link up h1:1");
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "next");
	lab_expect_text(b, "next");
}

LAB_CASE(a_member_behind_a_dead_link_gets_nothing_and_others_do)
{
	struct lab_end *a = lab_end_with(&(struct lab_options){ .host = 1, .qkey = 0x01234567 });
	struct lab_end *b = lab_end_with(&(struct lab_options){ .host = 2, .qkey = 0x01234567 });
	struct lab_end *c = lab_end_with(&(struct lab_options){ .host = 3, .qkey = 0x01234567 });
	struct lab_group *g = lab_join(1, GROUP), *h = lab_join(2, GROUP), *i = lab_join(3, GROUP);
	struct ibv_ah *ah = lab_ah_group(a, g);

	breaks();
	lab_attach(b->qp, &h->mgid, h->mlid);
	lab_attach(c->qp, &i->mgid, i->mlid);
	lab_post(b, 1);
	lab_post(c, 1);
	umbel("link down h2:1");
	lab_send_text(a, ah, LAB_MCAST, "to h3 alone");
	lab_expect_text(c, "to h3 alone");
	/* the port is no member any more: it would have to join anew */
	umbel("link up h2:1");
	lab_send_text(a, ah, LAB_MCAST, "lost: h3 has posted no more");
	lab_send_text(a, lab_ah_to(a, b), b->qp->qp_num, "unicast");
	lab_expect_text(b, "unicast");
}
