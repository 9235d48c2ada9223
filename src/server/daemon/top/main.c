/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon's life: it makes all modules and connects them, runs the event loop, and ends,
 * orderly, by a signal, a request, or its owner's end (control/owner.h). struct daemon is known
 * here only.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/denied.h"
#include "base/eventfd.h"
#include "base/log.h"
#include "base/reason.h"
#include "daemon/clients/client.h"
#include "daemon/core/daemon.h"
#include "daemon/detour/detour.h"
#include "daemon/network/hosts.h"
#include "daemon/network/roce.h"
#include "daemon/network/roce_mad.h"
#include "daemon/router/router.h"
#include "daemon/show/counts.h"
#include "daemon/show/describe.h"
#include "daemon/show/monitor.h"
#include "daemon/show/show.h"
#include "daemon/subnet/capture.h"
#include "daemon/subnet/links.h"
#include "daemon/subnet/partitions.h"
#include "daemon/subnet/settings.h"
#include "daemon/subnet/subnet.h"
#include "daemon/subnet/traps.h"
#include "daemon/top/build.h"
#include "daemon/top/membership.h"
#include "daemon/top/notify.h"
#include "daemon/top/place.h"
#include "daemon/top/rdmacm.h"
#include "daemon/top/state.h"
#include "daemon/top/verbs.h"
#include "daemon/umad/umad.h"
#include "daemon/umad/umad_mad.h"
#include "fabric/agents/traps.h"
#include "fabric/forwarding/collect.h"

enum { ENDED_BY_SIGNAL = 1 }; /* what the loop returns then, if the fabric has an owner */

struct daemon {
	struct daemon_place place;
	struct daemon_loop loop;
	struct daemon_source signals, owner; /* owner: the fabric's owner has ended */
	struct fabric *f;
	struct daemon_objects objects;
	struct daemon_clients clients;
	struct daemon_mads mads;
	struct daemon_ports ports;
	struct daemon_subnet subnet;
	struct daemon_state state;
	struct daemon_traps traps;
	struct daemon_counts counts;
	struct daemon_rdmacm rdmacm;
	struct daemon_umad *umad;
	struct daemon_self self;
	struct daemon_wires wires;
	struct daemon_detour detour;
	struct daemon_routers routers;
	struct daemon_roce *roce; /* NULL: no port is on Ethernet */
	struct daemon_verbs verbs;
	struct daemon_membership membership;
	struct daemon_links links;
	struct daemon_settings settings;
	struct daemon_hosts hosts;
	struct daemon_show show;
	struct daemon_captures captures;
	struct daemon_monitors monitors;
	int ready_fd;
	char notes[512]; /* for the command that starts the daemon: lines */
};

/*
 * Has the kernel mark the shared memory when this process dies, however it dies: a
 * robust futex that we hold all our life.
 */
static int hold_life_futex(struct shm_control *control)
{
	static struct robust_list_head head;
	static struct robust_list entry;

	entry.next = &head.list;
	head.list.next = &entry;
	head.futex_offset = (long)((char *)&control->daemon_futex - (char *)&entry);
	head.list_op_pending = NULL;
	atomic_store(&control->daemon_futex, (uint32_t)syscall(SYS_gettid));
	return syscall(SYS_set_robust_list, &head, sizeof(head)) < 0 ? -errno : 0;
}

/* ---- the loop ---- */

static void on_owner_ended(struct daemon_source *s, uint32_t events)
{
	(void)events;
	daemon_loop_end(s->loop, 0);
}

