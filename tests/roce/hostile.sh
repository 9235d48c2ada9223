#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The hostile client of tests/death on a fabric of Ethernet ports: what it sends, forged MADs and
# requests for sockets among it, and what it scribbles over the shared memory bring nobody down.

. "${0%/*}/lab.sh"

lab_up 1
expect 0 '*' on h1 umbel run --roce eth0 -- "$programs_dir/death.hostile"
