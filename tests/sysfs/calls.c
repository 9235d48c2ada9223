/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files of RDMA devices in /sys and /dev, by all calls of the C library by which programs look
 * at files: four hosts of one HCA with one port. `umbel run` preloads what answers.
 */
#include "harness.h"

#include <glob.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#define CLASS     "/sys/class/infiniband"
#define PLACE     "pci756d:00/756d:01:00.0/infiniband"
#define DIRECTORY "/sys/devices/" PLACE
#define HCA       CLASS "/umbel_h2_0"
#define PORT      HCA "/ports/1"
#define DEVICE    "/dev/infiniband/uverbs1"
#define ACTIVE    "4: ACTIVE\n"

/* ---- helpers */

static void expect_text(int fd, const char *text)
{
	char buf[128] = "";

	assert_true(fd >= 0);
	assert_true(read(fd, buf, sizeof(buf) - 1) >= 0);
	assert_string_equal(buf, text);
	assert_int_equal(close(fd), 0);
}

static void expect_file(const char *path, const char *text)
{
	expect_text(open(path, O_RDONLY), text);
}

#define expect_errno(value, error)                   \
	do {                                         \
		errno = 0;                           \
		assert_int_equal((long)(value), -1); \
		assert_int_equal(errno, error);      \
	} while (0)

/* The last line that a command prints, which must succeed. */
static void expect_command(const char *command, const char *line)
{
	char buf[256] = "";
	FILE *f = popen(command, "r");

	assert_non_null(f);
	while (fgets(buf, sizeof(buf), f))
		;
	assert_int_equal(pclose(f), 0);
	assert_string_equal(buf, line);
}

static int go_home(void **state)
{
	(void)state;
	return chdir("/tmp");
}

/* A function that the headers redirect or do not declare. */
static void *function(const char *name)
{
	void *at = dlsym(RTLD_DEFAULT, name);

	if (!at)
		fail_msg("no %s()", name);
	return at;
}

/* ---- opening */

CASE_WITH(files_open_by_every_name_of_open, go_home, go_home)
{
	static const char *const two[] = { "open", "open64", "__open_2", "__open64_2" };
	static const char *const at[] = { "openat", "openat64", "__openat_2", "__openat64_2" };
	int (*open_two)(const char *, int, ...), (*open_at)(int, const char *, int, ...);
	int dir = open(PORT, O_RDONLY | O_DIRECTORY);

	for (int i = 0; i < 4; i++) {
		*(void **)&open_two = function(two[i]);
		*(void **)&open_at = function(at[i]);
		expect_text(open_two(PORT "/state", O_RDONLY), ACTIVE);
		expect_text(open_at(AT_FDCWD, PORT "/state", O_RDONLY), ACTIVE);
		expect_text(open_at(dir, "state", O_RDONLY), ACTIVE);
		expect_text(open_at(dir, "../../node_type", O_RDONLY), "1: CA\n");
	}
	close(dir);
}

/* O_PATH opens a link itself, and whatever is asked for beside. */
CASE_WITH(a_link_is_opened_by_O_PATH, go_home, go_home)
{
	static const char *const links[] = { HCA, "/sys/class/misc/rdma_cm", HCA "/subsystem" };
	char text[PATH_MAX], of_path[PATH_MAX];
	struct stat st;

	for (int i = 0; i < 3; i++) {
		int fd = open(links[i], O_PATH | O_NOFOLLOW | O_CLOEXEC);
		ssize_t n = readlinkat(fd, "", text, sizeof(text));

		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &st), 0);
		assert_true(S_ISLNK(st.st_mode));
		assert_int_equal(readlink(links[i], of_path, sizeof(of_path)), n);
		assert_memory_equal(text, of_path, n);
		close(fd);
	}
	assert_int_equal(close(open(PORT "/state", O_PATH | O_RDWR | O_TRUNC)), 0);
	expect_errno(open(HCA, O_RDONLY | O_NOFOLLOW | O_DIRECTORY), ENOTDIR);
	expect_errno(open(HCA, O_PATH | O_NOFOLLOW | O_DIRECTORY), ENOTDIR);
}

