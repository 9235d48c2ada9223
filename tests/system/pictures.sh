#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel show topology|group|path --svg`, --png and --dot: what pictures have in them, on fabrics that
# fit a picture and on those of which equal hosts and switches fold; links that have failed, a group's
# tree, a path that arrives and some that do not. Graphviz has to be there.

. "${0%/*}/opensm.bash"
. "${0%/*}/mckey.bash"

type -P dot > /dev/null || complain 'Graphviz is not installed'

# has TEXT OPTION...: what the picture shows (pictures.py)
has()
{
	local text=$1

	shift
	umbel show "$@" --svg -o "$TMPDIR/picture.svg" || complain "no picture: $*"
	expect 0 "$text" "${0%.sh}.py" "$TMPDIR/picture.svg"
}

# ---- one switch: the text, and both formats of it
umbel up --hosts 2 > /dev/null
umbel link down sw1:2
expect 0 'graph umbel {
	graph \[label="\\nfabric default: 2 hosts, 1 switch, 2 links (1 failed)", fontname=*, ordering=out, *\]
	node \[*\]
	edge \[*\]
	"sw1" \[label="sw1", fillcolor="#dbe9f6", color="#3f6f9f"\]
	"h1" \[label="h1", fillcolor="#fdf3d7", color="#b08d3c"\]
	"h2" \[label="h2", fillcolor="#fdf3d7", color="#b08d3c"\]
	{ rank=same; "sw1"; }
	{ rank=same; "h1"; "h2"; }
	"sw1" -- "h1" \[color="#607d8b", penwidth=1.2, taillabel="1", tooltip="sw1:1 - h1:1"\]
	"sw1" -- "h2" \[color="#c62828", penwidth=2.0, style=dashed, taillabel="2", tooltip="sw1:2 - h2:1"\]
}' umbel show topology --dot
has 'box h1
box h2
box sw1
line sw1 h1
line sw1 h2 failed
text fabric default: 2 hosts, 1 switch, 2 links (1 failed)' topology
umbel show topology --svg | cmp - "$TMPDIR/picture.svg" || complain 'a pipe gets another picture than a file'
[ "$(umbel show topology --png | head -c 8 | od -An -tx1 | tr -d ' ')" = 89504e470d0a1a0a ] || complain 'no PNG'

# ---- what is refused
expect 2 'umbel: show: one of --svg, --png and --dot at a time; *' umbel show topology --svg --dot
expect 2 'umbel: show: a picture is not --json, not --explain and not --watch; *' umbel show topology --svg --json
expect 2 'umbel: show: --output goes with --svg, --png or --dot; *' umbel show topology -o file
expect 2 'umbel: show: --lines goes with --svg, --png or --dot; *' umbel show topology --lines 3
expect 2 "umbel: show: '0' is no number of lines; *" umbel show topology --svg --lines 0
# a path is text, too; this one ends at the link that has failed
expect 0 $'h1:1 > sw1:1\n*path h1 > h2: *ends at sw1: *' umbel show path h1 h2
expect 0 $'h2:1 > sw1:2\npath h2 > h1: 1 link, ends at h2: its link has failed' umbel show path h2 h1
expect 2 'umbel: show: path from where to where? two hosts; *' umbel show path h1
expect 2 'umbel: show: a picture is not --json, not --explain and not --watch; *' umbel show path h1 h2 --json
expect 2 'umbel: show: there are pictures of topology, group and path, not of hosts; *' umbel show hosts --svg
expect 2 'umbel: show: group which? its MGID; *' umbel show group --dot
expect 2 'umbel: show: path from where to where? two hosts; *' umbel show path h1 --dot
expect 2 "umbel: show: one thing at a time, not 'h3' too; *" umbel show path h1 h2 h3 --dot
expect 2 "umbel: show: one thing at a time, not 'h1' too; *" umbel show topology h1 --dot
expect 2 "umbel: 'h1' is no multicast GID, and no IPv4 or IPv6 address of a group" umbel show group h1 --dot
expect 1 "umbel: no group 'ff12::1'; 'umbel show groups' lists them" umbel show group ff12::1 --dot
expect 1 "umbel: no host or switch 'h7' in fabric 'default'" umbel show path h1 h7 --dot
expect 1 "umbel: no host or switch '' in fabric 'default'" umbel show path '' h1 --dot
expect 1 "umbel: cannot write '*/none/file': No such file or directory" \
	umbel show topology --svg -o "$TMPDIR/none/file"
