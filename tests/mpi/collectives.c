/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Broadcasts, reductions and messages around a ring, of sizes from a packet to a mebibyte, each
 * checked. The MPI scripts build it with the compilers of Open MPI and MPICH, and run it.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST (1 << 20)

static int rank, size;

static unsigned char byte_at(int i, int salt)
{
	return (unsigned char)(i * 7 + i / 251 + salt);
}

static int count_wrong(const unsigned char *buf, int bytes, int salt)
{
	int wrong = 0;

	for (int i = 0; i < bytes; i++)
		wrong += buf[i] != byte_at(i, salt);
	return wrong;
}

static int broadcast(unsigned char *buf, int bytes, int root)
{
	for (int i = 0; i < bytes; i++)
		buf[i] = rank == root ? byte_at(i, root) : 0;
	MPI_Bcast(buf, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
	return count_wrong(buf, bytes, root);
}

static int reduce(long *in, long *out, int n)
{
	int wrong = 0;

	for (int i = 0; i < n; i++)
		in[i] = (long)i * (rank + 1);
	MPI_Allreduce(in, out, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		wrong += out[i] != (long)i * size * (size + 1) / 2;
	return wrong;
}

/* Each sends to the next. */
static int send_around(unsigned char *out, unsigned char *in, int bytes)
{
	int before = (rank + size - 1) % size;

	for (int i = 0; i < bytes; i++)
		out[i] = byte_at(i, rank);
	MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + 1) % size, 1, in, bytes, MPI_BYTE, before, 1,
	             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return count_wrong(in, bytes, before);
}

int main(int argc, char **argv)
{
	static const int sizes[] = { 8, 1000, 20000, MOST };
	void *a = malloc(MOST), *b = malloc(MOST);
	int wrong = 0, all = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int round = 0; round < 20; round++) {
		int bytes = sizes[round % 4];

		wrong += broadcast(a, bytes, round % size);
		wrong += reduce(a, b, bytes / (int)sizeof(long));
		wrong += send_around(a, b, bytes);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d ranks, %d wrong\n", size, all);
	MPI_Finalize();
	free(a);
	free(b);
	return all != 0;
}
