#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# fio's rdma engine writes, reads and sends. Its server is a job that reads, its client one that
# writes, whatever the verb is. Messages carry a checksum and a pattern, which the server verifies.

. "${0%/*}/fio.bash"

umbel up --hosts 2 > /dev/null

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
	start server-several $server_host fio "${engine[@]}" --rw=read "${jobs[@]}"
	wait_until 'three servers listen' all_listen
	ask several "${engine[@]}" --rw=write --hostname=$address "${jobs[@]}"
}
wait_until 'three jobs are in time' several
wait_ended client-several 0
wait_ended server-several 0
for name in first second third; do
	expect_said client-several "$name: .*err= 0: "
	expect_said server-several "$name: .*err= 0: "
done

expect 1 "*RDMA network IO can't be random*" umbel exec h2 -- fio --name=job --ioengine=rdma \
	--port="$port" --hostname=$address --size=1m --rw=randread
