/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The namespaces of a host: see namespaces.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/newer_libc.h"
#include "base/util.h"
#include "hosts/capabilities.h"
#include "hosts/namespaces.h"

int hosts_fail_for_descriptors(char *why, size_t len)
{
	snprintf(why, len,
	         "each host's namespaces need three descriptors; raise the limit (ulimit -n)");
	return -EMFILE;
}

/* Writes @what, which fails with errno, to @why. -errno. */
static int fail(char *why, size_t len, const char *what)
{
	int error = errno;

	if (error == EMFILE)
		return hosts_fail_for_descriptors(why, len);
	snprintf(why, len, "%s: %s", what, strerror(error));
	return -error;
}

/* Likewise, if namespaces need @what, by a system call that a container's filter may deny. Ubuntu's
 * kernel lets everybody have user namespaces, but no rights in them. */
static int fail_forbidden(char *why, size_t len, const char *what, const char *call)
{
	static const char setting[] = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
	bool ubuntu = !strcmp(call, "unshare") || !strcmp(call, "mount");
	char text[400];
	int error = errno;

	ubuntu = ubuntu && geteuid() && !access(setting, F_OK);
	snprintf(text, sizeof(text),
	         "hosts with a network of their own need %s, which this machine or container "
	         "forbids (%s%s)",
	         what, call,
	         ubuntu ? "; sysctl kernel.apparmor_restrict_unprivileged_userns=0 may help" : "");
	errno = error;
	return fail(why, len, text);
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), ret;

	if (fd < 0)
		return -1;
	ret = base_write_all(fd, text, strlen(text));
	close(fd);
	errno = -ret;
	return ret ? -1 : 0;
}

/* A namespace of this thread. */
static int open_own(const char *kind)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/thread-self/ns/%s", kind);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* ---- the site ---- */

/* Maps one number to itself. */
static int map_self(const char *path, unsigned id)
{
	char line[40];

	snprintf(line, sizeof(line), "%u %u 1", id, id);
	return write_file(path, line);
}

/* Into a user namespace of this user. */
static int enter_user(struct hosts_site *site, char *why, size_t len)
{
	unsigned uid = geteuid(), gid = getegid();

	if (unshare(CLONE_NEWUSER))
		return fail_forbidden(why, len, "user namespaces", "unshare");
	/* a group may be given up for good by setgroups(): so the kernel wants that forbidden first
	 */
	if (write_file("/proc/self/setgroups", "deny") || map_self("/proc/self/uid_map", uid) ||
	    map_self("/proc/self/gid_map", gid))
		return fail_forbidden(why, len, "user namespaces with rights",
		                      "/proc/self/uid_map");
	site->user = open_own("user");
	return site->user < 0 ? fail(why, len, "/proc/self/ns/user") : 0;
}

/* Puts a file with @names over /etc/hosts: one of a file system in memory, which is mounted on @dir
 * only until then. */
static int cover_etc_hosts(const char *names, const char *dir, char *why, size_t len)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/hosts", dir) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return fail(why, len, dir);
	}
	if (mount("tmpfs", dir, "tmpfs", flags, "mode=755"))
		return fail(why, len, "the hosts' /etc/hosts cannot be made (mount)");
	if (write_file(path, names))
		return fail(why, len, "the hosts' /etc/hosts cannot be written");
	if (mount(path, "/etc/hosts", NULL, MS_BIND, NULL))
		return fail(why, len,
		            "there must be a file /etc/hosts, to mount that of the hosts on");
	if (umount2(dir, MNT_DETACH))
		return fail(why, len, "umount");
	return 0;
}

/* Going to a namespace of mounts leads to its root, out of a chroot. */
static int check_root(int mounts, char *why, size_t len)
{
	struct statx before, after;

	if (statx(AT_FDCWD, "/", 0, STATX_INO | STATX_MNT_ID, &before) ||
	    setns(mounts, CLONE_NEWNS) || statx(AT_FDCWD, "/", 0, STATX_INO | STATX_MNT_ID, &after))
		return fail(why, len, "cannot go to a namespace of mounts (setns)");
	if (before.stx_mnt_id == after.stx_mnt_id && before.stx_ino == after.stx_ino)
		return 0;
	snprintf(why, len, "hosts with a network of their own cannot be made in a chroot");
	return -EPERM;
}

int hosts_site_enter(struct hosts_site *site, const char *names, const char *dir, char *why,
                     size_t len)
{
	int ret = 0;

	*site = (struct hosts_site){ .user = -1, .template = -1 };
	/* root may lack the right to do without, in a container */
	if (geteuid() || unshare(CLONE_NEWNS))
		ret = enter_user(site, why, len);
	if (!ret && site->user >= 0 && unshare(CLONE_NEWNS))
		ret = fail_forbidden(why, len, "namespaces of mounts", "unshare");
	if (ret)
		return ret;
	/* mounts outside are seen here, and go when they are unmounted there; ours do not get
	 * out */
	if (mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL))
		return fail_forbidden(why, len, "mounts in a namespace", "mount");
	ret = cover_etc_hosts(names, dir, why, len);
	if (ret)
		return ret;
	site->template = open_own("mnt");
	if (site->template <0)
		return fail(why, len, "/proc/self/ns/mnt");
	return check_root(site->template, why, len);
}

/* ---- a host ---- */

