#!/usr/bin/env bash
# Estimates the runs that changed since BASE. Leaves the comment in $RUNNER_TEMP/shardscope-review.md, adds it to the job's
# summary, and says in the output `failed` whether a run fails.
#
# PROGRAM                                      the program; empty for the one on the PATH
# BASE                                         commit to compare with
# FAIL_ON, HEADROOM, ACCELERATOR, PRICE, PAGE  options of `shardscope review`; empty ones are left out
set -euo pipefail

comment="$RUNNER_TEMP/shardscope-review.md"
before="$RUNNER_TEMP/shardscope-before"

if ! git cat-file -e "$BASE^{commit}" 2>/dev/null; then
  # A checkout of one commit does not have it.
  git fetch --quiet --depth=1 origin "$BASE"
fi
rm -rf "$before"
git worktree prune
git worktree add --quiet --detach "$before" "$BASE"

options=(--before "$before" --after . --comment-file "$comment")
for pair in "--fail-on=$FAIL_ON" "--headroom=$HEADROOM" "--accelerator=$ACCELERATOR" "--price=$PRICE" "--page=$PAGE"; do
  if [[ -n "${pair#*=}" ]]; then options+=("$pair"); fi
done

code=0
git diff -z --name-only "$BASE" | "${PROGRAM:-shardscope}" review "${options[@]}" - || code=$?
git worktree remove --force "$before"
# 1 is a run that fails; anything above, a call that was not understood.
if ((code > 1)); then exit "$code"; fi
if ((code == 1)); then echo "failed=true"; else echo "failed=false"; fi >> "$GITHUB_OUTPUT"
cat "$comment" >> "$GITHUB_STEP_SUMMARY"
