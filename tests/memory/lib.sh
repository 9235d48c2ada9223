# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the tests of memory share. Sourced by them: builds the program user.c, $user, on the system's own libibverbs, and
# puts what the test starts into a cgroup whose memory is limited: into its "all", beside which there may be others.

. "${BASH_SOURCE[0]%/*}/../system/lib.sh"

MB=$((1024 * 1024))
user=$TMPDIR/user
group='' # the cgroup's folder; empty: there is none
came_from='' # that of the one in which the test was before

gcc -O1 -o "$user" "${BASH_SOURCE[0]%/*}/user.c" -libverbs || exit 1

# The folders in which a cgroup that counts memory may be made, each with the one that this process is in.
places()
{
	local kind folder own path

	while read -r _ _ _ _ folder _ kind; do
		kind=${kind##*- }
		case $kind in
		cgroup2*)
			own=$folder$(sed -n 's/^0:://p' /proc/self/cgroup)
			path=$own
			while [ "${#path}" -ge "${#folder}" ]; do
				! grep -qsw memory "$path/cgroup.subtree_control" || echo "$path $own"
				path=${path%/*}
			done
			;;
		cgroup\ *memory*)
			own=$folder$(sed -n 's/^[0-9]*:[^:]*memory[^:]*://p' /proc/self/cgroup)
			echo "$own $own"
			;;
		esac
	done < /proc/self/mountinfo
}

# put PROCESS CGROUP
put()
{
	echo "$1" > "$2/cgroup.procs"
}

# new_group FOLDER [BYTES]: with that limit
new_group()
{
	mkdir "$1" || return
	[ ! "${2-}" ] || echo "$2" > "$1/$(named max limit_in_bytes)" || return
	[ ! -e "$1/memory.max" ] || echo +memory > "$1/cgroup.subtree_control"
}

# limit_memory BYTES: this script and what it starts from now on have no more. False: no cgroup can be made here.
limit_memory()
{
	local outer

	while read -r outer came_from; do
		group=$outer/umbel-test.$number
		{ new_group "$group" "$1" && mkdir "$group/all" && put $$ "$group/all"; } 2> /dev/null && return
		rmdir "$group/all" "$group" 2> /dev/null
	done < <(places)
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
	umbel down --all --yes --force > /dev/null 2>&1
	for ((i = 0; i < 100; i++)); do
		cat "$group"/*/cgroup.procs | while read -r process; do
			put "$process" "$came_from"
		done 2> /dev/null
		! rmdir "$group"/*/ "$group" 2> /dev/null || return
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
