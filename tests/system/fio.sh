#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# fio's rdma engine writes, reads and sends. Its server is a job that reads, its client one that
# writes, whatever the verb is. Messages carry a checksum and a pattern, which the server verifies.
#
# fio retries nothing when no receive is posted. Its client waits half a second for the server to
# post them; a busy machine may need longer. Such a pair is started anew.

. "${0%/*}/rdmacm.bash"

cd "$TMPDIR" || exit # fio keeps a file of what it could not verify
umbel up --hosts 2 > /dev/null

# end NAME: by force, with the processes of its jobs.
end()
{
	pkill -9 -P "${pid[$1]}"
	kill -9 "${pid[$1]}"
	wait "${pid[$1]}"
	ended[$1]=137
} 2> /dev/null

not_ready_or_gone()
{
	says "$1" 'fio: cq completion status 13(RNR' || gone "${pid[$1]}"
}

# ask NAME OPTION...: the client, until it has ended. Nonzero: the server was not ready.
ask()
{
	local name=$1
	shift
	start "client-$name" h2 fio "$@"
	wait_until "client-$name ends" not_ready_or_gone "client-$name"
	says "client-$name" 'fio: cq completion status 13(RNR' || return 0
	end "client-$name"
	end "server-$name"
	return 1
}

# try NAME [SERVER_OPTION...] -- [CLIENT_OPTION...]: as ask, with its server.
try()
{
	local name=$1 server=()
	shift
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	serve_cm "$name" h1 fio "${engine[@]}" --rw=read "${server[@]}"
	ask "$name" "${engine[@]}" --rw=write --hostname=10.0.0.1 "$@"
}

# pair NAME SERVER_STATUS [SERVER_OPTION...] -- [CLIENT_OPTION...]
pair()
{
	local name=$1 status=$2
	shift 2
	wait_until "$name is in time" try "$name" "$@"
	wait_ended "client-$name" 0
	wait_ended "server-$name" "$status"
	expect_said "client-$name" ".*err= 0: " ' *issued rwts: total=0,[0-9]*,0,0 short=0,0,0,0'
}

new_port
engine=(--name=job --ioengine=rdma --port="$port" --bs=4k --thread)
for verb in write read; do
	pair $verb 0 --size=4m --iodepth=16 -- --verb=$verb --size=4m --iodepth=16
	expect_said client-$verb ' *issued rwts: total=0,1024,'
done
pair large 0 --size=64m --iodepth=4 --bs=1m -- --verb=write --size=64m --iodepth=4 --bs=1m

# ---- every message finds a receive: the server posts all of them at first
sends=(--verb=send --size=1m --iodepth=16)
receives=(--size=1m --iodepth=256)
pair send 0 "${receives[@]}" -- "${sends[@]}"
expect_said server-send ' *issued rwts: total=256,0,0,0'
for sum in crc32c sha256; do
	pair verify-$sum 0 "${receives[@]}" --verify=$sum -- "${sends[@]}" --verify=$sum --do_verify=0
	expect_said server-verify-$sum ' *issued rwts: total=256,0,0,0' '.*err= 0: '
done
pattern=(--verify=pattern --verify_pattern=0x6d656c75)
pair pattern 0 "${receives[@]}" "${pattern[@]}" -- "${sends[@]}" "${pattern[@]}" --do_verify=0
# the server does look
pair spoilt 1 "${receives[@]}" --verify=crc32c -- "${sends[@]}"
expect_said server-spoilt 'verify: bad magic header'

# ---- several jobs at once, processes of their own
jobs=()
for name in first second third; do
	new_port
	jobs+=(--name="$name" --port="$port")
done
engine=(--name=global --ioengine=rdma --bs=4k --size=1m --iodepth=16)
all_listen()
{
	listen 3 || gone "${pid[server-several]}"
}
several()
{
	wait_until 'earlier servers have ended' listen 0
	start server-several h1 fio "${engine[@]}" --rw=read "${jobs[@]}"
	wait_until 'three servers listen' all_listen
	ask several "${engine[@]}" --rw=write --hostname=10.0.0.1 "${jobs[@]}"
}
wait_until 'three jobs are in time' several
wait_ended client-several 0
wait_ended server-several 0
for name in first second third; do
	expect_said client-several "$name: .*err= 0: "
	expect_said server-several "$name: .*err= 0: "
done

expect 1 "*RDMA network IO can't be random*" umbel exec h2 -- fio --name=job --ioengine=rdma \
	--port="$port" --hostname=10.0.0.1 --size=1m --rw=randread
