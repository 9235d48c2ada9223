/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The link on RoCEv2: how an Ethernet port sends and receives datagrams.
 *
 * Sending: ibv_post_send() delivers to receivers of the same fabric in shared memory, as always.
 * For receivers elsewhere it adds the packet to its sender's batch, which one system call sends
 * before ibv_post_send() returns.
 *
 * Receiving: a port has one socket for each IP version. The daemon and every process that has the
 * HCA open have duplicates of them. A process that polls a CQ and finds nothing receives a batch
 * for all processes: it reads the datagrams into its own memory and checks them, copies each
 * message to a payload slot, and delivers it as a sender does, to receivers in any process. So each
 * datagram is received once, by a process that is awake, and nobody waits for another process's
 * thread. Where there are connections, polls that find something and posts receive as well, once
 * nobody has polled for a while (hca_roce_attention()). While no process polls, the daemon
 * receives. Packets of connected queue pairs (RC, UC) go to hca/transport/packet_connection.h
 * instead (packet_receiver.h), which also sends its own by the batches here.
 *
 * Complications. To keep the packets of a flow in order, one thread of all processes receives at a
 * time, the holder. A word in shared memory names the holder and when it began, as it may die or be
 * stopped meanwhile. Datagrams that a polling process receives must not wake the daemon: while a
 * process polls, the daemon does not watch the sockets, and a process that arms a CQ to sleep calls
 * it back. Each receiving process delivers as a sender of its own (sender.h), so that the daemon
 * can clean up if it dies.
 *
 * Thread-safe.
 */
#ifndef HCA_LINK_ROCE_H
#define HCA_LINK_ROCE_H

#include "hca/link/packet_receiver.h"
#include "hca/process/link.h"
#include "hca/queue/ah.h"
#include "hca/queue/sender.h"
#include "netdev/udp.h"
#include "wire/ipv4_ids.h"
#include "wire/roce.h"

#define HCA_ROCE_SOURCES                                                                         \
	16 /* sockets that send, for each IP version: flows are distributed over their UDP ports \
	    */

#define HCA_ROCE_NO_SLOT UINT32_MAX

/* A process that polls must look at least this often; else the daemon receives. */
#define HCA_ROCE_POLL_NS 1000000

struct hca_roce_batch;

struct hca_roce_source {
	int fd; /* -1: not opened yet */
	uint16_t port;
	uint16_t round; /* of the port's sockets when it was opened */
};

struct hca_roce {
	struct hca_link link; /* first */
	struct hca_process *process;
	uint32_t hca_handle; /* the daemon's */
	uint32_t port;       /* index */
	struct shm_roce_port *shm;
	int wake_fd;
	struct hca_sender sender; /* of what is received */
	/* receiving: under receive_lock */
	struct base_lock receive_lock;
	int receive_fd[2]; /* IPv4, IPv6; -1: there is none */
	uint16_t round;    /* of these sockets */
	unsigned busy;     /* the one that had datagrams last */
	unsigned batch;    /* how many buffers to ask the kernel to fill next */
	uint32_t polls;
	struct wire_ipv4_ids ids; /* of those whose datagrams came */
	struct hca_ah group;      /* to which the last multicast message went */
	struct ib_gid foreign;    /* the source of the last one; it is no address of ours */
	uint32_t foreign_seq;     /* of the port's record then */
	struct netdev_udp_datagram datagram[NETDEV_UDP_BATCH];
	uint8_t *memory;        /* of their buffers */
	struct hca_wires wires; /* connected queue pairs whose packets come */
	/* the packets that came last, of a message of one of these; and a place for the next one */
	struct wire_roce_packet run[HCA_WIRES_RUN_MOST + 1];
	unsigned n_run;
	uint64_t moved; /* bytes of payload that this process received, or sent while it received */
	struct {        /* of the batch just now */
		unsigned datagrams, packets, delivered;
		uint64_t bytes;
	} now;
	/* sending: under source_lock */
	struct base_lock source_lock;
	struct hca_roce_source source[2][HCA_ROCE_SOURCES];
	_Atomic bool one_by_one; /* send each message by itself: neither kernel nor netdev cuts
	                            larger pieces */
	bool rxe_flush;          /* a setting */
	/* batches that no sender has: under batches_lock */
	struct base_lock batches_lock;
	SLIST_HEAD(, hca_roce_batch) batches;
};

