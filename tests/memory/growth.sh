#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs that use memory until there is none are told ENOMEM, by a cgroup's limit, by a kernel that promises no more than
# there is, and under ulimit -f. No process ends by it, and the neighbour goes on sending.

. "${0%/*}/lib.sh"

mkfifo "$TMPDIR/ends"
exec 4<> "$TMPDIR/ends"
advanced=0 # hundreds of messages that the neighbour has sent before

# hold NAME HOST STEP...: the program goes on until it is killed
hold()
{
	# shellcheck disable=SC2016 # that shell's
	launch "$1" umbel exec "$2" -- bash -c 'exec "$@" < "$0"' "$TMPDIR/ends" "$user" open "${@:3}"
}

# goes_on WHAT: the neighbour has sent 300 messages since
goes_on()
{
	advanced=$(grep -c '100 more' "$TMPDIR/neighbour.out")
	wait_until "the neighbour goes on sending $1" says neighbour '100 more$' $((advanced + 3))
}

# is_full NAME: it has made as many queue pairs as there is memory for; where two do, all may be the other's
is_full()
{
	wait_said "$1" ready && expect_said "$1" '[0-9][0-9]* queue pairs, then no memory$'
}

# Fails if the kernel has ended processes for want of memory.
nobody_was_ended()
{
	local n

	n=$(cat "$group"{,/*}/"$(named events oom_control)" | awk '$1 == "oom_kill" { n += $2 } END { print n + 0 }')
	[ "$n" = 0 ] || complain "the kernel has ended $n processes"
}

# room_again HOST: a program can begin once those are gone that had all
room_again()
{
	wait_until "there is room for a program" umbel exec "$1" -- "$user" open 2> /dev/null
}

# ---- all in one cgroup: two programs at once, by queues and by messages
in_one_group()
{
	local step

	for step in "grow 4096" fill; do
		# shellcheck disable=SC2086 # words become arguments
		hold "${step% *}-1" h2 $step wait
		hold "${step% *}-2" h3 $step wait
		is_full "${step% *}-1"
		is_full "${step% *}-2"
		(($(charged) > 64 * MB)) || complain "programs that $step stop at $(($(charged) / MB)) MiB"
		goes_on "beside programs that $step"
		kill_hard "${step% *}-1"
		kill_hard "${step% *}-2"
		room_again h2
	done
	nobody_was_ended
}

# ---- a program in a cgroup of its own: nobody else is short of memory
in_its_own()
{
	new_group "$group/own" $((24 * MB)) || complain "no cgroup of its own"
	mkdir "$group/own/all"
	# shellcheck disable=SC2016 # that shell's
	launch own umbel exec h2 -- bash -c 'echo $$ > "$1" && exec "${@:2}" < "$0"' "$TMPDIR/ends" \
		"$group/own/all/cgroup.procs" "$user" open grow 4096 fill wait
	is_full own
	expect_said own '[1-9][0-9]* queue pairs'
	goes_on "beside one in its own cgroup"
	expect 0 '' umbel exec h3 -- "$user" open
	nobody_was_ended
	kill_hard own
	rmdir "$group/own/all" "$group/own" || complain "its own cgroup stays"
}

# ---- the daemon in a small cgroup of its own: it grows with each queue pair
daemon_in_its_own()
{
	new_group "$group/daemon" $((48 * MB)) || complain "no cgroup for a daemon"
	mkdir "$group/daemon/all"
	# shellcheck disable=SC2016 # that shell's
	expect 0 '*is up*' bash -c 'echo $$ > "$1" && exec umbel up --name small --hosts 1' - "$group/daemon/all/cgroup.procs"
	# shellcheck disable=SC2016 # that shell's
	launch many umbel exec --name small h1 -- bash -c 'exec "$@" < "$0"' "$TMPDIR/ends" "$user" open grow 1 go
	wait_said many '100 more$'
	expect_said many '[1-9][0-9]* queue pairs, then no memory$'
	expect 0 '*' umbel show hosts --name small
	nobody_was_ended
	kill_hard many
	expect 0 '*is down*' umbel down --name small
	wait_until "the daemon's cgroup goes" rmdir "$group/daemon/all" "$group/daemon" 2> /dev/null
}

# ---- a kernel that promises no more than there is
# where the program has 8 MiB more: fallocate() as it is then
strict()
{
	local as=(unshare -m)

	[ "$(id -u)" = 0 ] || as=(unshare -rm)
	gcc -shared -fPIC -o "$TMPDIR/strict.so" "${0%/*}/strict.c" || complain "strict.c does not compile"
	echo 2 > "$TMPDIR/overcommit"
	printf '%s: %d kB\n' CommitLimit 1000000 Committed_AS 900000 > "$TMPDIR/meminfo"
	# shellcheck disable=SC2016 # that shell's
	launch strict "${as[@]}" bash -c 'cd "$0" && mount --bind overcommit /proc/sys/vm/overcommit_memory &&
		mount --bind meminfo /proc/meminfo && exec umbel exec h2 -- \
		bash -c '\''LD_PRELOAD=$PWD/strict.so:$LD_PRELOAD exec "$@" < ends'\'' - "$@"' "$TMPDIR" "$user" open grow 4096 fill wait
	is_full strict
	expect_said strict '[1-9][0-9]* queue pairs'
	goes_on "beside one that gets ENOSPC"
	kill_hard strict
}

# ---- ulimit -f
# no_files COMMAND...: it may write no files
no_files()
{
	# shellcheck disable=SC2016 # that shell's
	bash -c 'ulimit -f 0 && exec "$@"' - "$@"
}

if limit_memory $((96 * MB)); then
	umbel up --hosts 3 > /dev/null
	hold neighbour h1 go
	wait_said neighbour '100 more'
	in_one_group
	in_its_own
	daemon_in_its_own
	kill_hard neighbour
	leave_group
	group=''
else
	echo "no cgroup can be made here: what happens at the limit of one is not looked at"
fi
umbel up --hosts 3 > /dev/null
hold neighbour h1 go
wait_said neighbour '100 more'
strict
expect 0 '' no_files umbel exec h2 -- "$user" open
expect 0 '*umbel_h2_0*' no_files umbel exec h2 -- ibv_devinfo
expect 0 '# Port info*' no_files umbel exec h2 -- smpquery portinfo 2
goes_on "beside programs that may write no files"
kill_hard neighbour
