/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stream rsockets: bytes are written by RDMA into a buffer of the peer, over a reliable connection
 * of rdma_cm. The messages on the wire are those of rdma-core's rsockets, version 1.
 *
 * Each side tells the other where it may write: half of its receive buffer at first, in the private
 * data of REQ and REP, and each half again once the program has read it. For that a side has a list
 * of two places, its targets, which the peer updates by RDMA WRITE. Everything else is immediate
 * data (enum rsocket_op): how many bytes were written, how many more messages there is room for,
 * that the peer sends no more.
 *
 * There is no thread of ours: connections proceed while a thread of the program is in a call of
 * any rsocket (rsocket_sleep.c).
 */
#ifndef API_RDMACM_RSOCKET_STREAM_H
#define API_RDMACM_RSOCKET_STREAM_H

#include <assert.h>

#include "api/rdmacm/rsocket/rsocket.h"

#define RSOCKET_VERSION     1
#define RSOCKET_N_TARGETS   2
#define RSOCKET_N_CONTROL   4     /* sends kept for messages that are no data */
#define RSOCKET_SPARE       8     /* receives beyond the credits: for the peer's such messages */
#define RSOCKET_ENOUGH      2048  /* bytes of the send buffer: with less free one waits */
#define RSOCKET_FIRST_PIECE 16384 /* of what is sent; the next one is twice as long */
#define RSOCKET_LAST_PIECE  65536
#define RSOCKET_MAX_INLINE  1024

/* ---- the wire ---- */

#define RSOCKET_OP_SHIFT   29
#define RSOCKET_VALUE_MASK ((1u << RSOCKET_OP_SHIFT) - 1)

/* The upper bits of the immediate data; below is a value. */
enum rsocket_op {
	RSOCKET_OP_DATA = 0,    /* bytes written at the target */
	RSOCKET_OP_CREDITS = 4, /* the number of the last message that there is room for */
	RSOCKET_OP_MAP = 6,     /* the index of a mapping that was updated */
	RSOCKET_OP_CONTROL = 7, /* enum rsocket_control */
};

enum rsocket_control {
	RSOCKET_DISCONNECT, /* neither sends nor receives any more */
	RSOCKET_KEEPALIVE,
	RSOCKET_SHUTDOWN, /* sends no more */
};

/* Memory of one side; in the byte order of the side that the entry is written to. */
struct rsocket_place {
	uint64_t addr;
	uint32_t key;
	uint32_t length;
};

struct rsocket_mapping {
	uint64_t offset;
	struct rsocket_place place;
};

#define RSOCKET_FLAG_BIG_ENDIAN 1
#define RSOCKET_FLAG_MAPPINGS   2

/* The bytes that rdma_cm puts in front of the private data of a REQ if it has IP addresses. An
 * identifier of AF_IB has all of the private data, and rsockets leave this place empty. */
#define RSOCKET_IP_BYTES 36

struct rsocket_be_place {
	__be64 addr;
	__be32 key;
	__be32 length;
};

/* The private data of REQ and REP. */
struct rsocket_hello {
	uint8_t version;
	uint8_t flags;
	__be16 credits;
	uint8_t reserved[3];
	uint8_t n_mappings;              /* as rsocket_scale_down() has it */
	struct rsocket_be_place targets; /* length: how many */
	struct rsocket_be_place buffer;  /* where to write at first */
};

static_assert(sizeof(struct rsocket_place) == 16, "rsocket_place");
static_assert(sizeof(struct rsocket_mapping) == 24, "rsocket_mapping");
static_assert(sizeof(struct rsocket_hello) == 40, "rsocket_hello");

/* ---- an rsocket ---- */

enum rsocket_stream_state {
	RSOCKET_IDLE,
	RSOCKET_LISTENING,
	RSOCKET_RESOLVING, /* the address, then the route */
	RSOCKET_ROUTING,
	RSOCKET_CONNECTING,
	RSOCKET_ACCEPTING, /* until the peer is ready */
	RSOCKET_FAILED,    /* it was never connected, and will not be */
	RSOCKET_CONNECTED,
	RSOCKET_DISCONNECTED,
};

/* riomap(): memory of ours that the peer may write to. */
struct rsocket_map {
	TAILQ_ENTRY(rsocket_map) entry;
	struct ibv_mr *mr; /* NULL: it is unmapped, and freed by the last teller */
	unsigned n_tellers;
	uint64_t offset;
	int index; /* in the peer's table; -1: it does not know of it */
	bool is_told;
};