CASE_WITH(streams_open, go_home, go_home)
{
	static const char *const names[] = { "fopen", "fopen64" };
	FILE *(*open_stream)(const char *, const char *), *f;
	char line[64];

	for (int i = 0; i < 2; i++) {
		*(void **)&open_stream = function(names[i]);
		assert_non_null(f = open_stream(PORT "/state", "re"));
		assert_string_equal(fgets(line, sizeof(line), f), ACTIVE);
		assert_non_null(f = freopen(PORT "/link_layer", "r", f));
		assert_string_equal(fgets(line, sizeof(line), f), "InfiniBand\n");
		assert_int_equal(fclose(f), 0);
	}
	assert_null(fopen(PORT "/state", "w"));
	assert_int_equal(errno, EACCES);
	assert_null(fopen(PORT "/other", "r"));
	assert_int_equal(errno, ENOENT);
}

CASE_WITH(nobody_writes, go_home, go_home)
{
	expect_errno(open(PORT "/state", O_WRONLY), EACCES);
	expect_errno(open(PORT "/state", O_RDWR), EACCES);
	expect_errno(open(PORT "/state", O_RDONLY | O_TRUNC), EACCES);
	expect_errno(open(PORT "/other", O_WRONLY | O_CREAT, 0600), EACCES);
	expect_errno(creat(PORT "/other", 0600), EACCES);
	expect_errno(open(PORT "/state", O_RDONLY | O_CREAT | O_EXCL, 0600), EEXIST);
	expect_errno(open(PORT, O_WRONLY), EISDIR);
	expect_errno(open(PORT, O_RDONLY | O_CREAT, 0600), EISDIR);
	expect_errno(open(PORT, O_RDONLY | O_TRUNC), EISDIR);
}

CASE_WITH(what_is_not_there_is_said_as_the_kernel_says_it, go_home, go_home)
{
	expect_errno(open(PORT "/other", O_RDONLY), ENOENT);
	expect_errno(open(HCA "/ports/2/state", O_RDONLY), ENOENT);
	expect_errno(open(HCA "/ports/01/state", O_RDONLY), ENOENT);
	expect_errno(open(CLASS "/umbel_h5_0", O_RDONLY), ENOENT);
	expect_errno(open(PORT "/state/x", O_RDONLY), ENOTDIR);
	expect_errno(open(PORT "/state/", O_RDONLY), ENOTDIR);
	expect_errno(open(PORT "/state", O_RDONLY | O_DIRECTORY), ENOTDIR);
	expect_errno(open(HCA, O_RDONLY | O_NOFOLLOW), ELOOP);
	expect_errno(open(PORT "/gid_attrs/ndevs/0", O_RDONLY), EINVAL);
	expect_errno(open(PORT "/gid_attrs/types/5", O_RDONLY), EINVAL);
	expect_errno(open(PORT "/gids/999999999999999999999", O_RDONLY), ENOENT);
}

CASE_WITH(paths_are_walked_as_the_kernel_walks_them, go_home, go_home)
{
	expect_file("//sys///class/./infiniband//umbel_h2_0/ports/1/state", ACTIVE);
	expect_file("/sys/class/net/../infiniband/umbel_h2_0/ports/1/state", ACTIVE);
	expect_file(HCA "/../../../756d:02:00.0/infiniband/umbel_h3_0/ports/1/lid", "0x3\n");
	expect_file(HCA "/../../../../../class/infiniband_verbs/uverbs1/ibdev", "umbel_h2_0\n");
	expect_file(HCA "/subsystem/umbel_h4_0/ports/1/lid", "0x4\n");
	expect_file(DIRECTORY "/umbel_h2_0/ports/1/state", ACTIVE);
	/* and out of the tree again */
	assert_int_equal(access(CLASS "/../net/lo/address", R_OK), 0);
	expect_errno(access(CLASS "/../no-such-class", F_OK), ENOENT);
}

/* ---- stat */

static void expect_same(const struct stat *a, const struct stat *b)
{
	assert_int_equal(a->st_ino, b->st_ino);
	assert_int_equal(a->st_dev, b->st_dev);
	assert_int_equal(a->st_mode, b->st_mode);
	assert_int_equal(a->st_rdev, b->st_rdev);
	assert_int_equal(a->st_size, b->st_size);
}

