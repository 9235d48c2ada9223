#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel link`, `umbel switch`, `umbel sm`: what they do shows in `umbel show`, and what cannot be
# done is said in a line that names what is wrong, and what there is.

. "${0%/*}/lib.sh"

umbel up --hosts 3 > /dev/null

# ports NODE: the states of its ports, as `umbel show topology` has them
ports()
{
	umbel show topology | awk -v node="$1" '$1 == node { printf "%s%s:%s", n++ ? " " : "", $4, $5 }'
}

routes=$(umbel show routes)
hosts=$(umbel show hosts)

expect 0 '1:active 2:active 3:active' ports sw1
expect 0 '' umbel link down sw1:2
expect 0 '1:active 2:down 3:active' ports sw1
expect 0 '1:down' ports umbel_h2_0
expect 1 'umbel: the link at h2:1 is down already' umbel link down h2:1
expect 0 '' umbel link up umbel_h2_0:1
expect 0 '1:active 2:active 3:active' ports sw1
expect 1 'umbel: the link at sw1:2 is up already' umbel link up sw1:2
expect 0 "$routes" umbel show routes
expect 0 "$hosts" umbel show hosts

expect 0 '' umbel link down h3:1
expect 0 '' umbel switch kill sw1
expect 0 '1:down 2:down 3:down' ports sw1
expect 1 "umbel: switch 'sw1' is dead already" umbel switch kill sw1
expect 1 "umbel: the link at h1:1 cannot come up: switch 'sw1' is dead" umbel link up h1:1
expect 0 '' umbel switch revive sw1
expect 1 "umbel: switch 'sw1' is alive already" umbel switch revive sw1
expect 0 '1:active 2:active 3:down' ports sw1
expect 1 'umbel: h3:1 is not active' umbel sm event lid-change h3:1
expect 0 '' umbel link up h3:1
expect 0 "$routes" umbel show routes
expect 0 "$hosts" umbel show hosts

expect 1 "umbel: no node 'h9': there are h1 h2 h3 sw1" umbel link down h9:1
expect 1 "umbel: 'sw1' has no port 99: it has ports 1 to *" umbel link down sw1:99
expect 1 "umbel: 'sw1' has no port 0: it has ports 1 to *" umbel link up sw1:0
expect 1 "umbel: 'h1' has no port 2: it has port 1" umbel link up h1:2
expect 1 'umbel: nothing is plugged in at sw1:4' umbel link down sw1:4
expect 1 "umbel: no switch 'sw9': there are sw1" umbel switch kill sw9
expect 1 "umbel: 'h1' is no switch: there are sw1" umbel switch kill h1
expect 1 'umbel: sw1:1 is no port of a host' umbel sm event client-reregister sw1:1
long=$(printf '%0200d' 0)
expect 1 "umbel: no node '*': there are h1 h2 h3 sw1" umbel link down "$long:1"

expect 2 "umbel: link: 'down' or 'up'?; see *" umbel link
expect 2 "umbel: link: 'down' or 'up', not 'cut'; see *" umbel link cut h1:1
expect 2 'umbel: link: which? write NODE:PORT, as in sw1:3; see *' umbel link down
expect 2 "umbel: link: one port at a time, not 'h2:1' too; see *" umbel link down h1:1 h2:1
for port in h1 h1: :1; do
	expect 2 "umbel: link: '$port' is no port: write NODE:PORT, *" umbel link down "$port"
done
for number in x 1x -1 99999999999999999999; do
	expect 2 "umbel: link: '$number' in 'h1:$number' is no number *" umbel link down "h1:$number"
done
expect 2 "umbel: switch: 'kill' or 'revive'?; see *" umbel switch
expect 2 "umbel: switch: 'kill' or 'revive', not 'down'; see *" umbel switch down sw1
expect 2 'umbel: switch: which switch?; see *' umbel switch kill
expect 2 "umbel: switch: one switch at a time, not 'sw2' too; see *" umbel switch kill sw1 sw2
expect 2 'umbel: sm: write: start, stop, partitions FILE or event EVENT; see *' umbel sm
expect 2 'umbel: sm: which? lid-change, client-reregister or sm-change; see *' umbel sm event
expect 2 "umbel: sm: no 'coup': there are *" umbel sm event coup
expect 2 'umbel: sm: which port? write HOST:PORT, as in h2:1; see *' umbel sm event lid-change
expect 2 "umbel: sm: sm-change takes no 'h1:1'; see *" umbel sm event sm-change h1:1

expect 0 "$routes" umbel show routes
expect 1 "umbel: no fabric 'other' is up in *" umbel link -n other down h1:1
