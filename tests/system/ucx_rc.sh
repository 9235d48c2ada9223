#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# UCX as Debian ships it sends by RC, reads, writes and changes memory of the other host, and so do
# Open MPI and MPICH over it.

. "${0%/*}/ucx.bash"
. "${0%/*}/../mpi/lib.bash"

export UCX_TLS=rc,self

umbel up --hosts 3 > /dev/null
expect 0 '*Transport: rc_verbs*Device: umbel_h1_0:1*' umbel exec h1 -- ucx_info -d
exchange tag_lat 200
exchange tag_bw 100 -s 1000000
# the last receive of each pool hangs over its region
UCX_RC_VERBS_ALLOC=heap exchange tag_lat 20000
exchange ucp_am_lat 200
exchange ucp_put_lat 100
exchange ucp_put_bw 1000 -s 65536
exchange ucp_get 1000 -s 65536
exchange ucp_add 1000
exchange ucp_fadd 200
exchange ucp_swap 200
exchange ucp_cswap 200

for mpi in openmpi mpich; do
	expect 0 '*3 ranks, 0 wrong*' run_mpi $mpi 3 bash "$TMPDIR/rank.sh" "$TMPDIR/collectives.$mpi"
done