/* Orderly; but the process that owns the fabric has not asked for that, and gets to know it. */
static void on_signal(struct daemon_source *s, uint32_t events)
{
	const struct daemon *d = container_of(s, struct daemon, signals);
	bool owned = d->place.owner_fd >= 0;
	struct signalfd_siginfo info = { 0 };

	(void)events;
	if (read(s->fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (owned)
		base_log_error(daemon, "ended by signal %u, of process %u", info.ssi_signo,
		               info.ssi_pid);
	daemon_loop_end(s->loop, owned ? ENDED_BY_SIGNAL : 0);
}

/* 0 or -errno. */
static int watch_signals(struct daemon *d)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	d->signals.ready = on_signal;
	return daemon_source_watch(&d->loop, &d->signals, fd, EPOLLIN);
}

static int start_loop(struct daemon *d)
{
	int ret = daemon_loop_init(&d->loop);

	if (!ret)
		ret = watch_signals(d);
	if (ret)
		return ret;
	signal(SIGPIPE, SIG_IGN);
	base_eventfd_init();
	signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error that we tell */
	if (d->place.owner_fd < 0)
		return 0;
	d->owner.ready = on_owner_ended;
	return daemon_source_watch(&d->loop, &d->owner, d->place.owner_fd, EPOLLIN);
}

/* Many processes mean many sockets. */
static void raise_fd_limit(void)
{
	struct rlimit r;

	if (!getrlimit(RLIMIT_NOFILE, &r)) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

/* After whatever else the loop has done: before anybody else has a turn. */
static void on_turn_done(void *arg)
{
	struct daemon *d = arg;

	fabric_traps_notice_keys(d->f);
	if (!daemon_subnet_is_sweeping(&d->subnet))
		daemon_clients_go_on(&d->clients, d->subnet.swept);
	if (daemon_subnet_wants_sweep(&d->subnet))
		daemon_subnet_sweep(&d->subnet);
	daemon_mads_send(&d->mads);
	daemon_subnet_follow(&d->subnet);
	daemon_clients_followed(&d->clients);
	fabric_collect_turn(d->f);
	daemon_captures_flush(&d->captures);
	daemon_monitors_flush(&d->monitors);
	daemon_state_look(&d->state);
}

/* ---- the receiver of a MAD: the sink of fabric/agents/mads.h ---- */

static bool deliver(void *arg, struct fabric_port *at, const struct fabric_mad *mad)
{
	struct daemon *d = arg;

	if (at->node->type == FABRIC_HCA && umad_mad_deliver(d->umad, at, mad))
		return true;
	/* no program wants it: it is for the daemon's own requests, or for the embedded subnet
	 * manager and administrator, if it is their port */
	if (at->node->type == FABRIC_HCA && cm_mad_input(d->rdmacm.cm, at, mad))
		return true;
	return daemon_subnet_mad(&d->subnet.mad, at, mad);
}

static void on_port_changed(void *arg, struct fabric_port *p, unsigned what)
{
	struct daemon *d = arg;

	if (what & (FABRIC_PORT_LID | FABRIC_PORT_ALIAS | FABRIC_PORT_PKEYS))
		d->subnet.changes++;
	daemon_port_changed(&d->ports, p, what);
	if (what & FABRIC_PORT_GIDS)
		daemon_routers_prefix_changed(&d->routers);
	if (what & FABRIC_PORT_LID)
		daemon_subnet_lid_changed(&d->subnet);
}

static void send_by_roce(void *arg, struct fabric_port *from, const struct fabric_mad *mad)
{
	struct daemon *d = arg;

	daemon_roce_send_mad(d->roce, from, mad);
}

/* ---- start and end ---- */

static void on_members(void *arg, struct fabric_port *p)
{
	struct daemon *d = arg;

	daemon_router_reset(&d->routers, p);
}

static int on_stopping(void *arg)
{
	struct daemon *d = arg;

	return daemon_state_save(&d->state) ? CONTROL_STOPS_UNSAVED : 0;
}

/* The fabric calls the modules: once all are there. */
static void connect_sink(struct daemon *d)
{
	d->f->mads->sink = (struct fabric_mad_sink){ .deliver = deliver,
		                                     .port_changed = on_port_changed,
		                                     .roce = d->roce ? send_by_roce : NULL,
		                                     .arg = d };
}

static int add_requests(struct daemon *d, const char *name)
{
	struct daemon_requests *all = &d->clients.requests;

	d->verbs = (struct daemon_verbs){ .f = d->f, .objects = &d->objects, .roce = d->roce };
	daemon_verbs_init(&d->verbs, all);
	d->membership = (struct daemon_membership){
		.f = d->f, .objects = &d->objects, .subnet = &d->subnet, .cm = d->rdmacm.cm
	};
	daemon_membership_init(&d->membership, all);
	d->links = (struct daemon_links){ .f = d->f, .subnet = &d->subnet };
	daemon_links_init(&d->links, all);
	d->settings = (struct daemon_settings){ .f = d->f, .ports = &d->ports, .mads = &d->mads };
	daemon_settings_init(&d->settings, all);
	daemon_subnet_init(&d->subnet, all);
	daemon_partitions_init(&d->subnet, all);
	daemon_describe_init(d->f, all);
	daemon_hosts_init(&d->hosts, all);
	d->captures = (struct daemon_captures){ .f = d->f, .loop = &d->loop };
	daemon_captures_init(&d->captures, all);
	d->monitors = (struct daemon_monitors){ .f = d->f, .loop = &d->loop };
	daemon_monitors_init(&d->monitors, all);
	d->detour = (struct daemon_detour){ .f = d->f,
		                            .loop = &d->loop,
		                            .self = &d->self,
		                            .times = &d->wires,
		                            .qps = &d->objects.qps,
		                            .captures = &d->captures,
		                            .roce = d->roce,
		                            .subnet = &d->subnet };
	daemon_detour_init(&d->detour, all);
	d->routers = (struct daemon_routers){
		.f = d->f, .loop = &d->loop, .detour = &d->detour, .cm = d->rdmacm.cm
	};
	daemon_routers_init(&d->routers, all);
	d->ports.members = on_members;
	d->ports.members_arg = d;
	d->show = (struct daemon_show){ .name = name,
		                        .up_since = (uint64_t)time(NULL),
		                        .f = d->f,
		                        .loop = &d->loop,
		                        .clients = &d->clients,
		                        .objects = &d->objects,
		                        .subnet = &d->subnet,
		                        .hosts = &d->hosts,
		                        .detour = &d->detour,
		                        .routers = &d->routers,
		                        .roce = d->roce };
	return daemon_show_init(&d->show, all);
}

static int start_umad(struct daemon *d, const char *name)
{
	const struct daemon_umad_needs needs = {
		.fabric = name,
		.f = d->f,
		.loop = &d->loop,
		.chores = &d->objects.chores,
		.mads = &d->mads,
		.subnet = &d->subnet,
		.cm = d->rdmacm.cm,
	};

	return daemon_umad_init(&d->umad, &needs, &d->clients.requests);
}

static int start_roce(struct daemon *d, char *why, size_t len)
{
	const struct daemon_roce_needs needs = { .f = d->f,
		                                 .ns = d->hosts.of,
		                                 .loop = &d->loop,
		                                 .mads = &d->mads,
		                                 .ports = &d->ports,
		                                 .self = &d->self,
		                                 .wires = &d->wires,
		                                 .objects = &d->objects,
		                                 .cm = d->rdmacm.cm };

	return daemon_roce_start(d->roce, &needs, why, len);
}

static void on_busy_wires(void *arg)
{
	daemon_wires_begin(arg);
}

/* The fabric is built: makes all that serves it. */
static int start_modules(struct daemon *d, const struct daemon_options *o, char *why, size_t len)
{
	int ret = daemon_objects_init(&d->objects, d->f, &d->loop);

	if (ret)
		return ret;
	daemon_clients_init(&d->clients, &d->loop, d->f, &d->objects);
	d->clients.user = o->user;
	d->clients.n_users = o->n_users;
	d->clients.group = o->group;
	d->clients.n_groups = o->n_groups;
	d->clients.stopping = on_stopping;
	d->clients.stopping_arg = d;
	daemon_mads_init(&d->mads, d->f, &d->loop);
	d->rdmacm = (struct daemon_rdmacm){ .f = d->f,
		                            .loop = &d->loop,
		                            .mads = &d->mads,
		                            .memory = &d->objects.memory,
		                            .roce = d->roce };
	ret = daemon_rdmacm_init(&d->rdmacm, &d->clients);
	if (!ret)
		ret = daemon_ports_init(&d->ports, d->f, &d->objects, d->rdmacm.cm);
	if (!ret)
		ret = start_umad(d, o->fabric);
	if (ret)
		return ret;
	daemon_traps_init(&d->traps, d->f, &d->loop);
	daemon_counts_init(&d->counts, d->f, &d->loop);
	ret = add_requests(d, o->fabric);
	connect_sink(d);
	if (!ret)
		ret = daemon_self_init(&d->self, &d->clients, d->f);
	if (!ret)
		ret = daemon_wires_init(&d->wires, d->f, &d->loop.timers);
	d->objects.qps.is_busy = on_busy_wires;
	d->objects.qps.is_busy_arg = &d->wires;
	if (ret)
		return ret;
	if (d->roce)
		ret = start_roce(d, why, len);
	return ret || !d->f->n_ib_ports ? ret : daemon_subnet_start(&d->subnet);
}

static int open_state(struct daemon *d, const struct daemon_options *o,
                      const struct shm_settings *settings, char *why, size_t len)
{
	if (o->state && !settings->sm_embedded) {
		snprintf(why, len,
		         "--state keeps what the embedded subnet manager knows, and --sm none "
		         "starts without it");
		return -EINVAL;
	}
	return daemon_state_open(&d->state, o->state, &d->subnet, why, len);
}

static int build(struct daemon *d, const struct daemon_options *o,
                 const struct shm_settings *settings, char *why, size_t len)
{
	struct fabric_shape shape = o->shape;
	struct daemon_build build = { .shape = &shape, .settings = settings };
	const struct daemon_roce_devices devices = { o->roce, o->roce_hosts, shape.hcas,
		                                     o->own_networks };
	int ret = 0;

	shape.notes = d->notes;
	shape.notes_len = sizeof(d->notes);
	d->subnet.loop = &d->loop;
	ret = open_state(d, o, settings, why, len);
	if (!ret && (o->roce || o->roce_hosts))
		ret = daemon_roce_open(&d->roce, &devices, why, len);
	build.roce = d->roce;
	if (!ret)
		ret = daemon_build_fabric(&d->f, &build, why, len);
	if (ret)
		return ret;
	d->subnet.f = d->f;
	d->subnet.mads = &d->mads;
	d->subnet.ports = &d->ports;
	if (o->partitions.name)
		ret = daemon_partitions_read(&d->subnet, &o->partitions, why, len);
	return ret;
}

/* @line: why it does not start; or what there is to know, and a zero byte behind it. */
static void tell_ready(int fd, const char *line, bool ready)
{
	if (fd < 0)
		return;
	if (write(fd, line, strlen(line) + ready) < 0)
		base_log_warning(daemon, "nobody waits for us to be ready");
	close(fd);
}

/* All that the fabric has is there. */
static void serve_all(struct daemon *d)
{
	int error;

	tell_ready(d->ready_fd, d->notes, true);
	error = daemon_notify(getenv("NOTIFY_SOCKET"), "READY=1");
	if (error) /* as in a container that was given the name of a socket, and not the socket */
		base_log_info(daemon, "the service manager is not told that the fabric is up: %s",
		              strerror(-error));
}

/* The hosts have their interfaces; or not: the error is in the log. The command that starts us
 * shows the log if we end without a word. */
static void on_hosts_ready(void *arg, int error)
{
	struct daemon *d = arg;

	if (!error) {
		serve_all(d);
		return;
	}
	if (d->ready_fd >= 0)
		close(d->ready_fd);
	daemon_loop_end(&d->loop, error);
}

static int make_hosts(struct daemon *d, const struct daemon_options *o, char *why, size_t len)
{
	d->hosts.f = d->f;
	d->hosts.loop = &d->loop;
	d->hosts.options = o;
	if (d->roce)
		d->hosts.device = daemon_roce_made(d->roce, &d->hosts.n_devices);
	d->hosts.ready = on_hosts_ready;
	d->hosts.arg = d;
	return daemon_hosts_make(&d->hosts, d->place.dir, why, len);
}

static int start(struct daemon *d, const struct daemon_options *o, char *why, size_t len)
{
	struct shm_control *control;
	struct shm_settings settings;
	int ret = fabric_shape_settings(&settings, o->settings, o->n_settings, why, len);

	if (ret)
		return ret;
	raise_fd_limit();
	ret = start_loop(d);
	if (!ret)
		ret = build(d, o, &settings, why, len);
	if (ret)
		return ret;
	control = d->f->region->control;
	strncpy(control->fabric, o->fabric, sizeof(control->fabric) - 1);
	ret = hold_life_futex(control);
	if (!ret && o->state && !d->f->n_ib_ports) {
		snprintf(why, len, "--state is for InfiniBand, of which the fabric has none");
		ret = -EINVAL;
	}
	if (!ret && o->own_networks) /* a port on Ethernet begins with a device on its host */
		ret = make_hosts(d, o, why, len);
	if (!ret)
		ret = start_modules(d, o, why, len);
	if (!ret)
		daemon_state_note(&d->state, d->notes, sizeof(d->notes));
	if (!ret)
		ret = daemon_place_listen(&d->place);
	if (!ret)
		ret = daemon_clients_listen(&d->clients, d->place.listen_fd);
	return ret || !o->own_networks ? ret : daemon_hosts_start(&d->hosts);
}

/*
 * Ends the parts that others would still see after the end of this process. Memory, attachments,
 * connections and open objects go with the process: to free them one by one would take a busy
 * fabric's daemon minutes.
 */
static void leave(struct daemon *d)
{
	daemon_state_fini(&d->state);
	daemon_objects_stop(&d->objects);
	if (d->f && d->f->region)
		atomic_store(&d->f->region->control->daemon_stopped, 1);
	if (d->f && d->f->mads)
		d->f->mads->sink = (struct fabric_mad_sink){ 0 };
	if (d->roce)
		daemon_roce_stop(d->roce);
	daemon_routers_stop(&d->routers);
	daemon_detour_stop(&d->detour);
	d->objects.qps.is_busy = NULL;
	daemon_wires_fini(&d->wires);
	daemon_self_fini(&d->self);
	daemon_hosts_stop(&d->hosts);
	daemon_captures_stop(&d->captures);
	daemon_monitors_stop(&d->monitors);
	if (d->umad)
		daemon_umad_stop(d->umad);
}

static void explain(char *why, size_t len, const char *fabric, int error)
{
	const char *denied = *why || error == -EMFILE ? NULL : base_denied_call(-error);

	if (*why)
		return;
	if (denied)
		snprintf(why, len,
		         "cannot start fabric '%s': %s() fails: %s; a container may have to allow "
		         "it (seccomp)",
		         fabric, denied, strerror(-error));
	else if (error == -EEXIST)
		snprintf(why, len, "fabric '%s' is already up", fabric);
	else if (error == -ENAMETOOLONG)
		snprintf(why, len,
		         "the path of the runtime directory is too long for a socket; set "
		         "UMBEL_RUNTIME_DIR to a shorter one");
	else if (error == -EFBIG)
		snprintf(why, len,
		         "the shared memory is larger than files may be; raise the limit (ulimit "
		         "-f)");
	else if (error == -ENOMEM)
		snprintf(why, len,
		         "no memory for fabric '%s'; if the address space is limited, raise the "
		         "limit (ulimit -v)",
		         fabric);
	else if (error == -EMFILE)
		snprintf(why, len, "too many open files; raise the limit (ulimit -n)");
	else
		snprintf(why, len, "cannot start fabric '%s': %s", fabric, strerror(-error));
}

int daemon_main(const struct daemon_options *o)
{
	static struct daemon all; /* static: at its end, leak checkers see what it still has */
	struct daemon *d = &all;
	char why[CONTROL_WHY_ROOM] = "";
	int ret;

	base_reason_keep(); /* for the processes, whatever the daemon itself logs */
	d->ready_fd = o->ready_fd;
	ret = daemon_place_occupy(&d->place, o->fabric, o->n_users || o->n_groups, why);
	if (!ret)
		ret = start(d, o, why, sizeof(why));
	free(o->shape.text);
	if (ret) {
		explain(why, sizeof(why), o->fabric, ret);
	} else {
		if (!o->own_networks)
			serve_all(d);
		ret = daemon_loop_run(&d->loop, on_turn_done, d);
	}
	daemon_place_unlisten(&d->place);
	if (ret >= 0 && daemon_state_save(&d->state))
		ret = -EIO;
	leave(d);
	daemon_place_leave(&d->place);
	daemon_loop_hang_up(&d->loop);
	if (*why)
		tell_ready(o->ready_fd, why, false);
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}
