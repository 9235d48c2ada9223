/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state that the files of this folder share: clients, channels with their queues of events,
 * identifiers, ports in use, joins. All of it lives in the daemon's one thread.
 *
 * The owners: a client owns its channels and identifiers (by handle, so that nothing it sends can
 * name another's); an identifier owns its joins, a channel its events. A listener owns the
 * identifiers that it has announced, until the process has got the request.
 */
#ifndef CM_STATE_H
#define CM_STATE_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/hash.h"
#include "base/idtable.h"
#include "cm/ops.h"
#include "wire/cm_mad.h"
#include "wire/sa_records.h"

#define CM_NO_HANDLE  UINT32_MAX
#define CM_NS_PER_MS  1000000ull
#define CM_ALL_HOSTS  (-1)
#define CM_SLICE      256   /* identifiers, or joins: about a millisecond */
#define CM_MAX_EVENTS 65536 /* in a channel: a process that does not read gets no more */

/* The changes that all groups of a port hear of: group.c. */
enum cm_port_change { CM_PORT_RESET, CM_PORT_PKEYS, CM_PORT_RENEW, CM_PORT_CHANGES };

/* An HCA port. */
struct cm_port {
	struct cm *cm;
	struct fabric_port *port;
	struct cm_port *of_host;       /* the next port of the same host */
	struct base_hash_node by_ipv4; /* of InfiniBand: their addresses do not change */
	struct cm_sa *sa;              /* port.c; NULL: there is none to ask */
	TAILQ_ENTRY(cm_port) of_sa;
	TAILQ_HEAD(, cm_group) groups; /* first those that changes have not reached yet */
	uint32_t *gid_users;           /* on Ethernet: identifiers that use each GID */
	uint64_t changes;              /* a count, and what it was at the last one of each kind */
	uint64_t changed[CM_PORT_CHANGES];
	uint64_t reset_ns; /* when the last CM_PORT_RESET was */
	bool has_changed;
	TAILQ_ENTRY(cm_port) of_changed;
};

struct cm {
	struct fabric *f;
	struct cm_ops ops;
	struct cm_port *port;          /* by index */
	struct cm_port **of_host;      /* by host: its first port */
	struct base_hash by_ipv4;      /* struct cm_port */
	LIST_HEAD(, cm_sa) sas;        /* port.c */
	struct base_hash bindings;     /* struct cm_binding, by service ID */
	struct base_hash groups;       /* struct cm_group, by port and MGID */
	struct base_hash memberships;  /* program.c: by program and group */
	struct base_hash requests;     /* program.c: by transaction ID */
	struct base_hash transactions; /* mad.c: by transaction ID */
	struct base_hash asking;       /* struct cm_sidr, by request ID */
	struct base_hash asked;        /* struct cm_sidr, by peer and request ID */
	struct base_hash conns;        /* struct cm_conn, by communication ID */
	struct base_hash conn_peers;   /* the same, by the peer's communication ID */
	struct base_hash conn_qpns;    /* the same, by the peer's queue pair */
	unsigned n_listeners;
	TAILQ_HEAD(, cm_channel) doomed; /* channels whose identifiers are freed in slices, */
	LIST_HEAD(, cm_id) ending;       /* and identifiers that are gone but for their joins; */
	TAILQ_HEAD(, cm_port) changed;   /* ports whose groups have yet to hear of it, */
	TAILQ_HEAD(, cm_program) gone;   /* programs that have ended and are still members, */
	TAILQ_HEAD(, cm_group) busy;     /* and groups with more joins than one slice can do */
	unsigned worked;                 /* what groups have done: joins, requests */
	unsigned spare;                  /* work that may be done at once, before the timer */
	struct base_timer sweep;
	uint16_t last_port; /* the ephemeral port given last */
	uint32_t last_tid;  /* low half of a transaction ID */
	uint32_t last_request_id;
	uint32_t last_conn_id;
	uint32_t last_psn;
};

struct cm_client {
	struct cm *cm;
	bool gone;           /* it waits for its last channel, and for what ends */
	unsigned n_channels; /* doomed ones too */
	unsigned n_ending;   /* identifiers */
	int host;            /* index, or CM_ALL_HOSTS */
	struct base_idtable channels, joins;
	struct base_idtable ids, announced; /* identifiers: the process's own, and of requests */
	struct shm_events *events;          /* shm/events.h; NULL: there is no memory for it */
	uint64_t events_off;
};

/* The other end: on InfiniBand its LID, and its GID if packets carry a GRH; else its GID. */
struct cm_peer {
	struct ib_gid gid, own; /* its, and ours */
	uint16_t lid;
	bool has_grh; /* these are in the packet, which is by GID as well */
	uint8_t sl;
	uint16_t pkey_index; /* of our own port */
};

struct cm_event {
	TAILQ_ENTRY(cm_event) entry, of_id;
	struct cm_id *id;        /* whose it is: of a connection request, the listener */
	struct cm_join *join;    /* of multicast events */
	struct cm_id *announced; /* of a connection request that was not read yet, as we know */
	struct cm_peer peer;     /* likewise: the port that asks */
	LIST_ENTRY(cm_event) of_join;
	struct control_cm_event data;
};

struct cm_channel {
	uint32_t handle;
	struct cm_outbox *box;
	unsigned n_events;
	TAILQ_HEAD(, cm_event) events;
	LIST_HEAD(, cm_id) ids; /* those that have a handle */
	struct cm_client *client;
	bool doomed; /* it is gone for the process, and so are its identifiers */
	TAILQ_ENTRY(cm_channel) of_doomed;
};

/* A service ID, mostly a port number of a port space, and its users. */
struct cm_binding {
	struct base_hash_node node;
	uint64_t service;
	LIST_HEAD(, cm_id) owners;
};

enum cm_id_state {
	CM_IDLE,
	CM_ADDR_BOUND,
	CM_ADDR_QUERY,
	CM_ADDR_RESOLVED,
	CM_ROUTE_QUERY,
	CM_ROUTE_RESOLVED,
	CM_CONNECT,
	CM_DISCONNECT,
	CM_LISTEN,
};

struct cm_id {
	struct cm_client *client;
	struct cm_channel *channel;
	LIST_ENTRY(cm_id) of_channel;
	TAILQ_HEAD(cm_id_events, cm_event) events; /* its own that wait */
	uint32_t handle; /* its number; CM_NO_HANDLE: not the process's yet */
	uint64_t uid;    /* 0: made for a request, which is not accepted yet */
	enum cm_id_state state;
	uint16_t ps;      /* enum rdma_port_space */
	uint16_t qp_type; /* enum ibv_qp_type */
	uint8_t tos;
	bool reuse_addr, af_only, af_only_set;
	bool ends;                /* it is gone for everybody, and only has joins left */
	uint32_t events_reported; /* of those that the process asks for */
	uint32_t events_sent;     /* whole */

	union control_cm_addr src, dst;
	struct fabric_port *port; /* NULL: bound to no device */
	struct ib_gid sgid, dgid;
	uint32_t *counted; /* of its port's gid_users, for sgid; NULL: none */
	uint16_t pkey;
	uint32_t qkey; /* 0: none yet */
	struct control_cm_path path;
	bool has_path;
	struct cm_transaction *path_query;
	struct cm_resolving *resolving; /* resolve.c; in state CM_ADDR_QUERY */
	struct cm_event *route_event;   /* to be posted when the path query is over */

	struct cm_binding *binding;
	LIST_ENTRY(cm_id) of_binding;
	int scope; /* host on which its port number is in use, or CM_ALL_HOSTS */

	int backlog;          /* listener: requests that may still be announced, */
	int backlog_for_each; /* ... but not below this for a port that has a request waiting
	                         already */
	bool serves;          /* listener: the daemon responds to requests, none is announced */
	/* listener: requests that were sent, of which the process has not said that it has read
	 * them, and their number; and how many it has */
	struct cm_id_events requests;
	uint32_t n_requests, n_requests_read;
	struct cm_event *announced_by; /* while it is among them */
	LIST_HEAD(, cm_served) served; /* serve.c */

	bool passive;         /* made for a connection request that waits for a response */
	struct cm_sidr *sidr; /* the request that it has made, or was made for; or: */
	struct cm_conn *conn;
	uint8_t ack_timeout; /* of its queue pair, as the program wants it */
	bool ack_timeout_set;

	LIST_HEAD(, cm_join) joins;
};

struct cm_group; /* group.c: a port's membership in a group, however many joins share it */

struct cm_join {
	LIST_ENTRY(cm_join) of_id;
	uint32_t handle;
	uint64_t uid;
	struct cm_id *id;
	uint32_t events_reported;
	struct cm_event *event;       /* to be posted with the outcome; NULL: it has been */
	LIST_HEAD(, cm_event) events; /* that wait: the outcome, and that it is lost */

	/* the request to the SA, and its outcome: group.c's */
	struct wire_mcmember want; /* join_state: one bit */
	uint64_t mask;
	struct cm_group *group; /* NULL: the join failed or was reset */
	TAILQ_ENTRY(cm_join) of_group;
	bool is_member;      /* else it is pending */
	unsigned generation; /* a member: of the group's */
};

/* One request being served: body and reply are aligned for their types. */
struct cm_call {
	struct cm *cm;
	struct cm_client *client;
	const void *request;
	void *reply;
	uint32_t reply_bytes;
	int fd;      /* to go with the reply, or -1 */
	bool waited; /* for the reply */
};

/* ---- address.c: pure, but for the table of ports ---- */

bool cm_addr_known(const union control_cm_addr *a);  /* its family */
bool cm_addr_is_any(const union control_cm_addr *a); /* zero, or the loopback address */
bool cm_addr_is_zero(const union control_cm_addr *a);
bool cm_addr_is_loopback(const union control_cm_addr *a);
bool cm_addr_is_mcast(const union control_cm_addr *a);
bool cm_addr_equal(const union control_cm_addr *a, const union control_cm_addr *b); /* no ports */
uint16_t cm_addr_port(const union control_cm_addr *a);                              /* host order */

/* The index of the host that has @port. */
int cm_port_host(const struct cm *cm, const struct fabric_port *port);

/* The port of @host (or of any) that has the address, or NULL. */
struct fabric_port *cm_addr_find(const struct cm *cm, int host, const union control_cm_addr *a);

/* By which cm.by_ipv4 has a port. */
uint64_t cm_ipv4_hash(uint32_t ipv4);

/* The default port of @host (or of any host), for a caller that names none: an active one. Or
 * NULL. */
struct fabric_port *cm_addr_default_port(const struct cm *cm, int host, bool ethernet);

/* Sets the address in @a, but no port number, to the one of @port; IPv6: link-local as asked. */
void cm_addr_from_port(const struct cm *cm, const struct fabric_port *port, bool link_local,
                       union control_cm_addr *a);

/*
 * Sets the address in @src likewise, for a caller that names none and goes from @port to @dst. If
 * @dst is a loopback address, so is the source, as in Linux.
 */
void cm_addr_source(const struct cm *cm, const struct fabric_port *port,
                    const union control_cm_addr *dst, union control_cm_addr *src);

bool cm_addr_is_link_local(const union control_cm_addr *a);

/* The MGID of a group address as rdma_cm maps it; zero for an address of zero. */
void cm_addr_to_mgid(const union control_cm_addr *a, uint16_t pkey, bool udp, struct ib_gid *mgid);

void cm_port_gid(const struct cm *cm, const struct fabric_port *port, struct ib_gid *gid);

/* A request's private data, behind the IP addresses if the identifier has such. */
void cm_addr_put_private(const struct cm_id *id, const struct control_cm_connect *from,
                         uint8_t *data);

/* The IP addresses of a request. @dst_port: the service's. False: they are no IP addresses. */
bool cm_addr_from_wire(const struct wire_cm_ip *ip, uint16_t dst_port, union control_cm_addr *src,
                       union control_cm_addr *dst);

/* ---- roce.c: the differences on Ethernet ---- */

/* Whether it uses, or will use, a port on Ethernet. If its host has ports of both kinds, and it has
 * none of them yet, its destination says which: an address that a port has, or the host's routes.
 */
bool cm_roce(const struct cm_id *id);

/* Whether connected queue pairs of @port reach the port with the GID @peer: on Ethernet, if that is
 * a port of this fabric. */
bool cm_roce_connects(const struct cm *cm, struct fabric_port *port, const struct ib_gid *peer);

/* An address as a GID, IPv4 mapped; and whether @p has it. */
void cm_roce_gid(const union control_cm_addr *a, struct ib_gid *gid);
bool cm_roce_has_addr(const struct shm_port *p, const union control_cm_addr *a);

/* The source address is known now: its GID is what the identifier sends from. */
void cm_roce_use_source(struct cm_id *id);

/*
 * Asks the host's routes for the address from which packets to id->dst leave. @from: that
 * address without a port number, or zero if no route is needed. 0; -ENETUNREACH and the like:
 * there is no route.
 */
int cm_roce_find_route(const struct cm_id *id, union control_cm_addr *from);

/*
 * Finds port, source and GIDs for id->dst. @from: the address from cm_roce_find_route(). 0;
 * -ENODEV: the route leads by a device that is no HCA's; -EINVAL: id->ps is not for Ethernet;
 * -ENETUNREACH: the port is down.
 */
int cm_roce_resolve(struct cm_id *id, union control_cm_addr *from);

/* Makes a path, and has it told. 0 or -errno. */
int cm_roce_route(struct cm_id *id);

/* The record of the group that @request names. 0; -EINVAL: that is no group. */
int cm_roce_record(struct cm_id *id, const struct control_cm_join *request,
                   struct wire_mcmember *rec);

/* The port becomes a member in rec->join_state; ceases to be in @states. 0 or -errno. */
int cm_roce_join(struct cm_port *p, const struct wire_mcmember *rec);
void cm_roce_leave(struct cm_port *p, const struct ib_gid *mgid, uint8_t states);

/* ---- binding.c: port spaces ---- */

/* Reserves the port number in @id->src. If that is 0, chooses a free one and writes it to @id->src.
 * -EADDRINUSE, -EADDRNOTAVAIL, -EPROTONOSUPPORT, -ENOMEM. */
int cm_binding_reserve(struct cm *cm, struct cm_id *id);
void cm_binding_release(struct cm *cm, struct cm_id *id);

/* Whether @id may listen on the port number that it has, beside others that share it. */
int cm_binding_may_listen(const struct cm_id *id);

/*
 * The listener at @port for requests to a service. @dst: the address that the requests name; if it
 * is not an IP address it is AF_IB, and only listeners of that family hear. NULL: nobody listens.
 */
struct cm_id *cm_binding_listener(const struct cm *cm, const struct fabric_port *port,
                                  uint64_t service_id, const union control_cm_addr *dst);

/* ---- channel.c ---- */

int cm_channel_create(struct cm_call *call);
int cm_channel_destroy(struct cm_call *call);
int cm_channel_get_event(struct cm_call *call);
int cm_channel_ring(struct cm_call *call);
int cm_channel_read(struct cm_call *call);
int cm_channel_return(struct cm_call *call);

/*
 * Ends a channel and its identifiers. A few are freed at once, many in slices: each may have
 * something to say to a peer.
 */
void cm_channel_doom(struct cm_channel *channel);

/* Frees all identifiers of channels that are doomed, and all joins of identifiers that end. */
void cm_sweep_all(struct cm *cm);

/* There is something of that to do, or groups have work: some of it is done at once. */
void cm_sweep_begin(struct cm *cm);

/* The same, but nothing is done before this returns. */
void cm_sweep_later(struct cm *cm);

/* Frees a client that is gone and has no channels. */
void cm_client_release(struct cm_client *client);

/* A new event of @type for @id, or NULL. It goes with cm_event_post() or cm_event_free(). */
struct cm_event *cm_event_new(struct cm_id *id, enum rdma_cm_event_type type, int status);
void cm_event_post(struct cm_event *e);

/* That the port is no longer a member in the name of @j. It finds room though others have none: of
 * each join there is one at most. */
struct cm_event *cm_event_new_lost(struct cm_join *j);

/* One that is not posted. The identifier that it announces is freed, and the backlog has room. */
void cm_event_free(struct cm_event *e);

/* cm_event_new() and cm_event_post(): 0 or -ENOMEM. */
int cm_event_send(struct cm_id *id, enum rdma_cm_event_type type, int status);

/* The call about @id has @status: if it has failed, and nobody waits for the reply, an event says
 * so, also where cm_event_new() makes none. Returns @status. */
int cm_event_failure(const struct cm_call *call, struct cm_id *id, enum rdma_cm_event_type type,
                     int status);

/* Removes the waiting events of @id, or of @join alone if it is not NULL. Their number. */
uint32_t cm_event_withdraw(struct cm_id *id, const struct cm_join *join);

/* The process has got @n requests of @listener so far. */
void cm_requests_read(struct cm_id *listener, uint32_t n);

/* The request that has brought @id is read, as the process uses it. */
void cm_request_used(struct cm_id *id);

/* Nobody reads those that were not: they are refused. */
void cm_requests_drop(struct cm_id *listener);

/* Moves the events of @id to @to. How many that wait. */
uint32_t cm_event_move(struct cm_id *id, struct cm_channel *to);

/* ---- id.c ---- */

int cm_id_create(struct cm_call *call);
int cm_id_destroy(struct cm_call *call);
int cm_id_migrate(struct cm_call *call);
int cm_id_query(struct cm_call *call);
int cm_id_query_qp(struct cm_call *call);
int cm_id_set_option(struct cm_call *call);

/* An identifier of @client without handle, in state CM_IDLE; or NULL. */
struct cm_id *cm_id_new(struct cm_client *client, struct cm_channel *channel, uint16_t ps,
                        uint16_t qp_type);
/* Its joins end in slices: cm_sweep_begin() is due. */
void cm_id_free(struct cm_id *id);
/* Ends a join of an identifier that is gone, which is freed with the last one. */
void cm_id_end_join(struct cm_id *id);
/* It was made for a request, and is the process's from now on. 0 or -errno. */
int cm_id_add_announced(struct cm_id *id);
void cm_id_move(struct cm_id *id, struct cm_channel *to);

/* The identifier of that number, or NULL. */
struct cm_id *cm_id_at(const struct cm_client *client, uint32_t handle);

/* Its word of shm/events.h; NULL: it has none. */
_Atomic uint32_t *cm_id_word(const struct cm_id *id);

/* The same for one that the request names: which the process has not given up. */
struct cm_id *cm_id_find(const struct cm_call *call, uint32_t handle);

/* Gives it the Q_Key of its port space. -EADDRNOTAVAIL: there is no broadcast group. */
int cm_id_default_qkey(struct cm_id *id);
/* The index of id->sgid in the port's table: on Ethernet where it was when @id got it. */
uint8_t cm_id_sgid_index(const struct cm_id *id);
void cm_id_describe(const struct cm_id *id, struct control_cm_id_reply *reply);
/* The known attributes of its queue pair. 0 or -errno. */
int cm_id_describe_qp(struct cm_id *id, struct control_cm_qp_reply *reply);
/* @port NULL: it has none. Nobody else gets the place of @sgid before @id ends or has another. */
void cm_id_set_source(struct cm_id *id, struct fabric_port *port, const struct ib_gid *sgid);
/* The same, with the first GID of @port. */
void cm_id_use_port(struct cm_id *id, struct fabric_port *port);

/* ---- resolve.c ---- */

int cm_resolve_bind(struct cm_call *call);
int cm_resolve_addr(struct cm_call *call);
int cm_resolve_route(struct cm_call *call);

/* Binds to @addr. 0 or -errno, with the state as it was. */
int cm_resolve_bind_id(struct cm_id *id, const union control_cm_addr *addr);

/* The service ID of an address: port space and port number, or what AF_IB says. */
uint64_t cm_resolve_service_id(uint16_t ps, const union control_cm_addr *a);

/* @id is destroyed: ends its search for the destination, and its route query. */
void cm_resolve_abandon(struct cm_id *id);

/* The path as the program has it (RDMA_OPTION_IB_PATH). */
int cm_resolve_set_path(struct cm_id *id, const void *value, uint32_t bytes);

/* ---- connect.c: the common part of UD and connections, and which of them a call is for ---- */

int cm_connect_listen(struct cm_call *call);
int cm_connect_connect(struct cm_call *call);
int cm_connect_accept(struct cm_call *call);
int cm_connect_reject(struct cm_call *call);
int cm_connect_disconnect(struct cm_call *call);
int cm_connect_establish(struct cm_call *call);
int cm_connect_notify(struct cm_call *call);

/* Listens with the port number that @id has or is given. 0 or -errno. */
int cm_connect_start_listening(struct cm_id *id, int backlog);

/* A request that has come for a listener. */
struct cm_asked {
	struct fabric_port *port;
	const struct cm_peer *peer;
	uint64_t service_id;
	uint16_t pkey;
	const struct ib_gid *gid; /* of the requester; NULL: it is not in the request */
	const uint8_t *private_data;
	union control_cm_addr src, dst; /* in it; AF_IB: it has none */
};

/* Reads the addresses. */
void cm_connect_read_addresses(const struct cm *cm, struct cm_asked *asked);

/*
 * An identifier for @listener, in state CM_CONNECT, in an event that is yet to be posted. NULL:
 * the listener is of another family, its backlog is full, or there is no memory.
 */
struct cm_event *cm_connect_announce(struct cm_id *listener, const struct cm_asked *asked);

/* Where to send from there: an address handle. */
void cm_connect_fill_ah(const struct cm_id *id, struct control_cm_ah *ah);

/* Has the request hear of its response. @head: of @mad, which was received at @port. False: it is
 * no response to this module. */
bool cm_mad_response(struct cm *cm, struct fabric_port *port, const struct wire_mad *head,
                     const struct fabric_mad *mad);

/* A MAD of communication management has come to @port. Whether it was any use. */
bool cm_connect_input(struct cm *cm, struct fabric_port *port, const struct wire_mad *head,
                      const struct fabric_mad *mad);

/* ---- sidr.c ---- */

int cm_sidr_connect(struct cm_id *id, const struct control_cm_connect *request);
int cm_sidr_accept(struct cm_id *id, const struct control_cm_connect *request);
int cm_sidr_reject(struct cm_id *id, const struct control_cm_connect *request);

/* @id is destroyed: a request that waits for its response is refused. */
void cm_sidr_abandon(struct cm_id *id);

void cm_sidr_receive_request(struct cm *cm, struct fabric_port *port, const struct wire_mad *head,
                             const struct fabric_mad *mad);
bool cm_sidr_receive_response(struct cm *cm, struct fabric_port *port,
                              const struct fabric_mad *mad);

/* ---- conn.c ---- */

int cm_conn_connect(struct cm_id *id, const struct control_cm_connect *request);
int cm_conn_accept(struct cm_id *id, const struct control_cm_connect *request);
int cm_conn_reject(struct cm_id *id, const struct control_cm_connect *request);
int cm_conn_establish(struct cm_id *id);
int cm_conn_disconnect(struct cm_id *id);
int cm_conn_notify(struct cm_id *id, uint32_t event);

/* The known attributes of its queue pair. */
void cm_conn_query_qp(const struct cm_id *id, struct control_cm_qp_reply *reply);

/* @id is destroyed: its peer is told. */
void cm_conn_abandon(struct cm_id *id);

/* ---- conn_input.c ---- */

bool cm_conn_input(struct cm *cm, struct fabric_port *port, const struct wire_mad *head,
                   const struct fabric_mad *mad);

/* ---- serve.c ---- */

int cm_serve(struct cm_call *call);

/* The queue pair that @listener serves requests at @port with; 0: none. */
uint32_t cm_serve_find(const struct cm_id *listener, const struct fabric_port *port);

/* @id is destroyed. */
void cm_serve_end(struct cm_id *id);

/* ---- multicast.c ---- */

int cm_multicast_join(struct cm_call *call);
int cm_multicast_leave(struct cm_call *call);

/* Gives up a join of @id, if it has any. */
void cm_multicast_leave_one(struct cm_id *id);

/*
 * The outcome of a join, once: 0 and the group's record, or -errno. May be told before
 * cm_group_join() returns.
 */
void cm_multicast_done(struct cm_join *j, int status, const struct wire_mcmember *rec);

/* The port is no longer a member. */
void cm_multicast_lost(struct cm_join *j);

/* ---- group.c ---- */

/* Has the port join in the name of @j, whose want, mask and id are set. 0 or -ENOMEM. */
int cm_group_join(struct cm_join *j);

/* Ends @j, in whatever state it is. */
void cm_group_leave(struct cm_join *j);

/* Whether groups have work that waits; does a little of it. */
bool cm_groups_wait(const struct cm *cm);
void cm_groups_work(struct cm *cm);

/* See cm_port_changed(). */
void cm_group_port_changed(struct cm_port *p);

/* The same for groups of partitions that the port is no longer in. */
void cm_group_pkeys_changed(struct cm_port *p);

/* See cm_port_renew(). */
void cm_group_renew(struct cm_port *p);

/* Frees those that have no joins but are still to leave. */
void cm_groups_fini(struct cm *cm);

/* ---- program.c ---- */

/* Whether programs that have ended are still members; ends one membership of them. */
bool cm_programs_wait(const struct cm *cm);
void cm_programs_work(struct cm *cm);

/* ---- port.c ---- */

int cm_ports_init(struct cm *cm);
/* The port has, or has no longer, a subnet administrator: what is to be known of it is asked for.
 */
void cm_port_follow_sa(struct cm_port *p);
void cm_ports_fini(struct cm *cm);
struct cm_port *cm_port_of(const struct cm *cm, const struct fabric_port *port);

/*
 * The index of @pkey's partition in the port's table, whatever membership @pkey itself claims; of
 * full and limited membership the full one. 0 or -ENOENT.
 */
int cm_port_pkey_index(const struct fabric_port *port, uint16_t pkey, uint16_t *index);

/* The record of the IPoIB broadcast group of @port's partition @pkey, or NULL: there is none, or
 * it is not known. */
const struct wire_mcmember *cm_port_broadcast(const struct cm *cm, const struct fabric_port *port,
                                              uint16_t pkey);

/* Whether the SA of @port is known to let send-only full members join. */
bool cm_port_allows_send_only(const struct cm *cm, const struct fabric_port *port);

#endif
