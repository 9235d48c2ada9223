#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# libfabric as Debian ships it lists the device and sends by RC, by UD, and with its own
# reliable messages above UD.

. "${0%/*}/lib.sh"

# exchange PROVIDER ENDPOINT
exchange()
{
	new_port
	start server h2 fi_pingpong -B "$port" -p "$1" -e "$2" -I 500 -S 1024
	wait_listening server "$port" || return
	expect 0 '*1k*500*' umbel exec h1 -- fi_pingpong -P "$port" -p "$1" -e "$2" -I 500 -S 1024 localhost
	wait_ended server 0
}

umbel up --hosts 2 > /dev/null
expect 0 '*domain: umbel_h1_0-dgram*FI_PROTO_IB_UD*' umbel exec h1 -- fi_info -p verbs
exchange verbs msg
exchange verbs dgram
exchange 'verbs;ofi_rxd' rdm
