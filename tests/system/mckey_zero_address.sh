#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Who joins the zero address gets a group of its own, whose MGID the subnet administrator makes
# up; others reach it by that MGID.

. "${0%/*}/mckey.bash"

umbel up --hosts 4 > /dev/null

receive ipv4 h1 -m 0.0.0.0
receive unmapped h2 -M :: -b 10.0.0.2
for name in ipv4 unmapped; do
	wait_joined $name
	[[ $(joined $name) == ff12:a01b:* ]] || complain "made up: $(joined $name)"
	send to-$name h4 -M "$(joined $name)" -b 10.0.0.4
done
[ "$(joined ipv4)" != "$(joined unmapped)" ] || complain "the same group twice"
wait_complete to-ipv4 to-unmapped ipv4 unmapped
