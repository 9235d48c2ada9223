/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a fabric lives: the environment decides, and no name leads out of there.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <harness.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "control/path.h"

static int setup(void **state)
{
	(void)state;
	unsetenv("UMBEL_RUNTIME_DIR");
	unsetenv("XDG_RUNTIME_DIR");
	unsetenv("UMBEL_FABRIC");
	return 0;
}

static void the_runtime_directory_is_looked_up_in_order(void **state)
{
	char dir[64], want[64];

	(void)state;
	snprintf(want, sizeof(want), "/tmp/umbel-%u", (unsigned)getuid());
	assert_int_equal(control_runtime_dir(dir, sizeof(dir)), 0);
	assert_string_equal(dir, want);
	setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
	assert_int_equal(control_runtime_dir(dir, sizeof(dir)), 0);
	assert_string_equal(dir, "/run/user/7/umbel");
	setenv("UMBEL_RUNTIME_DIR", "/x", 1);
	assert_int_equal(control_runtime_dir(dir, sizeof(dir)), 0);
	assert_string_equal(dir, "/x");
}

static void an_empty_variable_is_as_none(void **state)
{
	char dir[64];

	(void)state;
	setenv("UMBEL_RUNTIME_DIR", "", 1);
	setenv("XDG_RUNTIME_DIR", "", 1);
	setenv("UMBEL_FABRIC", "", 1);
	assert_int_equal(control_runtime_dir(dir, sizeof(dir)), 0);
	assert_int_equal(strncmp(dir, "/tmp/umbel-", 11), 0);
	assert_string_equal(control_fabric_name(), CONTROL_DEFAULT_FABRIC);
}

static void a_fabric_has_a_directory_and_files_in_it(void **state)
{
	char path[64];

	(void)state;
	setenv("UMBEL_RUNTIME_DIR", "/x", 1);
	assert_int_equal(control_path(path, sizeof(path), "lab", NULL), 0);
	assert_string_equal(path, "/x/lab");
	assert_int_equal(control_path(path, sizeof(path), "lab", "socket"), 0);
	assert_string_equal(path, "/x/lab/socket");
}

static void a_bad_name_is_refused(void **state)
{
	static const char *const bad[] = { "",
		                           ".",
		                           "..",
		                           ".x",
		                           "-x",
		                           "a/b",
		                           "../x",
		                           "a b",
		                           "a\n",
		                           "\xC3\xA9",
		                           "123456789012345678901234567890123" };
	char path[128];

	(void)state;
	for (size_t i = 0; EACH_ROW(i, bad); i++)
		assert_int_equal(control_path(path, sizeof(path), bad[i], "socket"), -EINVAL);
}

static void a_good_name_is_accepted(void **state)
{
	static const char *const good[] = { "a", "A.b_c-9", "12345678901234567890123456789012" };
	char path[128];

	(void)state;
	for (size_t i = 0; EACH_ROW(i, good); i++)
		assert_int_equal(control_path(path, sizeof(path), good[i], "socket"), 0);
}

static void a_path_is_never_cut_short(void **state)
{
	const size_t whole = strlen("/x/lab/socket") + 1;
	char path[64];

	(void)state;
	setenv("UMBEL_RUNTIME_DIR", "/x", 1);
	for (size_t len = 0; len < whole; len++)
		assert_int_equal(control_path(path, len, "lab", "socket"), -ENAMETOOLONG);
	assert_int_equal(control_path(path, whole, "lab", "socket"), 0);
}

static void the_environment_names_the_fabric(void **state)
{
	(void)state;
	assert_string_equal(control_fabric_name(), CONTROL_DEFAULT_FABRIC);
	setenv("UMBEL_FABRIC", "lab", 1);
	assert_string_equal(control_fabric_name(), "lab");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_runtime_directory_is_looked_up_in_order, setup),
		cmocka_unit_test_setup(an_empty_variable_is_as_none, setup),
		cmocka_unit_test_setup(a_fabric_has_a_directory_and_files_in_it, setup),
		cmocka_unit_test_setup(a_bad_name_is_refused, setup),
		cmocka_unit_test_setup(a_good_name_is_accepted, setup),
		cmocka_unit_test_setup(a_path_is_never_cut_short, setup),
		cmocka_unit_test_setup(the_environment_names_the_fabric, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