/* *@link: the network link of HCA @hca (index), which the process has open as @handle. 0 or -errno.
 * ops->close() closes it. */
int hca_roce_open(struct hca_process *p, uint32_t hca, uint32_t handle, struct hca_link **link);

static inline struct hca_roce *hca_roce(struct hca_link *link)
{
	return (struct hca_roce *)link;
}

/* For flows with all receivers outside of the machine. */
extern const struct hca_link_ops hca_link_roce;

/* Whether a process is receiving, or has polled a moment ago and will again. */
bool hca_roce_is_polled(const struct hca_roce *roce);

/* Ends the turn of a dead process, if it died as the holder. @writer: the QP index of its sender.
 */
void hca_roce_release(struct shm_roce_port *shm, uint16_t writer);

/* Where packets go, and the queue pair that they are of. */
struct hca_roce_route {
	struct ib_gid dgid;
	uint32_t class_flow; /* traffic class << 20 | flow label */
	uint32_t qpn;
	uint8_t hop_limit, sgid_index;
};

/*
 * A packet of a connected queue pair, in two steps. begin(): room for its payload of @bytes, up to
 * WIRE_ROCE_MAX_PAYLOAD. NULL: there is no way there, which is counted, or no memory. end(): the
 * payload is there; adds the packet to the batch of @s, of which hca_sender_finish() sends the
 * rest.
 */
uint8_t *hca_roce_begin(struct hca_sender *s, const struct hca_roce_route *to, uint32_t bytes);
void hca_roce_end(struct hca_sender *s, const struct wire_headers *h);
/* How many packets the batch has room for behind the one that was begun. If that has more than
 * SHM_INLINE bytes of payload, a multiple of a line of the cache, theirs lie right behind it. */
unsigned hca_roce_behind(const struct hca_sender *s);

/* Frees what is known of where the packets of @s went. */
void hca_roce_free_path(struct hca_sender *s);

/*
 * Sends one packet at once, for the daemon itself. Fills in its UDP source port. 0 or -errno: see
 * netdev_udp_send().
 */
int hca_roce_send_one(struct hca_roce *roce, struct wire_roce_packet *packet);

/* Calls the daemon, if it sleeps or leaves the port to others: there is something to look at. */
void hca_roce_call_daemon(struct hca_roce *roce);

/* ---- between the files of the link ---- */

/* hca_link_ops.send and flush: link_roce_send.c. */
void hca_roce_send(struct hca_sender *s, struct hca_flow *flow, const struct hca_packet *pkt,
                   uint32_t remote_qpn);
void hca_roce_flush(struct hca_sender *s);
/* Of flows that have receivers here, too. */
extern const struct hca_link_ops hca_link_shm_and_roce;

/* hca_link_ops.progress and those below: link_roce_receive.c. */
bool hca_roce_receive(struct hca_link *link, bool again);
enum hca_attention hca_roce_attention(const struct hca_link *link, uint64_t now);
void hca_roce_rest(struct hca_link *link);

/* The socket of that IP version (0 is IPv4, 1 is IPv6) has dropped so many datagrams in all, modulo
 * 2^32, as the holder has heard some time ago. */
void hca_roce_note_lost(struct hca_roce *roce, unsigned version, uint32_t lost);

/* Asks the daemon for a socket of the port, or for the eventfd. The descriptor or -errno. */
int hca_roce_socket(struct hca_roce *roce, struct control_roce_socket *req, uint32_t *source_port);

/* Opens the port's sockets again, after the device was away. Under receive_lock. */
void hca_roce_reopen(struct hca_roce *roce);

/* Closes them: the next daemon needs the UDP port. Under receive_lock. */
void hca_roce_abandon(struct hca_roce *roce);
void hca_roce_close_sources(struct hca_roce *roce);

/* Frees the batches that no sender has. */
void hca_roce_free_batches(struct hca_roce *roce);

/*
 * Socket number @i of those that send by that IP version. *@port: its UDP port. The descriptor or
 * -errno.
 */
int hca_roce_source(struct hca_roce *roce, bool is_ipv6, unsigned i, uint16_t *port);

#endif
