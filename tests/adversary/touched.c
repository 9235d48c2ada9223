/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client reads and writes shared memory that nobody has given it, and ends: its pages go back to
 * the system, and others' memory there stays.
 */
#include "verbs/lab.h"

#include "daemon_lab.h"
#include "shm/region.h"

#define MIB     (1ull << 20)
#define TOUCHED (64 * MIB) /* of rings, and of payload memory */
#define LARGE   3000       /* bytes of a message that lies in payload memory */

static uint64_t pages_bytes(int fd)
{
	struct stat s;

	assert_int_equal(fstat(fd, &s), 0);
	return (uint64_t)s.st_blocks * 512;
}

/* All but what others may have by now, which lies at the beginning. */
static void touch(const struct shm_region *r, uint64_t off, uint64_t bytes)
{
	for (uint64_t at = bytes - TOUCHED; at < bytes; at += 4096) {
		volatile char *byte = shm_data_map(r, off + at, 1);

		if (at / 4096 % 8)
			*byte = 1;
		else
			(void)*byte; /* a page of zeros is one, too */
	}
}

static pid_t start_toucher(void)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct shm_region r;

		daemon_map(daemon_client(CONTROL_ROLE_VERBS), &r);
		touch(&r, r.control->rings_off, r.control->rings_size);
		touch(&r, r.control->payloads_off, r.control->payloads_size);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

LAB_CASE(touched_pages_go_and_others_messages_stay)
{
	struct lab_end *from = lab_end(1), *to = lab_end(2);
	struct ibv_ah *ah = lab_ah_to(from, to);
	struct shm_region region;
	char message[LARGE];
	uint64_t before;
	time_t end;
	pid_t pid;
	int data_fd = daemon_map(daemon_client(CONTROL_ROLE_VERBS), &region);

	lab_post(to, 8);
	for (int i = 0; i < 8; i++) {
		memset(message, 'a' + i, sizeof(message));
		lab_send(from, ah, to->qp->qp_num, message, sizeof(message));
	}
	before = pages_bytes(data_fd);
	pid = start_toucher();
	assert_true(pages_bytes(data_fd) >= before + 2 * TOUCHED);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	end = time(NULL) + LAB_SECONDS;
	while (pages_bytes(data_fd) > before + MIB)
		assert_true(time(NULL) < end);
	for (int i = 0; i < 8; i++) {
		memset(message, 'a' + i, sizeof(message));
		lab_expect(to, message, sizeof(message));
	}
	shm_region_unmap(&region);
	close(data_fd);
}