/* The sending half: a ring of bytes, of which those below @free are not on their way. */
struct rsocket_out {
	uint8_t *ring;
	struct ibv_mr *mr;
	uint32_t bytes, at, free;
	uint32_t n_data, n_control; /* sends that may be posted */
	uint16_t sent, may_send;    /* the numbers of messages */
	struct rsocket_place target[RSOCKET_N_TARGETS];
	unsigned at_target, next_target; /* the one in use; the one to be updated next */
};

/* The receiving half: a ring of bytes, in which the peer writes. */
struct rsocket_in {
	uint8_t *ring;
	struct ibv_mr *mr;
	uint32_t bytes, at;
	uint32_t readable;
	uint32_t window;            /* bytes that the peer may still write */
	uint32_t freed, freed_at;   /* read by the program, and not told the peer */
	uint32_t credits;           /* messages that there is room for */
	uint16_t received, tell_at; /* messages; when to tell that there is room again */
};

struct rsocket_stream {
	struct rsocket rs;
	enum rsocket_stream_state state;
	int error;      /* an errno, for SO_ERROR */
	bool is_fault;  /* that is not only what the end of the peer looks like */
	bool peer_done; /* it sends nothing more */
	unsigned tries;
	union control_cm_addr peer;
	void *route; /* RDMA_ROUTE */
	size_t route_bytes;
	bool no_delay;
	int keep_idle;         /* seconds; 0: as the system has it */
	uint64_t keepalive_ms; /* when the next one is due; 0: not known */
	uint64_t drained_ms;   /* when a call that does not block last looked for events */

	/* while it listens: connections under way, and finished ones that rsocket_accept() has not
	 * returned */
	int backlog;
	bool is_full;
	TAILQ_HEAD(rsocket_streams, rsocket_stream) accepting, accepted;
	unsigned n_accepting, n_accepted;
	TAILQ_ENTRY(rsocket_stream) entry;

	/* the queue pair */
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	bool armed;
	uint8_t *memory; /* of both halves, and of what the peer writes to */
	struct rsocket_out out;
	struct rsocket_in in;

	/* what the peer writes to: our targets, and the mappings that it has */
	struct rsocket_place *targets;
	struct rsocket_mapping *mappings;
	uint32_t n_mappings;
	struct ibv_mr *targets_mr;

	/* the peer's of the same */
	bool swap; /* its byte order is not ours */
	struct rsocket_place peer_targets;
	unsigned at_peer_target;
	uint64_t peer_mappings;
	uint32_t n_peer_mappings;
	bool *is_mapped; /* of these */
	TAILQ_HEAD(, rsocket_map) maps;
	bool has_untold;
};

static inline struct rsocket_stream *rsocket_stream(struct rsocket *rs)
{
	return container_of(rs, struct rsocket_stream, rs);
}

static inline const struct rsocket_stream *rsocket_stream_const(const struct rsocket *rs)
{
	return container_of(rs, const struct rsocket_stream, rs);
}

static inline bool rsocket_stream_is_opening(const struct rsocket_stream *s)
{
	return s->state >= RSOCKET_RESOLVING && s->state <= RSOCKET_ACCEPTING;
}

/* ---- rsocket_stream.c ---- */

typedef bool rsocket_stream_test(const struct rsocket_stream *s);

/* Until @test holds, looking at completions. 0; -EAGAIN: it does not, and @block is not set;
 * -EINTR; -ETIMEDOUT. */
int rsocket_stream_wait(struct rsocket_stream *s, bool block, uint64_t until_ms,
                        rsocket_stream_test *test);

/* Of a call that sends or receives: it is connected now, or was. 0; -ENOTCONN, -EAGAIN, ... */
int rsocket_stream_settle(struct rsocket_stream *s, bool block);

/* It is over: @error is for SO_ERROR, 0: none. */
void rsocket_stream_break(struct rsocket_stream *s, int error);

/* Of one that is over: why it broke off, told once, as -errno; 0: by the peer, or it was told. */
int rsocket_stream_why(struct rsocket_stream *s);

/* ---- rsocket_stream_connect.c ---- */

int rsocket_stream_connect(struct rsocket *rs, const union control_cm_addr *addr);
void rsocket_stream_progress(struct rsocket *rs);

/* ---- rsocket_stream_hello.c ---- */

