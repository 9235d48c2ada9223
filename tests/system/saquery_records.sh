#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# saquery's records of each kind say what the fabric is, as `umbel show` has it.

. "${0%/*}/lib.sh"

# records ARGUMENT...: one line a record, "FIELD=VALUE" of each of its lines.
records()
{
	umbel exec h1 -- saquery --smkey 1 "$@" | awk '
		/dump:$/ && !/^\t/ { if (line != "") print line; line = "-"; next }
		{ gsub(/^[ \t]+/, ""); sub(/\.\.+/, "="); gsub(/ /, "_"); line = line " " $0 }
		END { if (line != "") print line }'
}

# columns FIELD...: these of each record, in this order.
columns()
{
	awk -v fields="$*" '{
		n = split(fields, want, " ")
		out = ""
		for (i = 1; i <= n; i++)
			for (k = 1; k <= NF; k++)
				if (index($k, want[i] "=") == 1) {
					out = out substr($k, length(want[i]) + 2) " "
					break
				}
		print out
	}' | sed 's/ $//' | sort
}

same()
{
	local what=$1 shown=$2 got=$3

	[ "$shown" ] && [ "$shown" = "$got" ] ||
		complain "$what"$'\n'"the fabric: $shown"$'\n'"saquery:    $got"
}

umbel up --fat-tree 2 --radix 4 --hosts 6 > /dev/null
topology=$(umbel show topology | sed 1d)
lid_of()
{
	umbel exec h1 -- ibswitches | sed -n "s/.*\"$1\".* lid \([0-9]*\) .*/\1/p"
}

# nodes: GUIDs and descriptions
same NodeRecord "$(awk '{ print $3, $2 == "host" ? "Channel_Adapter" : "Switch" }' \
	<<< "$topology" | sort -u)" "$(records NR | columns node_guid node_type)"

# ports: a record each, of hosts and of switches with their port 0; 23 ports are without a cable
ends=$(grep -c . <<< "$topology")
switches=$(awk '$2 == "switch" { print $1 }' <<< "$topology" | sort -u)
n_switches=$(wc -w <<< "$switches")
n_ports=$((6 + n_switches * 5))
same PortInfoRecord "$n_ports" "$(records PIR | wc -l)"
same 'the ports of hosts' "$(awk '$2 == "host" { print $6, $4 }' <<< "$topology" | sort)" \
	"$(records PIR | columns EndPortLid PortNum | grep ' 1$' |
		grep -E "^[1-6] ")"
same SwitchInfoRecord "$n_switches" "$(records SWIR | wc -l)"

# links, from both ends
same LinkRecord "$ends" "$(records LR | wc -l)"
for host in 1 6; do
	lid=$(awk -v n="umbel_h${host}_0" '$1 == n { print $6 }' <<< "$topology")
	read -r leaf out < <(awk -v n="umbel_h${host}_0" '$1 == n { split($7, p, "/"); print p[1], p[2] }' \
		<<< "$topology")
	same "the links of h$host" "$(printf '%s\n' "$(lid_of "$leaf") $out $lid 1" \
		"$lid 1 $(lid_of "$leaf") $out" | sort)" \
		"$(records LR | columns FromLID FromPort ToLID ToPort |
			awk -v lid="$lid" '($1 == lid && $2 == 1) || ($3 == lid && $4 == 1)')"
done

# tables: what the switches forward where
for sw in $switches; do
	same "the LFT of $sw" \
		"$(umbel show routes | awk -v sw="$sw" '$1 == sw { print $2, $3 }' | sort)" \
		"$(umbel exec h1 -- saquery LFTR "$(lid_of "$sw")" |
			awk '/^\t\t[0-9]/ && $2 != 255 { print $1, $2 }' | sort)"
done

# GUIDs, P_Keys
same GUIDInfoRecord "$(awk '$2 == "host" { print $6, substr($3, 1, 16) "01" }' <<< "$topology" |
	sort)" "$(records GIR | awk '/ Block=0/' | columns LID 'GUID_0' | grep '01$')"
expect 0 $'*\n*0xffff 0x0000 *' umbel exec h1 -- saquery --smkey 1 PKTR
expect 5 '*SA_ERR_REQ_INVALID*' records --smkey 0 PKTR

# lanes: SL to VL as it is by default
expect 0 '*SL: 0| 1|*VL: 0| 1| 2|*' umbel exec h1 -- saquery SL2VL
same VLArbitrationRecord $((4 * n_ports)) "$(records VLAR | wc -l)"

# paths: from each to each
same 'paths of h1' "$(for i in 1 2 3 4 5 6; do echo "1 $i"; done)" \
	"$(records PR --slid 1 | columns slid dlid | grep -E ' [1-6]$')"
expect 0 '*slid=1 *' records --src-to-dst 1:6

# the subnet manager
same SMInfoRecord '1 0x02756d0000000101' "$(records SMIR | columns LID GUID)"

# groups and members, and the tree of one
for host in 2 5; do
	start "mckey$host" "h$host" mckey -m 239.1.1.1 -b "10.0.0.$host" -c 1
done
for host in 2 5; do
	wait_said "mckey$host" 'mckey: joined'
done
group=$(umbel show groups | awk '/^ff/ { mgid = $1 } $1 == "MLID" && $2 == "0xc001" { print mgid }')
same MCMemberRecord "$group 0xC001" "$(records --smkey 0 -g | columns MGID Mlid | grep 0xC001)"
same 'the members' $'fe80::275:6d00:0:201\nfe80::275:6d00:0:501' \
	"$(umbel exec h1 -- saquery --smkey 1 -m 0xC001 | sed -n 's/.*PortGid\.*\([^ ]*\) .*/\1/p' |
		sort)"
leaf=$(awk '$1 == "umbel_h2_0" { split($7, p, "/"); print p[1] }' <<< "$topology")
expect 0 '*LID*MLID*0xc001*' umbel exec h1 -- saquery MFTR "$(lid_of "$leaf")"

# services and subscriptions: there are none
expect 0 '' records SR
expect 0 '' records IIR
expect 0 'SA ClassPortInfo:*Base version*1*Class version*2*' umbel exec h1 -- saquery CPI
