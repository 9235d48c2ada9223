# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the scripts share that run pairs of programs on the lab's hosts (lab.sh): a server and a client, which
# find each other by TCP.

server_on=h1 client_on=h2 server_address=192.0.2.1

# listens HOST PORT: whether a program does there.
listens()
{
	on "$1" bash -c "$(declare -f port_in_state); port_in_state $2 0A"
}

# begin_pair NAME COMMAND...: both begin. The client is told its server's address.
begin_pair()
{
	local name=$1
	shift
	new_port
	start_on "server-$name" $server_on "$@" -p "$port"
	wait_until "server-$name listens" listens $server_on "$port" || return
	start_on "client-$name" $client_on "$@" -p "$port" $server_address
}

# end_pair NAME: both end well.
end_pair()
{
	wait_ended "client-$1" 0
	wait_ended "server-$1" 0
}

# whole_pair NAME COMMAND...: one after the other
whole_pair()
{
	begin_pair "$@" && end_pair "$1"
}
