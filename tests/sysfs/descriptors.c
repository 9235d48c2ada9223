/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Paths that begin at a descriptor of a directory: the root, one that was opened in any way, one
 * that a parent opened. Each case is a child of its own, as what a process has opened before
 * may help it.
 */
#include "harness.h"

#define PORT   "sys/class/infiniband/umbel_h2_0/ports/1"
#define ACTIVE "4: ACTIVE\n"

static bool is_active(int fd)
{
	char buf[64];
	bool is = fd >= 0 && read(fd, buf, sizeof(buf)) == strlen(ACTIVE) &&
	          !memcmp(buf, ACTIVE, strlen(ACTIVE));

	close(fd);
	return is;
}

/* In a child: @dir is opened with @flags, and @path leads to a port's state from there. */
static void expect_from(const char *dir, int flags, const char *path)
{
	pid_t pid = fork();
	int status, fd;

	if (pid == 0) {
		fd = open(dir, flags);
		_exit(fd >= 0 && is_active(openat(fd, path, O_RDONLY)) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status)
		fail_msg("from '%s', opened with 0x%x, '%s' is not found", dir, flags, path);
}

CASE(the_root_is_one)
{
	expect_from("/", O_RDONLY | O_DIRECTORY, PORT "/state");
	expect_from("/", O_RDONLY, "./" PORT "/state");
	expect_from("/", O_PATH, "../" PORT "/state");
}

CASE(it_is_opened_in_any_way)
{
	expect_from("/sys", O_RDONLY, "class/infiniband/umbel_h2_0/ports/1/state");
	expect_from("/sys/class", O_PATH, "infiniband/umbel_h2_0/ports/1/state");
	expect_from("/sys/class/net", O_PATH | O_DIRECTORY,
	            "../infiniband/umbel_h2_0/ports/1/state");
	expect_from("/" PORT, O_PATH, "state");
}

CASE(dots_behind_the_root_lead_nowhere)
{
	assert_true(is_active(open("/./" PORT "/state", O_RDONLY)));
	assert_true(is_active(open("/../" PORT "/state", O_RDONLY)));
	assert_true(is_active(open("//.././/../" PORT "/state", O_RDONLY)));
	assert_int_equal(access("/..", F_OK), 0);
	assert_int_equal(access("/.", F_OK), 0);
	assert_int_equal(access("/...", F_OK), -1);
	assert_int_equal(errno, ENOENT);
}

/* The program that is started has opened nothing yet. */
CASE(a_parent_has_opened_it)
{
	int fd = open("/" PORT, O_RDONLY | O_DIRECTORY);
	char script[] = "import os\n"
	                "d = int(os.environ['DIRECTORY'])\n"
	                "f = os.open('state', os.O_RDONLY, dir_fd=d)\n"
	                "assert os.read(f, 64) == b'4: ACTIVE\\n'\n"
	                "assert 'lid' in os.listdir(d)\n";
	char number[16];
	pid_t pid;

	assert_true(fd >= 0);
	snprintf(number, sizeof(number), "%d", fd);
	pid = fork();
	if (pid == 0) {
		setenv("DIRECTORY", number, 1);
		execl("/usr/bin/python3", "python3", "-c", script, NULL);
		_exit(127);
	}
	harness_expect_success(pid);
	close(fd);
}

/* Without O_DIRECTORY, too, as Python's os.open() does. */
CASE(the_machines_directories_list_ours)
{
	int fd = open("/sys/class", O_RDONLY);
	DIR *dir = fdopendir(fd);
	struct dirent *entry;
	unsigned found = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		found += !strcmp(entry->d_name, "infiniband");
	assert_int_equal(found, 1);
	closedir(dir);
}
