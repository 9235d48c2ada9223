#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# One fabric over containers: the commands of docs/containers.md, packaging/compose.yaml, and what both rely on, with an
# image that packaging/oci.sh makes (test reach.image): the daemon in one, programs in others, as Docker's are by default (docker.bash). They
# share a volume and no namespace; then they are other users, too, and in user namespaces. One is frozen and killed.

# shellcheck disable=SC2034 # docker.bash reads it
own_image=yes
. "$(dirname "$0")/docker.bash"

expect 0 '*' docker load --quiet --input "$containers/image.tar"
docker tag "$(engine images --quiet)" umbel

# in_container NAME COMMAND...: no namespace of its is another one's. ${user[NAME]} is the user there.
declare -A user=()
options=()
in_container()
{
	local uid=${user[$1]-0}

	docker run --rm --name "$1" --hostname "$1" --ipc private --uts private --pid private --cgroupns private \
		--user "$uid:$uid" -v "$volume:/fabric" -e UMBEL_RUNTIME_DIR=/fabric/run "${options[@]}" umbel "${@:2}"
}

# on NAME HOST COMMAND...: in a container of that name
on()
{
	in_container "$1" umbel exec "$2" -- "${@:3}"
}

status()
{
	docker exec fabric umbel status --name default --json
}

serves()
{
	status > /dev/null 2>&1
}

# has KEY NUMBER: so it says in the fabric's status
has()
{
	status | grep -q "\"$1\": $2,"
}

# start_fabric OWNER [OPTION]...: on a volume of that user's, of this machine's users
start_fabric()
{
	volume=$TMPDIR/volume.$1
	mkdir "$volume"
	chown "$1" "$volume"
	launch fabric in_container fabric umbel daemon --hosts 3 "${@:2}"
	wait_until "the daemon serves" serves
}

end_fabric()
{
	docker kill --signal TERM fabric > /dev/null
	wait_ended fabric 0
}

# try_pair PROGRAM... -- PROGRAM...: in two containers, on h1 and then on h2; they meet by rdma_cm. Nonzero: perftest is
# refused, once more.
try_pair()
{
	local server=()

	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	launch server on server h1 stdbuf -oL "${server[@]}"
	wait_until "${server[0]} listens" has listeners 1
	launch client on client h2 "${@:2}"
	wait_until "its client ends" gone "${pid[client]}"
	is_refused client || return 0
	docker kill server > /dev/null
	wait_until "the server ends" gone "${pid[server]}"
	return 1
}

# The same, until they have met.
pair()
{
	wait_until "$1 connects" try_pair "$@"
	wait_ended client 0
	wait_ended server 0
}

multicast()
{
	launch server on server h1 stdbuf -oL mckey -m 239.1.1.1 -b 10.0.0.1
	wait_said server 'mckey: joined'
	expect 0 '*data transfers complete*' on client h2 mckey -m 239.1.1.1 -b 10.0.0.2 -s
	wait_ended server 0
	expect_said server 'data transfers complete'
}

write_memory()
{
	pair ib_write_bw -F -R -n 500 -- ib_write_bw -F -R -n 500 10.0.0.1
}