/* By all names, of the path and of a descriptor of it. */
static void expect_stat(const char *path, mode_t mode)
{
	static const char *const names[] = { "stat", "stat64", "lstat", "lstat64" };
	static const char *const old[] = { "__xstat", "__xstat64", "__lxstat", "__lxstat64" };
	int (*get)(const char *, struct stat *), (*get_old)(int, const char *, struct stat *);
	int fd = open(path, O_RDONLY);
	struct stat first, st;
	struct statx stx;

	assert_int_equal(stat(path, &first), 0);
	assert_int_equal(first.st_mode, mode);
	for (int i = 0; i < 4; i++) {
		*(void **)&get = function(names[i]);
		assert_int_equal(get(path, &st), 0);
		expect_same(&st, &first);
		*(void **)&get_old = function(old[i]);
		assert_int_equal(get_old(1, path, &st), 0);
		expect_same(&st, &first);
	}
	assert_int_equal(fstatat(AT_FDCWD, path, &st, 0), 0);
	expect_same(&st, &first);
	assert_int_equal(fstat(fd, &st), 0);
	expect_same(&st, &first);
	assert_int_equal(fstatat(fd, "", &st, AT_EMPTY_PATH), 0);
	expect_same(&st, &first);
	assert_int_equal(statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &stx), 0);
	assert_int_equal(stx.stx_ino, first.st_ino);
	assert_int_equal(stx.stx_mode, first.st_mode);
	assert_int_equal(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx), 0);
	assert_int_equal(stx.stx_ino, first.st_ino);
	close(fd);
}

