#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Open MPI and MPICH as Debian ships them run collectives over UCX and UD, each rank on a host of its
# own.

. "${0%/*}/lib.sh"
. "${0%/*}/../mpi/lib.bash"

# sent: how many packets h1 has sent to hosts, and not to groups.
sent()
{
	umbel exec h1 -- cat /sys/class/infiniband/umbel_h1_0/ports/1/counters/unicast_xmit_packets
}

umbel up --hosts 3 > /dev/null
for mpi in openmpi mpich; do
	before=$(sent)
	expect 0 '*3 ranks, 0 wrong*' run_mpi $mpi 3 bash "$TMPDIR/rank.sh" "$TMPDIR/collectives.$mpi"
	# all that was sent went by the fabric: some 20 MB in packets of at most 4 KiB
	[ $(($(sent) - before)) -gt 1000 ] || complain "$mpi sent $(($(sent) - before)) packets"
done
