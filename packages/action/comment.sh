#!/usr/bin/env bash
# Puts the comment on the pull request: the one that is there is replaced, and removed where nothing is left to say.
#
# PROGRAM   the program; empty for the one on the PATH
# NUMBER    the pull request
set -euo pipefail

comment="$RUNNER_TEMP/shardscope-review.md"
comments="repos/$GITHUB_REPOSITORY/issues/$NUMBER/comments"

if ! listed=$(gh api --paginate "$comments"); then
  echo "::notice::comments cannot be read with this token; the table is in the summary of the job" && exit 0
fi
own=$("${PROGRAM:-shardscope}" own-comment <<< "$listed")

posted=0
if [[ ! -s "$comment" ]]; then
  if [[ -n "$own" ]]; then gh api --silent -X DELETE "repos/$GITHUB_REPOSITORY/issues/comments/$own" || posted=$?; fi
elif [[ -n "$own" ]]; then
  gh api --silent -X PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$own" -F "body=@$comment" || posted=$?
else
  gh api --silent -X POST "$comments" -F "body=@$comment" || posted=$?
fi
if ((posted)); then
  # A pull request from a fork has a token that only reads.
  echo "::notice::the comment cannot be written with this token; the table is in the summary of the job"
fi
