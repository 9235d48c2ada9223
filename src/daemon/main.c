/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The manager's life: directory, lock and socket; the fabric with its subnet
 * manager and administrator; the event loop; and the end, orderly, by a signal, a
 * request, or its parent's death.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

#include "base/log.h"
#include "base/util.h"
#include "control/path.h"
#include "daemon/daemon.h"
#include "daemon/roce.h"
#include "daemon/state.h"
#include "daemon/umad.h"
#include "fabric/plan.h"
#include "fabric/topology_file.h"

#define PATH_LEN 512

struct place {
	char dir[PATH_LEN], socket[PATH_LEN], lock[PATH_LEN];
};

static int find_place(struct place *p, const char *fabric)
{
	int ret = control_path(p->dir, sizeof(p->dir), fabric, NULL);

	if (!ret)
		ret = control_path(p->socket, sizeof(p->socket), fabric, "ctl");
	if (!ret)
		ret = control_path(p->lock, sizeof(p->lock), fabric, "lock");
	return ret;
}

/* A directory of ours that nobody else can enter. */
static int private_dir(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -errno;
	if (lstat(path, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return st.st_uid != geteuid() || (st.st_mode & 077) ? -EPERM : 0;
}

static int make_dirs(const struct place *p)
{
	char runtime[PATH_LEN];
	int ret = control_runtime_dir(runtime, sizeof(runtime));

	if (!ret)
		ret = private_dir(runtime);
	return ret ? ret : private_dir(p->dir);
}

/* The lock says that a manager lives: a dead one's is free, whatever files it left. */
static int take_lock(const struct place *p)
{
	int fd = open(p->lock, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	char pid[16];
	int n;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		close(fd);
		return -EEXIST;
	}
	n = snprintf(pid, sizeof(pid), "%d\n", getpid());
	if (ftruncate(fd, 0) < 0 || write(fd, pid, n) != n) {
		close(fd);
		return -EIO;
	}
	return fd;
}

static int listen_at(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, ret;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, path);
	unlink(path); /* a dead manager's: we hold the lock */
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, SOMAXCONN) < 0) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return fd;
}

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
	head.futex_offset = (long)((char *)&control->manager_futex - (char *)&entry);
	head.list_op_pending = NULL;
	atomic_store(&control->manager_futex, (uint32_t)syscall(SYS_gettid));
	return syscall(SYS_set_robust_list, &head, sizeof(head)) < 0 ? -errno : 0;
}

/* ---- time ---- */

static int on_cm_timer(sd_event_source *s, uint64_t usec, void *arg)
{
	struct daemon *d = arg;

	(void)s;
	(void)usec;
	cm_run_due(d->cm, base_now_ns() / 1000000);
	return 0;
}

void daemon_wake_in(struct daemon *d, sd_event_source **timer, unsigned ms,
                    sd_event_time_handler_t handler)
{
	uint64_t at = base_now_ns() / 1000 + ms * 1000ull + 999, old;
	int enabled = SD_EVENT_OFF;

	if (!*timer) {
		sd_event_add_time(d->loop, timer, CLOCK_MONOTONIC, at, 1, handler, d);
		return;
	}
	sd_event_source_get_enabled(*timer, &enabled);
	if (enabled != SD_EVENT_OFF && sd_event_source_get_time(*timer, &old) >= 0 && old <= at)
		return;
	sd_event_source_set_time(*timer, at);
	sd_event_source_set_enabled(*timer, SD_EVENT_ONESHOT);
}

static void wake_cm(void *arg, unsigned ms)
{
	struct daemon *d = arg;

	daemon_wake_in(d, &d->cm_timer, ms, on_cm_timer);
}

static uint64_t now_ms(void *arg)
{
	(void)arg;
	return base_now_ns() / 1000000;
}

/* ---- start and end ---- */

static void explain_setting(const char *setting, const char *key, int error, char *why, size_t len)
{
	if (error == -ENOENT)
		snprintf(why, len, "setting '%s': there is no such setting", setting);
	else if (error == -ERANGE)
		snprintf(why, len, "setting '%s': the value is out of range", setting);
	else
		snprintf(why, len, "setting '%s': want key=value, the value %s", setting,
		         fabric_settings_want(key));
}

