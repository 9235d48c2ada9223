#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Checked programs that are wrong about groups on other fabrics than checked.sh has: with partitions, with RoCE, where
# attaching joins or does not, and with OpenSM. Each beside its right twin.

# groups.sh PROGRAM: checked.mistakes.

. "${0%/*}/../system/opensm.bash"

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

# its SA responds once its first sweep is done
joins()
{
	umbel exec -- "$1" attached-first right > joins 2>&1
}
umbel up --hosts 3 --sm none > /dev/null || exit 1
opensm manager h3
wait_until 'OpenSM lets members join' joins "$1"
twins attached-first 'attached-not-joined ' umbel exec --
twins sent-not-joined 'group-send-not-joined ' umbel exec --
twins group-sl 'group-sl ' umbel exec --
umbel down
