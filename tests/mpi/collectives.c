/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every collective operation of MPI, and messages around a ring, of sizes from a packet to a
 * mebibyte, each checked. The MPI scripts build it with the compilers of Open MPI and MPICH, and
 * run it. With the name of a file it goes on until there is such a file, and says how often it has
 * done all.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST  16384 /* numbers that each rank has for each: 64 KiB */
#define WORLD MPI_COMM_WORLD

static int rank, size;

/* The numbers that ranks send and have received: MOST for each rank. */
static int *out, *in;

/* Of operations whose counts differ: those of all ranks, and where each one's numbers begin. */
static int *counts, *starts;

/* The i-th number that one rank has for another. */
static int number(int from, int to, int i)
{
	return from * 1009 + to * 31 + i * 7 + i / 251;
}

static void fill(int *to, int n, int sender, int receiver)
{
	for (int i = 0; i < n; i++)
		to[i] = number(sender, receiver, i);
}

static int count_wrong(const int *from, int n, int sender, int receiver)
{
	int wrong = 0;

	for (int i = 0; i < n; i++)
		wrong += from[i] != number(sender, receiver, i);
	return wrong;
}

/* A reduction's result: the sum over ranks 0 to @last. */
static int count_wrong_sums(const int *from, int n, int last, int receiver)
{
	int wrong = 0;

	for (int i = 0; i < n; i++) {
		int sum = 0;

		for (int r = 0; r <= last; r++)
			sum += number(r, receiver, i);
		wrong += from[i] != sum;
	}
	return wrong;
}

/* Ranks have different counts, one of them none. */
static int uneven(int r, int n)
{
	return r == 1 ? 0 : n - r % 3;
}

static void fill_uneven(int n)
{
	for (int r = 0; r < size; r++) {
		counts[r] = uneven(r, n);
		starts[r] = r * n;
	}
}

/* Those of all ranks lie in `in`, n each or as many as counts[] says, for the receiver, or for all
 * (0). */
static int count_wrong_gathered(int n, const int *each, int receiver)
{
	int wrong = 0;

	for (int r = 0; r < size; r++)
		wrong += count_wrong(in + r * n, each ? each[r] : n, r, receiver);
	return wrong;
}

/* ---- the operations: each returns how many numbers are wrong */

static int bcast(int n, int root)
{
	if (rank == root)
		fill(in, n, root, 0);
	MPI_Bcast(in, n, MPI_INT, root, WORLD);
	return count_wrong(in, n, root, 0);
}

static int gather(int n, int root)
{
	fill(out, n, rank, root);
	MPI_Gather(out, n, MPI_INT, in, n, MPI_INT, root, WORLD);
	return rank == root ? count_wrong_gathered(n, NULL, root) : 0;
}

static int gatherv(int n, int root)
{
	fill_uneven(n);
	fill(out, n, rank, root);
	MPI_Gatherv(out, counts[rank], MPI_INT, in, counts, starts, MPI_INT, root, WORLD);
	return rank == root ? count_wrong_gathered(n, counts, root) : 0;
}

static int scatter(int n, int root)
{
	for (int r = 0; r < size; r++)
		fill(out + r * n, n, root, r);
	MPI_Scatter(out, n, MPI_INT, in, n, MPI_INT, root, WORLD);
	return count_wrong(in, n, root, rank);
}

static int scatterv(int n, int root)
{
	fill_uneven(n);
	for (int r = 0; r < size; r++)
		fill(out + r * n, n, root, r);
	MPI_Scatterv(out, counts, starts, MPI_INT, in, counts[rank], MPI_INT, root, WORLD);
	return count_wrong(in, counts[rank], root, rank);
}

static int allgather(int n, int root)
{
	(void)root;
	fill(out, n, rank, 0);
	MPI_Allgather(out, n, MPI_INT, in, n, MPI_INT, WORLD);
	return count_wrong_gathered(n, NULL, 0);
}

static int allgatherv(int n, int root)
{
	(void)root;
	fill_uneven(n);
	fill(out, n, rank, 0);
	MPI_Allgatherv(out, counts[rank], MPI_INT, in, counts, starts, MPI_INT, WORLD);
	return count_wrong_gathered(n, counts, 0);
}

