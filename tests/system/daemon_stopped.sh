#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A daemon that is stopped, before a command comes and while one runs: the command says so, and ends when it should.

. "${0%/*}/lib.sh"

silent()
{
	echo "umbel: fabric '$1' does not answer: its daemon is stopped or stuck; 'umbel down --name $1' ends it"
}

# ---- before
for name in able baker charlie; do
	umbel up --name $name --hosts 2 > /dev/null || complain "no fabric $name"
done
daemon=$(field pid baker)
kill -STOP "$daemon"
expect 1 "$(silent baker)"$'\nNAME *\nable *\ncharlie *' umbel status
expect 1 "$(silent baker)" umbel status --name baker
expect 1 "$(silent baker)" umbel up --name baker
expect 0 "fabric 'able' is down" umbel down --name able
expect 0 "fabric 'charlie' is down" umbel down --name charlie
expect 1 "$(silent baker)" umbel status
expect 1 "$(silent baker)"$'\n[[]*]' umbel status --json
kill -CONT "$daemon"
expect 0 $'NAME *\nbaker *' umbel status

# ---- while a command runs
# stop_while NAME LINE COMMAND...: the daemon is stopped once the command has said the line.
stop_while()
{
	local name=$1 line=$2
	shift 2
	launch "$name" "$@"
	wait_said "$name" "$line" && kill -STOP "$daemon"
}

export UMBEL_FABRIC=baker
stop_while capture 'umbel: capturing' umbel capture --output "$TMPDIR/capture.pcapng"
kill -TERM "${pid[capture]}"
wait_ended capture 1
expect_said capture 'umbel: 0 packets captured, 0 lost' "umbel: fabric 'baker' does not answer: what .* is missing"
kill -CONT "$daemon"
# shellcheck disable=SC2016
expect 0 '' sh -c 'tshark -r "$TMPDIR/capture.pcapng" 2> /dev/null'

stop_while watch 'HOST' umbel show --watch 1 hosts
wait_ended watch 1
expect_said watch "$(silent baker)"
kill -CONT "$daemon"

# If it is stopped before they have greeted each other, that is what fails, and the reason nearly the same.
launch wait umbel wait --group ff12::1 --timeout 10
is_connected()
{
	gone "${pid[wait]}" || readlink "/proc/${pid[wait]}/fd/"* | grep -q socket:
}
wait_until 'it is connected' is_connected
expect 0 '*' umbel status
kill -STOP "$daemon"
wait_ended wait 1
expect_said wait 'umbel: .*it*s* .*is stopped or stuck'
kill -CONT "$daemon"

# ---- one that ends
launch watch umbel show --watch 1 hosts
wait_said watch HOST
umbel down > /dev/null
wait_ended watch 1
expect_said watch "umbel: no fabric 'baker' is up in"
