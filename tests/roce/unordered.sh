#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Lost, repeated and reordered datagrams: a UD queue pair receives what arrives, as often as it
# arrives, in that order, whatever the sequence numbers. Each length, with and without immediate.

. "${0%/*}/lab.sh"

lab_up 2
roce_up h2
start_on receiver h2 "$programs_dir/roce.receiver" umbel_eth0
wait_said receiver 'qpn ' || exit 1
qpn=$(sed -n 's/^qpn //p' "$TMPDIR/receiver.out")

for psn in 5 6 6 2 0xfffffe 0 9; do
	on h1 "$programs_dir/roce.forge" 192.0.2.1 192.0.2.2 qpn="$qpn" psn=$psn
	on h1 "$programs_dir/roce.forge" 2001:db8::1 2001:db8::2 qpn="$qpn" psn=$psn size=65 \
		opcode=0x65
done
wait_said receiver '65 bytes from 0x1234 with 0x0: message 9'
got=$(sed -n 's/^64 bytes.*message //p' "$TMPDIR/receiver.out" | paste -sd' ')
[ "$got" = "5 6 6 2 16777214 0 9" ] || complain "over IPv4 it received $got"
got=$(sed -n 's/^65 bytes.*message //p' "$TMPDIR/receiver.out" | paste -sd' ')
[ "$got" = "5 6 6 2 16777214 0 9" ] || complain "over IPv6 it received $got"