# ---- the page's commands
said=('' '' '' '*' '*h1 *h2 *' '*')
mapfile -t lines < <(sed -n '/^```sh$/,/^```$/{/^```/d;p}' docs/containers.md | sed '/^\.\/run package$/,$d')
[ ${#lines[@]} -eq ${#said[@]} ] || complain "docs/containers.md has other commands"
(
	cd "$TMPDIR" || exit 1
	failed=0
	umask 022
	containers=$OLDPWD/$containers
	for i in "${!lines[@]}"; do
		[[ ${lines[i]} != *'--name h1 '* ]] || wait_until "the daemon serves" serves
		[[ ${lines[i]} != *'rping -c'* ]] || wait_until "rping listens" has listeners 1
		if [[ ${lines[i]} == *' -d '* ]]; then
			expect 0 '*' eval "${lines[i]} < /dev/null"
		else
			expect 0 "${said[i]}" eval "${lines[i]} < /dev/null"
		fi
	done
	exit $failed
) || failed=1

# ---- compose.yaml: its services, one after the other as they depend on each other
compose()
{
	/usr/bin/python3 - "$1" <<-'END'
		import itertools, shlex, sys, yaml
		service = yaml.safe_load(open("packaging/compose.yaml"))["services"][sys.argv[1]]
		volumes = [["-v", volume] for volume in service["volumes"]]
		variables = [["-e", f"{name}={value}"] for name, value in service["environment"].items()]
		print("--name", sys.argv[1], *itertools.chain(*volumes, *variables), service["image"],
		      *shlex.split(service["command"]), sep="\n")
	END
}

run_service()
{
	local words

	mapfile -t words < <(compose "$1")
	docker run --rm "${words[@]}"
}

launch fabric run_service fabric
wait_until "the daemon serves" serves
launch h1 run_service h1
expect 0 '*data transfers complete*' run_service h2
wait_ended h1 0
expect_said h1 'return status 0'
end_fabric
docker volume rm fabric > /dev/null

# ---- root in each, as with Docker
start_fabric 0
kinds=(pid mnt net ipc uts cgroup)
links=("${kinds[@]/#//proc/self/ns/}")
in_container look readlink "${links[@]}" > "$TMPDIR/namespaces"
docker exec fabric readlink "${links[@]}" >> "$TMPDIR/namespaces"
expect 0 "$((2 * ${#kinds[@]}))" sh -c 'sort -u "$1" | wc -l' - "$TMPDIR/namespaces"
write_memory
pair rping -s -a 10.0.0.1 -C 50 -V -- rping -c -a 10.0.0.1 -C 50 -V # SEND, WRITE and READ
pair ib_atomic_bw -F -R -n 500 -- ib_atomic_bw -F -R -n 500 10.0.0.1
multicast
expect 0 '*"h1 umbel_h1_0"*"h2 umbel_h2_0"*' on client h3 iblinkinfo

# one that is frozen holds up nobody but its peer; one that is killed leaves its peer an error, and the fabric as it is
launch peer on peer h1 rping -s -a 10.0.0.1 -V
wait_until "rping listens" has listeners 1
launch victim on victim h2 rping -c -a 10.0.0.1 -C 100000000
wait_until "rping is connected" has connections 2
main=$(docker inspect --format '{{.State.Pid}}' victim)
frozen=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/umbel-test.$$
if mkdir "$frozen" 2> /dev/null && echo "$main" > "$frozen/cgroup.procs"; then
	echo 1 > "$frozen/cgroup.freeze"
	wait_until "it is frozen" grep -q 'frozen 1' "$frozen/cgroup.events"
else # no cgroups to be had
	kill -STOP "$main"
fi
multicast
kill -KILL "$main"
wait_ended victim 137
wait_until "its peer ends" gone "${pid[peer]}"
expect_said peer '.*DISCONNECT'
[ ! -d "$frozen" ] || wait_until "its cgroup is empty" rmdir "$frozen"
wait_until "nothing is left of it" has qps 0
write_memory
end_fabric

# ---- other users, whom the owner names
user=([fabric]=1000 [server]=2000 [client]=3000 [stranger]=4000)
start_fabric 1000 --allow-user 2000,3000
write_memory
multicast
expect 1 '*its owner has not named user 4000*' on stranger h1 true
expect 1 "*only the fabric's owner may do that" in_container client umbel down
end_fabric

# ---- in user namespaces, the root of each of which is user 100000 here
user=()
options=(--uidmap 0:100000:65536)
start_fabric 100000 --allow-user 1
write_memory
multicast
# by other numbers nobody is who they seem to be
options=(--uidmap 0:200000:65536)
for uid in 0 1; do
	user=([stranger]=$uid)
	expect 1 '*belongs to another user (65534), who has no number in this user namespace' on stranger h1 true
done
options=()
end_fabric
