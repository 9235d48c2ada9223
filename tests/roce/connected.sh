#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs that use connected queue pairs, on hosts with Ethernet ports of one fabric: pingpongs, perftest,
# rdma_cm's programs by IPv4 and IPv6, UCX, MPI. XRC to another machine is refused, and said.

. "${0%/*}/../system/perftest_rdmacm.bash"
. "${0%/*}/../system/ucx.bash"
. "${0%/*}/../mpi/lib.bash"

server_host=r1 client_host=r2
address=172.16.0.1 address6=fd75:6d62:656c:e000::1

# listens PORT: whether a program on r1 does.
listens()
{
	umbel exec r1 -- bash -c "$(declare -f port_in_state); port_in_state $1 0A"
}

# pair NAME COMMAND...: likewise, by a port of TCP that both are told.
pair()
{
	local name=$1
	shift
	new_port
	start "server-$name" $server_host "$@" -p "$port"
	wait_until "server-$name listens" listens "$port" || return
	start "client-$name" $client_host "$@" -p "$port" $address
	wait_ended "client-$name" 0
	wait_ended "server-$name" 0
}

umbel up --roce-hosts 2 > /dev/null || exit 1
expect 0 '*umbel_r1_0*' umbel exec r1 -- ibv_devices

# ---- by themselves
n=0
for program in "ibv_rc_pingpong -n 100 -c" "ibv_rc_pingpong -e -s 1 -n 100" "ibv_uc_pingpong -n 100" \
	"ibv_srq_pingpong -q 4 -n 100"; do
	n=$((n + 1))
	# shellcheck disable=SC2086
	pair "$n" $program -g 1
	expect_said "client-$n" '[0-9]* iters in '
done
for program in "ib_send_bw -F -n 200" "ib_send_lat -n 50 -c XRC" "ib_write_bw -F -n 200 -c UC" "ib_read_lat -n 50" \
	"ib_atomic_bw -F -n 200" "ib_send_bw -F -n 200 -r 512 -b"; do
	n=$((n + 1))
	# shellcheck disable=SC2086
	pair "$n" $program
done

# ---- by rdma_cm
run_pair rping rping -s -a $address -C 10 -v -- rping -c -a $address -C 10 -V
run_pair rping6 rping -s -a $address6 -C 10 -v -- rping -c -a $address6 -C 10 -V
run_pair ucmatose ucmatose -b $address -- ucmatose -s $address
run_pair rstream rstream -b $address -S 4000 -C 200 -- rstream -s $address -S 4000 -C 200
run_pair xclient rdma_xserver -c x -- rdma_xclient -s $address -c x
run_pair client rdma_server -- rdma_client -s $address
run_each "ib_write_bw -F -n 200" "ib_atomic_lat -n 50"

# ---- what came by it is counted at both ends
count()
{
	umbel exec "$1" -- cat "/sys/class/infiniband/umbel_$1_0/ports/1/counters/unicast_$2_packets"
}
[ "$(count r1 rcv)" -gt 1000 ] || complain "r1 has received $(count r1 rcv) packets"
[ "$(count r2 xmit)" -gt 1000 ] || complain "r2 has sent $(count r2 xmit) packets"

# ---- UCX and MPI
export UCX_TLS=rc_v,self
new_port
start ucx r1 ucx_perftest "${alone[@]}" -p "$port"
wait_until "ucx_perftest listens" listens "$port"
expect 0 '*Final: * 500 *' umbel exec r2 -- ucx_perftest $address "${alone[@]}" -p "$port" -t tag_lat -n 500 -w 10
wait_ended ucx 0
unset OMPI_MCA_plm_rsh_agent OMPI_MCA_pml
for mpi in openmpi mpich; do
	OMPI_MCA_pml=ucx expect 0 '*2 ranks, 0 wrong*' \
		timeout 100 umbel mpirun --mpirun mpirun.$mpi -n 2 "$TMPDIR/collectives.$mpi"
done

# ---- to elsewhere
umbel exec r1 -- ip neighbour add 172.16.0.9 lladdr 02:00:00:00:00:09 dev eth0 ||
	complain "no neighbour"
expect 255 '*XRC on RoCE is between hosts of one fabric*' env UMBEL_LOG=warning bash -c \
	'umbel exec r1 -- rdma_xclient -s 172.16.0.9 -c x 2>&1'
umbel down > /dev/null
