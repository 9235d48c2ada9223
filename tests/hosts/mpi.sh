#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A cluster in one line: Open MPI and MPICH run on hosts that are namespaces, started by `umbel mpirun`,
# and `umbel rsh` does what launchers expect of ssh.

. "${0%/*}/lab.sh"
. "${0%/*}/../mpi/lib.bash"

# what lib.bash sets is umbel mpirun's to set here
unset "${!UCX_@}" "${!OMPI_MCA_@}" MPIR_CVAR_NOLOCAL

umbel up --hosts 3 --ipoib > /dev/null || exit 1

# ---- rsh
export SHELL=/bin/sh
# shellcheck disable=SC2016 # the shell there replaces it
expect 0 'h2 a b' umbel rsh -x -o BatchMode=yes nobody@h2 'echo $(hostname)' 'a   b'
expect 7 '' umbel rsh h1 exit 7
expect 0 h3 umbel-rsh h3 hostname
expect 0 '' umbel rsh -n h3 cat
expect 0 h1 umbel rsh h1 <<< hostname
expect 1 "umbel: no host 'h9' in fabric 'default': it has h1 h2 h3" umbel rsh h9 true
expect 2 'umbel: rsh: which host?; *' umbel rsh

# ---- mpirun: ranks on all hosts in turn
# Open MPI may warn of a race of its own.
ranks_on_all()
{
	output=$(timeout 100 umbel mpirun --mpirun "mpirun.$1" -n 6 hostname | grep -x 'h.' | sort)
	[ "$output" = $'h1\nh1\nh2\nh2\nh3\nh3' ]
}
# counted FILE: what a file below h1's devices says
counted()
{
	umbel exec h1 -- cat "/sys/class/$1"
}
# sent: how many packets h1's programs have sent by verbs, as umbel-ipoib does not
sent()
{
	echo $(($(counted infiniband/umbel_h1_0/ports/1/counters/unicast_xmit_packets) -
		$(counted net/ib0/statistics/tx_packets)))
}
# by_ib0: how many by TCP
by_ib0()
{
	counted net/ib0/statistics/tx_packets
}
# run_all COUNT MPI PROGRAMS [ARGUMENT]...: they run, and h1 has sent packets, as COUNT counts them
run_all()
{
	local count=$1 mpi=$2 all=$3 program before
	shift 3

	before=$($count)
	for program in $all; do
		expect 0 '*3 ranks, 0 wrong*' timeout 200 umbel mpirun --mpirun "mpirun.$mpi" -n 3 "$@" "$TMPDIR/$program.$mpi"
	done
	[ $(($($count) - before)) -gt 100 ] || complain "$mpi $* sent $(($($count) - before)) packets, $count"
}
for mpi in openmpi mpich; do
	ranks_on_all $mpi || complain "$mpi has no ranks on all hosts: $output"
	run_all sent $mpi 'collectives rma'
	UCX_TLS=ud_verbs,self run_all sent $mpi collectives
done
# what a user says counts: TCP. (MPICH's does not always get through MPI_Finalize(), on any network.)
OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self run_all by_ib0 openmpi collectives
run_all by_ib0 openmpi collectives --mca pml ob1 --mca btl tcp,self
expect 3 '' bash -c 'umbel mpirun --mpirun mpirun.mpich -n 1 sh -c "exit 3"'
expect 127 "umbel: 'no-such-mpi' does not run: *" umbel mpirun --mpirun no-such-mpi -n 1 true
umbel down > /dev/null

umbel up --hosts 1 > /dev/null
expect 1 "umbel: the hosts of fabric 'default' have no network of their own; it takes: umbel up --ipoib or --roce-hosts" \
	umbel mpirun --mpirun mpirun.mpich -n 1 true
umbel down > /dev/null