expect 1 "umbel: cannot write '/dev/full': No space left on device" umbel show topology --png -o /dev/full
# a terminal gets no SVG, but DOT, which is text
expect 2 $'umbel: a picture is no text: write it to a file by --output, or to a pipe*' \
	script -qec 'umbel show topology --svg' /dev/null
expect 0 $'graph umbel {*' script -qec 'umbel show topology --dot' /dev/null

# ---- without Graphviz, with one that fails, and one that is killed
umbel=$(type -P umbel)
mkdir "$TMPDIR/bin"
expect 1 "umbel: there is no 'dot' to draw with: install Graphviz (package graphviz), or take --dot" \
	env PATH="$TMPDIR/bin" "$umbel" show topology --svg
expect 0 'graph umbel {*' env PATH="$TMPDIR/bin" "$umbel" show topology --dot
printf '#!/bin/sh\necho a picture\nexit 3\n' > "$TMPDIR/bin/dot"
chmod +x "$TMPDIR/bin/dot"
expect 1 "umbel: 'dot' fails with status 3" env PATH="$TMPDIR/bin" "$umbel" show topology --svg
printf '#!/bin/sh\nkill -9 $$\n' > "$TMPDIR/bin/dot"
expect 1 "umbel: 'dot' is ended by signal 9" env PATH="$TMPDIR/bin" "$umbel" show topology --svg
umbel down > /dev/null

# ---- no subnet manager: links are there, but none is active
umbel up --hosts 1 --sm none > /dev/null
expect 0 '*"sw1" -- "h1" \[color="#607d8b", penwidth=1.2, style=dashed, *' umbel show topology --dot
expect 0 '*\\npath h1 > sw1: 0 links, ends at h1: *' umbel show path h1 sw1 --dot
umbel down > /dev/null

# ---- a fat tree, whole, and with the hosts of each leaf in one box
umbel up --fat-tree 2 --radix 4 --set routing=ftree > /dev/null
[ "$(umbel show topology --dot | grep -c '\[label=')" -eq 15 ] || complain 'not 8 hosts, 6 switches and a title'
has 'box 2 hosts / h1-h2
box 2 hosts / h3-h4
box 2 hosts / h5-h6
box 2 hosts / h7-h8
box leaf1
box leaf2
box leaf3
box leaf4
box spine1
box spine2
line leaf1 h1
line leaf2 h3
line leaf3 h5
line leaf4 h7
line spine1 leaf1
line spine1 leaf2
line spine1 leaf3
line spine1 leaf4
line spine2 leaf1
line spine2 leaf2
line spine2 leaf3
line spine2 leaf4
text fabric default: 8 hosts, 6 switches, 16 links' topology --lines 13
has 'box 2 switches / spine1-spine2 / each 0 up, 4 down
box 4 switches / leaf1-leaf4 / each 2 up, 2 down
box 8 hosts / h1-h8
line leaf1 h1
line spine1 leaf1
text fabric default: 8 hosts, 6 switches, 16 links' topology --lines 9

expect 0 '*\\nthe widest line: 7 routes"*"spine1" -- "leaf1" \[*penwidth=5.5,*tooltip="spine1:1 - leaf1:3, 6 routes"*' \
	umbel show topology --dot --load

