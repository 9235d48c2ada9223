#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Connected queue pairs of an unmodified program, whose peer is a script: what they answer to each error of
# a peer or of the network, and what the program gets to know of it. By hand with parts of cases' names: these.

. "${0%/*}/lab.sh"

lab_up 2
# it sends again after the timeouts that the cases ask for, and not before
umbel_on h2 up --roce eth0 --set roce_adp_retrans=0 --set roce_selective_repeat=0 > /dev/null || exit 1

# comes behind those that are there, which keep their places in the table of GIDs
has_other()
{
	umbel_on h2 exec -- ibv_devinfo -v | grep '::ffff:192[.]0[.]2[.]102' > "$TMPDIR/other"
}

ip -n h2 address add 192.0.2.102/24 dev eth0
wait_until 'the second address is a GID' has_other

as_h2=(env UMBEL_FABRIC=h2 ip netns exec h2 "${without_privileges[@]}" umbel)

# cases NAME [CASE]...
cases()
{
	launch "$1" ip netns exec h1 python3 -uB "${0%/*}/wire_cases.py" 192.0.2.1 192.0.2.2 192.0.2.102 \
		"${as_h2[@]}" show counters --json , \
		"${as_h2[@]}" exec -- "$programs_dir/roce.puppet" 192.0.2.1 ${2:+, "${@:2}"}
	wait_ended "$1" 0
	expect_said "$1" '[1-9][0-9]* of [0-9]* cases are as they should be'
	tail -n 1 "$TMPDIR/$1.out"
}

[[ ${1:-} = selective* ]] || cases plain "$@"
if [ $# -eq 0 ] || [[ $1 = selective* ]]; then
	expect 0 '' umbel_on h2 set roce_selective_repeat=1
	cases selective "${1:-selective_}"
fi
