/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that need no fabric: names, and the parts of a umad. Held against Debian's libibumad,
 * which is loaded beside ours by its path.
 */
#include "lab.h"

#include <infiniband/umad_str.h>

#define DEBIAN_LIB DEBIAN_LIBDIR "/libibumad.so.3"

static void *debian;

static void *debians(const char *name)
{
	void *fn = dlsym(debian, name);

	if (!fn)
		fail_msg("%s", dlerror());
	return fn;
}

CASE(classes_have_debians_names)
{
	const char *(*theirs)(uint8_t) = (const char *(*)(uint8_t))debians("umad_class_str");

	assert_ptr_not_equal(theirs, umad_class_str);
	for (int i = 0; i <= UINT8_MAX; i++)
		assert_string_equal(umad_class_str((uint8_t)i), theirs((uint8_t)i));
}

CASE(methods_have_debians_names)
{
	const char *(*theirs)(uint8_t, uint8_t) =
	        (const char *(*)(uint8_t, uint8_t))debians("umad_method_str");

	for (int c = 0; c <= UINT8_MAX; c++)
		for (int m = 0; m <= UINT8_MAX; m++)
			assert_string_equal(umad_method_str((uint8_t)c, (uint8_t)m),
			                    theirs((uint8_t)c, (uint8_t)m));
}

CASE(attributes_have_debians_names)
{
	static const uint8_t classes[] = { 0x01, 0x81, 0x03, 0x04, 0x07, 0x32 };
	const char *(*theirs)(uint8_t, __be16) =
	        (const char *(*)(uint8_t, __be16))debians("umad_attribute_str");

	for (size_t c = 0; c < LAB_COUNT(classes); c++)
		for (int a = 0; a <= UINT16_MAX; a++)
			assert_string_equal(umad_attribute_str(classes[c], htobe16((uint16_t)a)),
			                    theirs(classes[c], htobe16((uint16_t)a)));
}

CASE(statuses_have_debians_names)
{
	const char *(*common)(__be16) =
	        (const char *(*)(__be16))debians("umad_common_mad_status_str");
	const char *(*sa)(__be16) = (const char *(*)(__be16))debians("umad_sa_mad_status_str");

	for (int i = 0; i <= UINT16_MAX; i++) {
		__be16 status = htobe16((uint16_t)i);

		assert_string_equal(umad_common_mad_status_str(status), common(status));
		assert_string_equal(umad_sa_mad_status_str(status), sa(status));
	}
}

/* ---- the parts of a umad ---- */

struct calls {
	int (*set_addr)(void *, int, int, int, int);
	int (*set_addr_net)(void *, __be16, __be32, int, __be32);
	int (*set_grh)(void *, void *);
};

CASE(addresses_are_written_as_debian_writes_them)
{
	struct calls theirs = { (int (*)(void *, int, int, int, int))debians("umad_set_addr"),
		                (int (*)(void *, __be16, __be32, int, __be32))debians(
		                        "umad_set_addr_net"),
		                (int (*)(void *, void *))debians("umad_set_grh") };
	ib_mad_addr_t grh = {
		.hop_limit = 3, .traffic_class = 4, .flow_label = 0x12345, .gid = { 1, 2, 3 }
	};
	struct ib_user_mad a, b;

	memset(&a, 0x5A, sizeof(a));
	b = a;
	assert_int_equal(umad_set_addr(&a, 0x1234, 0x56789A, 3, 0x11223344), 0);
	theirs.set_addr(&b, 0x1234, 0x56789A, 3, 0x11223344);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_int_equal(umad_set_addr_net(&a, 0x1234, 0x56789A, 3, 0x11223344), 0);
	theirs.set_addr_net(&b, 0x1234, 0x56789A, 3, 0x11223344);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_int_equal(umad_set_grh(&a, &grh), 0);
	theirs.set_grh(&b, &grh);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_int_equal(umad_set_grh(&a, NULL), 0);
	theirs.set_grh(&b, NULL);
	assert_memory_equal(&a, &b, sizeof(a));
}

CASE(a_umad_has_its_parts)
{
	struct ib_user_mad mad = { .status = 7 };

	assert_int_equal(umad_size(), 64);
	assert_ptr_equal(umad_get_mad(&mad), (char *)&mad + 64);
	assert_ptr_equal(umad_get_mad_addr(&mad), &mad.addr);
	assert_int_equal(umad_status(&mad), 7);
	assert_int_equal(umad_set_pkey(&mad, 5), 0);
	assert_int_equal(umad_get_pkey(&mad), 5);
}

CASE(the_debug_level_is_kept)
{
	assert_int_equal(umad_debug(-1), 0);
	assert_int_equal(umad_debug(2), 2);
	assert_int_equal(umad_debug(-1), 2);
	assert_int_equal(umad_debug(0), 0);
}

/* ---- dumps ---- */

/* Captures what @dump writes to standard error. */
static void capture(void (*dump)(void *), void *umad, char *text, size_t size)
{
	FILE *file = tmpfile();
	int old = dup(STDERR_FILENO);
	size_t n;

	assert_non_null(file);
	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	dump(umad);
	fflush(stderr);
	dup2(old, STDERR_FILENO);
	close(old);
	rewind(file);
	n = fread(text, 1, size - 1, file);
	text[n] = '\0';
	fclose(file);
}

CASE(a_dump_reads_as_debians)
{
	struct ib_user_mad mad = { .agent_id = 3, .status = 110, .timeout_ms = 100 };
	char ours[1024], theirs[1024];

	umad_set_addr(&mad, 5, 1, 2, 0x10000);
	umad_set_grh(&mad, &(ib_mad_addr_t){ .flow_label = 9, .gid = { 0xFE, 0x80, [15] = 0x1C } });
	capture(umad_dump, &mad, ours, sizeof(ours));
	capture((void (*)(void *))debians("umad_dump"), &mad, theirs, sizeof(theirs));
	assert_string_equal(ours, theirs);
}

int main(void)
{
	debian = dlopen(DEBIAN_LIB, RTLD_NOW | RTLD_LOCAL);
	if (!debian) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	return harness_run(NULL, NULL);
}
