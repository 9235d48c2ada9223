#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Clients of `umbel ibsim` that lie, flood, die, are many, or are another user's: they cost
# themselves. Neither the server nor the daemon minds.

. "${0%/*}/ibsim.bash"

umbel up --hosts 3 > /dev/null
daemon=$(field pid default)
UMBEL_LOG=ibsim=error ibsim_for server default || exit
launch hostile python3 "${0%.sh}.py" 3 "${pid[server]}"
wait_ended hostile 0
[ "$(field pid default)" = "$daemon" ] || complain 'the daemon has died'
expect 0 '*h1*h2*h3*' at h2 sh -c 'ibhosts | sort -k 6'
expect 0 '*h3*' umbel exec h1 -- ibhosts
kill "${pid[server]}"
wait_ended server 0
