/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a fabric lives: the environment decides, and no name leads out of there.
 */
#include <harness.h>

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

CASE_WITH(the_runtime_directory_is_looked_up_in_order, setup, NULL)
{
	char dir[64], want[64];

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

CASE_WITH(an_empty_variable_is_as_none, setup, NULL)
{
	char dir[64];

	setenv("UMBEL_RUNTIME_DIR", "", 1);
	setenv("XDG_RUNTIME_DIR", "", 1);
	setenv("UMBEL_FABRIC", "", 1);
	assert_int_equal(control_runtime_dir(dir, sizeof(dir)), 0);
	assert_int_equal(strncmp(dir, "/tmp/umbel-", 11), 0);
	assert_string_equal(control_fabric_name(), CONTROL_DEFAULT_FABRIC);
}

CASE_WITH(a_fabric_has_a_directory_and_files_in_it, setup, NULL)
{
	char path[64];

	setenv("UMBEL_RUNTIME_DIR", "/x", 1);
	assert_int_equal(control_path(path, sizeof(path), "lab", NULL), 0);
	assert_string_equal(path, "/x/lab");
	assert_int_equal(control_path(path, sizeof(path), "lab", "socket"), 0);
	assert_string_equal(path, "/x/lab/socket");
}

CASE_WITH(a_bad_name_is_refused, setup, NULL)
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

	for (size_t i = 0; EACH_ROW(i, bad); i++)
		assert_int_equal(control_path(path, sizeof(path), bad[i], "socket"), -EINVAL);
}

CASE_WITH(a_good_name_is_accepted, setup, NULL)
{
	static const char *const good[] = { "a", "A.b_c-9", "12345678901234567890123456789012" };
	char path[128];

	for (size_t i = 0; EACH_ROW(i, good); i++)
		assert_int_equal(control_path(path, sizeof(path), good[i], "socket"), 0);
}

CASE_WITH(a_path_is_never_cut_short, setup, NULL)
{
	const size_t whole = strlen("/x/lab/socket") + 1;
	char path[64];

	setenv("UMBEL_RUNTIME_DIR", "/x", 1);
	for (size_t len = 0; len < whole; len++)
		assert_int_equal(control_path(path, len, "lab", "socket"), -ENAMETOOLONG);
	assert_int_equal(control_path(path, whole, "lab", "socket"), 0);
}

CASE_WITH(the_environment_names_the_fabric, setup, NULL)
{
	assert_string_equal(control_fabric_name(), CONTROL_DEFAULT_FABRIC);
	setenv("UMBEL_FABRIC", "lab", 1);
	assert_string_equal(control_fabric_name(), "lab");
}
