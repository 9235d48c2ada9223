#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs that sudo starts: by themselves they see no device, and by the two ways of docs/sysfs.md they do. Skipped where
# sudo asks for a password.

. "${0%/*}/lib.sh"

sudo -n true 2> /dev/null || exit 77
umbel up --hosts 2 > /dev/null
umbel exec h1 -- sudo -n -E ibv_devices > "$TMPDIR/alone" 2>&1
! grep -q umbel_h1_0 "$TMPDIR/alone" || complain "sudo -E passes LD_LIBRARY_PATH on: docs/sysfs.md says that it does not"
# shellcheck disable=SC2016
expect 0 '*umbel_h1_0 *' umbel exec h1 -- sh -c \
	'sudo -n -E env LD_LIBRARY_PATH="$LD_LIBRARY_PATH" LD_PRELOAD="$LD_PRELOAD" ibv_devices'
expect 0 '*umbel_h1_0 *' sudo -n UMBEL_RUNTIME_DIR="$UMBEL_RUNTIME_DIR" "$UMBEL" exec h1 -- ibv_devices
umbel down > /dev/null
