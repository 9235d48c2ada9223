# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# cmtime of rdma-core 56, sourced by cmtime.sh: pairs of a server and a client, which end together.

umbel up --hosts 3 --ipoib > /dev/null || exit 1
interfaces=$(field qps default)	# have queue pairs

# pair NAME SERVER CLIENT COUNT [OPTION...]: begins, the server on host hSERVER, the client on hCLIENT.
pair()
{
	serve_pair "$@" && join_pair "$@"
}

serve_pair()
{
	local name=$1 server=$2 count=$4
	shift 4
	serve_cm "$name" "h$server" cmtime -b "10.0.0.$server" -c "$count" "$@" || return
	wait_until "server-$name waits for its client" in_accept "h$server"
}

# In the second half of the test there are no queue pairs, but numbers; those of both sides must differ on one host (-q).
join_pair()
{
	local name=$1 server=$2 client=$3 count=$4
	shift 4
	start "client-$name" "h$client" cmtime -s "10.0.0.$server" -c "$count" -q 70000 "$@"
}

# in_accept HOST: cmtime's port, 7471 or the one of the two clients at once, is listened to
in_accept()
{
	umbel exec "$1" -- grep -q ":1D2[FE] 00000000:0000 0A " /proc/net/tcp
}

# expect_timed NAME: both have ended well, with times for all steps and no word of failure.
expect_timed()
{
	local side

	for side in client server; do
		wait_ended "$side-$1" 0
		expect_said "$side-$1" 'qp_conn  *[0-9]' 'cm_conn  *[0-9]'
		! says "$side-$1" '\(fail\|event:\|RDMA_CM\|Unhandled\)' || complain "$side-$1 complains"
	done
	for step in 'full connect' 'resolve addr' 'resolve route' 'create qp' 'rtr qp' 'rts qp' 'cm connect' \
		disconnect 'destroy id' 'destroy qp'; do
		says "client-$1" "$step  *[0-9]" 2 || complain "client-$1 has no times of: $step"
	done
}

pair few 1 2 10
expect_timed few
pair many 1 2 300
expect_timed many
pair self 1 1 20
expect_timed self
pair options 2 3 50 -r 5 -t 10000 -n 4
expect_timed options

# ---- two pairs at once: no client before both servers listen, as a server ends with its client
left=(left 1 2 200)
right=(right 3 1 200 -p 7470)
serve_pair "${left[@]}"
listeners=1
serve_pair "${right[@]}"
listeners=0
join_pair "${left[@]}"
join_pair "${right[@]}"
expect_timed left
expect_timed right

# ---- a client is killed in the middle; its server, which would wait for it, as well
pair killed 1 2 5000
wait_said client-killed '	Creating QPs'
kill -9 "${pid[client-killed]}" "${pid[server-killed]}"
wait "${pid[client-killed]}" "${pid[server-killed]}" 2> /dev/null
ended[client-killed]=137 ended[server-killed]=137
nothing_left()
{
	[ "$(field connections default)" -eq 0 ] && [ "$(field qps default)" -eq "$interfaces" ] && listen 0
}
wait_until 'nothing is left of those that were killed' nothing_left
pair after 1 3 50
expect_timed after
wait_until 'nothing is left' nothing_left
umbel down > /dev/null
