#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Other users, of whom the owner of a fabric names some (umbel up --allow-user), or a group of theirs
# (--allow-group). These use it, and change nothing; others are told that they are not named, however many they
# are. Needs root, to be them.

if [ "$(id -u)" -ne 0 ]; then
	echo "skipped: only root can be several users"
	exit 0
fi
if [ "${OWN_MOUNTS:-}" != yes ]; then
	exec unshare --mount env OWN_MOUNTS=yes "$0" "$@"
fi

. "${0%/*}/../system/lib.sh"
where=$(cd "${0%/*}" && pwd)

# The users' files are where they can reach them.
place=/run/umbel-test.$$
mkdir "$place" && mount -t tmpfs -o mode=755 tmpfs "$place" || exit 1
mkdir -m 755 "$place/build" "$place/owner" && mount --bind "${UMBEL%/bin/*}" "$place/build"
chown 1001 "$place/owner"
export UMBEL=$place/build/bin/umbel PATH=$place/build/bin:$PATH UMBEL_RUNTIME_DIR=$place/owner/run
unset XDG_RUNTIME_DIR
cd / || exit 1

# as UID COMMAND...
as()
{
	setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"
}

listens()
{
	[ "$(field listeners default)" -eq 1 ]
}

# rping_between UID UID: what the programs of both write and read is each other's memory
rping_between()
{
	launch server as "$1" umbel exec h1 -- rping -s -a 10.0.0.1 -C 20 -V
	wait_until "rping listens" listens
	expect 0 '*' as "$2" umbel exec h2 -- rping -c -a 10.0.0.1 -C 20 -V
	wait_ended server 0
}

# ---- numbers
expect 2 "umbel: up: 'nobody' is no number of a user*" as 1001 umbel up --allow-user nobody
expect 2 "umbel: up: '' is no number of a user*" as 1001 umbel up --allow-user 1002,
expect 2 "umbel: up: '4294967295' is no number of a user*" as 1001 umbel up --allow-user 4294967295
expect 2 "*65534 means all users that it has no number for*" \
	as 1001 unshare --user umbel up --allow-user 65534

# ---- who is named
expect 0 "*is up: 3 hosts*" as 1001 umbel up --hosts 3 --allow-user 1002 --allow-user 1003,1004
expect 0 '*umbel_h2_0*' as 1002 umbel exec h2 -- ibv_devices
expect 0 $'NAME *\ndefault *3 *' as 1002 umbel status
expect 0 'umbel_h2_0' as 1002 umbel exec h2 -- ls /sys/class/infiniband
expect 0 '4: ACTIVE' as 1002 umbel exec h2 -- cat /sys/class/infiniband/umbel_h2_0/ports/1/state
rping_between 1001 1002
rping_between 1002 1001
rping_between 1002 1003
new_port
launch server as 1001 umbel exec h1 -- ibv_rc_pingpong -p "$port"
wait_listening server "$port"
expect 0 '*iters in*' as 1002 umbel exec h2 -- ibv_rc_pingpong -p "$port" 127.0.0.1
wait_ended server 0
launch receiver as 1003 umbel exec h3 -- stdbuf -oL mckey -m 239.1.1.1 -b 10.0.0.3
wait_said receiver 'mckey: joined'
expect 0 '*data transfers complete*' as 1002 umbel exec h2 -- mckey -m 239.1.1.1 -b 10.0.0.2 -s
wait_ended receiver 0

# what changes the fabric, shows others' data or speaks in its name
only="only the fabric's owner may do that"
for command in down 'link down sw1:1' 'switch kill sw1' 'sm stop' 'set sm_poll_ms=1' 'fault add drop' 'fault clear' \
	'capture -o /dev/null'; do
	# shellcheck disable=SC2086
	expect 1 "umbel: *$only" as 1002 umbel $command
done
expect 1 "*umad warning: umad_open_port() fails with EIO: MADs are for the fabric's owner and root*" as 1002 env UMBEL_LOG=warning umbel exec h2 -- iblinkinfo
launch victim as 1001 umbel exec h1 -- rping -s -a 10.0.0.1
wait_until "rping listens" listens
launch connected as 1001 umbel exec h2 -- rping -c -a 10.0.0.1 -C 100000000
wait_until "rping has queue pairs" eval '[ "$(field qps default)" -ge 2 ]'
expect 0 'memory: 0 of *' as 1002 umbel exec -- "$place/build/tests/programs/adversary.named_user"
kill -STOP "${pid[victim]}" # else it may end by itself
kill_hard connected
kill_hard victim

# ---- who is not
refused="umbel: *fabric 'default'*: its owner has not named user 1005 (umbel up --allow-user)"
for command in 'exec h1 -- true' 'status --name default' down; do
	# shellcheck disable=SC2086
	expect 1 "$refused" as 1005 umbel $command
done
# the runtime of sanitizers has to come first
preload=$(ldd "$place/build/lib/umbel/libibverbs.so.1" | awk '$1 ~ /^libasan/ { print $3 }')
expect 0 $'umbel: fabric \'default\' cannot be used: its owner has not named user 1005 (umbel up --allow-user)\n*device*\n*------*' \
	as 1005 env LD_PRELOAD="$preload" LD_LIBRARY_PATH="$place/build/lib/umbel" UMBEL_FABRIC=default ibv_devices
for leaf in lock log; do
	expect 1 '*Permission denied' as 1002 cat "$UMBEL_RUNTIME_DIR/default/$leaf"
