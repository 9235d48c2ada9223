#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A program on h3 asks h1's interface for connections as no interface does (asker.c): with bad private
# data, hundreds of times, to send what is no packet, and to say that h2's addresses are somewhere else.
# h1 and h2 talk on by theirs, and h1 keeps few of h3's.

. "${0%/*}/lab.sh"

lab_up 3
mode=connected
held_interface h1
held_interface h2

wait_until "h1 knows where 2001:db8::2 is" reaches h1 2001:db8::2
pings 3 h1 -i 0.01 2001:db8::2
pings 3 h1 -i 0.01 -M 'do' -s 60000 192.0.2.2
expect 0 '1 1 2' status h1 "s['n_outgoing'], s['n_incoming'], s['counters']['connections_made']"

# ask WHAT: of h1, while it talks to h2
ask()
{
	start "$1" h3 "$programs_dir/ipoib.asker" "$1" "$(status h1 "s['gid']")" "$(status h1 "s['qpn']")"
	pings 50 h1 -i 0.01 -M 'do' -s 60000 192.0.2.2
	pings 50 h2 -i 0.01 192.0.2.1
	wait_ended "$1" 0
}
count()
{
	status h1 "s['counters']['$1']"
}

ask bad
expect 0 7 count connections_refused
expect 0 '1 1' status h1 "s['n_outgoing'], s['n_incoming']"

ask many
expect_said many 'many: done, 3[89][0-9] were ended'
[ "$(status h1 "s['n_incoming']")" -le 9 ] || complain "$(status h1 "s['n_incoming']") connections"
alone()
{
	[ "$(status h1 "s['n_outgoing'], s['n_incoming']")" = '1 1' ]
}
wait_until "those of a program that has ended are gone" alone

ask garbage
wait_until "they are gone" alone
[ "$(count short_packets)" -ge 100 ] && [ "$(count unknown_types)" -eq 0 ] ||
	complain "$(status h1 "s['counters']")"

# ---- it says that h2 is somewhere else; and where another address is, which may be true
spoofed=$(count spoofed)
start claims h3 "$programs_dir/ipoib.asker" claims "$(status h1 "s['gid']")" "$(status h1 "s['qpn']")"
wait_said claims 'has said it'
unknown_seen()
{
	[ "$(count unknown_types)" -eq 1 ]
}
wait_until "h1 has got it" unknown_seen
for address in 192.0.2.2 2001:db8::2; do
	expect 0 "$(status h2 "s['qpn'], s['gid']")" status h1 \
		"*[n[k] for n in s['neighbours'] if n['ip'] == '$address' for k in ('qpn', 'gid')]"
done
expect 0 $((spoofed + 8)) count spoofed
expect 0 1 status h1 "sum(n['ip'] == '192.0.2.9' for n in s['neighbours'])"

kill "${pid[claims]}"
wait_ended claims 143
wait_until "its connection is gone" alone

# the same connection as ever
expect 0 connected status h1 "*[n['mode'] for n in s['neighbours'] if n['ip'] == '192.0.2.2']"
expect 0 '1 1' status h1 "s['n_outgoing'], s['n_incoming']"

# ---- h3's interface is gone, and another listens in its place
interface h3
pings 1 h1 -s 60000 192.0.2.3
gid=$(status h1 "*[n['gid'] for n in s['neighbours'] if n['ip'] == '192.0.2.3']")
qpn=$(status h1 "*[n['qpn'] for n in s['neighbours'] if n['ip'] == '192.0.2.3']")
kill_hard ib0-h3 2> /dev/null
start posing h3 "$programs_dir/ipoib.asker" posing "$gid" "$qpn"
wait_said posing listens
tell()
{
	on h1 ping -n -q -c 1 -W 0.1 192.0.2.3 > /dev/null
	says posing "$1"
}
wait_until "what it offers is refused" tell 'was refused'
wait_until "it is asked again" tell 'is connected'
expect 1 '*mtu*2000*' on h1 ping -n -c 1 -w 200 -M 'do' -s 60000 192.0.2.3
launch_on flood h1 ping -n -q -f -c 5000 -w 200 192.0.2.3
pings 50 h1 -i 0.01 -M 'do' -s 60000 192.0.2.2
wait_ended posing 0 # it took nothing, so h1 has disconnected
pings 50 h1 -i 0.01 -M 'do' -s 60000 192.0.2.2