static int alltoall(int n, int root)
{
	(void)root;
	for (int r = 0; r < size; r++)
		fill(out + r * n, n, rank, r);
	MPI_Alltoall(out, n, MPI_INT, in, n, MPI_INT, WORLD);
	return count_wrong_gathered(n, NULL, rank);
}

/* Each gives r as many as uneven() says of r, so it gets as many from all. */
static int alltoallv(int n, int root)
{
	int wrong = 0, *mine = malloc(size * sizeof(*mine));

	(void)root;
	fill_uneven(n);
	for (int r = 0; r < size; r++) {
		fill(out + r * n, n, rank, r);
		mine[r] = uneven(rank, n);
	}
	MPI_Alltoallv(out, counts, starts, MPI_INT, in, mine, starts, MPI_INT, WORLD);
	wrong = count_wrong_gathered(n, mine, rank);
	free(mine);
	return wrong;
}

/* As before, but with starts in bytes, and each with a type. */
static int alltoallw(int n, int root)
{
	MPI_Datatype *types =
	        malloc(size * sizeof(MPI_Datatype)); /* NOLINT: a pointer, or a number */
	int wrong = 0, *mine = malloc(size * sizeof(*mine));

	(void)root;
	fill_uneven(n);
	for (int r = 0; r < size; r++) {
		fill(out + r * n, n, rank, r);
		mine[r] = uneven(rank, n);
		starts[r] *= (int)sizeof(*in);
		types[r] = MPI_INT;
	}
	MPI_Alltoallw(out, counts, starts, types, in, mine, starts, types, WORLD);
	wrong = count_wrong_gathered(n, mine, rank);
	free(mine);
	free(types);
	return wrong;
}

static int reduce(int n, int root)
{
	fill(out, n, rank, 0);
	MPI_Reduce(out, in, n, MPI_INT, MPI_SUM, root, WORLD);
	return rank == root ? count_wrong_sums(in, n, size - 1, 0) : 0;
}

static int allreduce(int n, int root)
{
	(void)root;
	fill(in, n, rank, 0);
	MPI_Allreduce(MPI_IN_PLACE, in, n, MPI_INT, MPI_SUM, WORLD);
	return count_wrong_sums(in, n, size - 1, 0);
}

static int reduce_scatter(int n, int root)
{
	int at = 0;

	(void)root;
	fill_uneven(n);
	for (int r = 0; r < size; r++) {
		fill(out + at, counts[r], rank, r);
		at += counts[r];
	}
	MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, WORLD);
	return count_wrong_sums(in, counts[rank], size - 1, rank);
}

static int reduce_scatter_block(int n, int root)
{
	(void)root;
	for (int r = 0; r < size; r++)
		fill(out + r * n, n, rank, r);
	MPI_Reduce_scatter_block(out, in, n, MPI_INT, MPI_SUM, WORLD);
	return count_wrong_sums(in, n, size - 1, rank);
}

static int scan(int n, int root)
{
	(void)root;
	fill(out, n, rank, 0);
	MPI_Scan(out, in, n, MPI_INT, MPI_SUM, WORLD);
	return count_wrong_sums(in, n, rank, 0);
}

static int exscan(int n, int root)
{
	(void)root;
	fill(out, n, rank, 0);
	MPI_Exscan(out, in, n, MPI_INT, MPI_SUM, WORLD);
	return rank > 0 ? count_wrong_sums(in, n, rank - 1, 0) : 0;
}

/* Three that do not block, at once. */
static int nonblocking(int n, int root)
{
	int *sums = in, *all = in + n, wrong, third = n / 3 + 1;
	MPI_Request requests[3];
	MPI_Status statuses[3];

	fill(out, third, rank, 0);
	if (rank == root)
		fill(out + n, third, root, 1);
	MPI_Iallreduce(out, sums, third, MPI_INT, MPI_SUM, WORLD, &requests[0]);
	MPI_Ibcast(out + n, third, MPI_INT, root, WORLD, &requests[1]);
	MPI_Ibarrier(WORLD, &requests[2]);
	MPI_Waitall(3, requests, statuses);
	wrong = count_wrong_sums(sums, third, size - 1, 0) + count_wrong(out + n, third, root, 1);
	MPI_Iallgather(out, third, MPI_INT, all, third, MPI_INT, WORLD, &requests[0]);
	MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
	for (int r = 0; r < size; r++)
		wrong += count_wrong(all + r * third, third, r, 0);
	return wrong;
}

