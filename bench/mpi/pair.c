/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two ranks of MPI: the time that 8 bytes take one way, half of there and back, and the time of
 * each of many messages of 1 MiB, one way. Any MPI compiles it; bench/driver/parts.py runs it over
 * different transports. Rank 0 prints a line of JSON a sample.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT     8
#define LONG      (1 << 20)
#define EXCHANGES 20000
#define WINDOW    16
#define WINDOWS   40
#define TURNS     3

static char buffer[WINDOW][LONG];

static double one_way(int rank)
{
	double begin = MPI_Wtime();

	for (int i = 0; i < EXCHANGES; i++) {
		if (!rank)
			MPI_Send(buffer[0], SHORT, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(buffer[1], SHORT, MPI_CHAR, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank)
			MPI_Send(buffer[0], SHORT, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
	}
	return (MPI_Wtime() - begin) / EXCHANGES / 2;
}

static double long_ones(int rank)
{
	MPI_Request request[WINDOW];
	double begin = MPI_Wtime();

	for (int i = 0; i < WINDOWS; i++) {
		for (int k = 0; k < WINDOW; k++) {
			if (!rank)
				MPI_Isend(buffer[k], LONG, MPI_CHAR, 1, k, MPI_COMM_WORLD,
				          &request[k]);
			else
				MPI_Irecv(buffer[k], LONG, MPI_CHAR, 0, k, MPI_COMM_WORLD,
				          &request[k]);
		}
		MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
		/* the other side has them, too */
		MPI_Sendrecv_replace(buffer[0], 1, MPI_CHAR, !rank, 0, !rank, 0, MPI_COMM_WORLD,
		                     MPI_STATUS_IGNORE);
	}
	return (MPI_Wtime() - begin) / WINDOWS / WINDOW;
}

int main(int argc, char **argv)
{
	int rank, ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks != 2) {
		fprintf(stderr, "%d ranks, not 2\n", ranks);
		MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
	}
	memset(buffer, rank + 1, sizeof(buffer)); /* else all of it is the page of zeros */
	/* turn 0 is not printed: buffers and connections are used for the first time */
	for (int turn = 0; turn <= TURNS; turn++) {
		double latency = one_way(rank), each = long_ones(rank);

		if (rank || !turn)
			continue;
		printf("{\"measure\": \"mpi\", \"bytes\": %d, \"turn\": %d, \"ns\": %.1f}\n", SHORT,
		       turn, latency * 1e9);
		printf("{\"measure\": \"mpi\", \"bytes\": %d, \"turn\": %d, \"ns\": %.1f}\n", LONG,
		       turn, each * 1e9);
	}
	MPI_Finalize();
	return 0;
}
