#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The action for GitHub's workflows, and the template for GitLab: plain steps behind it, without umbel exec,
# see the devices that its inputs say.

. "${0%/*}/lib.sh"

# workflow INPUT... STEP...: prints what the steps say
workflow()
{
	"${0%/*}/github.py" "$@" 2> "$TMPDIR/action.log" || {
		local status=$?
		cat "$TMPDIR/action.log"
		return $status
	}
}

down()
{
	umbel down --all --yes --force > /dev/null
}

devices='ibv_devices | awk "NR > 2 { print \$1 }"; ls /sys/class/infiniband'

expect 0 $'umbel_h1_0\numbel_h1_0' workflow "$devices"
[[ $(< "$TMPDIR/action.log") == "fabric 'default' is up: 1 host, daemon pid "* ]] || complain 'the action says more'
down
expect 0 $'mlx5_0\nmlx5_1\nmlx5_0\nmlx5_1\nmlx5_0\nmlx5_1' workflow hosts=2 hcas=2 names=mlx5_%d "$devices" \
	'umbel exec h2 -- ls /sys/class/infiniband'
down
expect 0 $'h1.mlx5_0\nh2.mlx5_0\n4096' workflow hosts=2 names=mlx5_%d host=all 'options=--set mtu=2048 --set max_qp_wr=4096' \
	'ls /sys/class/infiniband; ibv_devinfo -v -d h1.mlx5_0 | sed -n "s/.*max_qp_wr:[[:blank:]]*//p"'
down

# other shapes, by options; the inputs that nobody gives say nothing of them
printf 'fwver=16.35.2000\nCa 1 "H-0000000000000020" # "node1 mlx5_0"\n[1] "S-0000000000000010"[1]\n' > "$TMPDIR/net"
printf 'Ca 1 "H-0000000000000030" # "node1 mlx5_1"\n[1] "S-0000000000000010"[2]\n' >> "$TMPDIR/net"
printf 'Switch 4 "S-0000000000000010" # "sw1"\n' >> "$TMPDIR/net"
expect 0 $'mlx5_0\nmlx5_1\n16.35.2000' workflow "options=--topology $TMPDIR/net" host=node1 \
	'ls /sys/class/infiniband; cat /sys/class/infiniband/mlx5_0/fw_ver'
down
expect 0 8 workflow 'options=--fat-tree 2 --radix 4' 'umbel exec -- ls /sys/class/infiniband | wc -l'
down
expect 0 $'r1\nr2' workflow 'options=--roce-hosts 2' host=all "umbel show hosts | sed -n '2,\$s/ .*//p'"
down
expect 0 umbel_lo workflow 'options=--roce lo' 'ls /sys/class/infiniband'
down
expect 0 $'umbel_h1_0\numbel_lo' workflow 'options=--roce lo@h1' 'umbel exec -- ls /sys/class/infiniband'
down
expect 0 3 workflow hcas=3 'umbel exec -- ls /sys/class/infiniband | wc -l'
down
expect 2 '*--hosts does not go with --topology*' workflow hosts=2 "options=--topology $TMPDIR/net" true

# RoCE on the device that leads out, or lo, and on one that is named
expect 0 $'1\n*Ethernet' workflow roce=true names=rocep%ds0 \
	'ls -d /sys/class/infiniband/rocep0s0 | wc -l; ibv_devinfo -d rocep0s0 | grep link_layer'
down
expect 0 umbel_lo workflow roce=true netdev=lo 'ls /sys/class/infiniband'
down

# Umbel itself comes as an archive, which is unpacked where the job's files are: that of the machine's processor, and an umbel
# on the PATH does not matter. {arch} is what uname says.
mkdir "$TMPDIR/bin" "$TMPDIR/temp"
cmake --install "${UMBEL%/bin/umbel}" --strip --prefix "$TMPDIR/umbel-0-linux-amd64" > /dev/null || complain 'not installed'
tar -C "$TMPDIR" -I 'gzip -1' -cf "$TMPDIR/umbel-amd64.tar.gz" umbel-0-linux-amd64
RUNNER_TEMP=$TMPDIR/temp expect 0 $'mlx5_0\n'"$TMPDIR/temp/umbel.*/bin/umbel" workflow \
	"package=$TMPDIR/umbel-{arch}.tar.gz" names=mlx5_%d 'ls /sys/class/infiniband; command -v umbel'
down
# in another shell
INPUT_PACKAGE=$TMPDIR/umbel-{arch}.tar.gz expect 0 $'*fabric \'default\' is up*\numbel_h1_0\n'"$TMPDIR/umbel.*/bin/umbel" \
	sh -c 'eval "$("$0")"; ls /sys/class/infiniband; command -v umbel' "${0%/*}/../../packaging/ci-start.sh"
down
printf '#!/bin/sh\necho aarch64\n' > "$TMPDIR/bin/uname"
chmod +x "$TMPDIR/bin/uname"
PATH=$TMPDIR/bin:$PATH expect 1 "*there is no archive '$TMPDIR/umbel-arm64.tar.gz'*" workflow "package=$TMPDIR/umbel-{arch}.tar.gz" true
echo 'no archive' > "$TMPDIR/no.tar.gz"
expect 1 "*is no archive of Umbel*" workflow "package=$TMPDIR/no.tar.gz" true

# in two steps: programs in loopback, by verbs and by rdma_cm
new_port
expect 0 '*65536 *200 *' workflow names=mlx5_%d "
	ib_write_bw -F -d mlx5_0 -p $port -n 200 > /dev/null & until ss -ltn | grep -q :$port; do sleep 0.1; done
	ib_write_bw -F -d mlx5_0 -p $port -n 200 127.0.0.1; wait"
expect 0 '*test complete*return status 0*' workflow name=other "
	stdbuf -oL mckey -b 10.0.0.1 -m 239.1.1.1 -c 1 -C 5 > $TMPDIR/receiver &
	until grep -q 'joined dgid' $TMPDIR/receiver; do sleep 0.1; done
	mckey -b 10.0.0.1 -m 239.1.1.1 -c 1 -C 5 -s; wait; cat $TMPDIR/receiver"
down

expect 0 mlx5_0 workflow name=other names=mlx5_%d 'umbel down -n default 2> /dev/null || true; ls /sys/class/infiniband'
down

# what is wrong ends the step, and the job
expect 1 '*roce is true or false*' workflow roce=yes true
expect 1 "*there is no package 'no.deb'*" workflow package=no.deb true
expect 1 "*is one host's*" workflow roce=true hosts=2 true
expect 1 "*no host 'h2'*" workflow host=h2 true
down

# as a script of GitLab's: its lines in one shell, which goes on
lines=$(/usr/bin/python3 -c '
import sys, yaml
job = yaml.safe_load(open(sys.argv[1]))[".umbel"]
print("\n".join(f"export {name}={value!r}" for name, value in job["variables"].items()))
print("\n".join(job["before_script"]))' "${0%/*}/../../packaging/gitlab-ci.yml") || complain 'no template'
ln -s "$(realpath "${0%/*}/../..")" "$TMPDIR/umbel"
expect 0 $'*fabric \'default\' is up*\numbel_h1_0\numbel_h1_0' env -C "$TMPDIR" sh -ec "$lines
$devices"
