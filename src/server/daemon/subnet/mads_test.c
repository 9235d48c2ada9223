/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tests of mads.c: a storm of MADs leaves others their turns; a MAD that there is no memory for is
 * counted.
 */
#include <harness.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "daemon/subnet/mads.h"
#include "fabric/model/flow_state.h"
#include "fabric/testing.h"

static bool no_memory; /* for malloc() */

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	return no_memory ? NULL : __real_malloc(bytes);
}

struct storm {
	struct daemon_mads *mads;
	struct fabric_port *from;
	struct fabric_mad mad;
	struct daemon_source request;
	unsigned long delivered, asked;
	uint64_t work; /* that each of them makes */
};

/* Each MAD that arrives brings the next one about. */
static bool deliver(void *arg, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct storm *s = arg;

	(void)at;
	(void)mad;
	s->delivered++;
	s->mads->f->flows->work += s->work;
	daemon_mads_queue(s->mads, s->from, &s->mad);
	return true;
}

static void on_request(struct daemon_source *source, uint32_t events)
{
	(void)events;
	container_of(source, struct storm, request)->asked++;
}

CASE(endless_mads_leave_a_client_its_turns)
{
	struct fabric *f = testing_fabric(2);
	struct daemon_loop loop = { 0 };
	struct daemon_mads mads = { 0 };
	struct storm storm = { .mads = &mads, .from = f->hca_port[0] };
	int fd = eventfd(1, EFD_CLOEXEC);
	unsigned long most = 0, storms = 0;

	for (unsigned i = 0; i < 2; i++) {
		f->hca_port[i]->lid = (uint16_t)(i + 1);
		f->hca_port[i]->state = IB_PORT_ACTIVE;
	}
	assert_int_equal(daemon_loop_init(&loop), 0);
	daemon_mads_init(&mads, f, &loop);
	f->mads->sink.deliver = deliver;
	f->mads->sink.arg = &storm;
	/* to itself, on QP1: the class of vendors, which no agent wants */
	storm.mad = (struct fabric_mad){
		.slid = 1, .dlid = 1, .src_qpn = 1, .dest_qpn = 1, .qkey = IB_QKEY_GSI
	};
	storm.mad.data[0] = 1;
	storm.mad.data[1] = 0x0A;
	storm.mad.data[2] = 1;
	storm.mad.data[3] = 1;
	storm.request.ready = on_request;
	assert_int_equal(daemon_source_watch(&loop, &storm.request, fd, EPOLLIN), 0);
	daemon_mads_queue(&mads, storm.from, &storm.mad);
	daemon_mads_send(&mads);
	assert_in_range(storm.delivered, 1, 2000);
	for (unsigned i = 0; i < 100; i++) {
		storm.delivered = 0;
		assert_int_equal(daemon_loop_turn(&loop), 0);
		assert_true(storm.delivered <= 2000);
		most = storm.delivered > most ? storm.delivered : most;
		storms += storm.delivered > 0;
	}
	/* a turn has many, unless this process was kept from a processor in it */
	assert_true(most >= 100);
	assert_true(storms > 20);
	assert_true(storm.asked > 20);
	/* those which trees and flows have to follow are fewer in a turn, but there is one */
	storm.delivered = 0;
	storm.work = 1000;
	daemon_mads_send(&mads);
	assert_in_range(storm.delivered, 1, 10);
	storm.delivered = 0;
	storm.work = 1000000;
	daemon_mads_send(&mads);
	assert_int_equal(storm.delivered, 1);
	daemon_mads_fini(&mads);
	daemon_loop_fini(&loop);
	close(fd);
	fabric_free(f);
}

CASE(a_mad_without_memory_is_lost_and_counted)
{
	struct fabric *f = testing_fabric(2);
	const struct fabric_mad mad = { .slid = 1, .dlid = 2 };
	struct daemon_mads mads = { 0 };

	daemon_mads_init(&mads, f, NULL);
	daemon_mads_queue(&mads, f->hca_port[0], &mad);
	assert_false(STAILQ_EMPTY(&mads.queue));
	assert_int_equal(f->mads->stats.no_memory, 0);
	daemon_mads_fini(&mads);
	for (unsigned i = 1; i < 3; i++) {
		no_memory = true;
		daemon_mads_queue(&mads, f->hca_port[0], &mad);
		no_memory = false;
		assert_true(STAILQ_EMPTY(&mads.queue));
		assert_int_equal(f->mads->stats.no_memory, i);
	}
	fabric_free(f);
}
