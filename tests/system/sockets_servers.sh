#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Servers that know TCP only, on rsockets by `umbel exec --sockets`: redis and nginx (epoll; a worker
# that is a child), Python's http.server (poll, threads, accept4), netcat, socat, iperf3, rsync and sshd
# (children that have connections), bash. Bytes are right, and TCP carries none of them.

# In a network of our own without addresses: no connection can be one of the machine's.
if [ "${SPACES_PID:-}" != $$ ]; then
	namespaces=(--mount --net --pid)
	[ "$(id -u)" -eq 0 ] || namespaces+=(--user --map-root-user)
	exec unshare "${namespaces[@]}" --fork --kill-child --mount-proc env SPACES_PID=1 "$0" "$@"
fi

. "${0%/*}/rdmacm.bash"
PATH+=:/usr/sbin:/sbin

umbel up --hosts 3 > /dev/null

# serve NAME COMMAND...: on h1, until it listens.
serve()
{
	wait_until 'earlier servers have ended' listen "$listeners" || return
	start_sockets "server-$1" h1 "${@:2}"
	wait_until "server-$1 listens" listening_or_gone "$1"
}

# start_sockets NAME HOST COMMAND...
start_sockets()
{
	launch "$1" umbel exec --sockets "$2" -- stdbuf -oL "${@:3}"
}

# on_h2 NAME COMMAND...: a client that ends well.
on_h2()
{
	start_sockets "client-$1" h2 "${@:2}"
	wait_ended "client-$1" 0
}

# stop NAME: a server that ends by SIGTERM.
stop()
{
	kill "${pid[server-$1]}"
	wait_ended "server-$1" "${2:-0}"
}

# same FILE...: each is the page.
same()
{
	local file
	for file; do
		cmp "$TMPDIR/www/page" "$file" || complain "${file##*/} is another page"
	done
}

mkdir "$TMPDIR/www"
head -c 20000000 /dev/urandom > "$TMPDIR/www/page"
printf 'small\n' > "$TMPDIR/www/small"

# ---- Python's http.server, which has a thread for each connection
serve python python3 -u -m http.server --bind 0.0.0.0 --directory "$TMPDIR/www" 8000
on_h2 python curl -sS --parallel --parallel-max 4 \
	-o "$TMPDIR/p1" http://10.0.0.1:8000/page -o "$TMPDIR/p2" http://10.0.0.1:8000/page \
	-o "$TMPDIR/p3" http://10.0.0.1:8000/page -o "$TMPDIR/p4" http://10.0.0.1:8000/page
same "$TMPDIR"/p[1-4]
stop python 143

# ---- nginx, with a master and a worker, sendfile and keepalive
cat > "$TMPDIR/nginx.conf" <<END
user $(id -un);
daemon off;
pid $TMPDIR/nginx.pid;
error_log stderr;
events { worker_connections 500; }
http {
	access_log off;
	sendfile on;
	$(for what in client_body proxy fastcgi uwsgi scgi; do echo "${what}_temp_path $TMPDIR/$what;"; done)
	server { listen 10.0.0.1:8080; root $TMPDIR/www; }
}
END
serve nginx nginx -c "$TMPDIR/nginx.conf"
for i in 1 2 3 4; do
	start_sockets "client-nginx$i" h2 curl -sS -w '%{num_connects} %{http_code}\n' \
		-o "$TMPDIR/n$i" http://10.0.0.1:8080/page -o "$TMPDIR/s$i" http://10.0.0.1:8080/small \
		-o "$TMPDIR/m$i" http://10.0.0.1:8080/page
done
for i in 1 2 3 4; do
	wait_ended "client-nginx$i" 0
	expect_said "client-nginx$i" '1 200' '0 200' # one connection
	same "$TMPDIR/n$i" "$TMPDIR/m$i"
	cmp "$TMPDIR/www/small" "$TMPDIR/s$i" || complain "s$i is another page"
done
# another worker comes: after a death, and after a reload
for signal in KILL HUP; do
	worker=$(pgrep -P "${pid[server-nginx]}")
	[ $signal = HUP ] && kill -HUP "${pid[server-nginx]}" || kill -$signal "$worker"
	wait_until 'the worker has ended' gone "$worker"
	on_h2 nginx-$signal curl -sS --retry 100 --retry-delay 0 --retry-max-time 60 --retry-connrefused \
		-o "$TMPDIR/k$signal" http://10.0.0.1:8080/page
	same "$TMPDIR/k$signal"
done
stop nginx

