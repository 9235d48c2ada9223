#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs that know nothing of RDMA, on rsockets by Debian's librspreload: iperf3 and iperf (select,
# threads), curl and netcat (poll), rstream with ordinary sockets. Then a server that forks, for
# which librspreload first connects by TCP.

# In a network of our own: no connection can be one of the machine's, and the addresses of h1 and h2
# are there when they are wanted. A semaphore that librspreload leaves in /dev/shm is gone at the end.
if [ "${SPACES_PID:-}" != $$ ]; then
	namespaces=(--mount --net --pid)
	[ "$(id -u)" -eq 0 ] || namespaces+=(--user --map-root-user)
	exec unshare "${namespaces[@]}" --fork --kill-child --mount-proc env SPACES_PID=1 "$0" "$@"
fi

. "${0%/*}/rdmacm.bash"
PATH+=:/usr/sbin:/sbin

library=$(echo /usr/lib/*/rsocket/librspreload.so.1)
[ -e "$library" ] || { echo "there is no librspreload.so.1" >&2; exit 1; }
mount -t tmpfs tmpfs /dev/shm || exit 1
umbel up --hosts 3 > /dev/null

# What stands before a program's name; what is preloaded already stays.
# shellcheck disable=SC2016
rs=(sh -c 'LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}$0 exec "$@"' "$library")

# segments_over_tcp: what the kernel's TCP has sent in this network; none if all is by rsockets
segments_over_tcp()
{
	awk '/^Tcp:/ && n++ { print $12 }' /proc/net/snmp
}

# measure NAME OPTION...: by iperf3, from h2 to h1
measure()
{
	local name=$1
	shift
	run_pair "$name" "${rs[@]}" iperf3 -s -1 -B 10.0.0.1 -- \
		"${rs[@]}" iperf3 -c 10.0.0.1 "$@"
	expect_said "client-$name" '.* receiver$' 'iperf Done'
}

measure upload -n 50M
measure download -n 50M -R
measure parallel -n 30M -P 3
measure small -n 1M -l 100
measure paced -b 20M -n 2M

# ---- threads at both ends, for two seconds: where two connections end before the server has the third, iperf 2.1.8 frees what
# all three sum up in, and uses it again
serve_cm threads h1 "${rs[@]}" iperf -s -B 10.0.0.1
start client-threads h2 "${rs[@]}" iperf -c 10.0.0.1 -n 20M -b 80m -P 3
wait_ended client-threads 0
expect_said client-threads '.SUM. '
kill "${pid[server-threads]}"
wait_ended server-threads 0

# ---- curl, from one that says the same to everybody
head -c 300000 /dev/urandom > "$TMPDIR/page"
{
	printf 'HTTP/1.0 200 OK\r\nContent-Length: 300000\r\n\r\n'
	cat "$TMPDIR/page"
} > "$TMPDIR/answer"
# shellcheck disable=SC2016
serve_cm curl h1 "${rs[@]}" sh -c 'exec nc.traditional -l -s 10.0.0.1 -p 8000 -q 60 < "$0"' \
	"$TMPDIR/answer"
start client-curl h2 "${rs[@]}" curl -sS --output "$TMPDIR/got" http://10.0.0.1:8000/page
wait_ended client-curl 0
wait_ended server-curl 0
expect_said server-curl 'GET /page HTTP' 'User-Agent: curl'
cmp "$TMPDIR/page" "$TMPDIR/got" || complain 'curl got another page'

# ---- rstream by ordinary sockets
run_pair sockets "${rs[@]}" rstream -T s -T b -T v -b 10.0.0.1 -C 50 -S 100000 -- \
	"${rs[@]}" rstream -T s -T b -T v -s 10.0.0.1 -C 50 -S 100000
expect_said client-sockets 'custom '

[ "$(segments_over_tcp)" -eq 0 ] || complain "TCP has carried something: $(cat /proc/net/snmp)"

# ---- a server that forks
ip link set lo up && ip address add 10.0.0.1/32 dev lo && ip address add 10.0.0.2/32 dev lo || exit 1
start server-fork h1 env RDMAV_FORK_SAFE=1 "${rs[@]}" rstream -T f -T b -T v -b 10.0.0.1 -C 500 -S 10000
wait_said server-fork 'name ' # it listens
start client-fork h2 env RDMAV_FORK_SAFE=1 "${rs[@]}" rstream -T s -T b -T v -s 10.0.0.1 -C 500 -S 10000
wait_ended client-fork 0
wait_ended server-fork 0
expect_said client-fork 'custom '
# by TCP they only agreed to connect: 10 MB would be many more
[ "$(segments_over_tcp)" -lt 50 ] || complain "TCP has carried it: $(cat /proc/net/snmp)"
