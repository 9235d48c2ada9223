#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# completion.sh SHARE: completion of umbel's command lines in a real bash (completion.py), with a fabric
# up, without one, and with one whose daemon is stopped.

. "${0%/*}/../system/lib.sh"

umbel up --hosts 3 > /dev/null
settings=$(umbel status --name default --json | sed -n '/"settings"/,/}/s/^ *"\(.*\)": [^{]*$/\1/p')
[ "$(wc -w <<< "$settings")" -ge 10 ] || complain "few settings: $settings"
expect 0 '' "${0%.sh}.py" "$1" "$settings"
daemon=$(field pid default)
kill -STOP "$daemon"
expect 0 '' "${0%.sh}.py" "$1" '' nobody
kill -CONT "$daemon"
umbel down > /dev/null
expect 0 '' "${0%.sh}.py" "$1" '' nobody
