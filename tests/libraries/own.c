/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * own [COMMAND]: says how it was called and how many devices it sees, then runs the command. Its
 * DT_RPATH leads to rdma-core's libraries (own.sh).
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	printf("%s with %d arguments: %d devices\n", argv[0], argc - 1, n);
	fflush(stdout);
	ibv_free_device_list(list);
	return argc > 1 ? system(argv[1]) : 0;
}
