/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Memory objects as regions come and go: which object the memory of a region lies in, what peers
 * are told, and when adopted memory is the program's own again.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/shm.h>

#include "hca/memory/adopt.h"
#include "hca/memory/object.h"
#include <adopt_lab.h>

/* The part of shared memory in which peers see the objects. */
static struct shm_keys *open_keys(void)
{
	static bool is_open;

	if (!is_open) {
		assert_int_equal(shm_region_create(&process.region, 1, 2), 0);
		process.region.control->settings.adopt = 1;
		process.mrs.keys_off = process.region.control->payloads_off;
		assert_non_null(shm_data_map(&process.region, process.mrs.keys_off,
		                             sizeof(struct shm_keys)));
	}
	is_open = true;
	return shm_data_at(&process.region, process.mrs.keys_off);
}

static const struct shm_object *shown(const struct hca_object *o)
{
	return &open_keys()->objects[o - process.mrs.objects];
}

static struct hca_object *get(const void *at, size_t bytes)
{
	open_keys();
	return hca_object_get(&process, at, bytes);
}

static void put(struct hca_object *o)
{
	hca_object_put(&process, o);
}

static bool is_own(const uint8_t *at)
{
	return !hca_plain_is_shared((uintptr_t)at);
}

/* ---- adopted memory ---- */

PROCESS_CASE(plain_memory_is_adopted_and_shown_to_peers)
{
	uint8_t *at = plain_memory();
	struct hca_object *o = get(at, BYTES);

	assert_non_null(o);
	assert_false(is_own(at));
	assert_int_equal(shown(o)->kind, SHM_OBJECT_ADOPTED);
	assert_int_equal(shown(o)->from, (uintptr_t)at);
	assert_int_equal(shown(o)->to, (uintptr_t)at + BYTES);
	assert_int_equal(shown(o)->serial, 1);
	assert_int_equal(shm_key_object(hca_object_access(&process, o)), o - process.mrs.objects);
	assert_true(hca_object_access(&process, o) & SHM_KEY_MAPPABLE);
	assert_int_equal(hca_object_access(&process, NULL), 0);
	put(o);
	assert_true(is_own(at));
	expect(at, 1);
}

/* A region's first and last page may have other things of the program. */
PROCESS_CASE(whole_pages_of_a_region_are_adopted)
{
	uint8_t *at = plain_memory();
	struct hca_object *o = get(at + 10, BYTES - 20);

	assert_non_null(o);
	assert_true(is_own(at));
	assert_true(is_own(at + (PAGES - 1) * HCA_PAGE));
	assert_false(is_own(at + HCA_PAGE));
	assert_int_equal(shown(o)->from, (uintptr_t)at + HCA_PAGE);
	assert_int_equal(shown(o)->to, (uintptr_t)at + (PAGES - 1) * HCA_PAGE);
	put(o);
	assert_null(get(at + 10, HCA_PAGE)); /* has no whole page */
	assert_null(get(at, 0));
	expect(at, 1);
}

PROCESS_CASE(regions_of_the_same_memory_share_its_object)
{
	uint8_t *at = plain_memory();
	struct hca_object *o = get(at, BYTES), *inner = get(at + HCA_PAGE, HCA_PAGE);

	assert_non_null(o);
	assert_ptr_equal(inner, o);
	assert_int_equal(o->regions, 2);
	put(o);
	assert_false(is_own(at)); /* for the region that is left */
	put(inner);
	assert_true(is_own(at));
	expect(at, 1);
}

PROCESS_CASE(memory_waits_while_another_region_covers_it)
{
	uint8_t *at = plain_memory();
	struct hca_object *o = get(at, BYTES);
	struct hca_mr mr = { .start = (char *)at, .mr.length = 1 };
	uint32_t index;

	base_idtable_init(&process.mrs.ids, 8);
	assert_int_equal(base_idtable_add(&process.mrs.ids, &mr, &index), 0);
	put(o);
	assert_false(is_own(at));
	assert_true(hca_adopt_any());
	base_idtable_remove(&process.mrs.ids, index);
	hca_object_settle(&process);
	assert_true(is_own(at));
	assert_false(hca_adopt_any());
	base_idtable_fini(&process.mrs.ids);
	expect(at, 1);
}