CASE_WITH(stat_says_what_a_file_is, go_home, go_home)
{
	struct stat st;

	expect_stat(PORT "/state", S_IFREG | 0444);
	expect_stat(CLASS, S_IFDIR | 0755);
	expect_stat(PORT "/gids", S_IFDIR | 0755);
	expect_stat(DEVICE, S_IFCHR | 0666);
	assert_int_equal(lstat(HCA, &st), 0);
	assert_int_equal(st.st_mode, S_IFLNK | 0777);
	assert_int_equal(stat(HCA, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(fstatat(AT_FDCWD, HCA, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISLNK(st.st_mode));
	expect_errno(stat(PORT "/other", &st), ENOENT);
}

CASE_WITH(devices_have_the_numbers_that_sysfs_says, go_home, go_home)
{
	static const char *const devices[][2] = {
		{ "/dev/infiniband/uverbs1", "/sys/class/infiniband_verbs/uverbs1/dev" },
		{ "/dev/infiniband/umad1", "/sys/class/infiniband_mad/umad1/dev" },
		{ "/dev/infiniband/issm1", "/sys/class/infiniband_mad/issm1/dev" },
		{ "/dev/infiniband/rdma_cm", "/sys/class/misc/rdma_cm/dev" },
	};
	struct stat st, of_fd;
	char number[32];
	int fd;

	for (int i = 0; i < 4; i++) {
		assert_int_equal(stat(devices[i][0], &st), 0);
		assert_true(S_ISCHR(st.st_mode));
		snprintf(number, sizeof(number), "%u:%u\n", major(st.st_rdev), minor(st.st_rdev));
		expect_file(devices[i][1], number);
		assert_int_equal(access(devices[i][0], R_OK | W_OK), 0);
		fd = open(devices[i][0], O_RDWR | O_CLOEXEC);
		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &of_fd), 0);
		expect_same(&of_fd, &st);
		close(fd);
	}
}

/* A descriptor's number is used again for something else. */
CASE_WITH(a_closed_device_is_forgotten, go_home, go_home)
{
	struct stat st;
	int fd = open(DEVICE, O_RDWR), other;

	close(fd);
	other = open("/dev/null", O_RDWR);
	assert_int_equal(other, fd);
	assert_int_equal(fstat(other, &st), 0);
	assert_int_equal(major(st.st_rdev), 1);
	close(other);
	fd = open(PORT "/state", O_RDONLY);
	close(fd);
	other = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(other, fd);
	assert_int_equal(fstat(other, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	close(other);
}

/* libudev takes nothing for a device that is not in sysfs. */
CASE_WITH(files_are_in_the_file_system_of_sysfs, go_home, go_home)
{
	static const char *const paths[] = { PORT "/state", PORT, CLASS };
	struct statvfs real_v, v;
	struct statfs real, fs;

	assert_int_equal(statfs("/sys", &real), 0);
	assert_int_equal(statvfs("/sys", &real_v), 0);
	for (int i = 0; i < 3; i++) {
		int fd = open(paths[i], O_RDONLY);

		assert_int_equal(statfs(paths[i], &fs), 0);
		assert_int_equal(fs.f_type, real.f_type);
		assert_int_equal(fstatfs(fd, &fs), 0);
		assert_int_equal(fs.f_type, real.f_type);
		assert_int_equal(statvfs(paths[i], &v), 0);
		assert_int_equal(v.f_fsid, real_v.f_fsid);
		assert_int_equal(fstatvfs(fd, &v), 0);
		assert_int_equal(v.f_fsid, real_v.f_fsid);
		close(fd);
	}
	assert_int_equal(statfs("/dev", &real), 0);
	assert_int_equal(statfs(DEVICE, &fs), 0);
	assert_int_equal(fs.f_type, real.f_type);
	assert_int_equal(statfs("/proc", &fs), 0);
	assert_int_not_equal(fs.f_type, real.f_type);
	expect_errno(statfs(PORT "/other", &fs), ENOENT);
	expect_errno(fstatfs(-1, &fs), EBADF);
	expect_file(HCA "/uevent", "NAME=umbel_h2_0\n");
}

/* Where there is libudev's program: it follows links by descriptors, and looks at what all have. */
CASE_WITH(udev_knows_the_devices, go_home, go_home)
{
	if (access("/usr/bin/udevadm", X_OK))
		skip();
	expect_command("udevadm info -q path " HCA, "/devices/" PLACE "/umbel_h2_0\n");
	expect_command("udevadm info -q name /sys/class/infiniband_verbs/uverbs1",
	               "infiniband/uverbs1\n");
	expect_command("udevadm info -q property " HCA " | grep SUBSYSTEM",
	               "SUBSYSTEM=infiniband\n");
}

CASE_WITH(access_denies_writing, go_home, go_home)
{
	assert_int_equal(access(PORT "/state", R_OK), 0);
	expect_errno(access(PORT "/state", W_OK), EACCES);
	expect_errno(access(PORT "/state", X_OK), EACCES);
	assert_int_equal(access(PORT, R_OK | X_OK), 0);
	expect_errno(access(PORT, W_OK), EACCES);
	assert_int_equal(faccessat(AT_FDCWD, PORT "/state", R_OK, AT_EACCESS), 0);
	assert_int_equal(euidaccess(PORT "/state", R_OK), 0);
	expect_errno(eaccess(PORT "/state", W_OK), EACCES);
	expect_errno(access(PORT "/other", F_OK), ENOENT);
}

CASE_WITH(there_are_no_extended_attributes, go_home, go_home)
{
	char buf[64];

	expect_errno(getxattr(PORT "/state", "user.x", buf, sizeof(buf)), EOPNOTSUPP);
	expect_errno(lgetxattr(HCA, "user.x", buf, sizeof(buf)), EOPNOTSUPP);
	expect_errno(listxattr(PORT, buf, sizeof(buf)), EOPNOTSUPP);
	expect_errno(llistxattr(HCA, buf, sizeof(buf)), EOPNOTSUPP);
}

/* ---- directories */

static unsigned char type_in(const char *path, const char *name)
{
	struct dirent *(*read_entry)(DIR *), *entry;
	DIR *dir = opendir(path);
	unsigned char type = DT_UNKNOWN, type64 = DT_UNKNOWN;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (!strcmp(entry->d_name, name))
			type = entry->d_type;
	rewinddir(dir);
	*(void **)&read_entry = function("readdir64");
	while ((entry = read_entry(dir)))
		if (!strcmp(entry->d_name, name))
			type64 = entry->d_type;
	closedir(dir);
	assert_int_equal(type, type64);
	return type;
}

CASE_WITH(directories_list_entries_of_the_right_type, go_home, go_home)
{
	assert_int_equal(type_in(CLASS, "umbel_h1_0"), DT_LNK);
	assert_int_equal(type_in(CLASS "/", "umbel_h4_0"), DT_LNK);
	assert_int_equal(type_in(HCA, "ports"), DT_DIR);
	assert_int_equal(type_in(PORT, "state"), DT_REG);
	assert_int_equal(type_in("/dev/infiniband", "umad3"), DT_CHR);
	assert_int_equal(type_in("/dev/infiniband", "rdma_cm"), DT_CHR);
	assert_int_equal(type_in(CLASS, "umbel_h5_0"), DT_UNKNOWN);
	assert_null(opendir(PORT "/state"));
	assert_int_equal(errno, ENOTDIR);
	assert_null(opendir(PORT "/other"));
	assert_int_equal(errno, ENOENT);
}

/* The machine's own directories have ours as well, after their own, once. */
CASE_WITH(directories_of_the_machine_list_them, go_home, go_home)
{
	static const char *const names[] = { "net", "infiniband", "infiniband_mad" };
	unsigned found[3] = { 0 };
	struct dirent *entry;
	DIR *dir = opendir("/sys/class");
	int fd;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		for (int i = 0; i < 3; i++)
			found[i] += !strcmp(entry->d_name, names[i]);
	for (int i = 0; i < 3; i++)
		assert_int_equal(found[i], 1);
	assert_int_equal(closedir(dir), 0);
	assert_int_equal(type_in("/sys/class", "infiniband"), DT_DIR);
	assert_int_equal(type_in("/sys/class/misc", "rdma_cm"), DT_LNK);
	assert_int_equal(type_in("/sys/devices/virtual", "infiniband_verbs"), DT_DIR);
	assert_int_equal(type_in("/dev", "infiniband"), DT_DIR);
	assert_int_equal(type_in("/dev", "null"), DT_CHR);
	fd = open("/sys", O_RDONLY | O_DIRECTORY);
	fd = openat(fd, "class", O_RDONLY | O_DIRECTORY);
	dir = fdopendir(fd);
	while ((entry = readdir(dir)))
		found[1] += !strcmp(entry->d_name, "infiniband");
	assert_int_equal(found[1], 2);
	expect_text(openat(fd, "infiniband/umbel_h2_0/ports/1/state", O_RDONLY), ACTIVE);
	assert_int_equal(closedir(dir), 0);
}

static int is_uverbs(const struct dirent *entry)
{
	return !strncmp(entry->d_name, "uverbs", 6);
}

static int is_infiniband(const struct dirent *entry)
{
	return !strcmp(entry->d_name, "infiniband");
}

CASE_WITH(scandir_lists, go_home, go_home)
{
	struct dirent **list;
	int n = scandir(CLASS, &list, NULL, alphasort);

	assert_int_equal(n, 6); /* with . and .. */
	assert_string_equal(list[5]->d_name, "umbel_h4_0");
	for (int i = 0; i < n; i++)
		free(list[i]);
	free(list);
	/* the types are those of readdir() */
	n = scandir("/dev/infiniband", &list, is_uverbs, alphasort);
	assert_int_equal(n, 4);
	for (int i = 0; i < n; i++) {
		assert_int_equal(list[i]->d_type, DT_CHR);
		free(list[i]);
	}
	free(list);
	/* a directory of the machine's has ours, too */
	n = scandir("/sys/class", &list, is_infiniband, NULL);
	assert_int_equal(n, 1);
	free(list[0]);
	free(list);
	n = scandir("/sys/class", &list, is_uverbs, NULL);
	assert_int_equal(n, 0);
	free(list);
	expect_errno(scandir(PORT "/state", &list, NULL, NULL), ENOTDIR);
	expect_errno(scandir(PORT "/other", &list, NULL, NULL), ENOENT);
}

static void expect_glob(const char *pattern, size_t n, const char *first)
{
	static const char *const names[] = { "glob", "glob64" };
	int (*match)(const char *, int, int (*)(const char *, int), glob_t *);
	glob_t g = { 0 };

	for (int i = 0; i < 2; i++) {
		*(void **)&match = function(names[i]);
		assert_int_equal(match(pattern, 0, NULL, &g), 0);
		assert_int_equal(g.gl_pathc, n);
		assert_string_equal(g.gl_pathv[0], first);
		globfree(&g);
	}
}

CASE_WITH(glob_matches, go_home, go_home)
{
	expect_glob("/sys/class/infiniband/*/ports/*/state", 4, CLASS "/umbel_h1_0/ports/1/state");
	expect_glob("/dev/infiniband/uverbs[12]", 2, "/dev/infiniband/uverbs1");
	expect_glob("/sys/cla*/inf*/umbel*", 4, CLASS "/umbel_h1_0");
	expect_glob("/sys/class/net/l*", 1, "/sys/class/net/lo");
	assert_int_equal(chdir(PORT), 0);
	expect_glob("sm_*", 2, "sm_lid");
}

/* ---- the current directory */

CASE_WITH(a_program_can_go_there, go_home, go_home)
{
	char buf[PATH_MAX], small[64], *name;
	struct stat a, b;
	DIR *dir;

	assert_int_equal(chdir(HCA), 0);
	assert_string_equal(getcwd(buf, sizeof(buf)), DIRECTORY "/umbel_h2_0");
	assert_string_equal(getcwd(small, sizeof(small)), DIRECTORY "/umbel_h2_0");
	assert_null(getcwd(small, 8));
	assert_int_equal(errno, ERANGE);
	name = get_current_dir_name();
	assert_string_equal(name, DIRECTORY "/umbel_h2_0");
	free(name);
	expect_file("ports/1/state", ACTIVE);
	assert_int_equal(chdir("ports/1"), 0);
	expect_file("./state", ACTIVE);
	assert_int_equal(chdir(".."), 0);
	assert_string_equal(getcwd(buf, sizeof(buf)), DIRECTORY "/umbel_h2_0/ports");
	assert_int_equal(stat(".", &a), 0);
	assert_int_equal(stat(HCA "/ports", &b), 0);
	expect_same(&a, &b);
	assert_non_null(dir = opendir("."));
	closedir(dir);
	expect_errno(chdir("1/state"), ENOTDIR);
	expect_errno(chdir("2"), ENOENT);
}

CASE_WITH(a_child_starts_there, go_home, go_home)
{
	assert_int_equal(chdir(PORT), 0);
	expect_command("cat state", ACTIVE);
	expect_command("/bin/pwd", DIRECTORY "/umbel_h2_0/ports/1\n");
	expect_command("cd ../../../../../756d:02:00.0/infiniband/umbel_h3_0 && cat ports/1/lid",
	               "0x3\n");
	expect_command("cd /tmp && pwd -P", "/tmp\n");
}

CASE_WITH(a_descriptor_of_a_directory_leads_there, go_home, go_home)
{
	char buf[PATH_MAX];
	int dir = open(PORT, O_RDONLY | O_DIRECTORY), home = open("/tmp", O_RDONLY);

	assert_int_equal(fchdir(dir), 0);
	assert_string_equal(getcwd(buf, sizeof(buf)), DIRECTORY "/umbel_h2_0/ports/1");
	expect_file("state", ACTIVE);
	assert_int_equal(fchdir(home), 0);
	assert_string_equal(getcwd(buf, sizeof(buf)), "/tmp");
	expect_errno(open("state", O_RDONLY), ENOENT);
	close(dir);
	close(home);
}

/* Such a child writes to its parent's memory, and has a directory of its own. */
CASE_WITH(a_child_by_vfork_goes_elsewhere_alone, go_home, go_home)
{
	pid_t pid;

	assert_int_equal(chdir(PORT), 0);
	pid = vfork();
	if (pid == 0) {
		if (chdir("/tmp"))
			_exit(1);
		_exit(access("state", F_OK) == -1 && errno == ENOENT ? 0 : 2);
	}
	harness_expect_success(pid);
	expect_file("state", ACTIVE);
	assert_int_equal(chdir("/tmp"), 0);
	pid = vfork();
	if (pid == 0)
		_exit(chdir(PORT) || access("state", F_OK));
	harness_expect_success(pid);
	expect_errno(access("state", F_OK), ENOENT);
}

CASE_WITH(paths_from_the_tree_lead_out_of_it, go_home, go_home)
{
	char a[PATH_MAX], b[PATH_MAX];

	assert_int_equal(chdir(CLASS), 0);
	assert_non_null(realpath("../net", a));
	assert_non_null(realpath("/sys/class/net", b));
	assert_string_equal(a, b);
	assert_int_equal(chdir(".."), 0);
	assert_string_equal(getcwd(a, sizeof(a)), "/sys/class");
	expect_file("infiniband/umbel_h2_0/ports/1/state", ACTIVE);
}

/* ---- links */

CASE_WITH(links_are_read_and_resolved, go_home, go_home)
{
	char buf[PATH_MAX], *path;
	ssize_t n = readlink(HCA, buf, sizeof(buf));
	int dir;

	assert_int_equal(n, strlen("../../devices/" PLACE "/umbel_h2_0"));
	assert_memory_equal(buf, "../../devices/" PLACE "/umbel_h2_0", n);
	assert_int_equal(readlink(HCA, buf, 5), 5);
	dir = open(CLASS, O_RDONLY);
	assert_int_equal(readlinkat(dir, "umbel_h2_0", buf, sizeof(buf)), n);
	close(dir);
	expect_errno(readlink(PORT "/state", buf, sizeof(buf)), EINVAL);
	assert_string_equal(realpath(PORT "/state", buf), DIRECTORY "/umbel_h2_0/ports/1/state");
	path = canonicalize_file_name(HCA "/subsystem");
	assert_string_equal(path, CLASS);
	free(path);
	assert_null(realpath(PORT "/other", buf));
	assert_int_equal(errno, ENOENT);
}

/* ---- current, and without traces */

/* Waits until reading @fd again from its start gives @text. */
static void expect_again(int fd, const char *text, bool by_pread)
{
	char buf[64];
	ssize_t n;

	do {
		if (by_pread) {
			n = pread(fd, buf, sizeof(buf) - 1, 0);
		} else {
			assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
			n = read(fd, buf, sizeof(buf) - 1);
		}
		assert_true(n > 0);
		buf[n] = '\0';
	} while (strcmp(buf, text)); /* ctest ends it */
}

CASE_WITH(an_open_file_is_current_when_it_is_read_again, go_home, go_home)
{
	int fd = open(HCA "/ports/1/state", O_RDONLY);

	expect_again(fd, ACTIVE, false);
	assert_int_equal(system("umbel link down h2:1"), 0);
	expect_again(fd, "1: DOWN\n", false);
	expect_file(PORT "/phys_state", "2: Polling\n");
	expect_file(PORT "/counters/link_downed", "1\n");
	assert_int_equal(system("umbel link up h2:1"), 0);
	expect_again(fd, ACTIVE, true);
	close(fd);
}

CASE_WITH(no_descriptor_stays_open, go_home, go_home)
{
	unsigned before = harness_descriptors();

	expect_file(PORT "/state", ACTIVE);
	expect_file(PORT "/counters/symbol_error", "0\n");
	assert_int_equal(access(PORT "/counters/port_xmit_data", R_OK), 0);
	assert_int_equal(type_in(PORT "/gids", "0"), DT_REG);
	assert_int_equal(harness_descriptors(), before);
}

CASE_WITH(errno_is_left_alone, go_home, go_home)
{
	struct stat st;

	errno = EXDEV;
	expect_file(PORT "/state", ACTIVE);
	assert_int_equal(stat(PORT, &st), 0);
	assert_int_equal(type_in(PORT "/pkeys", "0"), DT_REG);
	assert_int_equal(errno, EXDEV);
}

/* A process that may write no files reads them nevertheless, and gets no signal. */
CASE_WITH(limits_of_the_process_do_not_matter, go_home, go_home)
{
	const struct rlimit none = { 0, 0 };
	pid_t pid = fork();

	if (pid == 0) {
		char buf[64];
		int fd;

		umask(0777);
		fd = setrlimit(RLIMIT_FSIZE, &none) ? -1 : open(PORT "/state", O_RDONLY);
		_exit(fd >= 0 && read(fd, buf, sizeof(buf)) == strlen(ACTIVE) &&
		                      opendir(PORT "/gid_attrs/types")
		              ? 0
		              : 1);
	}
	harness_expect_success(pid);
}

static void *look_around(void *arg)
{
	char *buf = malloc(PATH_MAX);

	for (int i = 0; i < 200; i++) {
		int fd = open(PORT "/state", O_RDONLY);
		struct stat st;
		DIR *dir;

		if (fd < 0 || read(fd, buf, 64) != strlen(ACTIVE) || fstat(fd, &st) ||
		    st.st_size != 4096 || close(fd))
			return arg;
		dir = opendir(HCA "/ports");
		if (!dir || !readdir(dir) || closedir(dir) || !realpath(HCA, buf))
			return arg;
	}
	free(buf);
	return NULL;
}

CASE_WITH(many_threads_look, go_home, go_home)
{
	pthread_t thread[8];
	void *failed;

	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, look_around, state), 0);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(pthread_join(thread[i], &failed), 0);
		assert_null(failed);
	}
}

