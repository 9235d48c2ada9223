#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Open MPI and MPICH as Debian ships them run all collectives and one-sided operations over UCX, by UD and by
# RC, their ranks on four hosts.

. "${0%/*}/lib.sh"
. "${0%/*}/../mpi/lib.bash"

export OMPI_MCA_osc=ucx

# sent: how many packets h1 has sent to hosts, and not to groups.
sent()
{
	umbel exec h1 -- cat /sys/class/infiniband/umbel_h1_0/ports/1/counters/unicast_xmit_packets
}

# run_program MPI RANKS PROGRAM: its results are right, and h1 has sent packets. How many depends on how often
# ranks ask for a lock; without the fabric there would be none.
run_program()
{
	local mpi=$1 ranks=$2 program=$3 before

	! left_out "$mpi $program $UCX_TLS" || return 0
	before=$(sent)
	expect 0 "*$ranks ranks, 0 wrong*" run_mpi "$mpi" "$ranks" bash "$TMPDIR/rank.sh" \
		"$TMPDIR/$program.$mpi"
	[ $(($(sent) - before)) -gt 100 ] ||
		complain "$program of $mpi sent $(($(sent) - before)) packets"
}

umbel up --hosts 4 > /dev/null
for how in 'ud_v,self 8' 'rc_v,self 16'; do	# 16: four on each host
	read -r UCX_TLS ranks <<< "$how"
	export UCX_TLS
	run_program openmpi 4 rma
	run_program openmpi "$ranks" collectives
	# MPICH's ranks do not yield: many on few processors wait for each other's turn to end
	run_program mpich 2 rma
	run_program mpich 4 collectives
done
