# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the tests of memory share. Sourced by them: builds the program user.c, $user, on the system's own libibverbs, and
# puts what the test starts into a cgroup whose memory is limited.

. "${BASH_SOURCE[0]%/*}/../system/lib.sh"

MB=$((1024 * 1024))
user=$TMPDIR/user
group='' # the cgroup's folder; empty: there is none
outer='' # that of its parent

gcc -O1 -o "$user" "${BASH_SOURCE[0]%/*}/user.c" -libverbs || exit 1

# The folders in which a cgroup that counts memory may be made: of version 2, of version 1.
places()
{
	local kind folder path

	while read -r _ _ _ _ folder _ kind; do
		kind=${kind##*- }
		case $kind in
		cgroup2*)
			path=$folder$(sed -n 's/^0:://p' /proc/self/cgroup)
			while [ "${#path}" -ge "${#folder}" ]; do
				! grep -qsw memory "$path/cgroup.subtree_control" || echo "$path"
				path=${path%/*}
			done
			;;
		cgroup\ *memory*) echo "$folder" ;;
		esac
	done < /proc/self/mountinfo
}

# limit_memory BYTES: this script and what it starts from now on have no more. False: no cgroup can be made here.
limit_memory()
{
	for outer in $(places); do
		group=$outer/umbel-test.$number
		mkdir "$group" 2> /dev/null || continue
		{ echo "$1" > "$group/$(named max limit_in_bytes)" && echo $$ > "$group/cgroup.procs"; } 2> /dev/null && return
		rmdir "$group"
	done
	group=
	return 1
}

# named NEW OLD: how a file of the group is called in version 2, in version 1
named()
{
	if [ -e "$group/memory.max" ]; then echo "memory.$1"; else echo "memory.$2"; fi
}

# Bytes that the group has; without one, those of all processes of this test and of their shared memory.
charged()
{
	local pids pid

	if [ "$group" ]; then
		cat "$group/$(named current usage_in_bytes)"
		return
	fi
	pids=$(grep -lsz "^UMBEL_RUNTIME_DIR=$UMBEL_RUNTIME_DIR\$" /proc/[0-9]*/environ)
	for pid in $pids; do
		pid=${pid%/environ}
		awk '/^Pss_Anon:/ { print $2 * 1024 }' "$pid/smaps_rollup"
		find "$pid/fd" -lname '/memfd:umbel-*' -exec stat -L -c '%i %b' {} +
	done 2> /dev/null | awk 'NF == 1 { sum += $1 } NF == 2 { blocks[$1] = $2 } END {
		for (i in blocks) sum += blocks[i] * 512
		printf "%.0f\n", sum }'
}

# Out of the group, which goes.
leave_group()
{
	[ "$group" ] || return
	umbel down --all > /dev/null 2>&1
	for ((i = 0; i < 100; i++)); do
		xargs -r -n 1 < "$group/cgroup.procs" | while read -r process; do
			echo "$process" > "$outer/cgroup.procs"
		done 2> /dev/null
		! rmdir "$group" 2> /dev/null || return
		sleep 0.05
	done
	complain "the cgroup $group stays"
}

end()
{
	leave_group
	finish
}
trap end EXIT

# little PROGRAM...: with an address space of 1,000,000 KiB
little()
{
	# shellcheck disable=SC2016
	bash -c 'ulimit -v 1000000 && exec "$@"' - "$@"
}
