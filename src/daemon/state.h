/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The manager's state, shared by the files of this folder: clients, and the objects
 * that they hold. All of it lives in one thread, that of the event loop.
 */
#ifndef DAEMON_STATE_H
#define DAEMON_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <infiniband/verbs.h>
#include <systemd/sd-event.h>

#include "base/idtable.h"
#include "cm/cm.h"
#include "control/message.h"
#include "control/socket.h"
#include "fabric/attach.h"
#include "fabric/fabric.h"
#include "fabric/flow.h"
#include "fabric/mads.h"
#include "shm/extent.h"
#include "subnet/sa.h"
#include "subnet/sm.h"
#include "subnet/sm_role.h"

struct daemon;
struct daemon_client;
struct daemon_roce;
struct daemon_umad;
struct fabric_mad;
struct fabric_plan;
struct cm_outbox;

/* An HCA that a process has open: its asynchronous events go here. */
struct daemon_hca {
	LIST_ENTRY(daemon_hca) entry;
	struct daemon_client *client;
	uint32_t handle;
	uint32_t hca;
	struct cm_outbox *events;
};

struct daemon_channel {
	LIST_ENTRY(daemon_channel) entry;
	struct daemon_client *client;
	uint32_t id; /* low bits: index; high bits tell it from its predecessors there */
	int eventfd;
};

struct daemon_cq {
	LIST_ENTRY(daemon_cq) entry;
	struct daemon_client *client;
	uint32_t id;
	struct daemon_hca *hca;
	unsigned n_qps;
	bool overrun_told;
};

struct daemon_payload {
	LIST_ENTRY(daemon_payload) entry;
	uint64_t off;
	uint32_t bytes;
};

struct daemon_qp {
	LIST_ENTRY(daemon_qp) entry;
	struct daemon_client *client;
	struct daemon_hca *hca;
	struct daemon_cq *cq; /* NULL: it is hidden */
	bool is_wire;         /* hidden: in its name a process brings in what comes by the wire */
	uint32_t qpn;
	uint64_t ring_off;
	uint8_t ring_shift;
	struct fabric_flow **flow;
	unsigned n_flows, flow_room;
	LIST_HEAD(, daemon_payload) payloads;
};

struct daemon_client {
	struct daemon *d;
	uint32_t id;
	int sock;
	sd_event_source *source;
	sd_event_source *exit_source; /* the process's exit; NULL: not watched */
	enum control_role role;
	bool greeted, dead;
	int host_index;
	pid_t pid;
	LIST_HEAD(, daemon_hca) hcas;
	LIST_HEAD(, daemon_channel) channels;
	LIST_HEAD(, daemon_cq) cqs;
	LIST_HEAD(, daemon_qp) qps;
	struct cm_client *cm;
};

/* Shared memory whose holder is gone and that somebody may still be using. */
struct daemon_retired {
	LIST_ENTRY(daemon_retired) entry;
	bool is_ring; /* else payload */
	uint8_t ring_shift;
	uint64_t off, bytes;
};

struct daemon {
	sd_event *loop;
	const char *name;
	uint64_t up_since; /* seconds since 1970 */
	char *topology;    /* the text of a file, until the fabric is built */
	struct fabric *f;
	struct partitions *partitions; /* NULL: none were given */
	struct sm_role *sm_role;       /* of the embedded subnet manager */
	struct sm *sm;                 /* and sa: NULL unless it is the master */
	struct sa *sa;
	struct cm *cm;
	sd_event_source *sm_timer, *role_timer, *cm_timer, *retire_timer, *trap_timer;
	int listen_fd, lock_fd;
	int spare_fd; /* given up to refuse a client when there are no more descriptors */
	struct base_idtable clients, hcas, channels, cqs, qps;
	uint8_t qp_round[SHM_MAX_QPS];            /* high bits of the next QP number at an index */
	uint16_t channel_round[SHM_MAX_CHANNELS]; /* likewise of channel numbers */
	uint16_t next_gen;
	unsigned n_wire_qps;
	struct shm_extents rings, payloads;
	LIST_HEAD(, daemon_retired) retired;
	LIST_HEAD(, daemon_answer) answers; /* subnet_mad.c */
	unsigned n_answers;
	struct sa_segments *segments; /* long requests */
	bool sweep_wanted;
	uint64_t n_reports; /* of traps, to who subscribed */
	uint64_t retire_look_us;
	bool stopping; /* shared memory is left to those who have it mapped */
	struct daemon_umad *umad;
	struct daemon_roce *roce; /* roce.c; NULL: the fabric is InfiniBand's */
	uint8_t *told_state;      /* of HCA ports, by index: what processes have been told last */
};

/* ---- main.c ---- */

/* Arms @timer, made if it is NULL, for @ms from now, unless it comes sooner already. */
void daemon_wake_in(struct daemon *d, sd_event_source **timer, unsigned ms,
                    sd_event_time_handler_t handler);

