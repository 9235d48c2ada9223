# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# The command docker for tests: podman and crun with what containers of Docker have by default, its
# capabilities and its seccomp profile, which are read from Debian's package of Docker's sources. No daemon,
# no registry: docker.io/library/debian:12 is a root that debootstrap makes, as Docker's own is (on Debian 13: 13). Containers have
# no network unless told. Images go when the test ends.
#
# With own_image=yes the script loads the image of test reach.image itself, without that root.
#
# Sourced, with the arguments of the script, before it does anything else, in the sandbox of tests. It starts
# the script again in mounts of its own. Only root can do that: status 77 for others.

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

if [ "${UMBEL_TEST_MOUNTS:-}" != $$ ]; then
	[ "$(id -u)" -eq 0 ] || { echo "only root can make containers here: skipped"; exit 77; }
	exec unshare --mount --propagation private env UMBEL_TEST_MOUNTS=$$ "$0" "$@"
fi

. tests/system/lib.sh
. tools/lib.sh

containers=build/containers
deadline=1000 # containers take their time
patience=$((deadline / 3))
# shellcheck disable=SC1091
. /etc/os-release
image=docker.io/library/debian:$VERSION_ID

# Docker's sources, downloaded and unpacked, not installed
docker_sources()
{
	local package=golang-github-docker-docker-dev

	[ ! -e "$containers/docker.json" ] || return 0
	(
		mkdir -p "$TMPDIR/sources"
		cd "$TMPDIR/sources" || exit 1
		apt-get -qq -o APT::Sandbox::User=root download "$package" || fail "no $package: apt-get update may help"
		dpkg-deb -x "$package"_*.deb .
	) || exit 1
	sources=$TMPDIR/sources/usr/share/gocode/src/github.com/docker/docker
	sed -n 's/^\t*"CAP_\([A-Z_]*\)",$/--cap-add=\1/p' "$sources/oci/caps/defaults.go" > "$containers/capabilities"
	[ -s "$containers/capabilities" ] || fail "Docker's sources have no list of capabilities"
	cp "$sources/profiles/seccomp/default.json" "$containers/docker.json"
}

engine()
{
	podman --root "$storage" --runroot "$TMPDIR/podman" --cgroup-manager cgroupfs \
		--events-backend none --runtime crun "$@"
}

# docker build, run, exec, rm
docker()
{
	local limits=(--ulimit nofile=1024:4096 --ulimit nproc=4096:4096) # which need not be raised
	local command=$1 capabilities network=(--network none)
	shift
	[[ " $* " != *' --network '* ]] || network=()
	mapfile -t capabilities < "$containers/capabilities"
	case $command in
	build)
		engine build "${limits[@]}" --isolation chroot --network host --pull-never --build-arg "DEBIAN=$VERSION_ID" "$@"
		;;
	run)
		# no cgroups, which the test's machine may lack
		engine run --pull never --cgroups disabled "${network[@]}" "${limits[@]}" --cap-drop all "${capabilities[@]}" \
			--security-opt "seccomp=$containers/docker.json" "$@"
		;;
	exec | rm | kill | load | tag | volume | inspect)
		engine "$command" "$@"
		;;
	*)
		fail "no 'docker $command' here"
		;;
	esac
}

# Containers end first: they are no children of ours.
clean_up()
{
	engine rm --all --force --time 0 > /dev/null
	umount -R "$storage/overlay" 2> /dev/null
	rm -rf "$storage"
	finish
}

# podman wants to see cgroups of version 2, though it uses none
[ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ] || {
	umount -R /sys/fs/cgroup 2> /dev/null
	mount -t cgroup2 cgroup2 /sys/fs/cgroup || fail "no cgroups of version 2"
}
mkdir -p "$containers"
exec 9> "$containers/lock" # two builds' tests may share it
flock 9
(need_packages container) || exit 1
docker_sources
exec 9>&-
storage=$(mktemp -d "$PWD/$containers/storage.XXXXXX")
trap clean_up EXIT
[ ! "${own_image-}" ] || return 0
root=$UMBEL_TEST_ROOTS/$VERSION_CODENAME
tools/debian-root.sh --suite "$VERSION_CODENAME" --copy "$root" || exit 1
tar -C "$root" -c . | engine import --quiet - "$image" > /dev/null || fail "podman imports no root"
