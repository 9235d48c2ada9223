/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One-sided operations of MPI under each kind of synchronisation: put, get, accumulate and its
 * relatives between fences; post, start, complete, wait; locks of one target and of all. Each is
 * checked. The MPI scripts build it with the compilers of Open MPI and MPICH, and run it.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define WORDS   4096 /* of each rank's window: 32 KiB, in parts as below */
#define PART    (WORDS / 4)
#define TICKETS 20 /* of each rank */
#define WORLD   MPI_COMM_WORLD

static int rank, size;
static int64_t *memory, *local;
static MPI_Win window;

static int64_t number(int from, int i)
{
	return (int64_t)from * 1000003 + i;
}

static void fill(int64_t *to, int from)
{
	for (int i = 0; i < PART; i++)
		to[i] = number(from, i);
}

static int count_wrong(const int64_t *words, int from)
{
	int wrong = 0;

	for (int i = 0; i < PART; i++)
		wrong += words[i] != number(from, i);
	return wrong;
}

static int next(void)
{
	return (rank + 1) % size;
}

static int previous(void)
{
	return (rank + size - 1) % size;
}

/* Zeros everywhere, seen by all. */
static void begin(void)
{
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
	for (int i = 0; i < WORDS; i++)
		memory[i] = 0;
	MPI_Win_unlock(rank, window);
	MPI_Barrier(WORLD);
}

/* ---- between fences */

static int put_and_get(void)
{
	int wrong;

	begin();
	fill(local, rank);
	MPI_Win_fence(0, window);
	MPI_Put(local, PART, MPI_INT64_T, next(), 0, PART, MPI_INT64_T, window);
	MPI_Win_fence(0, window);
	wrong = count_wrong(memory, previous());
	MPI_Get(local + PART, PART, MPI_INT64_T, next(), 0, PART, MPI_INT64_T, window);
	MPI_Win_fence(0, window);
	return wrong + count_wrong(local + PART, rank);
}

/* All add to all. */
static int accumulate(void)
{
	int wrong = 0;

	begin();
	for (int i = 0; i < PART; i++)
		local[i] = rank + i;
	MPI_Win_fence(0, window);
	for (int r = 0; r < size; r++)
		MPI_Accumulate(local, PART, MPI_INT64_T, r, PART, PART, MPI_INT64_T, MPI_SUM,
		               window);
	MPI_Win_fence(0, window);
	for (int i = 0; i < PART; i++)
		wrong += memory[PART + i] != (int64_t)size * (size - 1) / 2 + (int64_t)size * i;
	return wrong;
}

/* A column of a matrix, which the target has as a row. */
static int put_of_types(void)
{
	MPI_Datatype column;
	int wrong = 0;

	begin();
	fill(local, rank);
	MPI_Type_vector(PART / 8, 1, 8, MPI_INT64_T, &column);
	MPI_Type_commit(&column);
	MPI_Win_fence(0, window);
	MPI_Put(local, 1, column, next(), 0, PART / 8, MPI_INT64_T, window);
	MPI_Win_fence(0, window);
	for (int i = 0; i < PART / 8; i++)
		wrong += memory[i] != number(previous(), 8 * i);
	MPI_Type_free(&column);
	return wrong;
}

/* ---- post, start, complete, wait */

static int neighbours(void)
{
	int to = next(), from = previous();
	MPI_Group all, targets, origins;

	begin();
	MPI_Comm_group(WORLD, &all);
	MPI_Group_incl(all, 1, &to, &targets);
	MPI_Group_incl(all, 1, &from, &origins);
	fill(local, rank);
	MPI_Win_post(origins, 0, window);
	MPI_Win_start(targets, 0, window);
	MPI_Put(local, PART, MPI_INT64_T, to, PART, PART, MPI_INT64_T, window);
	MPI_Win_complete(window);
	MPI_Win_wait(window);
	MPI_Group_free(&all);
	MPI_Group_free(&targets);
	MPI_Group_free(&origins);
	return count_wrong(memory + PART, from);
}

/* ---- locks */

/* Everyone takes numbers of rank 0; each is given out once. */
static int fetch_and_op(void)
{
	int64_t one = 1, mine[TICKETS], *all = malloc(sizeof(*all) * TICKETS * size);
	int wrong = 0, *seen = calloc((size_t)TICKETS * size, sizeof(*seen));

	begin();
	for (int i = 0; i < TICKETS; i++) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
		MPI_Fetch_and_op(&one, &mine[i], MPI_INT64_T, 0, 7, MPI_SUM, window);
		MPI_Win_unlock(0, window);
	}
	MPI_Allgather(mine, TICKETS, MPI_INT64_T, all, TICKETS, MPI_INT64_T, WORLD);
	for (int i = 0; i < TICKETS * size; i++) {
		if (all[i] < 0 || all[i] >= TICKETS * size || seen[all[i]]++)
			wrong++;
	}
	free(all);
	free(seen);
	return wrong;
}

