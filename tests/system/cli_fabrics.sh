#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Fabrics come up and go down, side by side; programs find their host; the dead are replaced.

. "${0%/*}/lib.sh"

# ---- none is up
expect 0 "no fabric is up in '$UMBEL_RUNTIME_DIR'; start one with: umbel up" umbel status
expect 0 '[[]*]' umbel status --json
expect 1 "umbel: no fabric 'default' is up in '$UMBEL_RUNTIME_DIR'; start one with: umbel up" umbel exec h1 -- true
expect 1 "umbel: no fabric 'x' is up in '$UMBEL_RUNTIME_DIR'; start one with: umbel up --name x" umbel show -n x hosts
expect 1 "umbel: no fabric 'default' is up in *" umbel status --name default
expect 1 "umbel: no fabric 'default' is up in *" umbel down
# the directory says whose environment is wrong
expect 1 "umbel: no fabric 'default' is up in '/run/user/none/umbel'; *" \
	env -u UMBEL_RUNTIME_DIR XDG_RUNTIME_DIR=/run/user/none umbel exec h1 -- true
expect 0 "no fabric is up in '/run/user/none/umbel'; *" \
	env -u UMBEL_RUNTIME_DIR XDG_RUNTIME_DIR=/run/user/none umbel status
expect 0 '' umbel down --all

# ---- one is up whose daemon is of another version: it refuses our first words. It ends by the signal by which all end
launch other python3 -u -c '
import os, socket, struct, sys, threading
def refuse(peer):
    kind, serial = struct.unpack("2I", peer.recv(2048)[:8])
    peer.send(struct.pack("2IiI", kind, serial, -71, 0))
os.makedirs(sys.argv[1], 0o700)
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(sys.argv[1] + "/ctl")
listener.listen()
print("listens")
while True:
    threading.Thread(target=refuse, args=(listener.accept()[0],), daemon=True).start()' "$UMBEL_RUNTIME_DIR/other"
wait_said other listens
expect 1 "umbel: fabric 'other' is of another version of Umbel: *'umbel down --name other'" umbel exec --name other h1 -- true
expect 1 "umbel: fabric 'other' is of another version of Umbel: *" umbel status
expect 0 "fabric 'other' is down" umbel down --name other
wait_ended other 143
rm -r "$UMBEL_RUNTIME_DIR/other"

# ---- two are up
expect 0 "fabric 'default' is up: 3 hosts, daemon pid *" umbel up --hosts 3
expect 0 "fabric 'big' is up: 12 hosts, daemon pid *" umbel up --name big --hosts 12 \
	--set mtu=2048
pid=$(field pid default)
expect 1 "umbel: fabric 'default' is already up (pid $pid); 'umbel down' ends it" umbel up
# what a hint says works wherever it is typed
pid_big=$(field pid big)
expect 1 "umbel: fabric 'big' is already up (pid $pid_big); 'umbel down --name big' ends it" umbel up -n big
UMBEL_FABRIC=big expect 1 "umbel: fabric 'default' is already up (pid $pid); 'umbel down --name default' ends it" \
	umbel up -n default
UMBEL_FABRIC=nope expect 1 "umbel: no fabric 'nope' is up in *; start one with: umbel up --name nope" umbel exec -- true
expect 0 $'NAME *\nbig * 12 *\ndefault * 3 *' umbel status
expect 0 $'NAME *\nbig *\nmtu * 2048\n*' umbel status --name big
expect 0 $'*\nports with a cable: 24 active\n*' umbel status --name big
UMBEL_FABRIC=big expect 0 $'HOST *\nh12 *' umbel show hosts
expect 0 $'HOST *\nh1 * 10.0.0.1 *\nh3 *' umbel show hosts
expect 0 $'[[]*"name": "h1",*]' umbel show --json hosts
expect 0 $'NODE *\nsw1 *' umbel show topology
expect 0 $'SWITCH *\nsw1 *' umbel show routes
expect 0 '*' umbel show groups
expect 0 '*' umbel show counters