done
expect 2 '*Permission denied' as 1002 ls "$UMBEL_RUNTIME_DIR"
expect 1 '*Permission denied' as 1002 touch "$UMBEL_RUNTIME_DIR/default/mine"
# from a user namespace that has numbers for neither, nothing can be proven
expect 1 "*not safe to use*who has no number in this user namespace" as 1002 unshare --user umbel exec h1 -- true
# many of them at once hold up nobody
launch crowd as 1005 /usr/bin/python3 -c '
import os, socket, sys
path = os.environ["UMBEL_RUNTIME_DIR"] + "/default/ctl"
for i in range(5000):
	with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
		s.connect(path)
		if i == 1000:
			print("floods", flush=True)'
wait_said crowd floods
expect 0 '*umbel_h2_0*' as 1002 umbel exec h2 -- ibv_devices
wait_ended crowd 0
expect 0 "fabric 'default' is down" as 1001 umbel down

# ---- groups
expect 2 "umbel: up: 'staff' is no number of a group*" as 1001 umbel up --allow-group staff
expect 2 "*65534 means all groups that it has no number for*" \
	as 1001 unshare --user umbel up --allow-group 65534
expect 0 "*is up: 2 hosts*" as 1001 umbel up --hosts 2 --allow-group 2000,2001 --allow-group 2100
member()
{
	setpriv --reuid 1002 --regid "$1" --groups "$2" umbel exec h2 -- ibv_devices
}
expect 0 '*umbel_h2_0*' member 2001 1002                        # his own group
expect 0 '*umbel_h2_0*' member 1002 5,2000                      # another
expect 0 '*umbel_h2_0*' member 1002 "$(seq -s, 2001 3 2400)"    # 2100, of 134
expect 1 "*its owner has not named user 1002 *" member 1002 2002,2099
expect 1 "*its owner has not named user 1002 *" member 1002 "$(seq -s, 2101 2234)"
expect 1 "*its owner has not named user 1002 *" as 1002 umbel exec h2 -- ibv_devices
expect 0 "fabric 'default' is down" as 1001 umbel down

# ---- one whose programs connect without end, each not often, keeps out neither others nor the owner
told()
{
	grep -q "^turned away: ENFILE: the daemon has few descriptors left, and this user's processes have [0-9]* of them$" \
		"$TMPDIR"/flood*.out
}
flood=$(cat "$where/flood.py")
version=$(sed -n 's/^#define CONTROL_VERSION //p' "$where/../../src/shared/control/message.h")
expect 0 '*is up*' as 1001 bash -c 'ulimit -n 2048 && exec umbel up --hosts 2 --allow-user 1002,1003'
for i in {1..30}; do # not as: its shell would be what is killed
	launch "flood$i" setpriv --reuid 1002 --regid 1002 --clear-groups /usr/bin/python3 -c "$flood" 100 "$version"
done
wait_until "they are told" told
expect 1 "umbel: fabric 'default' cannot be used: its daemon has no descriptors left for this process or user (ulimit -n)" as 1002 umbel exec h2 -- true
expect 0 '*umbel_h2_0*' as 1003 umbel exec h2 -- ibv_devices
expect 0 $'NAME *\ndefault *2 *' as 1001 umbel status
for i in {1..30}; do
	kill_hard "flood$i"
done
expect 0 '*umbel_h2_0*' as 1002 umbel exec h2 -- ibv_devices
expect 0 "fabric 'default' is down" as 1001 umbel down

# ---- what a user has on its way through sockets counts for all its programs (unix(7)): they are told
expect 0 '*is up*' as 1001 bash -c 'ulimit -n 256 && exec umbel up --hosts 1'
launch filler setpriv --reuid 1001 --regid 1001 --clear-groups /usr/bin/python3 -c '
import array, socket, time
pairs = [socket.socketpair() for _ in range(3)]
for pair in pairs:
	fds = array.array("i", [0] * 200)
	pair[0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
print("full", flush=True)
time.sleep(1000)'
wait_said filler full
expect 0 "umbel: fabric 'default' cannot be used: its user has more descriptors on their way through sockets than its daemon may have open (ulimit -n)
*" as 1001 umbel exec -- ibv_devices
kill "${pid[filler]}"
wait_ended filler 143
expect 0 '*umbel_h1_0*' as 1001 umbel exec -- ibv_devices
expect 0 "fabric 'default' is down" as 1001 umbel down

# ---- the same directory, when nobody is named any more, or a killed daemon has left it open
expect 0 '*is up*' as 1001 umbel up --hosts 1 --allow-user 1002
kill -9 "$(field pid default)"
expect 0 '*is up*' as 1001 umbel up --hosts 1
expect 1 "umbel: fabric 'default' *" as 1002 umbel exec h1 -- true
[ "$(stat -c %a "$UMBEL_RUNTIME_DIR/default")" = 700 ] || complain "the fabric's directory is open"
expect 0 "fabric 'default' is down" as 1001 umbel down

# ---- what anybody could have made is no fabric of theirs
export UMBEL_RUNTIME_DIR=$place/all/run
mkdir -m 1777 "$place/all"
expect 0 '*is up*' as 1001 umbel up --hosts 1 --allow-user 1002
expect 1 "*'$UMBEL_RUNTIME_DIR' belongs to another user (1001), and is where anybody may make one" \
	as 1002 umbel exec h1 -- true
expect 0 "*is down" as 1001 umbel down

# ---- a private fabric
export UMBEL_RUNTIME_DIR=$place/owner/run
expect 0 '*umbel_h1_0*' as 1001 umbel run --hosts 1 --allow-user 0,1002 -- ibv_devices
[ -z "$(ls -A /tmp/umbel-1002/.visits 2> /dev/null)" ] || rm -rf /tmp/umbel-1002
cd / && umount -l "$place/build" "$place"
rmdir "$place"
