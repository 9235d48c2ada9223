#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# hwloc's lstopo shows a host's HCAs as devices of OpenFabrics, with the identities and the state of their ports.

. "${0%/*}/lib.sh"

umbel up --hosts 2 --hcas 2 --device-names 'mlx5_%d' > /dev/null
expect 0 $'OpenFabrics "mlx5_0"\nOpenFabrics "mlx5_1"' sh -c "umbel exec h2 -- lstopo-no-graphics | sed -n 's/^ *\(OpenFabrics\)/\1/p'"
guid=$(umbel exec h2 -- cat /sys/class/infiniband/mlx5_1/node_guid)
umbel exec h2 -- lstopo-no-graphics --of xml > "$TMPDIR/xml"
expect 0 "*$guid*" cat "$TMPDIR/xml"
expect 0 2 grep -c 'name="Port1State" value="4"' "$TMPDIR/xml"
expect 0 '' umbel link down h2.mlx5_1:1
umbel exec h2 -- lstopo-no-graphics --of xml > "$TMPDIR/xml"
expect 0 1 grep -c 'name="Port1State" value="4"' "$TMPDIR/xml"
