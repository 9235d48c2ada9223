#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The options of mckey: connections, messages, sizes up to the MTU, without loopback, send-only.

. "${0%/*}/mckey.bash"

umbel up --hosts 3 > /dev/null

# How many connections, and what receivers and sender are called with.
sessions=(
	"1 -S 1"
	"1 -S 4095"
	"1 -S 4096"
	"1 -C 1"
	"1 -C 1000"
	"1 -C 1000 -S 4096"
	"1 -C 8000 -S 2048"
	"1 -l"
	"1 -l -p 0x2"
	"2 -c 2"
	"30 -c 30 -C 3"
	"3 -c 3 -l -S 2000"
)

for i in "${!sessions[@]}"; do
	for h in 1 2; do
		# shellcheck disable=SC2086
		receive "$i-h$h" h$h -m "239.1.2.$i" ${sessions[i]#* }
	done
done
receive one-way h1 -m 239.1.3.1 -C 20
for i in "${!sessions[@]}"; do
	for h in 1 2; do
		wait_joined "$i-h$h" "${sessions[i]%% *}"
	done
	# shellcheck disable=SC2086
	send "$i-h3" h3 -m "239.1.2.$i" ${sessions[i]#* }
done
wait_joined one-way
send one-way-sender h3 -m 239.1.3.1 -C 20 -o
# options of the sender alone
for options in "-l" "-o -l"; do
	name=sender${options// /}
	receive "$name-h1" h1 -m "239.1.4.${#options}"
	wait_joined "$name-h1"
	# shellcheck disable=SC2086
	send "$name" h3 -m "239.1.4.${#options}" $options
done
# who joins to send alone hears nothing, and waits for ever
receive deaf h2 -m 239.1.5.1 -o
wait_joined deaf
send to-deaf h3 -m 239.1.5.1
# nothing to send: it joins and leaves
receive no-messages h1 -m 239.1.3.2 -C 0
receive no-bytes h1 -m 239.1.3.3 -S 0

for i in "${!sessions[@]}"; do
	wait_complete "$i-h1" "$i-h2" "$i-h3"
done
wait_complete one-way one-way-sender sender-l sender-l-h1 sender-o-l sender-o-l-h1 to-deaf
not gone "${pid[deaf]}" || complain "a send-only member has ended: it has heard what was sent"
for name in no-messages no-bytes; do
	wait_ended $name 0
	expect_said $name 'mckey: joined dgid: ' 'return status 0'
done
