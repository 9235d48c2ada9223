# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# The two sides of a test here: h1, a host with Umbel, and v11, a machine with the kernel's
# rdma_rxe. Sourced; brings both up. A program is started the same way at either.

. "${0%/*}/../roce/lab.sh"
. "${0%/*}/../machine/lib.sh"

ports=0
declare -A ip4=([h1]=192.0.2.1 [v11]=192.0.2.11)
declare -A ip6=([h1]=2001:db8::1 [v11]=2001:db8::11)
declare -A gid4=() gid6=() gid_local=()	# where they are in the port's table

# other SIDE: the other one.
other()
{
	case $1 in
	h1) echo v11 ;;
	v11) echo h1 ;;
	esac
}

# at SIDE COMMAND...
at()
{
	case $1 in
	h*) umbel_on "$1" exec -- "${@:2}" ;;
	v*) machine "$@" ;;
	esac
}

# start_at NAME SIDE COMMAND...: in the background.
start_at()
{
	case $2 in
	h*) start_on "$@" ;;
	v*) machine_launch "$1" "$2" stdbuf -oL "${@:3}" ;;
	esac
}

# gid_index SIDE GID: a pattern for it, anchored.
gid_index()
{
	at "$1" ibv_devinfo -v |
		sed -n "s/^.*GID\[ *\([0-9]*\)\]:[[:space:]]*$2, RoCE v2\$/\1/p"
}

# sides_up: both sides, and a capture of what is between them.
sides_up()
{
	local side

	lab_up 1
	machine_up v11
	roce_up h1
	capture v11
	for side in h1 v11; do
		gid4[$side]=$(gid_index $side "::ffff:${ip4[$side]}")
		gid6[$side]=$(gid_index $side "${ip6[$side]}")
		gid_local[$side]=$(gid_index $side 'fe80:.*')
	done
}

# ---- pairs of a server and a client, which find each other by TCP

# for_side SIDE WORD...: sets $words: @gid4, @gid6 and @gid_local are the side's.
for_side()
{
	local side=$1 word
	shift
	words=()
	for word in "$@"; do
		word=${word/@gid4/${gid4[$side]}}
		word=${word/@gid6/${gid6[$side]}}
		words+=("${word/@gid_local/${gid_local[$side]}}")
	done
}

# pair NAME CLIENT COMMAND...: runs the command at both sides; the client's has the server's
# address behind it. The port is its -p.
pair()
{
	local name=$1 client=$2 server port=$((19000 + ++ports)) words
	shift 2
	server=$(other "$client")
	for_side "$server" "$@"
	start_at "server-$name" "$server" "${words[@]}" -p $port
	wait_listening_at "server-$name" "$server" $port
	for_side "$client" "$@"
	start_at "client-$name" "$client" "${words[@]}" -p $port "${ip4[$server]}"
	wait_ended "client-$name" 0
	wait_ended "server-$name" 0
	[ $failed -eq 0 ] || exit 1
}

# both_ways NAME COMMAND...: the pair, then with server and client exchanged.
both_ways()
{
	pair "$1-to-kernel" h1 "${@:2}"
	pair "$1-from-kernel" v11 "${@:2}"
}

# wait_listening_at NAME SIDE PORT: until the server listens. One command polls: each costs a
# machine a tenth of a second.
wait_listening_at()
{
	at "$2" timeout 100 bash -c \
		"until grep -qs ': [0-9A-F]*:$(printf %04X "$3") [0-9A-F:]* 0A' /proc/net/tcp{,6}
		do sleep 0.05; done" || complain "$1 does not listen"
}
