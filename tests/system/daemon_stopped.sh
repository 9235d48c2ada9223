#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A daemon that is stopped, before a command comes and while one runs: the command says so, and ends when it should.

. "${0%/*}/lib.sh"

silent()
{
	echo "umbel: fabric '$1' does not answer: its daemon is stopped or stuck; 'umbel down --name $1' ends it"
}

# ---- before
for name in able baker charlie; do
	umbel up --name $name --hosts 2 > /dev/null || complain "no fabric $name"
done
daemon=$(field pid baker)
kill -STOP "$daemon"
expect 1 "$(silent baker)"$'\nNAME *\nable *\ncharlie *' umbel status
expect 1 "$(silent baker)" umbel status --name baker
expect 1 "$(silent baker)" umbel up --name baker
umbel down --name able > /dev/null && umbel down --name charlie > /dev/null || complain 'they do not end'
expect 1 "$(silent baker)" umbel status
expect 1 "$(silent baker)"$'\n[[]*]' umbel status --json
kill -CONT "$daemon"
expect 0 $'NAME *\nbaker *' umbel status
