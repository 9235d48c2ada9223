#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel simulate --svg`, --png and --dot: links are as wide and as dark as what they carry, and a legend
# says how much that is; links that have failed, and links that wait for each other, show; what is equal
# folds. Graphviz has to be there.

. "${0%/*}/lib.sh"

cd "$TMPDIR" || exit 1
show=$(dirname "$(readlink -f "$0")")/pictures.py
type -P dot > /dev/null || complain 'Graphviz is not installed'

# ---- h1 sends to three hosts, another one to nobody, and one link has failed
echo 'unicast h1 h2 h3 h4' > file
umbel simulate --hosts 6 --fail h6:1 --svg svg --png png --dot dot file file > text || complain 'no picture'
expect 0 'box h1
box h2
box h3
box h4
box h5
box h6
box sw1
line sw1 h1
line sw1 h2
line sw1 h3
line sw1 h4
line sw1 h5
line sw1 h6 failed
text 0
text 1
text 2
text 3 messages
text failed
text file, routing minhop
text simulation: 6 hosts, 1 switch, 6 links (1 failed)' "$show" svg
[ "$(head -c 8 png | od -An -tx1 | tr -d ' ')" = 89504e470d0a1a0a ] || complain 'no PNG'
expect 0 '*"sw1" -- "h1" \[color="#0d2a5c", penwidth=6.2, *tooltip="sw1:1 - h1:1, 3 messages"*
*"sw1" -- "h4" \[color="#42a5f5", penwidth=2.9, *, 1 messages"*
*"sw1" -- "h5" \[color="#b0bec5", penwidth=1.2, *, 0 messages"*
*"sw1" -- "h6" \[color="#c62828", penwidth=2.0, style=dashed*' cat dot
# the text is what it is without pictures
umbel simulate --hosts 6 --fail h6:1 file file | cmp - text || complain 'a picture changes the text'
umbel simulate --hosts 6 --json --svg again --fail h6:1 file file | python3 -m json.tool > /dev/null ||
	complain 'no JSON beside a picture'
cmp again svg || complain 'the same is drawn otherwise'

# ---- nothing is sent
echo > nothing
umbel simulate --hosts 2 --svg svg file nothing > text || complain 'no picture of nothing'
expect 0 'box h1
box h2
box sw1
line sw1 h1
line sw1 h2
text file, routing minhop
text simulation: 2 hosts, 1 switch, 2 links' "$show" svg

# ---- equal hosts and switches fold, with the loads of the busiest
umbel simulate --fat-tree 2 --radix 4 --set routing=ftree --lines 9 --svg svg all-to-all > text ||
	complain 'no picture of a fat tree'
expect 0 'box 2 switches / spine1-spine2 / each 0 up, 4 down
box 4 switches / leaf1-leaf4 / each 2 up, 2 down
box 8 hosts / h1-h8
line leaf1 h1
line spine1 leaf1
text 0
text 1
text 2 to 3
text 4 to 5
text 6 to 7 messages
text all-to-all, routing ftree
text simulation: 8 hosts, 6 switches, 16 links' "$show" svg

# ---- a circle
for i in 0 1 2 3 4 5 6; do
	printf 'Switch 4 "s%d"\n[1] "h%d"[1]\n[2] "s%d"[3]\n\nHca 1 "h%d"\n' $i $i $(((i + 1) % 7)) $i
done > ring
umbel simulate --topology ring --credits --size 262144 --lines 1 --svg svg --dot dot shift 3 > text
[ $? -eq 3 ] || complain 'a picture hides a deadlock from the exit status'
expect 0 'box h0
*
line s0 s1 waits
line s0 s6 waits
line s1 h1
line s1 s2 waits
line s2 h2
line s2 s3 waits
line s3 h3
line s3 s4 waits
line s4 h4
line s4 s5 waits
line s5 h5
line s5 s6 waits
line s6 h6
text 0
text 1
text 2
text 3 messages
text shift, routing minhop; deadlock: 7 links wait for each other
text simulation: 7 hosts, 7 switches, 14 links
text waits in a circle' "$show" svg
expect 0 '*"s0" -- "s1" \[color="#8e24aa", *dir=forward*"s0" -- "s6" \[color="#8e24aa", *dir=back*' cat dot

# ---- what is refused
expect 2 'umbel: simulate: --lines goes with --svg, --png or --dot; *' umbel simulate --lines 3 all-to-all
expect 1 "*umbel: cannot write 'none/file': No such file or directory*" umbel simulate --svg none/file all-to-all
mkdir bin
expect 1 "*umbel: there is no 'dot' to draw with: install Graphviz (package graphviz), or take --dot*" \
	env PATH="$TMPDIR/bin" "$(type -P umbel)" simulate --svg svg all-to-all
