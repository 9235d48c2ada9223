/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `umbel explain wc`: what the status of a completion means, and what has usually caused it
 * (InfiniBand specification volume 1, section 11.6.2; ibv_poll_cq(3)). No fabric is asked.
 */
#include <json-c/json.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/explain.h"
#include "cli/json.h"
#include "wire/status.h"

#define MOST_CAUSES 5

#define NOT_HERE "not of queue pairs that there are today"

static const struct {
	const char *means, *cause[MOST_CAUSES];
} statuses[WIRE_STATUSES] = {
	{ "the request or the receive is done", { NULL } },
	{ "a length did not fit, at this end",
	  { "a receive was too short for the message that came",
	    "a datagram's receive lacks the 40 bytes for the GRH",
	    "a datagram is longer than the MTU, or a message than the port's max_msg_sz" } },
	{ "the queue pair cannot do that",
	  { "an operation that its type lacks, or that its flags forbid",
	    "an address handle of another protection domain",
	    "a memory window, or a key to be invalidated, that may not be used so" } },
	{ NOT_HERE, { NULL } },
	{ "an entry of sg_list is no memory that this queue pair may use",
	  { "its lkey is none, or of a region that was deregistered",
	    "addr and length are not all within the region",
	    "the region is in another protection domain than the queue pair",
	    "what is written to, by a receive, READ or atomic operation, lacks "
	    "IBV_ACCESS_LOCAL_WRITE" } },
	{ "it was still to be done when the queue pair went to ERR, or was in it already",
	  { "an earlier completion of the same queue pair says what went wrong",
	    "the peer has disconnected, or rdma_disconnect() was called",
	    "the program has moved the queue pair to ERR itself" } },
	{ "a memory window could not be bound",
	  { "the region lacks IBV_ACCESS_MW_BIND, or rights that the window asks for",
	    "the window would reach beyond the region" } },
	{ "the responder's answer was none that could come",
	  { "a broken or hostile peer, if packets are exchanged" } },
	{ "memory at this end cannot be accessed so",
	  { "a WRITE with immediate data that came found a receive it could not complete" } },
	{ "the responder found the request invalid",
	  { "a message was longer than the receive that it met at the peer",
	    "the peer's queue pair takes no such operation: qp_access_flags",
	    "an atomic operation's address is no multiple of 8",
	    "max_dest_rd_atomic of the peer is 0" } },
	{ "the responder does not give access to the memory that was named",
	  { "rkey is none, or of a region that was deregistered",
	    "remote_addr and length are not all within the region",
	    "the region, or qp_access_flags of the peer, lacks REMOTE_WRITE, REMOTE_READ or "
	    "REMOTE_ATOMIC",
	    "the region is in another protection domain than the peer's queue pair" } },
	{ "the responder could not carry out the request, for reasons of its own",
	  { "the receive that the message met names memory that the peer may not use" } },
	{ "nobody has acknowledged a request, which was sent retry_cnt times again after a "
	  "timeout each",
	  { "the peer's process has died, or has destroyed its queue pair",
	    "the peer's queue pair is not in RTR or RTS, or is in ERR",
	    "dest_qp_num, or rq_psn and sq_psn of the two, do not match",
	    "no way leads there: a link, a route, a P_Key, or the GID or LID of the path",
	    "timeout and retry_cnt are too short for a slow or lossy way" } },
	{ "the responder had no receive posted, and that rnr_retry times again",
	  { "the peer posts too few receives, or too late: before it is sent to",
	    "the peer does not poll, so does not post again what was used",
	    "rnr_retry is less than 7 (for ever), or min_rnr_timer of the peer too short" } },
	{ NOT_HERE, { NULL } },
	{ "the responder does not take the READ or atomic operation",
	  { "more of them are under way than max_dest_rd_atomic of the peer" } },
	{ "the operation was aborted at the responder", { NULL } },
	{ NOT_HERE, { NULL } },
	{ NOT_HERE, { NULL } },
	{ "the HCA cannot be used any more",
	  { "the daemon of the fabric has ended: umbel status" } },
	{ "no response came in time", { NULL } },
	{ "none of the others", { NULL } },
	{ "tag matching failed: no queue pair here has that", { NULL } },
	{ "a message that matched a tag is to be fetched: no queue pair here has that", { NULL } },
};

static int print_json(unsigned status, const char *name)
{
	struct json_object *all = json_object_new_object(), *causes = json_object_new_array();
	int ret;

	json_object_object_add(all, "number", json_object_new_int((int)status));
	json_object_object_add(all, "name", json_object_new_string(name));
	json_object_object_add(all, "means", json_object_new_string(statuses[status].means));
	for (unsigned i = 0; i < MOST_CAUSES && statuses[status].cause[i]; i++)
		json_object_array_add(causes, json_object_new_string(statuses[status].cause[i]));
	json_object_object_add(all, "causes", causes);
	ret = cli_json_print(all);
	json_object_put(all);
	return ret;
}

int cli_explain_wc(const struct cli_command *self, const char *text, bool json)
{
	const int status = wire_status_parse(text);
	char name[40];

	if (status < 0)
		return cli_usage_error(self, "'%s' is no status of completions, as RETRY_EXC or 12",
		                       text);
	snprintf(name, sizeof(name), "IBV_WC_%s", wire_status_name((unsigned)status));
	if (json)
		return print_json((unsigned)status, name);
	printf("%s, %d: %s\n", name, status, statuses[status].means);
	for (unsigned i = 0; i < MOST_CAUSES && statuses[status].cause[i]; i++)
		printf("  - %s\n", statuses[status].cause[i]);
	return CLI_OK;
}