void rsocket_hello_format(const struct rsocket_stream *s, struct rsocket_hello *hello);

/* 0; -EPROTO: it is none, or of another version. */
int rsocket_hello_parse(struct rsocket_stream *s, const void *data, size_t bytes);

/* 16 bits in 8: a value above 128 loses its lower bits. up(down()): the value without them. */
uint8_t rsocket_scale_down(uint32_t value);
uint32_t rsocket_scale_up(uint8_t value);

/* ---- rsocket_stream_listen.c ---- */

int rsocket_stream_listen(struct rsocket *rs, int backlog);
int rsocket_stream_accept(struct rsocket *rs, struct rsocket **accepted);
void rsocket_stream_unlisten(struct rsocket_stream *s);

/* Accepts the request that @event is, or rejects it; the caller acknowledges the event. */
void rsocket_stream_request(struct rsocket_stream *listener, struct rdma_cm_event *event);

/* One that is being accepted has events. */
void rsocket_stream_proceed(struct rsocket_stream *listener, struct rsocket_stream *s);

/* ---- rsocket_stream_end.c ---- */

/* The queue pair of s->rs.id, with its buffers. 0 or -errno. */
int rsocket_stream_open(struct rsocket_stream *s);
void rsocket_stream_close(struct rsocket_stream *s);

void rsocket_stream_arm(struct rsocket *rs);
void rsocket_stream_disarm(struct rsocket_stream *s);

/* Serves completions, and tells the peer of what has become free. */
void rsocket_stream_poll(struct rsocket_stream *s);

/* Tells the peer how much room there is, if it is time to. */
void rsocket_stream_tell_credits(struct rsocket_stream *s);

/* A message without data. False: there is no room for it. */
bool rsocket_stream_control(struct rsocket_stream *s, enum rsocket_control control);

/* Posts @n bytes at @addr (NULL: those at the ring's position, which moves on) as an RDMA WRITE to
 * @to; @imm NULL: without immediate data. 0 or -errno. */
int rsocket_stream_write(struct rsocket_stream *s, const void *addr, uint32_t n,
                         const struct rsocket_place *to, const uint32_t *imm);

bool rsocket_stream_can_send(const struct rsocket_stream *s);
bool rsocket_stream_all_sent(const struct rsocket_stream *s);

/* ---- rsocket_stream_send.c, rsocket_stream_receive.c ---- */

/* Where in the program's buffers we are. */
struct rsocket_cursor {
	const struct iovec *iov;
	size_t offset;
};

/* Sends all of @left bytes as pieces; @piece posts one of them of at most @n bytes, and says of how
 * many (0: there is nowhere to write to) or -errno. The number of bytes, or -errno. */
ssize_t rsocket_stream_pieces(struct rsocket_stream *s, const struct rsocket_message *m,
                              int (*piece)(struct rsocket_stream *s, struct rsocket_cursor *from,
                                           uint32_t n, void *arg),
                              void *arg);

/* Puts the next @n bytes into the ring, or, if few, into @small. Returns the address to give to
 * write(). */
const void *rsocket_stream_gather(struct rsocket_stream *s, struct rsocket_cursor *from, uint32_t n,
                                  uint8_t small[RSOCKET_MAX_INLINE]);

ssize_t rsocket_stream_send(struct rsocket *rs, const struct rsocket_message *m);
ssize_t rsocket_stream_receive(struct rsocket *rs, struct rsocket_message *m);

/* ---- rsocket_stream_map.c ---- */

int rsocket_stream_map(struct rsocket *rs, void *addr, size_t bytes, int prot, off_t *offset);
int rsocket_stream_unmap(struct rsocket *rs, void *addr, size_t bytes);
ssize_t rsocket_stream_write_mapped(struct rsocket *rs, const struct rsocket_message *m,
                                    off_t offset);

/* Tells the peer of mappings that it does not know yet. 0 or -errno. */
int rsocket_stream_tell_maps(struct rsocket_stream *s, bool block);
void rsocket_stream_free_maps(struct rsocket_stream *s);

/* ---- rsocket_stream_option.c ---- */

/* Seconds between two keepalives. */
int rsocket_stream_keep_idle(const struct rsocket_stream *s);

int rsocket_stream_set(struct rsocket *rs, int level, int name, const void *value, socklen_t bytes);
int rsocket_stream_get(struct rsocket *rs, int level, int name, void *value, socklen_t *bytes);

#endif
