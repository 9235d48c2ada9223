#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Each commit has a subject of fewer than 72 characters, "part: what changes", an empty line, and a body that says why
# (CONTRIBUTING.md, "Commits"). Prints those that have not. Called by tools/check-static.sh: check-commits.sh [RANGE].

set -eu -o pipefail

cd "$(dirname "$(readlink -f "$0")")/.."

# The rule is checked from the commit behind this one on: three of the 300 before it broke it.
before=c54bafd2d1689f3c074d8a5280638f256a082879

git rev-parse --quiet --verify HEAD > /dev/null || exit 0 # sources without their history
if [ $# -gt 0 ]; then
	range=$1
elif git rev-parse --quiet --verify "$before^{commit}" > /dev/null; then
	range=$before..HEAD
elif [ "$(git rev-parse --is-shallow-repository)" = true ]; then
	range=HEAD # it begins later
else
	exit 0 # another history
fi

git log --no-merges --format='%x01%h%n%B' "$range" | awk '
function judge()
{
	if (!hash)
		return
	if (length(subject) >= 72)
		complain("a subject of " length(subject) " characters")
	if (subject !~ /^[^ :][^:]*: ./)
		complain("a subject that names no part")
	if (second != "")
		complain("no empty line below the subject")
	if (!body)
		complain("no body that says why")
}
function complain(what) { printf "%s: %s: %s\n", hash, subject, what; bad = 1 }
/^\001/ { judge(); hash = substr($0, 2); line = 0; subject = second = ""; body = 0; next }
{ line++ }
line == 1 { subject = $0 }
line == 2 { second = $0 }
line > 2 && NF { body++ }
END { judge(); exit bad }'
