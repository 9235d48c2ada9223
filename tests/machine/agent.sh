#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# agent.sh DIR: runs commands in a virtual machine for the test outside (lib.sh). DIR is a folder of
# the host's. A line "run ID" on the virtio port starts the script DIR/ID.command; what it prints
# goes to DIR/ID.out, when it has ended its status to DIR/ID.status. "end ID" ends it before that.
# Commands run side by side. When the file DIR/ready is there the agent listens.

cd "$1" || exit 1

# run ID: in a session of its own, which "end" ends as a whole
run()
{
	setsid --wait bash -c "echo \$\$ > $1.pid; . ./$1.command" < /dev/null >> "$1.out" 2>&1
	echo $? > "$1.status.new"
	mv "$1.status.new" "$1.status"
}

exec 3< /dev/vport[0-9]*p1
export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ulimit -l unlimited
ip link set lo up
: > ready
while read -r verb id <&3; do
	case $verb in
	run)
		run "$id" 3<&- &
		;;
	end)
		kill -- -"$(cat "$id.pid")"
		;;
	esac
done