static void *open_until_cancelled(void *arg)
{
	int fd, state;

	for (;;) {
		fd = open(PORT "/state", O_RDONLY);
		lseek(fd, 0, SEEK_SET);
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
		close(fd);
		pthread_setcancelstate(state, NULL);
		pthread_testcancel();
	}
	return arg;
}

/* As with the kernel's files: open() gives a descriptor, or the thread ends without one. */
CASE_WITH(a_cancelled_thread_leaves_no_descriptor, go_home, go_home)
{
	unsigned before = harness_descriptors();
	void *result;

	for (int i = 0; i < 100; i++) {
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, open_until_cancelled, state), 0);
		assert_int_equal(pthread_cancel(thread), 0);
		assert_int_equal(pthread_join(thread, &result), 0);
		assert_ptr_equal(result, PTHREAD_CANCELED);
	}
	assert_int_equal(harness_descriptors(), before);
}

/* The machine's own files stay as they are. */
CASE_WITH(other_files_are_untouched, go_home, go_home)
{
	char name[] = "/tmp/sysfs-XXXXXX", buf[PATH_MAX];
	int fd = mkstemp(name);
	struct stat a, b;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "0123456789", 10), 10);
	assert_int_equal(fstat(fd, &a), 0);
	assert_int_equal(stat(name, &b), 0);
	expect_same(&a, &b);
	assert_int_equal(lseek(fd, 3, SEEK_SET), 3);
	assert_int_equal(pread(fd, buf, 2, 0), 2);
	assert_memory_equal(buf, "01", 2);
	close(fd);
	assert_int_equal(chdir("/tmp"), 0);
	fd = open(name + 5, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_int_equal(fd, -1);
	assert_int_equal(errno, EEXIST);
	assert_int_equal(unlink(name), 0);
	expect_file("/sys/class/net/lo/address", "00:00:00:00:00:00\n");
	expect_errno(stat("/sys/class/net/lo/device", &a), ENOENT);
	assert_int_equal(stat("/dev/null", &a), 0);
	assert_int_equal(minor(a.st_rdev), 3);
}

