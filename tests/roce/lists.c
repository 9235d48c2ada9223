/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lists send ADDRESS TO QPN LISTS LENGTH BYTES: on the host of that address sends so many lists, of
 * so many messages of so many bytes each, to address TO, a group's or a host's.
 * lists take ADDRESS MESSAGES FIFO: says "qpn N"; looks at nothing until somebody writes to FIFO;
 * then polls until it has so many messages of up to 1,024 bytes, and says "got all".
 *
 * system_calls.sh counts what that takes.
 */
#include "posix.h"
#include "common/endpoint.h"

static unsigned number(const char *text)
{
	return (unsigned)strtoul(text, NULL, 0);
}

static void send_lists(char **arg)
{
	unsigned lists = number(arg[3]), length = number(arg[4]);
	struct bench_endpoint e;

	bench_endpoint_open(&e, &(struct bench_plan){ .address = arg[0],
	                                              .bare = true,
	                                              .send = arg[1],
	                                              .depth = 2 * BENCH_LIST,
	                                              .bytes = number(arg[5]) });
	for (unsigned i = 0; i < BENCH_LIST; i++)
		e.send_wr[i].wr.ud.remote_qpn = number(arg[2]);
	while (lists--)
		bench_endpoint_send(&e, length);
	bench_endpoint_close(&e);
}

static void wait_for(const char *fifo)
{
	char c;
	int fd = open(fifo, O_RDONLY);

	if (fd < 0 || read(fd, &c, 1) != 1)
		err(EXIT_FAILURE, "%s", fifo);
	close(fd);
}

static void take(const char *address, unsigned messages, const char *fifo)
{
	struct bench_endpoint e;

	bench_endpoint_open(
	        &e, &(struct bench_plan){
	                    .address = address, .bare = true, .depth = messages, .bytes = 1024 });
	printf("qpn %u\n", e.qp->qp_num);
	fflush(stdout);
	wait_for(fifo);
	while (e.received < messages)
		bench_endpoint_poll(&e, BENCH_LIST);
	printf("got all\n");
	bench_endpoint_close(&e);
}

int main(int argc, char **argv)
{
	if (argc == 8 && !strcmp(argv[1], "send"))
		send_lists(argv + 2);
	else if (argc == 5 && !strcmp(argv[1], "take"))
		take(argv[2], number(argv[3]), argv[4]);
	else
		errx(2, "usage: lists send ADDRESS TO QPN LISTS LENGTH BYTES | "
		        "take ADDRESS MESSAGES FIFO");
	return 0;
}
