# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# For tests of programs whose packages no other test needs: installs them, if they are missing (debian-packages, "guests", or $needs).

here=$(dirname "${BASH_SOURCE[0]}")
(cd "$here/../.." && . tools/lib.sh && need_packages "${needs:-guests}" > /dev/null) || exit
. "$here/../system/lib.sh"