/* ---- pointers */

static void expect_bad_path(const char *path, int error)
{
	struct statx stx;
	struct statfs fs;
	struct stat st;
	char buf[8];

	expect_errno(statfs(path, &fs), error);
	expect_errno(open(path, O_RDONLY), error);
	expect_errno(openat(AT_FDCWD, path, O_RDONLY), error);
	expect_errno(stat(path, &st), error);
	expect_errno(lstat(path, &st), error);
	expect_errno(fstatat(AT_FDCWD, path, &st, AT_EMPTY_PATH), error);
	expect_errno(statx(AT_FDCWD, path, AT_EMPTY_PATH, STATX_BASIC_STATS, &stx), error);
	expect_errno(access(path, R_OK), error);
	expect_errno(readlink(path, buf, sizeof(buf)), error);
	expect_errno(getxattr(path, "user.x", buf, sizeof(buf)), error);
	expect_errno(chdir(path), error);
	errno = 0; /* opendir() looks at its argument itself */
	assert_null(fopen(path, "r"));
	assert_int_equal(errno, error);
}

/* Two pages that can be read and written, and behind them one that cannot. */
static char *map_before_a_hole(size_t page)
{
	char *p = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(mprotect(p + 2 * page, page, PROT_NONE), 0);
	return p;
}

