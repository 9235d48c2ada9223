#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A program on h3 sends bad packets to h1's interface: short ones, unknown types, random bytes, and ARP
# and neighbour discovery that say that h2's addresses are somewhere else. h1 and h2 talk on, h1
# knows h2 as before, and its table does not grow without bound. UMBEL_FUZZ_SECONDS: how long.

. "${0%/*}/lab.sh"

lab_up 4
held_interface h1
held_interface h2
held_interface h3

pings 3 h1 -i 0.01 192.0.2.2
wait_until "h1 knows where 2001:db8::2 is" reaches h1 2001:db8::2
pings 3 h1 -i 0.01 2001:db8::2
victim=$(status h2 "s['qpn'], s['gid']")
# expect_victim: h1 knows where h2's addresses are
expect_victim()
{
	for address in 192.0.2.2 2001:db8::2; do
		expect 0 "$victim" status h1 \
			"*[n[k] for n in s['neighbours'] if n['ip'] == '$address' for k in ('qpn', 'gid')]"
	done
}
expect_victim

# ---- one of each, without a GRH: they are where nobody is, or at a port to which h1 knows no path
claims=0
claim_seen()
{
	[ "$(status h1 "s['counters']['unknown_types']")" -eq "$claims" ]
}
for gid in fe80::1234 "$(status h3 "s['gid']")"; do
	expect 0 '' umbel exec h4 -- "$programs_dir/ipoib.forge" "$(status h1 "s['lid']")" \
		"$(status h1 "s['qpn']")" "$(status h1 "s['gid']")" "$gid"
	((++claims))
	wait_until "h1 has got them" claim_seen
	expect_victim
done

# ---- many
seconds=${UMBEL_FUZZ_SECONDS:-2}
deadline=$((deadline + seconds))
patience=$((patience + seconds))
start forge h3 "$programs_dir/ipoib.forge" "$(status h1 "s['lid']")" "$(status h1 "s['qpn']")" \
	"$(status h1 "s['gid']")" "$(status h2 "s['gid']")" "$seconds"
pings 100 h1 -i 0.01 192.0.2.2
pings 100 h2 -i 0.01 2001:db8::1
wait_ended forge 0

pings 3 h1 -i 0.01 192.0.2.2
pings 3 h1 -i 0.01 2001:db8::2
expect_victim
for counter in short_packets unknown_types bad_resolutions spoofed resolved; do
	[ "$(status h1 "s['counters']['$counter']")" -ge 10 ] ||
		complain "$counter: $(status h1 "s['counters']")"
done
[ "$(status h1 "s['n_neighbours']")" -le 4096 ] || complain "too many neighbours"
expect 0 up status h1 "s['state']"
