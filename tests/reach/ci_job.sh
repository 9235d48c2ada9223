#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ci_job.sh: the commands of docs/ci.md, section "A hosted CI job", as they are there, from a checkout in a bare
# container of Debian as Docker's are by default (docker.bash); a test that passes, and one that fails. It
# takes three minutes and is not among those that ctest runs.

if [ ! "${UMBEL_TEST_ROOTS:-}" ]; then
	here=$(cd "$(dirname "$0")" && pwd)
	export UMBEL_TEST_ROOTS=$here/../../build/roots
	exec "$here/../in-sandbox.sh" "$here/../../build/release/bin/umbel" '' "$here/ci_job.sh"
fi
. "$(dirname "$0")/docker.bash"

job=$TMPDIR/job
mkdir -p "$job/umbel"
copy_checkout "$job/umbel"
sed -n '/^## A hosted CI job$/,/^## /p' docs/ci.md | sed -n '/^```sh$/,/^```$/{/^```/d;p}' > "$job/script"
[ "$(wc -l < "$job/script")" -eq 3 ] || complain "they are no three lines"
printf '#!/bin/sh\numbel exec h4 -- test -S "$UMBEL_RUNTIME_DIR/$UMBEL_FABRIC/ctl" && exit $WANTED\n' > "$job/my-test"
chmod +x "$job/my-test"

run_job()
{
	docker run --rm --network host -v "$job:/job" -w /job -e DEBIAN_FRONTEND=noninteractive -e "WANTED=$1" \
		"$image" sh -e script < /dev/null
}

expect 0 '*' run_job 0
expect 9 '*' run_job 9
[ $failed -ne 0 ] || echo "the job passes, and fails if its test does"
