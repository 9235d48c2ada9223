#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Requests of all kinds between two machines, by RC and UC, over a bad cable: at both of its ends what each
# host sends, and what reaches it, is captured, and held against the rules of the protocol (check_wire.py). All
# packets are sound, and all opcodes of RC and UC are seen.

. "${0%/*}/lab.sh"
. "${0%/*}/crossing.bash"

rounds=${1:-6}

lab_up 2
# packets that wait for the neighbour's address are overtaken by those behind them
ip -n h1 neighbour replace 192.0.2.2 lladdr 02:00:00:00:00:02 dev eth0 nud permanent
ip -n h2 neighbour replace 192.0.2.1 lladdr 02:00:00:00:00:01 dev eth0 nud permanent
cross
cable
# what is sent again has a reason in the packets
for host in h1 h2; do
	umbel_on $host up --roce eth0 --set roce_adp_retrans=0 --set roce_selective_repeat=0 > /dev/null || exit 1
done
unplug

# begin_capture HOST: at its end of the cable.
begin_capture()
{
	launch "capture-$1" dumpcap -q -p -P -B 64 -i "$1" -w "$TMPDIR/$1.pcap"
	wait_said "capture-$1" 'File: ' || exit 1
}

# end_capture HOST: it has all that has passed so far, and nothing is missing.
end_capture()
{
	on h1 bash -c "echo 'the end of $1' > /dev/udp/192.0.2.2/9"
	wait_until "the capture of $1 is written" grep -qaF "the end of $1" "$TMPDIR/$1.pcap"
	kill -INT "${pid[capture-$1]}"
	wait_ended "capture-$1" 0
	grep -q "dropped on interface '*$1'*: [0-9]*/0 " "$TMPDIR/capture-$1.out" ||
		complain "of what was to be captured at $1 some is missing"
}

# count NAME: what check_wire.py has counted.
count()
{
	sed -n "s/^$1: //p" "$TMPDIR/check.out"
}

cable drop=3 duplicate=2 reorder=2
begin_capture h1
begin_capture h2
as()
{
	program=(env UMBEL_FABRIC="$1" ip netns exec "$1" "${without_privileges[@]}" umbel exec --
		"$programs_dir/roce.puppet" "$2")
}
as h1 192.0.2.2
first=("${program[@]}")
as h2 192.0.2.1
launch all ip netns exec h1 python3 -B "${0%/*}/wire_all.py" "$TMPDIR/pairs" 192.0.2.1 192.0.2.2 "$rounds" , \
	"${first[@]}" , "${program[@]}"
wait_ended all 0
expect_said all 'all requests are done'
end_capture h1
end_capture h2
unplug
[ $failed -eq 0 ] || exit 1

for host in h1 h2; do
	expect_sound $host
done
python3 -B "${0%/*}/check_wire.py" "$TMPDIR/pairs" 192.0.2.1 "$TMPDIR/h1.pcap" 192.0.2.2 "$TMPDIR/h2.pcap" \
	> "$TMPDIR/check.out" 2>&1 || complain "$(cat "$TMPDIR/check.out")"
cat "$TMPDIR/check.out"

# what it was to see has happened
for name in 'sequence naks' 'implied naks' timeouts 'gaps told' 'requests again' 'responses again'; do
	[ "$(count "$name")" ] || complain "there were no $name"
done

# Notifications, that the cable spares: as many reach h2 as have left the script on h1, and are counted there.
# Umbel sends none.
[ "$(count notifications)" = "$rounds" ] || complain "$(count notifications) notifications reach h2"
[ "$(count 'notifications sent')" = "$rounds" ] || complain "$(count 'notifications sent') notifications were sent"
ignored()
{
	umbel_on h2 show counters --json | grep -q "\"rp_cnp_ignored\": $rounds\b"
}
wait_until "h2 has counted $rounds notifications" ignored
