/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which directories are proven private. Only root can make a directory that another user owns:
 * without root these tests are skipped.
 */
#include <harness.h>
#include <ftw.h>

#include "control/directory.h"

#define STRANGER 65533
#define OTHER    65532

struct lab {
	char base[64], path[256], why[CONTROL_WHY_ROOM];
};

static int setup(void **state)
{
	struct lab *l = calloc(1, sizeof(*l));

	strcpy(l->base, "/tmp/umbel-test-XXXXXX");
	if (!mkdtemp(l->base))
		return -1;
	chmod(l->base, 0755);
	unsetenv("UMBEL_RUNTIME_DIR");
	*state = l;
	return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int teardown(void **state)
{
	struct lab *l = *state;

	nftw(l->base, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	unsetenv("UMBEL_RUNTIME_DIR");
	free(l);
	return 0;
}

static const char *below(struct lab *l, const char *leaf)
{
	snprintf(l->path, sizeof(l->path), "%s/%s", l->base, leaf);
	return l->path;
}

static void make(struct lab *l, const char *leaf, mode_t mode, uid_t owner)
{
	assert_int_equal(mkdir(below(l, leaf), 0700), 0);
	assert_int_equal(chmod(l->path, mode), 0);
	if (owner != geteuid())
		assert_int_equal(chown(l->path, owner, (gid_t)-1), 0);
}

static void check(struct lab *l, const char *leaf, int expected)
{
	int ret = control_directory_open(below(l, leaf), false, l->why);

	if (ret >= 0) {
		close(ret);
		ret = 0;
	}
	assert_int_equal(ret, expected);
	assert_true(!ret == !*l->why);
}

static void need_root(void)
{
	if (geteuid())
		skip();
}

CASE_WITH(a_directory_of_this_user_alone_is_private, setup, teardown)
{
	struct lab *l = *state;

	make(l, "mine", 0700, geteuid());
	check(l, "mine", 0);
	check(l, "./mine/", 0);
	check(l, "mine/../mine", 0);
	check(l, "nothing", -ENOENT);
	check(l, "nothing/inside", -ENOENT);
	assert_int_equal(control_directory_open("/", false, l->why), -EPERM);
}

CASE_WITH(one_that_others_may_enter_is_not, setup, teardown)
{
	struct lab *l = *state;

	make(l, "group", 0710, geteuid());
	make(l, "all", 0705, geteuid());
	check(l, "group", -EPERM);
	check(l, "all", -EPERM);
	assert_non_null(strstr(l->why, l->path));
}

CASE_WITH(a_symbolic_link_is_never_the_directory, setup, teardown)
{
	struct lab *l = *state;
	char target[256];

	make(l, "mine", 0700, geteuid());
	make(l, "mine/inner", 0700, geteuid());
	strcpy(target, below(l, "mine"));
	assert_int_equal(symlink(target, below(l, "link")), 0);
	assert_int_equal(symlink("mine", below(l, "relative")), 0);
	assert_int_equal(symlink("loop", below(l, "loop")), 0);
	check(l, "link", -ELOOP);
	check(l, "link/", -ELOOP);
	check(l, "link/inner", 0); /* this user's own, above it, is as good as its target */
	check(l, "relative/inner", 0);
	check(l, "loop/inner", -ELOOP);
}

CASE_WITH(the_link_of_another_user_is_not_followed, setup, teardown)
{
	struct lab *l = *state;

	need_root();
	make(l, "mine", 0700, geteuid());
	make(l, "mine/inner", 0700, geteuid());
	assert_int_equal(symlink("mine", below(l, "link")), 0);
	assert_int_equal(lchown(l->path, STRANGER, (gid_t)-1), 0);
	check(l, "link/inner", -ELOOP);
}

CASE_WITH(a_file_is_no_directory, setup, teardown)
{
	struct lab *l = *state;
	FILE *f = fopen(below(l, "file"), "w");

	fclose(f);
	check(l, "file", -ENOTDIR);
	check(l, "file/inside", -ENOTDIR);
}

CASE_WITH(where_all_users_may_change_names_nothing_is_private, setup, teardown)
{
	struct lab *l = *state;

	make(l, "open", 0777, geteuid());
	make(l, "open/mine", 0700, geteuid());
	make(l, "sticky", 01777, geteuid());
	make(l, "sticky/mine", 0700, geteuid());
	check(l, "open/mine", -EPERM);
	check(l, "sticky/mine", 0);
}

CASE_WITH(what_another_user_owns_is_refused, setup, teardown)
{
	struct lab *l = *state;

	need_root();
	make(l, "theirs", 0700, STRANGER);
	make(l, "theirs/mine", 0700, 0);
	check(l, "theirs", -EPERM);
	assert_non_null(strstr(l->why, "another user (65533)"));
	check(l, "theirs/mine", -EPERM);
	assert_false(control_user_is_trusted(STRANGER, l->base));
	assert_true(control_user_is_trusted(0, l->base));
}

CASE_WITH(root_uses_the_fabric_of_one_user_that_it_names, setup, teardown)
{
	struct lab *l = *state;

	need_root();
	make(l, "theirs", 0700, STRANGER);
	make(l, "theirs/fabrics", 0700, STRANGER);
	make(l, "theirs/others", 0700, OTHER);
	setenv("UMBEL_RUNTIME_DIR", below(l, "theirs/fabrics"), 1);
	check(l, "theirs/fabrics", 0);
	check(l, "theirs/others", -EPERM);
	assert_true(control_user_is_trusted(STRANGER, l->base));
	/* but it makes nothing there */
	assert_int_equal(control_directory_open(below(l, "theirs/new"), true, l->why), -EPERM);
	assert_int_equal(access(l->path, F_OK), -1);
}

CASE_WITH(another_user_visits_what_lets_others_pass, setup, teardown)
{
	struct lab *l = *state;

	need_root();
	make(l, "theirs", 0755, STRANGER);
	make(l, "theirs/run", 0711, STRANGER);
	make(l, "theirs/run/fabric", 0711, STRANGER);
	make(l, "theirs/read", 0755, STRANGER);
	make(l, "theirs/others", 0711, 65531);
	make(l, "all", 01777, 0);
	make(l, "all/run", 0711, STRANGER);
	make(l, "all/roots", 0711, 0);
	assert_int_equal(seteuid(OTHER), 0);
	check(l, "theirs/run", -EPERM); /* without being named */
	setenv("UMBEL_RUNTIME_DIR", below(l, "theirs/run"), 1);
	check(l, "theirs/run", 0);
	check(l, "theirs/read", -EPERM);
	check(l, "theirs/others", -EPERM);
	check(l, "all/run", -EPERM); /* anybody could have made it there */
	assert_non_null(strstr(l->why, "anybody"));
	check(l, "all/roots", 0);
	below(l, "theirs/run/fabric");
	assert_true(control_user_is_trusted(STRANGER, l->path));
	assert_false(control_user_is_trusted(65531, l->path));
	assert_int_equal(control_directory_open(below(l, "theirs/run/new"), true, l->why), -EPERM);
	assert_int_equal(seteuid(0), 0);
}

CASE_WITH(what_is_missing_is_made_private, setup, teardown)
{
	struct lab *l = *state;
	struct stat st;
	int fd = control_directory_open(below(l, "a/b/c"), true, l->why);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	close(fd);
	check(l, "a", 0);
	check(l, "a/b", 0);
}

CASE_WITH(a_fabric_is_a_private_directory_in_a_private_directory, setup, teardown)
{
	struct lab *l = *state;
	int fd;

	setenv("UMBEL_RUNTIME_DIR", below(l, "run"), 1);
	assert_int_equal(control_fabric_open("x", false, l->why), -ENOENT);
	fd = control_fabric_open("x", true, l->why);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(control_fabric_open("../x", true, l->why), -EINVAL);
	assert_int_equal(chmod(below(l, "run/x"), 0755), 0);
	assert_int_equal(control_fabric_open("x", true, l->why), -EPERM);
	assert_int_equal(chmod(below(l, "run"), 0755), 0);
	assert_int_equal(control_fabric_open("y", true, l->why), -EPERM);
	assert_int_equal(access(below(l, "run/y"), F_OK), -1);
}

CASE_WITH(a_relative_path_begins_where_the_process_is, setup, teardown)
{
	struct lab *l = *state;
	char old[4096];
	int fd;

	make(l, "mine", 0700, geteuid());
	assert_non_null(getcwd(old, sizeof(old)));
	assert_int_equal(chdir(l->base), 0);
	fd = control_directory_open("mine", false, l->why);
	assert_int_equal(chdir(old), 0);
	assert_true(fd >= 0);
	close(fd);
}

int main(void)
{

	return harness_run(NULL, NULL);
}