/* Data past the kernel's buffers may come to the pages later. */
PROCESS_CASE(memory_waits_while_something_may_be_pinned)
{
	char name[] = "/var/tmp/umbel-object-XXXXXX";
	uint8_t *at = plain_memory();
	struct hca_object *o = get(at, BYTES);
	int fd = mkstemp(name), direct = open(name, O_RDWR | O_DIRECT);

	assert_non_null(o);
	unlink(name);
	close(fd);
	if (direct < 0)
		return; /* the file system has no such files */
	put(o);
	assert_false(is_own(at));
	assert_null(get(plain_memory(), BYTES)); /* nothing is adopted meanwhile */
	close(direct);
	hca_object_settle(&process);
	assert_true(is_own(at));
	expect(at, 1);
}

PROCESS_CASE(another_mapping_in_its_place_is_not_the_object)
{
	uint8_t *at = plain_memory();
	struct hca_object *o = get(at, BYTES), *other;

	assert_true(mmap(at, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
	                 -1, 0) == at);
	fill(at, 2);
	other = get(at, BYTES); /* it is adopted itself */
	assert_non_null(other);
	assert_ptr_not_equal(other, o);
	put(o);
	assert_false(is_own(at));
	put(other);
	expect(at, 2);
	assert_true(is_own(at));
}

PROCESS_CASE(there_are_as_many_objects_as_places)
{
	struct hca_object *o[SHM_OBJECTS];
	unsigned n = 0;

	for (; n < SHM_OBJECTS; n++) {
		o[n] = get(plain_memory(), BYTES);
		assert_non_null(o[n]);
	}
	assert_null(get(plain_memory(), BYTES));
	put(o[17]);
	assert_ptr_equal(get(plain_memory(), BYTES), o[17]);
	assert_int_equal(shown(o[17])->serial, 2);
}

/* ---- System V segments ---- */

/* An attached segment of BYTES that goes with the process. */
static uint8_t *segment(int *id)
{
	uint8_t *at;

	*id = shmget(IPC_PRIVATE, BYTES, IPC_CREAT | 0600);
	if (*id < 0)
		exit(0); /* the system has none */
	at = shmat(*id, NULL, 0);
	assert_true(at != (uint8_t *)-1);
	shmctl(*id, IPC_RMID, NULL);
	fill(at, 1);
	return at;
}

PROCESS_CASE(a_segment_is_an_object_as_it_is)
{
	int id;
	uint8_t *at = segment(&id);
	struct hca_object *o = get(at + 10, 20), *same = get(at + 100, 20);

	assert_non_null(o);
	assert_ptr_equal(same, o);
	assert_int_equal(o->regions, 2);
	assert_int_equal(shown(o)->kind, SHM_OBJECT_SYSV);
	assert_int_equal(shown(o)->id, id);
	assert_int_equal(shown(o)->from, (uintptr_t)at);
	assert_int_equal(shown(o)->to, (uintptr_t)at + BYTES);
	assert_int_equal(shown(o)->space, hca_object_space());
	assert_false(hca_adopt_any());
	put(o);
	put(same);
	assert_int_equal(o->regions, 0);
	expect(at, 1);
}

/* A process that can shorten a file could kill the peers that have mapped it. */
PROCESS_CASE(files_and_shared_memory_of_the_program_s_own_are_no_objects)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	uint8_t *at = map(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);

	fill(at, 1);
	assert_null(get(at, BYTES));
	assert_int_equal(ftruncate(fd, BYTES), 0);
	at = map(PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	fill(at, 1);
	assert_null(get(at, BYTES));
	assert_int_equal(process.mrs.objects[0].regions, 0);
}
