#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ends-fabric.sh UMBEL run ... -- PROGRAM: for a program that ends the daemon of its fabric. `umbel run`
# answers 125 then, and says what the program's own status was: that is to be 0.

set -u

{ said=$("$@" 2>&1 >&3 3>&-); } 3>&1
status=$?
printf '%s\n' "$said" >&2
[ $status -eq 125 ] && [[ $said == *"the command's status was 0"* ]]
