#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs that need what we lack (XRC by rdma_cm) end at once, with a message.

. "${0%/*}/lib.sh"

umbel up --hosts 2 > /dev/null

# ---- rdma_cm
expect 255 '*rdma_listen: Operation not supported*' umbel exec h1 -- rdma_xserver -c x
