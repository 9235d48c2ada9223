/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two ranks of MPI: the time that 8 bytes take one way, half of there and back, and the time of
 * each of many messages of 64 KiB and 1 MiB, one way. Both are medians of short stretches, so that
 * a program that takes a processor for a while changes little. Any MPI compiles it;
 * bench/driver/mpi.py runs it over different transports. Rank 0 prints a line of JSON a sample.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT     8
#define LONG      (64 << 10)
#define LONGEST   (1 << 20)
#define EXCHANGES 100 /* of a stretch */
#define WINDOW    16  /* messages at a time: those of a stretch */
#define STRETCHES 15
#define TURNS     3

static char buffer[WINDOW][LONGEST];

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Seconds, as one rank sees it. */
static double exchange(int rank, int bytes)
{
	double begin = MPI_Wtime();

	for (int i = 0; i < EXCHANGES; i++) {
		if (!rank)
			MPI_Send(buffer[0], bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(buffer[1], bytes, MPI_CHAR, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank)
			MPI_Send(buffer[0], bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
	}
	return (MPI_Wtime() - begin) / EXCHANGES / 2;
}

static double send_window(int rank, int bytes)
{
	MPI_Request request[WINDOW];
	double begin = MPI_Wtime();

	for (int k = 0; k < WINDOW; k++) {
		if (!rank)
			MPI_Isend(buffer[k], bytes, MPI_CHAR, 1, k, MPI_COMM_WORLD, &request[k]);
		else
			MPI_Irecv(buffer[k], bytes, MPI_CHAR, 0, k, MPI_COMM_WORLD, &request[k]);
	}
	MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
	/* the other side has them, too */
	MPI_Sendrecv_replace(buffer[0], 1, MPI_CHAR, !rank, 0, !rank, 0, MPI_COMM_WORLD,
	                     MPI_STATUS_IGNORE);
	return (MPI_Wtime() - begin) / WINDOW;
}

static void measure(int rank, int turn, double (*stretch)(int rank, int bytes), int bytes)
{
	double took[STRETCHES];

	for (int i = 0; i < STRETCHES; i++)
		took[i] = stretch(rank, bytes);
	qsort(took, STRETCHES, sizeof(*took), ascending);
	/* turn 0 is not printed: buffers and connections are used for the first time */
	if (!rank && turn)
		printf("{\"measure\": \"mpi\", \"bytes\": %d, \"turn\": %d, \"ns\": %.1f}\n", bytes,
		       turn, took[STRETCHES / 2] * 1e9);
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
	for (int turn = 0; turn <= TURNS; turn++) {
		measure(rank, turn, exchange, SHORT);
		measure(rank, turn, send_window, LONG);
		measure(rank, turn, send_window, LONGEST);
	}
	MPI_Finalize();
	return 0;
}
