#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ibroute, dump_lfts and dump_mfts print the tables that `umbel show routes` and `umbel show
# groups` show; ibtracert follows them.

. "${0%/*}/lib.sh"

# "SWITCH LID PORT" of every entry, in the form of ibroute.
shown_routes()
{
	umbel show routes | awk 'NR > 1 { printf "%s 0x%04x %03d\n", $1, $2, $3 }' | sort
}

# From the form of ibroute, which dump_lfts has too: the heading names the switch.
routes()
{
	awk '/^Unicast/ { gsub(/[():]/, " "); sw = $NF }
	     /^0x.*:/ { print sw, $1, $2 }' | sort
}

# "SWITCH MLID PORT" of every port of the trees.
shown_trees()
{
	umbel show groups | awk '
		/^  MLID/ { mlid = $2 }
		/^  [a-z]/ { in_tree = $1 == "tree" }
		in_tree && /: port/ {
			sub(/^  tree/, "")
			sub(/:/, "")
			for (i = 3; i <= NF; i++)
				print $1, mlid, $i
		}' | sort
}

# The columns of ports are two characters wide; their numbers stand in the line "Ports:".
trees()
{
	awk '/^Multicast/ { gsub(/[():]/, " "); sw = $NF }
	     /^ *Ports:/ { at = index($0, "0") }
	     /^0x/ {
		for (port = 0; at + 2 * port <= length($0); port++)
			if (substr($0, at + 2 * port, 1) == "x")
				print sw, $1, port
	     }' | sort
}

umbel up --fat-tree 2 --radix 4 > /dev/null
switches=$(umbel show topology | awk '$2 == "switch" { print $1 }' | sort -u | wc -l)

shown_routes > "$TMPDIR/routes"
[ "$(wc -l < "$TMPDIR/routes")" -eq $((switches * (8 + switches))) ] ||
	complain "routes: $(cat "$TMPDIR/routes")"
diff "$TMPDIR/routes" <(umbel exec h1 -- dump_lfts 2> "$TMPDIR/warnings" | routes) ||
	complain "dump_lfts"
leaf=$(umbel exec h1 -- ibswitches | sed -n 's/.*"leaf2".* lid \([0-9]*\) .*/\1/p')
diff <(grep '^leaf2 ' "$TMPDIR/routes") <(umbel exec h1 -- ibroute "$leaf" | routes) ||
	complain "ibroute"

# two members on different leaves: one port of each leaf leads to them
for host in 3 7; do
	start "mckey$host" "h$host" mckey -m 239.1.1.1 -b "10.0.0.$host" -c 1
done
in_tables()
{
	[ "$(umbel exec h1 -- dump_mfts 2> "$TMPDIR/warnings" | trees |
		grep -c '^leaf[24] 0xc001 [12]$')" -eq 2 ]
}
wait_until "both members are in the tables" in_tables
shown_trees > "$TMPDIR/trees"
[ -s "$TMPDIR/trees" ] || complain "no trees: $(umbel show groups)"
diff "$TMPDIR/trees" <(umbel exec h1 -- dump_mfts 2> "$TMPDIR/warnings" | trees) ||
	complain "dump_mfts"
diff <(grep '^leaf2 ' "$TMPDIR/trees") <(umbel exec h1 -- ibroute -M "$leaf" | trees) ||
	complain "ibroute -M"

# the path of a packet: by a spine, along the tables; to the group by the tree
lid()
{
	umbel show topology | awk -v name="umbel_h$1_0" '$1 == name { print $6 }'
}
expect 0 $'From ca *"h3 umbel_h3_0"\n*switch port {*"leaf2"\n*"spine'[12]$'"\n*"leaf4"\n*
To ca *"h7 umbel_h7_0"' umbel exec h1 -- ibtracert "$(lid 3)" "$(lid 7)"
# From rdma-core 49 on ibtracert -m frees the nodes that it follows (valgrind shows it) and crashes.
version=$(ibtracert -V 2>&1 | sed -n 's/.* \([0-9]*\)\.[0-9.]*$/\1/p')
if [ "${version:-0}" -lt 49 ]; then
	expect 0 $'From ca *"h3 umbel_h3_0"\n*"leaf2"\n*"spine'[12]$'"\n*"leaf4"\n*
To ca *"h7 umbel_h7_0"' umbel exec h1 -- ibtracert -m 0xc001 "$(lid 3)" "$(lid 7)"
	expect 255 '*multicast route*' umbel exec h1 -- ibtracert -m 0xc001 "$(lid 3)" "$(lid 1)"
fi