/* ---- client.c ---- */

/* Takes a connection from the listening socket. */
int daemon_client_accept(sd_event_source *s, int fd, uint32_t revents, void *arg);

/* A client that has yet to say hello; its requests come by @sock, which is its own now, or if
 * that is -1 by daemon_client_serve() only. 0, -ENOSPC, -ENOMEM. */
int daemon_client_new(struct daemon *d, int sock, struct daemon_client **c);

/* Answers the request in @p, there: of type control_serve. */
void daemon_client_serve(void *client, struct control_packet *p);

/* Ends a connection and all that hangs on it. */
void daemon_client_free(struct daemon_client *c);

/* ---- traps.c: of the agents ---- */

int daemon_traps_init(struct daemon *d);
void daemon_traps_fini(struct daemon *d);

/* ---- objects.c: what processes hold ---- */

int daemon_objects_init(struct daemon *d);
void daemon_objects_fini(struct daemon *d);

/* The process is dead, though somebody holds its connection: undoes what it was doing to others. */
void daemon_objects_undo(struct daemon_client *c);

/* Frees all that @c holds. The process is dead, or as good as. */
void daemon_objects_release(struct daemon_client *c);

int daemon_hca_open(struct daemon_client *c, uint32_t hca, struct daemon_hca **h, int *fd);
void daemon_hca_free(struct daemon_client *c, struct daemon_hca *h);
int daemon_channel_new(struct daemon_client *c, struct daemon_channel **ch);
void daemon_channel_free(struct daemon_client *c, struct daemon_channel *ch);
struct daemon_channel *daemon_channel_find(struct daemon *d, uint32_t id);
int daemon_cq_new(struct daemon_client *c, struct daemon_hca *h, struct daemon_cq **cq);
void daemon_cq_free(struct daemon_client *c, struct daemon_cq *cq);
int daemon_qp_new(struct daemon_client *c, struct daemon_hca *h, struct daemon_cq *cq,
                  const struct control_create_qp *want, struct daemon_qp **qp);
void daemon_qp_free(struct daemon_client *c, struct daemon_qp *qp);
/* The hidden QP of an HCA with an Ethernet port. */
int daemon_wire_qp_new(struct daemon_client *c, struct daemon_hca *h, struct daemon_qp **qp);
int daemon_qp_modify(struct daemon *d, struct daemon_qp *qp, const struct control_modify_qp *m);

/* The port's P_Key table has changed: its QPs have what is now where their index points. */
void daemon_qps_follow_pkeys(struct daemon *d, const struct fabric_port *p);
int daemon_qp_flow(struct daemon *d, struct daemon_qp *qp, const struct fabric_flow_key *key,
                   uint32_t *id);
int daemon_qp_payload(struct daemon *d, struct daemon_qp *qp, uint32_t bytes, uint64_t *off);

/* The QP with this number, or NULL. */
struct daemon_qp *daemon_qp_find(struct daemon *d, uint32_t qpn);

/* An asynchronous event for whoever has @h open. */
void daemon_hca_event(struct daemon_hca *h, uint32_t type, uint32_t element);

/* ---- verbs.c: requests of the verbs library ---- */

/* Serves one. The status. Fills the body, bytes and descriptors of @reply. */
int daemon_verbs_request(struct daemon_client *c, const struct control_packet *request,
                         struct control_packet *reply);

/* ---- link.c: what fails and returns, and who is told ---- */

int daemon_links_init(struct daemon *d);

/* The SA may have changed what it says to all ports. */
void daemon_links_refresh(struct daemon *d);
int daemon_link_set(struct daemon *d, const struct control_link *request);
int daemon_switch_set(struct daemon *d, const struct control_switch *request);

/* The HCA or switch port that a command names. 0, -ENOENT, -EMLINK, -ERANGE. */
int daemon_port_find(const struct daemon *d, const struct control_port *at,
                     struct fabric_port **port);

/* Ports have gone up or down: whoever uses them is told. */
void daemon_tell_states(struct daemon *d);

/* An event of @p for every process that has its HCA open. */
void daemon_tell_port(struct daemon *d, const struct fabric_port *p, enum ibv_event_type type);

/* The same, and the port's members of groups must join anew. */
void daemon_reset_port(struct daemon *d, struct fabric_port *p, enum ibv_event_type type);

/* ---- subnet.c: the embedded subnet manager's life ---- */

/* High halves of the transaction IDs of requests that the manager itself makes. */
enum { DAEMON_TID_SM = 1, DAEMON_TID_CM, DAEMON_TID_PROGRAMS = 16 };

int daemon_subnet_init(struct daemon *d);
void daemon_subnet_fini(struct daemon *d);

