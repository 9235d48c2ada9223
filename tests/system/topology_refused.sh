#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Topologies that cannot be: one line that says why, by file and line, and nothing is left.

. "${0%/*}/lib.sh"

cd "$TMPDIR" || exit 1

# refused WHY TEXT: a file of that text, with printf's escapes.
refused()
{
	printf %b "$2" > bad.net
	expect 1 "umbel: bad.net:$1" umbel up --topology bad.net
	expect 125 "umbel: bad.net:$1" umbel run --topology bad.net -- true
}

refused "2: expected Switch, Ca, Hca, Rt, an identifier or a port, found 'nonsense'" \
	'# a comment\nnonsense\n'
refused "1: expected a number of ports from 1 to 254, found '300 \"s\"'" 'Switch 300 "s"\n'
refused '3: expected a node of this file, found "gone"' 'Ca 1 "a"\n\n[1] "gone"[1]\n'
refused "2: expected the other end of line 4's link, \"b\"[[]2], found \"a\"[[]1]" \
	'Ca 2 "a"\n[1] "b"[1]\nSwitch 4 "b"\n[1] "b"[2]\n[2] "b"[1]\n'
refused '1: there is no host' 'Switch 4 "s"\n'
refused '0: there is no host' ''
refused "1: expected Switch, Ca, Hca, Rt, an identifier or a port, found '*'" '\0000\0377\0000'

expect 1 "umbel: cannot read 'none.net': No such file or directory" umbel up --topology none.net
expect 1 "umbel: cannot read '.': Is a directory" umbel up --topology .
expect 1 "umbel: large.net: larger than 64 MiB" \
	sh -c 'truncate -s 65M large.net && umbel up --topology large.net'
expect 2 "umbel: up: option '--topology' needs a value; *" umbel up --topology
expect 2 "umbel: up: --hosts does not go with --topology: the file says it; *" \
	umbel up --topology bad.net --hosts 2
expect 2 "umbel: run: --fat-tree does not go with --topology: the file says it; *" \
	umbel run --fat-tree 2 --topology bad.net -- true

expect 2 "umbel: up: '4' levels: a fat tree has 2 or 3; *" umbel up --fat-tree 4
expect 2 "umbel: up: 'two' levels: a fat tree has 2 or 3; *" umbel up --fat-tree two
expect 2 "umbel: up: '7' ports: a fat tree's switch has 2 to 254, an even number; *" \
	umbel up --fat-tree 2 --radix 7
expect 2 "umbel: up: '256' ports: *" umbel up --fat-tree 2 --radix 256
expect 2 'umbel: up: --radix needs --fat-tree; *' umbel up --radix 36
expect 1 'umbel: 2 levels of 36-port switches take 648 hosts, not 649' \
	umbel up --fat-tree 2 --hosts 649
expect 1 'umbel: 3 levels of 64-port switches take 65536 hosts, more than the 49151 of a fabric: *' \
	umbel up --fat-tree 3 --radix 64
expect 1 'umbel: 49000 hosts and their switches need more than the 49151 LIDs of a fabric' \
	umbel up --hosts 49000
expect 2 "umbel: up: '49152' hosts: a fabric has 1 to 49151; *" umbel up --hosts 49152

[ -z "$(find "$UMBEL_RUNTIME_DIR" -mindepth 1)" ] || complain "something was left"
