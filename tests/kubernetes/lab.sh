# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Nodes for a test: each has a device plugin, the kubelet of kubelet.py, and containers with what that got for a device. Sourced in
# place of tests/system/lib.sh, or after it, by a script whose argument is umbel-device-plugin.

[ "$(type -t expect)" ] || . "$(dirname "${BASH_SOURCE[0]}")/../system/lib.sh"
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
plugin=${1-}
container=$here/container.sh # or another command that takes what it takes

# of a node: the command that starts others on it, in words, and its fabric's name, if it is not the default one
declare -A enter=() fabric=()

# node_up NODE OPTIONS DEVICE...: the plugin runs with these options, and kubelet has got the devices
node_up()
{
	local directory=$TMPDIR/$1

	mkdir -p "$directory/plugins"
	# shellcheck disable=SC2086 # words
	launch "plugin-$1" ${enter[$1]-} "$plugin" --kubelet "$directory/plugins" --libraries "$directory/lib" $2
	# shellcheck disable=SC2086
	launch "kubelet-$1" ${enter[$1]-} "$here/kubelet.py" "$directory/plugins" "$directory" "${@:3}"
	wait_ended "kubelet-$1" 0
}

# node_down NODE: as when a node drains
node_down()
{
	kill "${pid[plugin-$1]}"
	wait_ended "plugin-$1" 0
}

# in_pod NODE DEVICE COMMAND...
in_pod()
{
	# shellcheck disable=SC2086
	${enter[$1]-} "$container" "$TMPDIR/$1" "${@:2}"
}

# pod NAME NODE DEVICE COMMAND...: in the background. To kill it is to kill its container.
pod()
{
	# shellcheck disable=SC2086
	launch "$1" ${enter[$2]-} "$container" "$TMPDIR/$2" "$3" stdbuf -oL "${@:4}"
}

end_pod()
{
	kill_hard "$1"
}

# listens NODE: one program on that node's fabric does, by rdma_cm, or the pod "server" has ended
listens()
{
	[ "$(field listeners "${fabric[$1]-default}")" = 1 ] || gone "${pid[server]}"
}

# pair NODE DEVICE PROGRAM... -- NODE DEVICE PROGRAM...: a server and its client, who meet by rdma_cm. perftest's client may be
# refused; then both once more.
pair()
{
	wait_until "$3 connects" try_pair "$@"
	wait_ended client 0
	wait_ended server 0
}

try_pair()
{
	local server=()

	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	pod server "${server[@]}"
	wait_until "${server[2]} listens" listens "${server[0]}" || return 0
	pod client "${@:2}"
	wait_until "$4 ends" gone "${pid[client]}"
	is_refused client || return 0
	end_pod server
	return 1
}

# bandwidth: what the client of perftest has printed for messages of 64 KiB is more than 0
bandwidth()
{
	awk '$1 == 65536 && $4 > 0 { found = 1 } END { exit !found }' "$TMPDIR/client.out" || complain "no bandwidth"
}