# ---- paths: over a spine, within a leaf, of a switch, and to oneself
lit()
{
	umbel show "$@" --svg --lines 100 -o "$TMPDIR/picture.svg" || complain "no picture: $*"
	"${0%.sh}.py" "$TMPDIR/picture.svg" | grep ' lit$\|text [^f]'
}
expect 0 'line leaf1 h1 lit
line leaf4 h8 lit
line spine2 leaf1 lit
line spine2 leaf4 lit
text path h1 > h8: 4 links' lit path h1 h8
expect 0 'line leaf1 h1 lit
line leaf1 h2 lit
text path h1 > h2: 2 links' lit path h1 h2
expect 0 'line leaf1 h1 lit
text path h1 > leaf1: 1 link' lit path umbel_h1_0 leaf1
expect 0 'text path h3 > h3: 0 links' lit path h3 h3
# folded, its ends and what is between them stay
has 'box 2 switches / leaf2-leaf3 / each 2 up, 2 down
box 4 hosts / h3-h6
box h1
box h2
box h7
box h8
box leaf1
box leaf4
box spine1
box spine2
line leaf1 h1 lit
*' path h1 h8 --lines 13

# ---- a group: its tree and its members, while there are some
for host in h1 h2 h7 h8; do
	receive $host $host -m 239.1.1.1
	wait_joined $host
done
mgid=$(joined h1)
expect 0 'line leaf1 h1 lit
line leaf1 h2 lit
line leaf4 h7 lit
line leaf4 h8 lit
line spine[12] leaf1 lit
line spine[12] leaf4 lit
text group '"$mgid"': 4 members, 4 queue pairs attached' lit group "$mgid"
# the same group, written otherwise
expect 0 '*text group '"$mgid"': 4 members, *' lit group "${mgid/::/:0::}"
# with few lines what is not lit folds first, and then what is equal of the tree
has 'box 2 hosts / h1-h2
box 2 hosts / h7-h8
box 2 switches / leaf2-leaf3 / each 2 up, 2 down
box 4 hosts / h3-h6
box leaf1
box leaf4
box spine1
box spine2
line leaf1 h1 lit
*' group "$mgid" --lines 9
has 'box 2 switches / leaf1, leaf4 / each 2 up, 2 down
box 2 switches / leaf2-leaf3 / each 2 up, 2 down
box 4 hosts / h1-h2, h7-h8
box 4 hosts / h3-h6
box spine1
box spine2
line leaf1 h1 lit
line leaf2 h3
line spine[12] leaf1*
line spine[12] leaf*
text group '"$mgid"': 4 members, *' group "$mgid" --lines 8
send sender h5 -m 239.1.1.1
wait_complete h1 h2 h7 h8 sender
# what has carried messages is wide
umbel show topology --dot > "$TMPDIR/dot"
expect 0 '*\\nthe widest line: [1-9]* bytes"*tooltip="leaf2:1 - h3:1, 0 bytes"*tooltip="leaf3:1 - h5:1, [1-9]* bytes"*' \
	cat "$TMPDIR/dot"
widths=$(sed -nE 's/.* -- "(h[0-9]*)" .*penwidth=([0-9.]+).*/\1 \2/p' "$TMPDIR/dot" | tr '\n' ' ')
[ "$widths" = 'h1 6.2 h2 6.2 h3 1.2 h4 1.2 h5 6.2 h6 1.2 h7 6.2 h8 6.2 ' ] || complain "widths: $widths"

# ---- paths that end: tables lead to links that have failed, as nobody writes others
umbel sm stop
umbel link down leaf4:2
expect 0 'line leaf1 h1 lit
line spine2 leaf1 lit
line spine2 leaf4 lit
text path h1 > h8: 4 links, ends at leaf4: its link has failed' lit path h1 h8
expect 0 'text path h8 > h1: 1 link, ends at h8: its link has failed' lit path h8 h1
expect 0 '*line leaf4 h8 failed*' "${0%.sh}.py" "$TMPDIR/picture.svg"
umbel switch kill leaf2
expect 0 $'*text path h1 > leaf2: *, ends at *: its link has failed' lit path h1 leaf2
has 'box 2 hosts / h1-h2
box 2 hosts / h3-h4
box 2 hosts / h5-h6
box h7
box h8
box leaf1
*line leaf1 h1
line leaf2 h3 failed
line leaf3 h5
line leaf4 h7
line leaf4 h8 failed
*line spine2 leaf2 failed
*text fabric default: 8 hosts, 6 switches (1 dead), 16 links (5 failed)
text the widest line: *[1-9]* bytes' topology --lines 13
# at last those with links that have failed, if they are equal
has '*box 2 switches / spine1-spine2 / each 0 up, 4 down
*line spine1 leaf2 failed
*' topology --lines 1
umbel down > /dev/null