# ---- redis, with a child that saves
serve redis redis-server --bind 10.0.0.1 --port 6379 --protected-mode no --dir "$TMPDIR" --save ''
# shellcheck disable=SC2016
on_h2 redis sh -c 'redis-cli -h 10.0.0.1 -x set page < "$0"' "$TMPDIR/www/page"
on_h2 redis-save redis-cli -h 10.0.0.1 bgsave
on_h2 redis-many redis-benchmark -h 10.0.0.1 -c 50 -n 20000 -t set,get,lrange_100 -q
on_h2 redis-pipe redis-benchmark -h 10.0.0.1 -c 20 -n 50000 -P 16 -t set,get -d 1000 -q
on_h2 redis-get redis-cli -h 10.0.0.1 --raw get page
head -c -1 "$TMPDIR/client-redis-get.out" > "$TMPDIR/r1"
same "$TMPDIR/r1"
on_h2 redis-saved redis-cli -h 10.0.0.1 info persistence
expect_said client-redis-saved 'rdb_last_bgsave_status:ok.*'
stop redis

# ---- netcat and socat, either way
# shellcheck disable=SC2016
serve nc sh -c 'nc.openbsd -d -l 10.0.0.1 7000 > "$0"' "$TMPDIR/c1"
# shellcheck disable=SC2016
on_h2 nc sh -c 'nc.openbsd -N 10.0.0.1 7000 < "$0"' "$TMPDIR/www/page"
wait_ended server-nc 0
# shellcheck disable=SC2016
serve nc-back sh -c 'nc.openbsd -N -l 10.0.0.1 7000 < "$0"' "$TMPDIR/www/page"
# shellcheck disable=SC2016
on_h2 nc-back sh -c 'nc.openbsd -d 10.0.0.1 7000 > "$0"' "$TMPDIR/c2"
wait_ended server-nc-back 0
same "$TMPDIR"/c[12]
serve socat socat -u TCP-LISTEN:7001,bind=10.0.0.1,reuseaddr "CREATE:$TMPDIR/a1"
on_h2 socat socat -u "OPEN:$TMPDIR/www/page" TCP:10.0.0.1:7001
wait_ended server-socat 0
same "$TMPDIR/a1"

# ---- iperf3, by select
serve iperf3 iperf3 -s -1 -B 10.0.0.1
on_h2 iperf3 iperf3 -c 10.0.0.1 -n 50M -P 3
wait_ended server-iperf3 0
serve iperf3-reverse iperf3 -s -1 -B 10.0.0.1
on_h2 iperf3-reverse iperf3 -c 10.0.0.1 -n 50M -R
wait_ended server-iperf3-reverse 0

# ---- rsync: a child serves each connection, and the client forks with its own
mkdir "$TMPDIR"/{up,down}
for i in {1..50}; do echo "$i" > "$TMPDIR/www/$i"; done
cat > "$TMPDIR/rsyncd.conf" <<END
use chroot = no
address = 10.0.0.1
port = 8730
uid = $(id -u)
gid = $(id -g)
[www]
path = $TMPDIR/www
[up]
path = $TMPDIR/up
read only = no
END
serve rsync rsync --daemon --no-detach "--config=$TMPDIR/rsyncd.conf" --log-file=/dev/stderr
on_h2 rsync rsync -a rsync://10.0.0.1:8730/www/ "$TMPDIR/down"
on_h2 rsync-up rsync -a "$TMPDIR/www/" rsync://10.0.0.1:8730/up/
expect 0 '' diff -r "$TMPDIR/www" "$TMPDIR/down"
expect 0 '' diff -r "$TMPDIR/www" "$TMPDIR/up"
stop rsync

# ---- sshd: a program that a child becomes serves each connection. It wants more users than one.
if [ "$(wc -l < /proc/self/uid_map)" -gt 1 ] || grep -q 4294967295 /proc/self/uid_map; then
	mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd || exit 1
	for key in host id; do
		ssh-keygen -q -t ed25519 -N '' -f "$TMPDIR/$key" || exit 1
	done
	cat > "$TMPDIR/sshd.conf" <<-END
		ListenAddress 10.0.0.1
		Port 2222
		HostKey $TMPDIR/host
		AuthorizedKeysFile $TMPDIR/id.pub
		StrictModes no
		PermitRootLogin yes
		PidFile none
		UseDNS no
	END
	ssh=(ssh -F none -p 2222 -i "$TMPDIR/id" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null
		-o BatchMode=yes "$(id -un)@10.0.0.1")
	serve sshd /usr/sbin/sshd -D -e -f "$TMPDIR/sshd.conf"
	on_h2 sshd "${ssh[@]}" 'echo "a shell at the other end"'
	expect_said client-sshd 'a shell at the other end'
	# shellcheck disable=SC2016
	on_h2 sshd-down sh -c '"$@" > "$0"' "$TMPDIR/d1" "${ssh[@]}" "cat '$TMPDIR/www/page'"
	same "$TMPDIR/d1"
	stop sshd
fi

# ---- bash asks for names first
start_sockets client-bash h2 bash -c 'exec 3<> /dev/tcp/10.0.0.1/1'
wait_ended client-bash 1
expect_said client-bash '.*Connection refused'

segments=$(awk '/^Tcp:/ && n++ { print $12 }' /proc/net/snmp)
[ "$segments" -eq 0 ] || complain "TCP has carried something: $(cat /proc/net/snmp)"
