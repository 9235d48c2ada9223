/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * MPI_Bcast of so many bytes, again and again: from the moment when all ranks are there until the
 * last one has all. Each rank compares what it has got. Any MPI compiles it;
 * bench/driver/broadcast.py runs it over different transports. Rank 0 prints a line of JSON a turn.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define TURNS   3
#define LARGEST (1ull << 30) /* of one call: its count is an int */

static void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

/* The word at place @i in a turn: the same nowhere else. */
static uint64_t word(uint64_t i, int turn)
{
	return (i * 16 + (unsigned)turn) * 0x9e3779b97f4a7c15;
}

static void fill(uint64_t *memory, uint64_t size, int turn)
{
	for (uint64_t i = 0; i < size / 8; i++)
		memory[i] = word(i, turn);
}

static void compare(const uint64_t *memory, uint64_t size, int turn)
{
	for (uint64_t i = 0; i < size / 8; i++)
		if (memory[i] != word(i, turn))
			fail("that is not what was sent");
}

static double broadcast(char *memory, uint64_t size)
{
	double begin, took, longest;

	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	for (uint64_t at = 0; at < size; at += LARGEST)
		MPI_Bcast(memory + at, (int)(size - at < LARGEST ? size - at : LARGEST), MPI_CHAR,
		          0, MPI_COMM_WORLD);
	took = MPI_Wtime() - begin;
	MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	return longest;
}

int main(int argc, char **argv)
{
	uint64_t size = argc == 2 ? strtoull(argv[1], NULL, 10) / 8 * 8 : 0, *memory;
	int rank, ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	memory = malloc(size);
	if (!size || !memory)
		fail("usage: broadcast BYTES, for which there is memory");
	fill(memory, size, TURNS + 1); /* so all of it is there */
	/* turn 0 is not printed: buffers and connections are used for the first time */
	for (int turn = 0; turn < TURNS; turn++) {
		double took;

		if (!rank)
			fill(memory, size, turn);
		took = broadcast((char *)memory, size);
		compare(memory, size, turn);
		if (!rank && turn)
			printf("{\"measure\": \"broadcast\", \"receivers\": %d, \"bytes\": %llu, "
			       "\"turn\": %d, \"ns\": %.0f}\n",
			       ranks - 1, (unsigned long long)size, turn, took * 1e9);
	}
	free(memory);
	MPI_Finalize();
	return 0;
}
