/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For the unit tests of MADs: a chain of switches between two hosts, requests with their
 * addresses, and a sink that keeps what comes to the hosts. Behind testing.h.
 */
#ifndef FABRIC_TESTING_MADS_H
#define FABRIC_TESTING_MADS_H

#include "fabric/agents/mads.h"
#include "fabric/testing.h"
#include "wire/sm_attr.h"

#define CHAIN    3      /* switches */
#define SW_LID   0x0010 /* of the first one */
#define SW_PORTS 8
#define TO_HOST  1 /* ports of each switch: of both ends, */
#define TO_LEFT  2 /* towards host 0 */
#define TO_RIGHT 3 /* and host 1 */

/* Host 0 - sw[0] - sw[1] - sw[2] - host 1. Ports 4 and up are free. */
struct lab {
	struct fabric *f;
	struct fabric_node *sw[CHAIN];
	/* the sink: the last MAD, and how many */
	struct fabric_port *at;
	struct fabric_mad got;
	unsigned n_got;
	bool refuses; /* deliver() returns false */
	/* the sink: the last change, and how many */
	struct fabric_port *changed;
	unsigned changes, n_changes;
};

static UNUSED bool lab_deliver(void *arg, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct lab *l = arg;

	if (l->refuses)
		return false;
	l->at = at;
	l->got = *mad;
	l->n_got++;
	return true;
}

static UNUSED void lab_changed(void *arg, struct fabric_port *port, unsigned what)
{
	struct lab *l = arg;

	l->changed = port;
	l->changes |= what;
	l->n_changes++;
}

static UNUSED struct fabric_port *lab_host(const struct lab *l, unsigned i)
{
	return l->f->hca_port[i];
}

/* LIDs and tables such as a subnet manager writes. */
static UNUSED void lab_addresses(struct lab *l)
{
	testing_give_lids(l->f);
	for (unsigned i = 0; i < 2; i++)
		lab_host(l, i)->lmc = 0;
	for (unsigned i = 0; i < CHAIN; i++) {
		l->sw[i]->port[0].lid = (uint16_t)(SW_LID + i);
		l->sw[i]->port[0].lmc = 0;
		fabric_lft_set(l->sw[i], 1, i == 0 ? TO_HOST : TO_LEFT);
		fabric_lft_set(l->sw[i], 2, i == CHAIN - 1 ? TO_HOST : TO_RIGHT);
		for (unsigned k = 0; k < CHAIN; k++)
			fabric_lft_set(l->sw[i], (uint16_t)(SW_LID + k),
			               i == k  ? 0
			               : i < k ? TO_RIGHT
			                       : TO_LEFT);
	}
}

/* Ports are INIT. */
static UNUSED int lab_setup(void **state)
{
	struct lab *l = calloc(1, sizeof(*l));

	l->f = testing_bare_fabric(2);
	for (unsigned i = 0; i < CHAIN; i++) {
		l->sw[i] = testing_switch(l->f, SW_PORTS);
		snprintf(l->sw[i]->desc, sizeof(l->sw[i]->desc), "switch %u", i);
		l->sw[i]->guid = l->sw[i]->system_guid = 0x5000 + i;
		for (unsigned k = 0; k <= SW_PORTS; k++) {
			l->sw[i]->port[k].guid = l->sw[i]->guid;
			l->sw[i]->port[k].pkey[0] = IB_PKEY_DEFAULT;
		}
		if (i)
			testing_plug(&l->sw[i - 1]->port[TO_RIGHT], &l->sw[i]->port[TO_LEFT]);
	}
	testing_plug(lab_host(l, 0), &l->sw[0]->port[TO_HOST]);
	testing_plug(lab_host(l, 1), &l->sw[CHAIN - 1]->port[TO_HOST]);
	lab_addresses(l);
	for (unsigned i = 0; i < 2; i++)
		fabric_port_publish(l->f, lab_host(l, i));
	l->f->mads->sink = (struct fabric_mad_sink){ lab_deliver, lab_changed, l, NULL };
	*state = l;
	return 0;
}

static UNUSED int lab_setup_active(void **state)
{
	struct lab *l;

	lab_setup(state);
	l = *state;
	testing_activate_all(l->f);
	for (unsigned i = 0; i < 2; i++)
		fabric_port_publish(l->f, lab_host(l, i));
	return 0;
}

