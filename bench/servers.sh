#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# servers.sh [ROUNDS]: redis, nginx, iperf3, Python's http.server, rsync and sshd by TCP on lo, on rsockets
# (umbel exec --sockets) and by TCP on ib0, one after the other in each round, so that the machine is the same
# for all. By hand, with umbel on the PATH, as root; a minute a round. Prints a line for each: way, program, what
# it reached.

set -eu -o pipefail

rounds=${1:-3}
dir=$(mktemp -d)
chmod 755 "$dir"
export UMBEL_RUNTIME_DIR=$dir/run
PATH+=:/usr/sbin:/sbin
pids=() made=

clean_up()
{
	kill "${pids[@]}" 2> /dev/null || true
	umbel down > /dev/null 2>&1 || true
	rm -rf "$dir" "$made"
}
trap clean_up EXIT

mkdir -m 700 "$UMBEL_RUNTIME_DIR"
umbel up --hosts 2 --ipoib > /dev/null
head -c 100000000 /dev/urandom > "$dir/page"

# sshd's key and that of its client, who is root
[ -d /run/sshd ] || { mkdir /run/sshd && made=/run/sshd; } # which it wants
for key in host id; do
	ssh-keygen -q -t ed25519 -N '' -f "$dir/$key"
done

# serve_files ADDRESS: the page, by http.server, rsync and sshd; started as ${server[@]} says
serve_files()
{
	cat > "$dir/rsyncd.conf" <<-END
		use chroot = no
		address = $1
		port = 8730
		uid = 0
		gid = 0
		[page]
		path = $dir
	END
	cat > "$dir/sshd.conf" <<-END
		ListenAddress $1
		Port 2222
		HostKey $dir/host
		AuthorizedKeysFile $dir/id.pub
		StrictModes no
		PermitRootLogin yes
		PidFile none
		UseDNS no
	END
	"${server[@]}" python3 -m http.server --bind "$1" --directory "$dir" 8000 > /dev/null 2>&1 &
	pids+=($!)
	"${server[@]}" rsync --daemon --no-detach "--config=$dir/rsyncd.conf" --log-file=/dev/null &
	pids+=($!)
	"${server[@]}" /usr/sbin/sshd -D -f "$dir/sshd.conf" &
	pids+=($!)
}

# timed WAY NAME COMMAND...: which gets the page
timed()
{
	local begin=${EPOCHREALTIME/[.,]/}

	"${@:3}" > /dev/null
	awk -v way="$1" -v name="$2" -v us=$((${EPOCHREALTIME/[.,]/} - begin)) \
		'BEGIN { printf "%s\t%s, 100 MB\t%.0f MB/s\n", way, name, 1e8 / us }'
}

# get_files WAY ADDRESS: as ${client[@]} says
get_files()
{
	local ssh=(ssh -F none -p 2222 -i "$dir/id" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null
		-o BatchMode=yes -o LogLevel=error "$2")

	until "${client[@]}" curl -s --head --output /dev/null "http://$2:8000/page" &&
		"${client[@]}" rsync "rsync://$2:8730/" > /dev/null 2>&1 && "${client[@]}" "${ssh[@]}" true 2> /dev/null; do
		sleep 0.1
	done
	timed "$1" http.server "${client[@]}" curl -sS --output /dev/null "http://$2:8000/page"
	rm -f "$dir/copy"
	timed "$1" rsync "${client[@]}" rsync "rsync://$2:8730/page/page" "$dir/copy"
	cmp "$dir/page" "$dir/copy"
	timed "$1" sshd "${client[@]}" "${ssh[@]}" cat "$dir/page"
}

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
	serve_files "$address"
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
	get_files "$way" "$address"
	kill "${pids[@]}" 2> /dev/null || true
	wait "${pids[@]}" 2> /dev/null || true
}

for ((i = 0; i < rounds; i++)); do
	measure lo 127.0.0.1
	measure rsockets 10.0.0.1 --net host --sockets
	measure ib0 10.0.0.1
done
