# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the mckey_*.sh share: mckey from Debian's rdmacm-utils as sender and as receiver. It
# sleeps 3 s after it has joined, so they run many at once. A receiver polls until all its
# messages are there; it never ends if one is missing.

. "${BASH_SOURCE[0]%/*}/lib.sh"

# receive NAME HOST OPTION...: until it has joined, so that it misses nothing.
receive()
{
	local name=$1 host=$2
	shift 2
	start "$name" "$host" mckey "$@"
}

# send NAME HOST OPTION...
send()
{
	local name=$1 host=$2
	shift 2
	start "$name" "$host" mckey -s "$@"
}

# wait_joined NAME [CONNECTIONS]: until it has joined, with all its connections.
wait_joined()
{
	wait_said "$1" 'mckey: joined dgid: ' "${2:-1}"
}

# joined NAME: the MGID that it has joined.
joined()
{
	sed -n 's/^mckey: joined dgid: \([^ ]*\) .*/\1/p' "$TMPDIR/$1.out" | head -n 1
}

# The same of the MLID.
joined_mlid()
{
	sed -n 's/^mckey: joined dgid: .* mlid \([^ ]*\) .*/\1/p' "$TMPDIR/$1.out" | head -n 1
}

# wait_complete NAME...: until each has sent or received all its messages and ended well.
wait_complete()
{
	local name

	for name; do
		wait_ended "$name" 0
		expect_said "$name" 'data transfers complete' 'return status 0'
	done
}

# group MGID: that group as `umbel show groups` tells it; nothing if it is not there.
group()
{
	umbel show groups | awk -v RS= -v mgid="$1" '$1 == mgid'
}

# The names of the groups that are there, but for the IPoIB broadcast group, which always is.
groups()
{
	umbel show groups | sed -n '/^ff12:401b:ffff::ffff:ffff/d; s/^\(ff[^ ]*\)$/\1/p'
}
