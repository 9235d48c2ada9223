#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# unit.sh PROGRAM: a unit test with libumbel (unit.c) starts its own fabric; nothing is left behind, for which
# in-sandbox.sh looks.

. "${0%/*}/../system/lib.sh"

program=$1
# where an installation has it, the linker looks by itself
export LD_LIBRARY_PATH=${UMBEL%/bin/*}/lib

expect 0 '*PASSED*14 test(s)*' "$program" 'two words' ''
# an empty name is none, as for the command
UMBEL_FABRIC='' expect 0 '*PASSED*14 test(s)*' "$program" 'two words' ''
expect 0 '*UD Send Only*UD Send Only*UD Send Only*' tshark -r "$TMPDIR/unit.pcapng"
expect 0 '' "$program" --no-command
expect 2 '' "$program" one
