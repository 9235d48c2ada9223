/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tests of state.c: of fabrics that begin with one file at the same time one has it. The second one
 * begins in the middle of the first one, whenever that opens a file.
 */
#include <harness.h>

#include "daemon/top/state.h"
#include "fabric/testing.h"

/* A fabric that begins. */
struct beginner {
	struct daemon_state state;
	struct daemon_subnet subnet;
	char why[200];
	int ret;
};

static char file[100];
static struct beginner *second; /* begins before the first one opens so many more files: */
static unsigned to_open;

static void begin(struct beginner *b)
{
	b->ret = daemon_state_open(&b->state, file, &b->subnet, b->why, sizeof(b->why));
}

/* In place of the C library's. */
int openat(int dir, const char *name, int flags, ...)
{
	struct beginner *b = second;
	mode_t mode = 0;
	va_list args;

	va_start(args, flags);
	if (flags & O_CREAT)
		mode = va_arg(args, mode_t);
	va_end(args);
	if (b && !to_open--) {
		second = NULL;
		begin(b);
	}
	return (int)syscall(SYS_openat, dir, name, flags, mode);
}

/* The two of them, the second one before the @n-th file. Whether the first one opens so many. */
static bool begin_both(struct beginner b[2], unsigned n)
{
	memset(b, 0, 2 * sizeof(*b));
	second = &b[1];
	to_open = n;
	begin(&b[0]);
	if (!second)
		return true;
	second = NULL;
	return false;
}

static void assert_refused(struct beginner *b)
{
	char busy[200];

	snprintf(busy, sizeof(busy), "the state in '%s' is in use by another fabric", file);
	assert_int_equal(b->ret, -EBUSY);
	assert_string_equal(b->why, busy);
	daemon_state_fini(&b->state);
}

CASE(one_of_two_fabrics_has_a_new_file)
{
	struct beginner b[2], late = { 0 };
	unsigned n = 0;

	for (; begin_both(b, n); n++) {
		unsigned one = b[0].ret ? 1 : 0;

		assert_int_equal(b[one].ret, 0);
		assert_refused(&b[!one]);
		begin(&late);
		assert_refused(&late);
		daemon_state_fini(&b[one].state);
		begin(&late); /* the next one may have it */
		assert_int_equal(late.ret, 0);
		daemon_state_fini(&late.state);
		assert_int_equal(unlink(file), 0);
		late = (struct beginner){ 0 };
	}
	assert_true(n > 1);
	daemon_state_fini(&b[0].state);
}

int main(void)
{
	char dir[] = "/tmp/umbel-state.XXXXXX";
	int ret;

	if (!mkdtemp(dir))
		return EXIT_FAILURE;
	snprintf(file, sizeof(file), "%s/state", dir);
	ret = harness_run(NULL, NULL);
	unlink(file);
	rmdir(dir);
	return ret;
}