static UNUSED int lab_teardown(void **state)
{
	struct lab *l = *state;

	fabric_free(l->f);
	free(l);
	return 0;
}

/* ---- requests ---- */

static UNUSED struct wire_smp lab_smp(uint8_t method, uint16_t attribute, uint32_t modifier)
{
	return (struct wire_smp){ .mad = { .base_version = MAD_BASE_VERSION,
		                           .mgmt_class = MAD_CLASS_SUBN_LID,
		                           .class_version = MAD_VERSION_SUBN,
		                           .method = method,
		                           .transaction_id = 0x1234567,
		                           .attribute_id = attribute,
		                           .attribute_modifier = modifier } };
}

/* By LID, from @from. */
static UNUSED struct fabric_mad lab_to_lid(const struct fabric_port *from, uint16_t dlid,
                                           const struct wire_smp *smp)
{
	struct fabric_mad mad = { .slid = from->lid, .dlid = dlid };

	wire_smp_encode(smp, mad.data);
	return mad;
}

/* By directed route: out by these ports, @path ends with 0. */
static UNUSED struct fabric_mad lab_directed(const struct wire_smp *smp, const uint8_t *path)
{
	struct fabric_mad mad = { .slid = IB_LID_PERMISSIVE, .dlid = IB_LID_PERMISSIVE };
	struct wire_smp s = *smp;

	s.mad.mgmt_class = MAD_CLASS_SUBN_DIRECTED;
	s.dr_slid = s.dr_dlid = IB_LID_PERMISSIVE;
	for (; path[s.hop_count]; s.hop_count++)
		s.initial_path[s.hop_count + 1] = path[s.hop_count];
	wire_smp_encode(&s, mad.data);
	return mad;
}

/* Sends @mad and returns the response to @from; there must be one. */
static UNUSED struct wire_smp lab_ask(struct lab *l, struct fabric_port *from,
                                      const struct fabric_mad *mad)
{
	unsigned before = l->n_got;
	struct wire_smp smp;
	uint8_t asked;

	wire_smp_decode(mad->data, &smp);
	asked = smp.mad.method == MAD_SET ? MAD_GET : smp.mad.method;
	fabric_mad_send(l->f, from, mad);
	assert_int_equal(l->n_got, before + 1);
	assert_ptr_equal(l->at, from);
	wire_smp_decode(l->got.data, &smp);
	assert_int_equal(smp.mad.method, asked | MAD_METHOD_RESPONSE);
	return smp;
}

/* Sends @mad; there must be no response. */
static UNUSED void lab_lost(struct lab *l, struct fabric_port *from, const struct fabric_mad *mad)
{
	unsigned before = l->n_got;

	fabric_mad_send(l->f, from, mad);
	assert_int_equal(l->n_got, before);
}

/*
 * Host 0 sends @request with @data to the node with @lid; @data becomes the response's. Its status.
 */
static UNUSED uint16_t lab_smp_to(struct lab *l, uint16_t lid, const struct wire_smp *request,
                                  uint8_t *data)
{
	struct wire_smp smp = *request;
	struct fabric_mad mad;

	memcpy(smp.data, data, SMP_DATA_BYTES);
	mad = lab_to_lid(lab_host(l, 0), lid, &smp);
	smp = lab_ask(l, lab_host(l, 0), &mad);
	assert_int_equal(smp.mad.attribute_id, request->mad.attribute_id);
	assert_int_equal(smp.mad.attribute_modifier, request->mad.attribute_modifier);
	assert_true(smp.mad.transaction_id == request->mad.transaction_id);
	memcpy(data, smp.data, SMP_DATA_BYTES);
	return smp.mad.status;
}

static UNUSED uint16_t lab_get(struct lab *l, uint16_t lid, uint16_t attribute, uint32_t modifier,
                               uint8_t *data)
{
	struct wire_smp smp = lab_smp(MAD_GET, attribute, modifier);

	memset(data, 0, SMP_DATA_BYTES);
	return lab_smp_to(l, lid, &smp, data);
}

static UNUSED uint16_t lab_set(struct lab *l, uint16_t lid, uint16_t attribute, uint32_t modifier,
                               uint8_t *data)
{
	struct wire_smp smp = lab_smp(MAD_SET, attribute, modifier);

	return lab_smp_to(l, lid, &smp, data);
}

#endif
