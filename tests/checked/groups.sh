#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Checked programs that are wrong about groups on other fabrics than checked.sh has: with partitions, and with RoCE, where
# attaching joins or does not. Each beside its right twin.

# groups.sh PROGRAM: checked.mistakes.

. "${0%/*}/../system/lib.sh"

. "${0%/*}/twins.sh"

cat > partitions << 'end'
Default=0x7fff, ipoib, mtu=4 : ALL=full ;
Second=0x8002 : ALL=full ;
end
twins group-mtu 'group-mtu ' umbel run --partitions partitions --hosts 2 --
twins group-pkey 'group-pkey ' umbel run --partitions partitions --hosts 2 --
twins attached-at-the-end 'attached-not-joined objects-left ' umbel run --hosts 2 --

for joins in 1 0; do
	umbel up --roce-hosts 1 --set roce_attach_joins=$joins > /dev/null || exit 1
	twins attached-on-roce 'attached-not-joined ' umbel exec r1 --
	umbel down
done