# ---- settings that may change, and others
expect 0 '' umbel set sa_send_only=0
expect 0 $'*\nsa_send_only *0\n*' umbel status --name default
expect 1 "umbel: setting 'mtu' cannot change while the fabric is up" umbel set mtu=1024
expect 2 "umbel: no setting 'bogus'" umbel set bogus=1
expect 2 "umbel: setting 'sa_send_only' cannot be '7': *" umbel set sa_send_only=7

# ---- programs
expect 1 "umbel: no host 'h9' in fabric 'default': it has h1 h2 h3" umbel exec h9 -- true
expect 1 "umbel: no host 'h0' in fabric 'big': it has h1…h12" umbel exec -n big h0 -- true
expect 7 '' umbel exec h1 -- sh -c 'exit 7'
expect 127 "umbel: cannot run 'nonesuch': No such file or directory" umbel exec h1 -- nonesuch
expect 126 "umbel: cannot run '/etc': Permission denied" umbel exec h1 -- /etc
expect 0 "h2 default $UMBEL_RUNTIME_DIR" umbel exec h2 -- \
	sh -c 'echo $UMBEL_HOST $UMBEL_FABRIC $UMBEL_RUNTIME_DIR'
expect 0 'h12 big' umbel exec -n big h12 -- sh -c 'echo $UMBEL_HOST $UMBEL_FABRIC'
expect 0 'none' umbel exec h1 -- umbel exec -- sh -c 'echo ${UMBEL_HOST-none}'
# twice, but the directories once
expect 0 "$UMBEL_LIBDIR:/x" env LD_LIBRARY_PATH=/x umbel exec h1 -- \
	umbel exec h2 -- sh -c 'echo $LD_LIBRARY_PATH'

# ---- a daemon that was killed
kill -9 "$pid"
wait_until "the daemon is dead" gone "$pid"
expect 1 "umbel: no fabric 'default' is up in *" umbel exec h1 -- true
expect 0 $'NAME *\nbig *' umbel status
expect 0 "fabric 'default' is up: 4 hosts, *" umbel up
expect 0 "fabric 'default' is down" umbel down
# what is no fabric's stays
mkdir "$UMBEL_RUNTIME_DIR/mine" && touch "$UMBEL_RUNTIME_DIR/mine/log"
umbel up > /dev/null
pid=$(field pid default)
kill -9 "$pid"
wait_until "the daemon is dead" gone "$pid"
pid=$(field pid big)
# ---- all of them: asked first, and not those on which programs run
umbel up --name empty --hosts 2 > /dev/null
umbel exec -n big h1 -- ibv_devinfo > /dev/null
launch reader umbel exec -n big h1 -- ibv_asyncwatch
has_program()
{
	[[ $(umbel show -n big processes) == *asyncwatch* ]]
}
wait_until 'it runs' has_program
expect 2 "*umbel: fabric 'big', on which 1 program runs, stays (--force ends it, too)
umbel: fabric 'empty' ends
umbel: down: --all needs --yes where nobody can be asked; *" umbel down --all
expect 2 'umbel: down: --yes and --force go with --all; *' umbel down --yes
expect 0 '*' umbel status --name empty
expect 1 "umbel: fabric 'big', on which 1 program runs, stays (--force ends it, too)
fabric 'empty' is down" umbel down --all --yes
expect 1 '*' umbel status --name empty
# on a terminal it asks
printf 'n\n' | expect 1 '*Is that right?*' script -qec 'umbel down --all --force' /dev/null
expect 0 '*' umbel status --name big
kill_hard reader
has_none()
{
	! has_program
}
wait_until 'it is gone' has_none
expect 0 "fabric 'big' is down" umbel down --all --yes
rm "$UMBEL_RUNTIME_DIR/mine/log" || complain "'umbel down --all' removed what is not its own"
rmdir "$UMBEL_RUNTIME_DIR/mine"
gone "$pid" || complain "'umbel down' came back before the daemon was gone"
[ -z "$(find "$UMBEL_RUNTIME_DIR" -mindepth 1)" ] || complain "something was left"
