#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The recipe packaging/Containerfile and every command of docs/ci.md, section "A container", in containers as
# Docker's are by default (docker.bash). ./run package has made the package (test reach.package_build).

. "$(dirname "$0")/docker.bash"

# block HEADING: the commands below that heading of docs/ci.md
block()
{
	sed -n "/^## $1\$/,/^## /p" docs/ci.md | sed -n '/^```sh$/,/^```$/{/^```/d;p}'
}

lab_is_up()
{
	docker exec lab umbel status --name default > /dev/null 2>&1
}

mapfile -t lines < <(block 'A container')
[ "${#lines[@]}" -ge 5 ] || complain "docs/ci.md has few commands"
said=("*.deb*" '*umbel*' '*umbel_h1_0*PORT_ACTIVE*umbel_h2_0*PORT_ACTIVE*' '*umbel_h1_0*PORT_ACTIVE*' '*umbel_h2_0*is down'
	'*umbel_h4_0*' '*' '*umbel_h2_0*PORT_ACTIVE*' '*')
for i in "${!lines[@]}"; do
	case ${lines[i]} in
	'./run package') expect 0 '*.deb' ls build/package/umbel_*.deb ;;
	'docker '*)
		[[ ${lines[i]} != 'docker exec lab '* ]] || wait_until "the daemon serves" lab_is_up
		expect 0 "${said[i]}" eval "${lines[i]} < /dev/null"
		;;
	*) complain "docs/ci.md has a command that is not run here: ${lines[i]}" ;;
	esac
done

# lingers COMMAND...: in a container that ends a second later. On a busy machine podman has lost what one printed that
# ended at once.
lingers()
{
	# shellcheck disable=SC2016
	docker run --rm umbel sh -c '"$@"; status=$?; sleep 1; exit $status' sh "$@"
}

# They are as Docker's indeed: of the capabilities those, and no namespace, mount or call that is denied.
expect 0 '*CapEff:*00000000a80425fb*Seccomp:*2*' lingers cat /proc/self/status
expect 1 '*Operation not permitted*' lingers unshare --user true
expect 1 '*Operation not permitted*' lingers unshare --mount true
expect 32 '*' lingers mount -t tmpfs tmpfs /mnt

# Multicast between processes there, and the exit status of what runs
for user in 0:0 1000:1000; do
	expect 0 '*received 10 messages of 100 bytes*h3 *received 10 messages*' docker run --rm --user $user \
		-v "$PWD/tools:/demo/tools:ro" umbel /demo/tools/demo.sh /usr/bin/umbel
	# and what programs look into is there, though nothing can be mounted
	expect 0 $'4: ACTIVE\numbel_h1_0\n/sys/class/infiniband' docker run --rm --user $user umbel umbel run --hosts 1 -- \
		sh -c 'test -c /dev/infiniband/uverbs0 && cd /sys/class/infiniband/umbel_h1_0 &&
			cat ports/1/state && cd .. && ls && pwd -P'
done
# what programs see in /sys needs no mounts
expect 0 '4: ACTIVE' docker run --rm --user 1000:1000 umbel umbel run --hosts 1 -- \
	cat /sys/class/infiniband/umbel_h1_0/ports/1/state
expect 7 '' docker run --rm umbel umbel run -- sh -c 'exit 7'
expect 143 '' docker run --rm umbel umbel run -- sh -c 'kill -TERM $$'

# Containers on one network, by RoCEv2: c1 receives, c2 sends
mkdir -p /run/netns
mount -t tmpfs tmpfs /run/netns # these names are ours alone
ip netns add c1
ip netns add c2
ip -n c1 link add eth0 type veth peer name eth0 netns c2
for i in 1 2; do
	ip -n c$i address add 192.0.2.$i/24 dev eth0
	ip -n c$i link set eth0 up
	ip -n c$i link set lo up
done
in_container()
{
	docker run --rm --network ns:/run/netns/c$1 --user 1000:1000 umbel umbel run --roce eth0 -- \
		stdbuf -oL mckey -m 239.1.1.1 -b 192.0.2.$1 "${@:2}"
}
launch receiver in_container 1
wait_said receiver 'mckey: joined'
expect 0 '*data transfers complete*' in_container 2 -s
wait_ended receiver 0
expect_said receiver 'data transfers complete'
