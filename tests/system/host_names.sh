#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Hosts without a network of their own have no names. A program that looks one up is told so, and the addresses to write instead
# work as docs/hosts.md says, in several fabrics side by side.

. "${0%/*}/lib.sh"

hint="umbel: host 'h1' has no name on the machine's network, *[(]--ipoib[)]; *127.0.0.1, for rdma_cm 10.0.0.1"
expect 1 "*$hint"$'\n*' umbel run --hosts 2 -- umbel exec h2 -- ibv_rc_pingpong h1
expect 1 "*$hint"$'\n*' umbel run --hosts 2 --host h2 -- ib_write_bw h1
expect 254 "*$hint"$'\n*' umbel run --hosts 2 -- rping -c -a h1
# once, however often it asks; and no other name
expect 0 1 umbel run --hosts 2 -- sh -c 'getent ahosts h1 h1 h1 2>&1 | grep -c "has no name"'
expect 2 '' umbel run --hosts 2 -- getent ahosts h3.invalid
expect 0 '127.0.0.1 *' umbel run --hosts 2 -- getent ahostsv4 127.0.0.1
expect 2 '' getent ahosts h1

# the lines of docs/hosts.md
doc=${0%/*}/../../docs/hosts.md
# shellcheck disable=SC2016
assignment=$(grep -o '`port=[^`]*`' "$doc" | tr -d '`')
[ "$assignment" ] || complain "docs/hosts.md does not say how to choose a port"
# A client may come before its server listens, and perftest's server listens twice, for two connections: a client that tries
# again would meet the second. So each has a server of its own, and later ones give it more time.
# shellcheck disable=SC2016
pair=$assignment'; out=$TMPDIR/$UMBEL_FABRIC
	for delay in 0.1 0.2 0.5 1 2 5 5 5; do
		eval "exec timeout 40 umbel exec h1 -- $1" > $out.server 2>&1 & server=$!
		sleep $delay
		eval "timeout 20 umbel exec h2 -- $2" > $out.client 2>&1 || grep -q "remote address:" $out.client && break
		kill $server
		wait $server
	done
	wait $server; grep -q "remote address:" $out.client && grep -q "remote address:" $out.server'
mapfile -t rows < <(sed -n 's/^| [^|]* | `\(i[^`]*\)` | `\([^`]*\)` |$/\1|\2/p' "$doc")
[ "${#rows[@]}" -eq 2 ] || complain "docs/hosts.md has not two lines with a server and a client"
for row in "${rows[@]}"; do
	for run in 1 2 3; do
		launch $run umbel run --hosts 2 -- bash -c "$pair" pair "${row%|*}" "${row#*|}"
	done
	for run in 1 2 3; do
		wait_ended $run 0
	done
done
[ $failed -eq 0 ] || tail -n 3 "$TMPDIR"/*.client "$TMPDIR"/*.server >&2
