#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The containers of packaging/kubernetes/umbel.yaml, as that says, from the packages: the daemon and the device plugin, on a node
# that is a directory here, with the kubelet of tests/kubernetes. What that gets for two devices two containers have, in
# which Debian's programs meet.

# shellcheck disable=SC2034 # docker.bash reads it
own_image=yes
. "$(dirname "$0")/docker.bash"
. tests/kubernetes/lab.sh

expect 0 '*' docker load --quiet --input "$containers/image.tar"
docker tag "$(engine images --quiet)" umbel

node=$TMPDIR/node
mkdir -p "$node/var/lib/kubelet/device-plugins" "$node/var/lib/umbel"

# arguments CONTAINER: of the DaemonSet, for podman: a line each
arguments()
{
	/usr/bin/python3 - "$node" "$1" <<-'END'
		import sys, yaml
		node, name = sys.argv[1:]
		spec = yaml.safe_load(open("packaging/kubernetes/umbel.yaml"))["spec"]["template"]["spec"]
		volumes = {volume["name"]: volume["hostPath"]["path"] for volume in spec["volumes"]}
		container = next(container for container in spec["containers"] if container["name"] == name)
		assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
		words = ["--name", name, "--cap-drop", "all", "--security-opt", "no-new-privileges"]
		for variable in container["env"]:
		    words += ["-e", variable["name"] + "=" + variable["value"]]
		for mount in container["volumeMounts"]:
		    words += ["-v", node + volumes[mount["name"]] + ":" + mount["mountPath"]]
		print(*words, container["image"], *container["command"], sep="\n")
	END
}

run_container()
{
	local words

	mapfile -t words < <(arguments "$1")
	engine run --rm --pull never --cgroups disabled --network none --security-opt "seccomp=$containers/docker.json" \
		--ulimit nofile=1024:4096 --ulimit nproc=4096:4096 "${words[@]}"
}

# What the node's paths are, these containers' are not: as container.sh, of an image.
in_image()
{
	local directory=$1 device=$2 words=() from to how line
	shift 2

	while read -r line; do
		words+=(-e "$line")
	done < "$directory/$device.env"
	while read -r from to how; do
		words+=(-v "$node$from:$to:$how")
	done < "$directory/$device.mounts"
	docker run --rm --name "pod-$device" --ipc private --pid private --uts private "${words[@]}" "$image" "$@"
}
container=in_image image=umbel

end_pod()
{
	docker kill pod-h1 > /dev/null
	wait_ended "$1" 137
}

listens()
{
	docker exec daemon umbel status --name default --json | grep -q '"listeners": 1,' || gone "${pid[server]}"
}

launch daemon run_container daemon
launch device-plugin run_container device-plugin
mkdir "$TMPDIR/pods"
launch kubelet tests/kubernetes/kubelet.py "$node/var/lib/kubelet/device-plugins" "$TMPDIR/pods" h1 h2 h8
wait_ended kubelet 0
expect_said device-plugin "umbel-device-plugin: kubelet knows 'umbel/hca'"

expect 0 '*hca_id:*mlx5_0*PORT_ACTIVE*' in_pod pods h1 ibv_devinfo -d mlx5_0
expect 0 '*"h1 mlx5_0"*"h8 mlx5_0"*' in_pod pods h8 iblinkinfo
pair pods h1 ib_write_bw -F -R -s 65536 -n 500 -- pods h2 ib_write_bw -F -R -s 65536 -n 500 10.0.0.1
bandwidth
pair pods h1 rping -s -C 10 -V -- pods h2 rping -c -a 10.0.0.1 -C 10 -V

for name in device-plugin daemon; do
	docker kill --signal TERM $name > /dev/null
	wait_ended $name 0
done