/* The fabric has changed: if the embedded SM is the master it sweeps. 0, -ENOSPC, -ENOMEM. */
int daemon_subnet_sweep(struct daemon *d);

/* A program's subnet manager has come (@is_sm) to the port, or gone. */
void daemon_subnet_issm(struct daemon *d, struct fabric_port *at, bool is_sm);

/* What `umbel sm` asks for. */
int daemon_sm_event(struct daemon *d, const struct control_sm_event *request);

/* The device of an Ethernet port has changed: @what of enum fabric_ethernet_change. */
void daemon_ethernet_changed(struct daemon *d, struct fabric_port *p, unsigned what);

/* ---- roce.c: a fabric of network devices ---- */

/* Looks for the devices in @names, with commas between. 0, or -errno with @why. */
int daemon_roce_open(struct daemon *d, const char *names, char *why, size_t len);

/* Plans a host with an HCA for each. 0 or -errno. */
int daemon_roce_plan(const struct daemon_roce *roce, struct fabric_plan *plan);

/* The fabric is built: its ports come to life and follow their devices. 0, or -errno with @why. */
int daemon_roce_start(struct daemon *d, char *why, size_t len);
void daemon_roce_free(struct daemon_roce *roce);

/* A descriptor that the process may have: its own from then on. -errno. */
int daemon_roce_socket(struct daemon_roce *roce, uint32_t port,
                       const struct control_wire_socket *request, uint32_t *source_port);

/* A MAD has come in by the wire of @port (index), so a process says. */
void daemon_roce_mad(struct daemon_roce *roce, uint32_t port, const struct control_wire_mad *came);

/*
 * Attaches @qp to @mgid, and joins the group on the network if that is set. 0; -ENOMEM: a limit
 * of the settings or of the kernel (the log names it), or memory; -errno.
 */
int daemon_roce_attach(struct daemon_roce *roce, const struct daemon_qp *qp,
                       const struct ib_gid *mgid);

/* cm_ops: where addresses lead, and groups on the ports' networks. */
int daemon_roce_route(void *daemon, const union control_cm_addr *dst, union control_cm_addr *src);
int daemon_roce_join(void *daemon, struct fabric_port *port, const struct ib_gid *mgid);
void daemon_roce_leave(void *daemon, struct fabric_port *port, const struct ib_gid *mgid);

/* The name of the device that is port @index (in the port table). */
const char *daemon_roce_device(const struct daemon_roce *roce, uint32_t index);

/* ---- subnet_mad.c: the embedded subnet manager and administrator, by MADs ---- */

/* A MAD has come to the SM's port and no program there wants it. Whether it was for us. */
bool daemon_subnet_mad(struct daemon *d, struct fabric_port *at, const struct fabric_mad *mad);
int daemon_subnet_mad_init(struct daemon *d); /* 0 or -ENOMEM */
void daemon_subnet_mad_fini(struct daemon *d);

/* Sends what the SA reports to who subscribed. */
struct sa_reports daemon_subnet_mad_reports(struct daemon *d);

/* ---- partitions.c ---- */

struct partitions_file;

/* The fabric's partitions are those of the file from now on, in place of any before. 0; -EINVAL,
 * -ENOSPC and why; -ENOMEM. */
int daemon_partitions_read(struct daemon *d, const struct partitions_file *file, char *why,
                           size_t len);

/* Serves CONTROL_PARTITIONS: the same while the fabric is up. The status. */
int daemon_partitions_set(struct daemon *d, const struct control_packet *request,
                          struct control_packet *reply);
void daemon_partitions_fini(struct daemon *d);

/* ---- umad.c: requests of libibumad ---- */

int daemon_umad_init(struct daemon *d);
void daemon_umad_fini(struct daemon *d);

/* As daemon_verbs_request(). */
int daemon_umad_request(struct daemon_client *c, const struct control_packet *request,
                        struct control_packet *reply);

/* ---- outbox.c ---- */

extern const struct cm_ops daemon_outbox_ops; /* arg is set by whoever uses it */
/* Who does not read gets no more once so many wait. */
#define DAEMON_OUTBOX_ROOM (1u << 18)

int daemon_outbox_open(void *daemon, struct cm_outbox **box, int *process_fd);
void daemon_outbox_send(struct cm_outbox *box, const void *event, size_t bytes);
void daemon_outbox_close(struct cm_outbox *box);

/* The same with a descriptor beside it, which becomes the outbox's; -1: none. */
void daemon_outbox_send_fd(struct cm_outbox *box, const void *event, size_t bytes, int fd);

/* The manager's end of the socket, for receiving. */
int daemon_outbox_fd(const struct cm_outbox *box);

/* ---- show.c ---- */

/* JSON text about @what in a memfd. The descriptor, -EINVAL: unknown, or -errno. */
int daemon_show(struct daemon *d, const char *what);

#endif
