#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A guest of QEMU migrates over RDMA (rdma:HOST:PORT) from one host to another. It writes the alphabet
# to its serial port, again and again: what it writes on the other host goes on where it left off. Its
# memory, 8 MiB of it random, arrives unchanged.

. "${0%/*}/rdmacm.bash"

umbel up --hosts 2 > /dev/null
cd "$TMPDIR" || exit

# The boot sector: when the port is ready (bit 5 of 0x3fd), writes the next letter (0x3f8).
code='\xb3\x61\xba\xfd\x03\xec\xa8\x20\x74\xf8\xba\xf8\x03\x88\xd8\xee\xfe\xc3\x80\xfb\x7b\x75\xeb\xeb\xe7'
# shellcheck disable=SC2059 # it is the format that has the bytes
{ printf "$code"; head -c $((510 - ${#code} / 4)) /dev/zero; printf '\x55\xaa'; } > boot
head -c 8M /dev/urandom > memory
boot=if=floppy,format=raw,file.filename=boot,file.locking=off,readonly=on

# guest NAME HOST OPTION...
guest()
{
	local name=$1 host=$2
	shift 2
	start "$name" "$host" qemu-system-x86_64 -accel tcg -m 48 -display none -nodefaults \
		-drive "$boot" -boot a -serial "file:$name.serial" \
		-monitor "unix:$name.monitor,server,nowait" "$@"
}

# tell NAME COMMAND: what its monitor says.
tell()
{
	{ echo "$2"; sleep 0.3; } | socat -t 10 - "unix:$1.monitor" | tr -d '\r'
}

# status_is NAME COMMAND TEXT
status_is()
{
	[[ $(tell "$1" "$2") == *"$3"* ]]
}

has_written()
{
	[ -e "$1.serial" ] && [ "$(wc -c < "$1.serial")" -ge "$2" ]
}

is_listening()
{
	listen 1 || gone "${pid[to]}"
}

guest to h2 -incoming rdma:10.0.0.2:4444
wait_until 'the other host waits for it' is_listening
guest from h1 -device loader,file=memory,addr=0x1000000,force-raw=on
wait_until 'it runs' has_written from 100
tell from 'migrate -d rdma:10.0.0.2:4444' > /dev/null
wait_until 'it has gone' status_is from 'info migrate' 'Migration status: completed'
status_is from 'info status' 'paused (postmigrate)' || complain 'it still runs where it was'
wait_until 'it goes on' has_written to 100
status_is to 'info status' 'running' || complain 'it does not run'

tell to 'pmemsave 0x1000000 0x800000 "arrived"' > /dev/null
wait_until 'its memory is written' status_is to 'info status' running
cmp memory arrived || complain 'its memory has changed'
# the alphabet again and again, also where one host's output ends and the other's begins
{ tail -c 2000 from.serial; head -c 2000 to.serial; } > seam
for ((i = 0; i < 200; i++)); do
	printf abcdefghijklmnopqrstuvwxyz
done > alphabets
grep -qF "$(cat seam)" alphabets ||
	complain "it does not go on where it was: $(tail -c 40 from.serial) $(head -c 40 to.serial)"
tell from quit > /dev/null
tell to quit > /dev/null
wait_ended from 0
wait_ended to 0
