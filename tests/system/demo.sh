#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The demo says who received what, shows the group with its members and tree, and succeeds.

. "${0%/*}/lib.sh"

expect 0 "*
  h1  mckey -m 239.1.1.1 -b 10.0.0.1 *
  h4  mckey -m 239.1.1.1 -b 10.0.0.4 * -s

*
  MGID      ff12:4001:ffff::f01:101
  MLID      0xc001 *
  members   h1 full, h2 full, h3 full, h4 full
  attached  h1 QP *
  tree      sw1: ports 1 2 3 4

*
  h4  10.0.0.4  sent 10 messages of 100 bytes
  h1  10.0.0.1  received 10 messages of 100 bytes
  h2  10.0.0.2  received 10 messages of 100 bytes
  h3  10.0.0.3  received 10 messages of 100 bytes*" "${0%/*}/../../tools/demo.sh" "$UMBEL"