# ---- no levels: a torus, whose switches never fold; and a path in it
torus > "$TMPDIR/torus"
umbel up --topology "$TMPDIR/torus" > /dev/null
umbel link down s11:2
umbel show topology --svg -o "$TMPDIR/picture.svg"
"${0%.sh}.py" "$TMPDIR/picture.svg" > "$TMPDIR/shown"
[ "$(grep -c '^box s' "$TMPDIR/shown")" -eq 25 ] || complain 'not 25 switches'
[ "$(grep -c '^line s.. s' "$TMPDIR/shown")" -eq 50 ] || complain 'not 50 links between switches'
[ "$(grep ' failed$' "$TMPDIR/shown")" = 'line s11 s21 failed' ] || complain "failed: $(grep failed "$TMPDIR/shown")"
expect 0 '*text path h1 > h13: [4-8] links' lit path h1 h13
umbel down > /dev/null

# ---- two switches side by side, by two links, and an HCA with two ports: no mesh yet
umbel up --topology /usr/share/doc/ibsim-utils/net-examples/net.2sw2path4hca2port > /dev/null
expect 0 '*ordering=out*{ rank=same; "Switch1"; "Switch2"; }*"Switch1" -- "Hca1" \[*, label="2 links"*"Switch1" -- "Switch2" \[*, label="2 links"*' \
	umbel show topology --dot
umbel down > /dev/null

# ---- 648 hosts
umbel up --fat-tree 2 > /dev/null
umbel link down leaf1:19
umbel link down leaf20:25
has 'box 16 switches / spine2-spine6, spine8-spine18 / each 0 up, 36 down
box 18 hosts / h1-h18
box 18 hosts / h343-h360
box 34 switches / leaf2-leaf19, leaf21-leaf36 / each 18 up, 18 down
box 612 hosts / h19-h342, h361-h648
box leaf1
box leaf20
box spine1
box spine7
line leaf1 h1
line leaf2 h19
line leaf20 h343
line spine1 leaf1 failed
line spine1 leaf2
line spine1 leaf20
line spine2 leaf1
line spine2 leaf2
line spine2 leaf20
line spine7 leaf1
line spine7 leaf2
line spine7 leaf20 failed
text fabric default: 648 hosts, 54 switches, 1296 links (2 failed)' topology
# all switches, if they are asked for
[ "$(umbel show topology --dot --lines 700 | grep -c '" -- "')" -eq 684 ] || complain 'not 648 + 36 lines'
umbel down > /dev/null

# ---- 4,096 hosts: less than a second of processor time each, or ten with sanitizers
umbel up --fat-tree 3 --radix 26 --hosts 4096 > /dev/null
umbel link down agg5:20
large()
{
	has 'box 1[0-9]* switches / *text fabric default: 4096 hosts, 810 switches, 12429 links (1 failed)' topology
	has '*text path h1 > h4000: 6 links' path h1 h4000
	has '*text the widest line: *[1-9] routes' topology --load
}
TIMEFORMAT=%0U
{ time large 2>&3; } 3>&2 2> "$TMPDIR/seconds"
[ "$(cat "$TMPDIR/seconds")" -lt 30 ] ||
	complain "three pictures of 4,096 hosts take $(cat "$TMPDIR/seconds") s of processor time"
[ "$(wc -c < "$TMPDIR/picture.svg")" -lt 100000 ] || complain 'a picture of 4,096 hosts has too much in it'
umbel down > /dev/null
