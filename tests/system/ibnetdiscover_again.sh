#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What ibnetdiscover prints of a fabric loads again as a topology: the same nodes, GUIDs, links
# and rates, and from there ibnetdiscover prints the same.

. "${0%/*}/lib.sh"

# Nodes and cables; LIDs, which are the subnet manager's to give, left out.
plan()
{
	umbel show topology | awk 'NR > 1 { print $1, $2, $3, $4, $5, $7, $9, $10 }' | sort
}

discover()
{
	umbel exec "$1" -- ibnetdiscover | sed '/^#/d; s/ lid [0-9]*//g; s/ lmc [0-9]*//g' | sort
}

umbel up --fat-tree 2 --radix 6 --hosts 11 > /dev/null
plan > "$TMPDIR/plan"
discover h1 > "$TMPDIR/discovered"
umbel exec h7 -- ibnetdiscover > "$TMPDIR/fabric.net"
umbel down > /dev/null

umbel up --topology "$TMPDIR/fabric.net" > /dev/null
[ "$(grep -c spine "$TMPDIR/plan")" -eq 24 ] ||
	complain "no fat tree: $(cat "$TMPDIR/plan")"
diff "$TMPDIR/plan" <(plan) || complain "the topology is not the same"
diff "$TMPDIR/discovered" <(discover h1) || complain "ibnetdiscover does not print the same"