static int set_lo_up(void)
{
	struct ifreq lo = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;

	if (fd < 0)
		return -1;
	ret = ioctl(fd, SIOCGIFFLAGS, &lo);
	lo.ifr_flags |= IFF_UP;
	if (!ret)
		ret = ioctl(fd, SIOCSIFFLAGS, &lo);
	close(fd);
	return ret;
}

/* Addresses of a fabric are unique, and no router is on its network: nobody asks for either, so
 * that interfaces of a thousand hosts that come up together are quiet. */
static void be_quiet(void)
{
	static const char *const settings[] = { "accept_dad", "dad_transmits",
		                                "router_solicitations" };
	char path[80];

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/default/%s", settings[i]);
		if (write_file(path, "0"))
			base_log_info(hosts, "%s: %s", path, strerror(errno));
	}
}

/* Lets this user's programs ping without a privilege. */
static void allow_ping(void)
{
	char range[40];

	snprintf(range, sizeof(range), "%u %u", getegid(), getegid());
	if (write_file("/proc/sys/net/ipv4/ping_group_range", geteuid() ? range : "0 2147483647"))
		base_log_info(hosts, "ping will need a privilege: %s", strerror(errno));
}

/*
 * Has /sys show the network devices of this namespace, and otherwise what it shows: a sysfs is
 * mounted over it, the two directories with devices that move from one namespace to another are
 * taken from that, and put over those of the old one.
 */
static int show_devices(void)
{
	static const char *const dirs[] = { "/sys/class/net", "/sys/devices/virtual/net" };
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
	int tree[ARRAY_SIZE(dirs)], ret = 0;

	if (mount("sysfs", "/sys", "sysfs", flags, NULL) &&
	    mount("sysfs", "/sys", "sysfs", flags | MS_RDONLY, NULL))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		tree[i] = open_tree(AT_FDCWD, dirs[i], OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (umount2("/sys", MNT_DETACH))
		ret = -1;
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		if (tree[i] < 0 || ret ||
		    move_mount(tree[i], "", AT_FDCWD, dirs[i], MOVE_MOUNT_F_EMPTY_PATH))
			ret = -1;
		if (tree[i] >= 0)
			close(tree[i]);
	}
	return ret;
}

static int open_all(struct hosts_namespaces *ns, char *why, size_t len)
{
	ns->net = open_own("net");
	ns->uts = ns->net < 0 ? -1 : open_own("uts");
	ns->mnt = ns->uts < 0 ? -1 : open_own("mnt");
	if (ns->mnt >= 0)
		return 0;
	return fail(why, len, "/proc/thread-self/ns");
}

int hosts_network_new(char *why, size_t len)
{
	if (unshare(CLONE_NEWNET))
		return fail_forbidden(why, len, "namespaces of network", "unshare");
	be_quiet();
	return 0;
}

int hosts_namespaces_make(struct hosts_namespaces *ns, const struct hosts_site *site,
                          const char *name, char *why, size_t len)
{
	int ret;

	*ns = (struct hosts_namespaces){ .net = -1, .uts = -1, .mnt = -1, .user = site->user };
	if (setns(site->template, CLONE_NEWNS) ||
	    unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS))
		return fail_forbidden(why, len, "namespaces of network, host name and mounts",
		                      "unshare");
	if (sethostname(name, strlen(name)))
		return fail(why, len, "a host cannot get its name (sethostname)");
	if (set_lo_up())
		return fail(why, len, "lo cannot be set up (SIOCSIFFLAGS)");
	be_quiet();
	allow_ping();
	if (show_devices())
		base_log_info(hosts, "host %s sees the machine's network devices in /sys: %s", name,
		              strerror(errno));
	ret = open_all(ns, why, len);
	if (ret)
		hosts_namespaces_close(ns);
	return ret;
}

void hosts_namespaces_close(struct hosts_namespaces *ns)
{
	int *fds[] = { &ns->net, &ns->uts, &ns->mnt };

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

/* ---- entering ---- */

/* Whether this process is in the user namespace already. */
static bool is_own_user(int user)
{
	struct stat own, other;

	return !stat("/proc/self/ns/user", &own) && !fstat(user, &other) &&
	       own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

/* Returns to the former working directory, by its name: that leads to the directory in the new
 * mounts. */
static void return_to(const char *cwd, int cwd_fd)
{
	if (*cwd == '/' && !chdir(cwd))
		return;
	if (cwd_fd < 0 || fchdir(cwd_fd))
		base_log_warning(hosts, "the current directory is not to be reached: it is now /");
}

int hosts_namespaces_enter(const struct hosts_namespaces *ns)
{
	int cwd_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), ret = 0;
	char cwd[PATH_MAX];

	if (!getcwd(cwd, sizeof(cwd)))
		*cwd = '\0';
	if ((ns->user >= 0 && !is_own_user(ns->user) && setns(ns->user, CLONE_NEWUSER)) ||
	    setns(ns->net, CLONE_NEWNET) || setns(ns->uts, CLONE_NEWUTS) ||
	    setns(ns->mnt, CLONE_NEWNS))
		ret = -errno;
	if (!ret)
		return_to(cwd, cwd_fd);
	if (!ret && ns->user >= 0)
		ret = hosts_capabilities_keep();
	if (cwd_fd >= 0)
		close(cwd_fd);
	return ret;
}
