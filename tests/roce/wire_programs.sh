#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Debian's programs between two machines with Umbel, on RoCEv2, by RC and UC: those of rdma_cm, fio, qperf, UCX,
# Open MPI and MPICH. (Pingpongs and perftest: wire.sh.)

. "${0%/*}/lab.sh"
. "${0%/*}/pairs.bash"
. "${0%/*}/../system/ucx.bash"
. "${0%/*}/../mpi/lib.bash"
. "${0%/*}/../system/fio.bash"

address=192.0.2.1 address6=2001:db8::1

# For those scripts: on a host of the lab.
start()
{
	start_on "$@"
}

listen()
{
	[ "$(field listeners h1)" -eq "$1" ]
}

lab_up 2
roce_up h1 h2

# ---- rdma_cm
for to in $address $address6; do
	run_pair "rping-$to" rping -s -a $to -C 20 -v -- rping -c -a $to -C 20 -V
	run_pair "ucmatose-$to" ucmatose -b $to -- ucmatose -s $to
	run_pair "rstream-$to" rstream -b $to -S 4000 -C 100 -- rstream -s $to -S 4000 -C 100
done
# its client may have ended before it hears of the end
expect_said server-rping-$address 'server DISCONNECT EVENT'

# ---- fio
new_port
engine=(--name=job --ioengine=rdma --port="$port" --bs=4k --thread)
for verb in write read; do
	pair $verb 0 --size=1m --iodepth=16 -- --verb=$verb --size=1m --iodepth=16
	expect_said client-$verb ' *issued rwts: total=0,256,'
done
pair large 0 --size=8m --iodepth=4 --bs=1m -- --verb=write --size=8m --iodepth=4 --bs=1m
sends=(--verb=send --size=1m --iodepth=16 --verify=crc32c)
pair send 0 --size=1m --iodepth=256 --verify=crc32c -- "${sends[@]}" --do_verify=0
expect_said server-send ' *issued rwts: total=256,0,0,0' '.*err= 0: '
pair spoilt 1 --size=1m --iodepth=256 --verify=crc32c -- --verb=send --size=1m --iodepth=16
expect_said server-spoilt 'verify: bad magic header'

# ---- qperf, by rdma_cm: without it knows LIDs only
new_port
start server-qperf h1 qperf -lp "$port"
wait_until 'qperf listens' listens h1 "$port"

# measured TEST: until it has ended. Nonzero: its server listens for rdma_cm too late.
measured()
{
	start "$1" h2 qperf -lp "$port" -t 1 -to 60 -cm 1 $address "$1"
	wait_until "$1 ends" gone "${pid[$1]}"
	! says "$1" 'unexpected event from RDMA CM: Event rejected'
}

for test in rc_lat rc_bi_bw rc_rdma_write_bw rc_rdma_read_bw rc_fetch_add_mr ver_rc_compare_swap; do
	wait_until "$test is not refused" measured $test
	wait_ended $test 0
	expect_said $test "$test:" ' *[a-z_]*  =  *[0-9.]* [a-zA-Z/]*'
	! says $test ' *[a-z_]*  =  *0 ' || complain "$test measures nothing"
done
kill "${pid[server-qperf]}"

# ---- UCX
# ucx TEST MESSAGES OPTION...
ucx()
{
	local test=$1 n=$2
	shift 2
	new_port
	start ucx h1 ucx_perftest "${alone[@]}" -p "$port"
	wait_until "ucx_perftest listens for $test" listens h1 "$port" || return
	expect 0 "*Final: * $n *" umbel_on h2 exec -- ucx_perftest $address "${alone[@]}" -p "$port" \
		-t "$test" -n "$n" -w 10 "$@"
	wait_ended ucx 0
}

for UCX_IB_GID_INDEX in auto 1 2; do
	export UCX_IB_GID_INDEX UCX_TLS=rc_v,self
	ucx tag_lat 200
	ucx tag_bw 50 -s 1000000
	ucx ucp_put_bw 200 -s 65536
	ucx ucp_get 200 -s 65536
	ucx ucp_fadd 200
done
unset UCX_IB_GID_INDEX

# ---- MPI, two ranks on each. mpirun reaches machines by their addresses and a shell, and knows them by their names.
cat > "$TMPDIR/shell" <<'END'
#!/bin/bash
host=h${1##*.}
shift
exec ip netns exec "$host" unshare --uts bash -c 'hostname "$1"; shift; eval "$*"' shell "$host" "$@"
END
cat > "$TMPDIR/rank.sh" <<END
host=h\$((PMI_RANK % 2 + 1))
[ "\${PMI_RANK-}" ] && exec ip netns exec \$host env UMBEL_FABRIC=\$host umbel exec -- "\$@"
UMBEL_FABRIC=\$(hostname) exec ${without_privileges[*]} umbel exec -- "\$@"
END
chmod +x "$TMPDIR/shell"
export UCX_TLS=rc_v,self OMPI_MCA_osc=ucx OMPI_MCA_plm_rsh_agent=$TMPDIR/shell
export PRTE_MCA_plm_ssh_agent=$TMPDIR/shell
for program in rma collectives; do
	expect 0 '*4 ranks, 0 wrong*' "$TMPDIR/shell" $address timeout 500 mpirun.openmpi --oversubscribe --bind-to none \
		--host 192.0.2.1:2,192.0.2.2:2 -n 4 bash "$TMPDIR/rank.sh" "$TMPDIR/$program.openmpi"
	expect 0 '*2 ranks, 0 wrong*' run_mpi mpich 2 bash "$TMPDIR/rank.sh" "$TMPDIR/$program.mpich"
done

# ---- it was packets, on the network
for host in h1 h2; do
	counters=$(umbel_on $host show counters --json)
	[[ $counters =~ \"rcv_pkts\":\ ([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -gt 10000 ] ||
		complain "few packets on $host: $counters"
done
