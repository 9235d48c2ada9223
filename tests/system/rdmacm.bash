# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the scripts share whose programs connect by rdma_cm. Most servers say nothing when they begin
# to listen: the daemon tells how many do.

. "${BASH_SOURCE[0]%/*}/perftest.bash"

listeners=0	# which listen for ever, or so we think

# serve_cm NAME HOST COMMAND...: until it listens.
serve_cm()
{
	wait_until 'earlier servers have ended' listen "$listeners" || return
	start "server-$1" "${@:2}"
	wait_until "server-$1 listens" listening_or_gone "$1"
}

listen()
{
	[ "$(field listeners default)" -eq "$1" ]
}

listening_or_gone()
{
	listen $((listeners + 1)) || gone "${pid[server-$1]}"
}

server_host=h1 client_host=h2

# split WORD... -- WORD...: of the server those before the dashes, in $server; of the client the others, in $client.
split()
{
	server=()
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	client=("${@:2}")
}

# run_pair NAME SERVER_COMMAND -- CLIENT_COMMAND: on these hosts, until both have ended well.
run_pair()
{
	local name=$1 server client
	split "${@:2}"
	serve_cm "$name" $server_host "${server[@]}"
	start "client-$name" $client_host "${client[@]}"
	wait_ended "client-$name" 0
	wait_ended "server-$name" 0
}
