#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `umbel sysfs`: real files that say what programs see in /sys, once and kept current, for programs that make
# system calls themselves.

. "${0%/*}/lib.sh"

cd "$TMPDIR" || exit
port=class/infiniband/umbel_h2_0/ports/1
expect 1 "*no fabric 'default' is up*" umbel sysfs all
[ ! -e all ] || complain 'there is a copy of nothing'
umbel up --hosts 2 > /dev/null
expect 1 "*no host 'h3'*" umbel sysfs --host h3 all
expect 0 '' umbel sysfs all
expect 0 '' umbel sysfs --host h2 h2
expect 0 $'umbel_h1_0\numbel_h2_0' ls all/class/infiniband
expect 0 umbel_h2_0 ls h2/class/infiniband
# each file and link is as programs see it, and none is missing
expect 0 '[1-9]* files' umbel exec h2 -- bash -c '
	there=$(cd /sys && find -H class/infiniband class/infiniband_verbs devices/pci756d:00 ! -type d | sort)
	here=$(cd h2 && find class/infiniband class/infiniband_verbs devices ! -type d ! -path "*/virtual/*" | sort)
	for file in $there; do
		[ ! -f "/sys/$file" ] || cat "/sys/$file" > /dev/null 2>&1 || continue # of an empty GID
		echo "$file"
		if [ -L "/sys/$file" ]; then
			[ "$PWD/h2$(readlink -m "/sys/$file" | cut -c 5-)" = "$(readlink -m "h2/$file")" ] || echo "link: $file"
		else
			cmp "/sys/$file" "h2/$file"
		fi
	done > seen
	diff seen - <<< "$here" && echo "$(wc -l < seen) files"'

# again and again, each file as a whole
launch keeper umbel sysfs --every 1 all
expect 0 '4: ACTIVE' cat all/$port/state
umbel link down h2:1
wait_until 'the copy knows that the port is down' grep -qx '1: DOWN' all/$port/state
[ -z "$(find all -name '.*')" ] || complain 'a file is left that was being written'
umbel down > /dev/null
wait_ended keeper 1
expect_said keeper "umbel: no fabric 'default' is up"
touch file
umbel up --hosts 1 > /dev/null
expect 1 "umbel: cannot write in 'file': Not a directory" umbel sysfs file
umbel down > /dev/null