CASE_WITH(a_path_that_cannot_be_read_is_EFAULT, go_home, go_home)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = map_before_a_hole(page), *hole = p + 2 * page;
	static const char state_file[] = PORT "/state";

#ifdef __SANITIZE_ADDRESS__
	skip(); /* its own fopen() looks at paths before */
#endif
	expect_bad_path((const char *)8, EFAULT);
	expect_bad_path((const char *)-8, EFAULT);
	expect_bad_path(hole, EFAULT);
	expect_bad_path(hole + 100, EFAULT);
	/* it begins as one of the tree, and has no end */
	memcpy(hole - 10, "/sys/class", 10);
	expect_bad_path(hole - 10, EFAULT);
	memset(p, '/', 2 * page);
	expect_bad_path(hole - 4000, EFAULT);
	if (2 * page > PATH_MAX)
		expect_bad_path(p, ENAMETOOLONG);
	/* good ones: up to the last byte, over the end of a page, memory that may only be read */
	strcpy(hole - sizeof(state_file), state_file);
	expect_file(hole - sizeof(state_file), ACTIVE);
	strcpy(p + page - 7, state_file);
	expect_file(p + page - 7, ACTIVE);
	assert_int_equal(mprotect(p, page, PROT_READ), 0);
	expect_file(p + page - 7, ACTIVE);
	munmap(p, 3 * page);
}

CASE_WITH(a_result_that_cannot_be_written_is_EFAULT, go_home, go_home)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = map_before_a_hole(page), *hole = p + 2 * page;
	int fd = open(PORT "/state", O_RDONLY);
	void *bad[] = { (void *)8, hole, hole - 16 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		expect_errno(stat(PORT "/state", bad[i]), EFAULT);
		expect_errno(stat(PORT, bad[i]), EFAULT);
		expect_errno(lstat(HCA, bad[i]), EFAULT);
		expect_errno(stat(DEVICE, bad[i]), EFAULT);
		expect_errno(fstat(fd, bad[i]), EFAULT);
		expect_errno(statx(AT_FDCWD, HCA, 0, STATX_BASIC_STATS, bad[i]), EFAULT);
		expect_errno(readlink(HCA, bad[i], 100), EFAULT);
	}
	assert_int_equal(readlink(HCA, hole - 5, 5), 5);
	close(fd);
	munmap(p, 3 * page);
}
