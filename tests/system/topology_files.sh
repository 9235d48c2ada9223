#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel up --topology`: the examples that come with ibsim, and what a fabric of one is made of.

. "${0%/*}/lib.sh"

examples=/usr/share/doc/ibsim-utils/net-examples

# up_with FILE HOSTS
up_with()
{
	expect 0 "fabric 'default' is up: $2 hosts, daemon pid *" umbel up --topology "$1"
}

# cables: "NODE/PORT PEER/PORT" of each end that has a link, in order.
cables()
{
	umbel show topology | awk 'NR > 1 { print $1 "/" $4, $7 }' | sort | tr '\n' ';'
}

# Whether each cable of the file, in ibsim's short form, is there, and no other. HCAs are umbel_X_0.
same_cables()
{
	local want

	want=$(awk '
		/^(Switch|Hca)/ { split($0, q, "\""); node = q[2]; if (/^Hca/) hca[node] = 1 }
		/^\[/ { gsub(/[][]/, " "); gsub(/"/, " "); ends[++n] = node " " $1 " " $2 " " $3 }
		function name(node) { return node in hca ? "umbel_" node "_0" : node }
		END {
			for (i = 1; i <= n; i++) {
				split(ends[i], e, " ")
				print name(e[1]) "/" e[2], name(e[3]) "/" e[4]
			}
		}' "$1" | sort | tr '\n' ';')
	[[ $want && $(cables) == "$want" ]] ||
		complain "$1: cables $(cables)"$'\n'"expected: $want"
}

for example in net:2 net.1:2 net.2sw2path:2 net.2sw2path4hca:4 net.2sw2path4hca2port:2; do
	up_with "$examples/${example%:*}" "${example#*:}"
	same_cables "$examples/${example%:*}"
	[ -z "$(umbel show topology | awk 'NR > 1 && $5 != "active"')" ] ||
		complain "$example: a link is not active"
	umbel down > /dev/null
done
# all that there are were meant
expect 0 'examples.README net net.1 net.2sw2path net.2sw2path4hca net.2sw2path4hca2port ' \
	sh -c "ls $examples | tr '\n' ' '"

# Two ports of one HCA are two ports to programs, each with an address.
up_with "$examples/net.2sw2path4hca2port" 2
expect 0 $'hca_id:\tumbel_Hca2_0\n*\tphys_port_cnt:\t\t\t2\n\t\tport:\t1
\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n*\n\t\tport:\t2\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n*' \
	umbel exec Hca2 -- ibv_devinfo
expect 0 $'HOST *\nHca1  10.0.0.1 fd75:6d62:656c::1    *
Hca1  10.1.0.1 fd75:6d62:656c:1::1 *\nHca2  10.0.0.2 fd75:6d62:656c::2    *
Hca2  10.1.0.2 fd75:6d62:656c:1::2 *' umbel show hosts
expect 0 '*"name": "Hca1",*"addresses": \[*"10.0.0.1",*"fd75:6d62:656c::1",*"10.1.0.1",*"port": 2,*"addresses": \[*"10.1.0.1",*' \
	umbel show hosts --json
umbel down > /dev/null

# A port with nothing plugged in is down; the host's address is that of the other one.
up_with "$examples/net" 2
expect 0 $'hca_id:\tumbel_Hca2_0\n*\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_DOWN (1)\n*
\t\t\tport_lid:\t\t0\n*\t\tport:\t2\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n*' \
	umbel exec Hca2 -- ibv_devinfo
expect 0 $'*\nHca2  10.1.0.2 *  down *\nHca2  10.0.0.2 *  active *' umbel show hosts
umbel down > /dev/null

# Rates, GUIDs and names from what ibnetdiscover prints; from a pipe, as it would come.
cat > "$TMPDIR/cluster.net" <<'END'
#
# Topology file: generated on Thu Jan  1 00:00:00 2026
#
vendid=0x2c9
devid=0xbd36
sysimgguid=0x2c90200423ab3
switchguid=0x2c90200423ab0(2c90200423ab0)
Switch	36 "S-0002c90200423ab0"		# "leaf A" enhanced port 0 lid 3 lmc 0
[1]	"H-0002c903000e8b40"[1](2c903000e8b41) 		# "node1 HCA-1" lid 4 4xQDR
[2]	"H-0002c903000e8b50"[1](2c903000e8b51) 		# "node1 HCA-2" lid 5 1xSDR

vendid=0x2c9
devid=0x673c
sysimgguid=0x2c903000e8b43
caguid=0x2c903000e8b40
Ca	1 "H-0002c903000e8b40"		# "node1 HCA-1"
[1](2c903000e8b41) 	"S-0002c90200423ab0"[1]		# lid 4 lmc 0 "leaf A" lid 3 4xQDR

caguid=0x2c903000e8b50
Ca	1 "H-0002c903000e8b50"		# "node1 HCA-2"
[1](2c903000e8b51) 	"S-0002c90200423ab0"[2]		# lid 5 lmc 0 "leaf A" lid 3 1xSDR
END
expect 0 "fabric 'default' is up: 1 host, daemon pid *" \
	umbel up --topology <(cat "$TMPDIR/cluster.net")
expect 0 $'NODE *\nleaf           switch  0x0002c90200423ab0     1  active * umbel_node1_0/1 * 4x QDR
leaf           switch  0x0002c90200423ab0     2  active * umbel_node1_1/1 * 1x SDR
umbel_node1_0  host    0x0002c903000e8b40     1  active * leaf/1 * 4x QDR
umbel_node1_1  host    0x0002c903000e8b50     1  active * leaf/2 * 1x SDR' umbel show topology
expect 0 '*"name": "leaf",*"type": "switch",*"guid": "0x0002c90200423ab0",*"peer": "umbel_node1_1",*"rate": "1x SDR"*' \
	umbel show topology --json
expect 0 $'hca_id:\tumbel_node1_0\n*\tnode_guid:\t\t\t0002:c903:000e:8b40
\tsys_image_guid:\t\t\t0002:c903:000e:8b43\n*\t\t\tactive_width:\t\t4X (2)
\t\t\tactive_speed:\t\t10.0 Gbps (4)\n*' umbel exec node1 -- ibv_devinfo -v
expect 0 $'2 HCAs found:\n\tumbel_node1_0\n\tumbel_node1_1' umbel exec node1 -- ibv_devinfo -l
umbel down > /dev/null

# relative to where one is, and for `umbel run` as well
cd "$TMPDIR" || exit 1
expect 0 $'1 HCA found:\n\tumbel_Hca1_0' \
	umbel run --topology "../../..$examples/net.1" --host Hca1 -- ibv_devinfo -l
expect 0 $'HOST *\nnode1 *\nnode1 *' umbel run --topology cluster.net -- umbel show hosts

# a file into which the standard error went, too: the line is named, and the rest is what counts
(echo 'ibwarn: [17] sa_query: umad_recv failed: attr 0x35'; cat cluster.net) > noisy.net
expect 0 "umbel: noisy.net:1: passed over: ibwarn: [[]17] sa_query: umad_recv failed: attr 0x35
fabric 'default' is up: 1 host, daemon pid *" umbel up --topology noisy.net
umbel down > /dev/null
