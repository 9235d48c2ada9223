# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the scripts share that run fio's rdma engine, between $server_host and $client_host. $engine: options that
# all have.
#
# fio retries nothing when no receive is posted. Its client waits half a second for the server to
# post them; a busy machine may need longer. Such a pair is started anew.

. "${BASH_SOURCE[0]%/*}/rdmacm.bash"

address=10.0.0.1 # of $server_host

cd "$TMPDIR" || exit # fio keeps a file of what it could not verify

# end NAME: by force, with the processes of its jobs.
end()
{
	pkill -9 -P "${pid[$1]}"
	kill -9 "${pid[$1]}"
	wait "${pid[$1]}"
	ended[$1]=137
} 2> /dev/null

not_ready_or_gone()
{
	says "$1" 'fio: cq completion status 13(RNR' || gone "${pid[$1]}"
}

# ask NAME OPTION...: the client, until it has ended. Nonzero: the server was not ready.
ask()
{
	local name=$1
	shift
	start "client-$name" $client_host fio "$@"
	wait_until "client-$name ends" not_ready_or_gone "client-$name"
	says "client-$name" 'fio: cq completion status 13(RNR' || return 0
	end "client-$name"
	end "server-$name"
	return 1
}

# try NAME [SERVER_OPTION...] -- [CLIENT_OPTION...]: as ask, with its server.
try()
{
	local name=$1 server client
	split "${@:2}"
	serve_cm "$name" $server_host fio "${engine[@]}" --rw=read "${server[@]}"
	ask "$name" "${engine[@]}" --rw=write --hostname=$address "${client[@]}"
}

# pair NAME SERVER_STATUS [SERVER_OPTION...] -- [CLIENT_OPTION...]
pair()
{
	local name=$1 status=$2
	shift 2
	wait_until "$name is in time" try "$name" "$@"
	wait_ended "client-$name" 0
	wait_ended "server-$name" "$status"
	expect_said "client-$name" ".*err= 0: " ' *issued rwts: total=0,[0-9]*,0,0 short=0,0,0,0'
}
