#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# opensm.sh PEER: a subnet whose subnet manager is Debian's OpenSM: it leads to the router by its prefix-routes.conf, and
# lets it join groups.

# shellcheck source=tests/router/lib.sh
. "$(dirname "$0")/lib.sh"

# OpenSM frees a MAD while another of its threads still sends it
export ASAN_OPTIONS=detect_leaks=0:intercept_send=0

subnet a 1 3 h3 --sm none
subnet b 2 3 h3
umbel router a b > /dev/null
printf '%s\n' 'subnet_prefix 0xfec0000000000001' "prefix_routes_file $TMPDIR/prefix-routes.conf" > "$TMPDIR/opensm.conf"
echo "0xfec0000000000002 $(umbel exec --name a h3 -- ibstat -p | head -n 1)" > "$TMPDIR/prefix-routes.conf"
launch opensm umbel exec --name a h2 -- opensm -F "$TMPDIR/opensm.conf" -f "$TMPDIR/opensm.log"
active() { umbel exec --name a h1 -- ibstat | grep -q 'State: Active'; }
wait_until 'OpenSM has the subnet up' active
wait_until 'a reaches b' reaches a h3 2 1

peer there b h1 receive 10
wait_until 'it is there' says_or_ended there here
read -r gid qpn <<< "$(sed -n 's/^here //p' "$TMPDIR/there.out")"
peer to a h1 send "$gid" "$qpn" 10
ended to || complain 'no answer from the other subnet'
ended there || complain 'the receiver has failed'
grep -q "^path lid $(of a lid) hops 255" "$TMPDIR/to.out" || complain 'the path does not lead to the router'

# OpenSM lets a port join, and writes the tables of the switches later: what is sent before that does not get there.
QUIET=500 peer group b h1 receive 10 ff1e::31
wait_until 'it has joined' says_or_ended group here
sends()
{
	peer sender a h1 group ff1e::31 10
	ended sender || { complain 'the sender has failed'; return; }
	gone "${pid[group]}"
}
wait_until 'the receiver has ten messages' sends
ended group || complain 'the receiver has failed'
grep -q '^message 0 from fec0::1:.* hops 254' "$TMPDIR/group.out" || complain 'it has none from a'
