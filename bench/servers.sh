#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# servers.sh [ROUNDS]: redis, nginx and iperf3 by TCP on lo, on rsockets (umbel exec --sockets) and by
# TCP on ib0, one after the other in each round, so that the machine is the same for all. By hand, with
# umbel on the PATH, as root; a minute a round. Prints a line for each: way, program, what it reached.

set -eu -o pipefail

rounds=${1:-3}
dir=$(mktemp -d)
chmod 755 "$dir"
export UMBEL_RUNTIME_DIR=$dir/run
PATH+=:/usr/sbin:/sbin
pids=()

clean_up()
{
	kill "${pids[@]}" 2> /dev/null || true
	umbel down > /dev/null 2>&1 || true
	rm -rf "$dir"
}
trap clean_up EXIT

mkdir -m 700 "$UMBEL_RUNTIME_DIR"
umbel up --hosts 2 --ipoib > /dev/null
head -c 100000000 /dev/urandom > "$dir/page"

# measure WAY ADDRESS OPTION...: of umbel exec, unless on lo.
measure()
{
	local way=$1 address=$2 server=() client=() options
	[ "$way" = lo ] || server=(umbel exec "${@:3}" h1 --) client=(umbel exec "${@:3}" h2 --)
	cat > "$dir/nginx.conf" <<-END
		user $(id -un);
		daemon off;
		pid $dir/nginx.pid;
		error_log /dev/null;
		events { worker_connections 500; }
		http { access_log off; sendfile on; server { listen $address:8080; root $dir; } }
	END
	"${server[@]}" redis-server --bind "$address" --port 6390 --protected-mode no --save '' > /dev/null &
	pids=($!)
	"${server[@]}" nginx -c "$dir/nginx.conf" &
	pids+=($!)
	"${server[@]}" iperf3 -s -1 -B "$address" > /dev/null &
	pids+=($!)
	until "${client[@]}" curl -s --head --output /dev/null "http://$address:8080/page"; do
		sleep 0.1
	done
	until "${client[@]}" redis-cli -h "$address" -p 6390 ping > /dev/null 2>&1; do
		sleep 0.1
	done
	for options in '-c 1 -n 20000' '-c 20 -n 60000' '-c 20 -P 16 -n 300000'; do
		# shellcheck disable=SC2086 # several words
		"${client[@]}" redis-benchmark -h "$address" -p 6390 -t get -q $options | tr '\r' '\n' |
			sed -n "s/.*GET: \([0-9.]*\) requests per.*/$way	redis $options	\1 \/s/p"
	done
	"${client[@]}" iperf3 -c "$address" -t 2 | awk -v way="$way" '/receiver/ { print way "\tiperf3\t" $7 " " $8 }'
	"${client[@]}" curl -sS --output /dev/null -w "$way	nginx, 100 MB	%{speed_download} B/s\n" \
		"http://$address:8080/page"
	kill "${pids[@]}" 2> /dev/null || true
	wait "${pids[@]}" 2> /dev/null || true
}

for ((i = 0; i < rounds; i++)); do
	measure lo 127.0.0.1
	measure rsockets 10.0.0.1 --net host --sockets
	measure ib0 10.0.0.1
done