static int apply_settings(const struct daemon_options *o, struct shm_settings *s, char *why,
                          size_t len)
{
	fabric_settings_default(s);
	for (unsigned i = 0; i < o->n_settings; i++) {
		char key[64] = "";
		const char *eq = strchr(o->settings[i], '=');
		int ret = -EINVAL;

		if (eq && (size_t)(eq - o->settings[i]) < sizeof(key)) {
			memcpy(key, o->settings[i], eq - o->settings[i]);
			key[eq - o->settings[i]] = '\0';
			ret = fabric_settings_set(s, key, eq + 1, false);
		}
		if (ret) {
			explain_setting(o->settings[i], key, ret, why, len);
			return ret;
		}
	}
	return 0;
}

static int start_subnet(struct daemon *d)
{
	struct cm_ops cm_ops = { .outbox_open = daemon_outbox_open,
		                 .outbox_send = daemon_outbox_send,
		                 .outbox_close = daemon_outbox_close,
		                 .wake = wake_cm,
		                 .now_ms = now_ms,
		                 .mad_send = daemon_umad_send_from,
		                 .route = daemon_roce_route,
		                 .join = daemon_roce_join,
		                 .leave = daemon_roce_leave,
		                 .tid_high = DAEMON_TID_CM,
		                 .arg = d };
	int ret;

	if (getrandom(&cm_ops.random, sizeof(cm_ops.random), 0) < 0)
		return -errno;
	ret = cm_new(&d->cm, d->f, &cm_ops);

	if (!ret)
		ret = daemon_links_init(d);
	if (!ret)
		ret = daemon_traps_init(d);
	if (!ret)
		ret = daemon_umad_init(d);
	return ret ? ret : daemon_subnet_init(d);
}

static int on_life(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	struct daemon *d = arg;
	char byte;

	(void)s;
	(void)revents;
	if (read(fd, &byte, 1) == 0)
		sd_event_exit(d->loop, 0);
	return 0;
}