/* Between the neighbours of a ring. */
static int neighbours(int n, int root)
{
	int periodic = 1, wrong;
	MPI_Comm ring;

	(void)root;
	MPI_Cart_create(WORLD, 1, &size, &periodic, 0, &ring);
	fill(out, n, rank, 0);
	MPI_Neighbor_allgather(out, n, MPI_INT, in, n, MPI_INT, ring);
	wrong = count_wrong(in, n, (rank + size - 1) % size, 0) +
	        count_wrong(in + n, n, (rank + 1) % size, 0);
	MPI_Comm_free(&ring);
	return wrong;
}

/* Each sends to the next: as much as all others do together, so that it goes by rendezvous. */
static int around(int n, int root)
{
	int before = (rank + size - 1) % size, most = n * size;

	(void)root;
	fill(out, most, rank, 1);
	MPI_Sendrecv(out, most, MPI_INT, (rank + 1) % size, 1, in, most, MPI_INT, before, 1, WORLD,
	             MPI_STATUS_IGNORE);
	return count_wrong(in, most, before, 1);
}

static const struct {
	const char *name;
	int (*run)(int n, int root);
} operations[] = {
	{ "Bcast", bcast },
	{ "Gather", gather },
	{ "Gatherv", gatherv },
	{ "Scatter", scatter },
	{ "Scatterv", scatterv },
	{ "Allgather", allgather },
	{ "Allgatherv", allgatherv },
	{ "Alltoall", alltoall },
	{ "Alltoallv", alltoallv },
	{ "Alltoallw", alltoallw },
	{ "Reduce", reduce },
	{ "Allreduce", allreduce },
	{ "Reduce_scatter", reduce_scatter },
	{ "Reduce_scatter_block", reduce_scatter_block },
	{ "Scan", scan },
	{ "Exscan", exscan },
	{ "Ibcast, Iallreduce, Ibarrier, Iallgather", nonblocking },
	{ "Neighbor_allgather", neighbours },
	{ "Sendrecv", around },
};

static int run_each(int n, int root)
{
	int wrong = 0;

	for (unsigned i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		int more;

		for (int k = 0; k < size * n; k++)
			in[k] = -1;
		more = operations[i].run(n, root);
		if (more > 0)
			printf("%s of %d: %d wrong at rank %d\n", operations[i].name, n, more,
			       rank);
		wrong += more;
		MPI_Barrier(WORLD);
	}
	return wrong;
}

static int run_all(void)
{
	static const int sizes[] = { 3, 300, 5000, MOST };
	int wrong = 0;

	for (int round = 0; round < 4; round++)
		wrong += run_each(sizes[round], round % size);
	return wrong;
}

/* All do as the first one sees it. */
static int exists(const char *file)
{
	int there = rank == 0 && access(file, F_OK) == 0;

	MPI_Bcast(&there, 1, MPI_INT, 0, WORLD);
	return there;
}

static int run_until(const char *file)
{
	int wrong = 0;

	for (int times = 1; !exists(file); times++) {
		wrong += run_all();
		if (rank == 0) {
			printf("%d times\n", times);
			fflush(stdout);
		}
	}
	return wrong;
}

int main(int argc, char **argv)
{
	int wrong, all = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(WORLD, &rank);
	MPI_Comm_size(WORLD, &size);
	out = malloc(sizeof(*out) * MOST * (size + 1));
	in = malloc(sizeof(*in) * MOST * (size + 1));
	counts = malloc(sizeof(*counts) * size);
	starts = malloc(sizeof(*starts) * size);
	wrong = argc > 1 ? run_until(argv[1]) : run_all();
	MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, WORLD);
	if (rank == 0)
		printf("%d ranks, %d wrong\n", size, all);
	MPI_Finalize();
	free(out);
	free(in);
	free(counts);
	free(starts);
	return all != 0;
}