/* A count that everyone raises by compare-and-swap until it has succeeded TICKETS times. */
static int compare_and_swap(void)
{
	int64_t old = 0, raised, found;
	int wrong = 0;

	begin();
	MPI_Win_lock_all(0, window);
	for (int i = 0; i < TICKETS;) {
		raised = old + 1;
		MPI_Compare_and_swap(&raised, &old, &found, MPI_INT64_T, size - 1, 9, window);
		MPI_Win_flush(size - 1, window);
		i += found == old;
		old = found == old ? raised : found;
	}
	MPI_Win_unlock_all(window);
	MPI_Barrier(WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, size - 1, 0, window);
	MPI_Get(&found, 1, MPI_INT64_T, size - 1, 9, 1, MPI_INT64_T, window);
	MPI_Win_unlock(size - 1, window);
	wrong += found != (int64_t)TICKETS * size;
	return wrong;
}

/* One lock excludes all others: reading, adding and writing back is not interrupted. */
static int exclusive_lock(void)
{
	int64_t value;

	begin();
	for (int i = 0; i < TICKETS; i++) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
		MPI_Get(&value, 1, MPI_INT64_T, 0, 11, 1, MPI_INT64_T, window);
		MPI_Win_flush(0, window);
		value++;
		MPI_Put(&value, 1, MPI_INT64_T, 0, 11, 1, MPI_INT64_T, window);
		MPI_Win_unlock(0, window);
	}
	MPI_Barrier(WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
	MPI_Get(&value, 1, MPI_INT64_T, 0, 11, 1, MPI_INT64_T, window);
	MPI_Win_unlock(0, window);
	return value != (int64_t)TICKETS * size;
}

/* To all, with requests; then read by all. */
static int locked_by_all(void)
{
	MPI_Request request;
	int wrong = 0;

	begin();
	fill(local, rank);
	MPI_Win_lock_all(0, window);
	MPI_Rput(local, PART, MPI_INT64_T, next(), PART, PART, MPI_INT64_T, window, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Win_flush_all(window);
	MPI_Barrier(WORLD);
	for (int r = 0; r < size; r++) {
		MPI_Rget(local + PART, PART, MPI_INT64_T, r, PART, PART, MPI_INT64_T, window,
		         &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		wrong += count_wrong(local + PART, (r + size - 1) % size);
	}
	MPI_Win_unlock_all(window);
	MPI_Barrier(WORLD);
	return wrong;
}

static int get_accumulate(void)
{
	int64_t sum = 0, all = 0;

	begin();
	fill(local, rank);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
	MPI_Get_accumulate(local, PART, MPI_INT64_T, local + PART, PART, MPI_INT64_T, 0, 0, PART,
	                   MPI_INT64_T, MPI_SUM, window);
	MPI_Win_unlock(0, window);
	MPI_Barrier(WORLD);
	for (int r = 0; r < size; r++)
		sum += number(r, PART - 1);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
	MPI_Get(&all, 1, MPI_INT64_T, 0, PART - 1, 1, MPI_INT64_T, window);
	MPI_Win_unlock(0, window);
	return all != sum;
}

static const struct {
	const char *name;
	int (*run)(void);
} operations[] = {
	{ "Put, Get, Win_fence", put_and_get },
	{ "Accumulate", accumulate },
	{ "Put of a vector", put_of_types },
	{ "Win_post, _start, _complete, _wait", neighbours },
	{ "Fetch_and_op, Win_lock", fetch_and_op },
	{ "Compare_and_swap, Win_flush", compare_and_swap },
	{ "Win_lock, exclusive", exclusive_lock },
	{ "Rput, Rget, Win_lock_all", locked_by_all },
	{ "Get_accumulate", get_accumulate },
};

static int run_all(void)
{
	int wrong = 0;

	for (unsigned i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		int more = operations[i].run();

		if (more > 0)
			printf("%s: %d wrong at rank %d\n", operations[i].name, more, rank);
		wrong += more;
		MPI_Barrier(WORLD);
	}
	return wrong;
}

int main(int argc, char **argv)
{
	const MPI_Aint bytes = WORDS * sizeof(*memory);
	int wrong = 0, all = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(WORLD, &rank);
	MPI_Comm_size(WORLD, &size);
	local = malloc(bytes);
	MPI_Win_allocate(bytes, sizeof(*memory), MPI_INFO_NULL, WORLD, &memory, &window);
	wrong += run_all();
	MPI_Win_free(&window);
	memory = malloc(bytes);
	MPI_Win_create(memory, bytes, sizeof(*memory), MPI_INFO_NULL, WORLD, &window);
	wrong += run_all();
	MPI_Win_free(&window);
	free(memory);
	MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, WORLD);
	if (rank == 0)
		printf("%d ranks, %d wrong\n", size, all);
	MPI_Finalize();
	free(local);
	return all != 0;
}