static int start_loop(struct daemon *d, const struct daemon_options *o)
{
	sigset_t set;
	int ret = sd_event_default(&d->loop);

	if (ret < 0)
		return ret;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	if ((ret = sd_event_add_signal(d->loop, NULL, SIGTERM, NULL, NULL)) < 0 ||
	    (ret = sd_event_add_signal(d->loop, NULL, SIGINT, NULL, NULL)) < 0 ||
	    (ret = sd_event_add_signal(d->loop, NULL, SIGHUP, NULL, NULL)) < 0)
		return ret;
	if (o->life_fd >= 0)
		ret = sd_event_add_io(d->loop, NULL, o->life_fd, EPOLLIN | EPOLLHUP, on_life, d);
	return ret < 0 ? ret : 0;
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

static int plan_fabric(const struct daemon *d, const struct daemon_shape *shape,
                       struct fabric_plan *plan, char *why, size_t len)
{
	const struct fabric_topology_file file = { shape->topology, d->topology,
		                                   shape->text_bytes };
	const struct fabric_fat_tree tree = { shape->levels, shape->radix, shape->hosts };

	if (d->roce)
		return daemon_roce_plan(d->roce, plan);
	if (shape->topology)
		return fabric_topology_parse(plan, &file, why, len);
	if (shape->levels)
		return fabric_plan_fat_tree(plan, &tree, why, len);
	return fabric_plan_tree(plan, shape->hosts);
}

/* A subnet manager would find out as well, but nobody would hear of it. */
static int check_lids(const struct fabric *f, char *why, size_t len)
{
	unsigned long need = ((unsigned long)f->n_hca_ports << f->settings.lmc) + f->n_switches;

	if (need <= FABRIC_MAX_LIDS)
		return 0;
	snprintf(why, len, "with lmc=%u this fabric needs %lu LIDs; there are %d", f->settings.lmc,
	         need, FABRIC_MAX_LIDS);
	return -ENOSPC;
}

static int build_fabric(struct daemon *d, const struct daemon_shape *shape,
                        const struct shm_settings *settings, char *why, size_t len)
{
	struct fabric_plan plan;
	int ret;

	fabric_plan_init(&plan);
	ret = plan_fabric(d, shape, &plan, why, len);
	free(d->topology);
	d->topology = NULL;
	if (!ret)
		ret = fabric_new(&d->f, &plan, settings);
	if (!ret)
		ret = check_lids(d->f, why, len);
	fabric_plan_fini(&plan);
	return ret;
}

static int start(struct daemon *d, const struct daemon_options *o, const struct place *p, char *why,
                 size_t len)
{
	struct shm_settings settings;
	int ret = apply_settings(o, &settings, why, len);

	if (ret)
		return ret;
	raise_fd_limit();
	ret = start_loop(d, o);
	if (!ret && o->shape.roce)
		ret = daemon_roce_open(d, o->shape.roce, why, len);
	if (!ret)
		ret = build_fabric(d, &o->shape, &settings, why, len);
	if (!ret && o->partitions.name)
		ret = daemon_partitions_read(d, &o->partitions, why, len);
	if (ret)
		return ret;
	strncpy(d->f->region->control->fabric, o->fabric,
	        sizeof(d->f->region->control->fabric) - 1);
	ret = hold_life_futex(d->f->region->control);
	if (!ret)
		ret = daemon_objects_init(d);
	if (!ret)
		ret = start_subnet(d);
	if (!ret && d->roce)
		ret = daemon_roce_start(d, why, len);
	if (ret)
		return ret;
	d->listen_fd = listen_at(p->socket);
	if (d->listen_fd < 0)
		return d->listen_fd;
	ret = sd_event_add_io(d->loop, NULL, d->listen_fd, EPOLLIN, daemon_client_accept, d);
	return ret < 0 ? ret : 0;
}

static void stop(struct daemon *d)
{
	d->stopping = true;
	if (d->f && d->f->region)
		atomic_store(&d->f->region->control->manager_stopped, 1);
	if (d->roce)
		roce_wire_fini(d->roce);
	for (uint32_t i = 0; i < d->clients.size; i++)
		if (base_idtable_get(&d->clients, i))
			daemon_client_free(base_idtable_get(&d->clients, i));
	daemon_traps_fini(d);
	daemon_subnet_fini(d);
	daemon_umad_fini(d);
	daemon_roce_free(d->roce);
	if (d->cm)
		cm_free(d->cm);
	sd_event_source_disable_unref(d->cm_timer);
	daemon_objects_fini(d);
	base_idtable_fini(&d->clients);
	free(d->told_state);
	free(d->topology);
	daemon_partitions_fini(d);
	if (d->f)
		fabric_free(d->f);
	sd_event_unref(d->loop);
}

static void tell_ready(int fd, const char *line)
{
	if (fd < 0)
		return;
	if (write(fd, line ? line : "", line ? strlen(line) : 1) < 0)
		base_log("nobody waits for us to be ready");
	close(fd);
}

static void explain(char *why, size_t len, const char *fabric, int error)
{
	if (*why)
		return;
	if (error == -EEXIST)
		snprintf(why, len, "fabric '%s' is already up", fabric);
	else if (error == -EPERM)
		snprintf(why, len, "the runtime directory is not private to this user");
	else
		snprintf(why, len, "cannot start fabric '%s': %s", fabric, strerror(-error));
}

int daemon_main(const struct daemon_options *o)
{
	struct daemon *d = calloc(1, sizeof(*d));
	struct place place;
	char why[256] = "";
	int ret;

	if (!d)
		return EXIT_FAILURE;
	d->name = o->fabric;
	d->topology = o->shape.text;
	d->up_since = (uint64_t)time(NULL);
	d->listen_fd = d->lock_fd = -1;
	d->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	base_idtable_init(&d->clients, 1u << 20);
	ret = find_place(&place, o->fabric);
	if (!ret)
		ret = make_dirs(&place);
	if (!ret)
		ret = d->lock_fd = take_lock(&place);
	if (ret >= 0)
		ret = start(d, o, &place, why, sizeof(why));
	if (ret) {
		explain(why, sizeof(why), o->fabric, ret);
	} else {
		tell_ready(o->ready_fd, NULL);
		sd_notify(0, "READY=1");
		ret = sd_event_loop(d->loop);
	}
	if (d->listen_fd >= 0) {
		unlink(place.socket);
		close(d->listen_fd);
	}
	stop(d);
	if (d->lock_fd >= 0) {
		unlink(place.lock);
		rmdir(place.dir); /* stays if a log is in it */
		close(d->lock_fd);
	}
	close(d->spare_fd);
	free(d);
	if (*why)
		tell_ready(o->ready_fd, why);
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}
