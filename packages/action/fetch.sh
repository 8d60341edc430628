#!/usr/bin/env bash
# Fetches the program of a release, and goes on only if the release workflow of that repository built it.
#
# RELEASES  owner/name of the repository with the releases
# RELEASE   tag, or anything else for the latest release
set -euo pipefail

case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) target=x86_64-unknown-linux-musl ;;
  Linux-aarch64) target=aarch64-unknown-linux-musl ;;
  Darwin-x86_64) target=x86_64-apple-darwin ;;
  Darwin-arm64) target=aarch64-apple-darwin ;;
  *) echo "::error::there is no program for $(uname -s) on $(uname -m); build it and give its path as 'program'" && exit 1 ;;
esac

folder="$RUNNER_TEMP/shardscope"
mkdir -p "$folder"
archive="shardscope-cli-$target.tar.xz"
tag=()
if [[ "$RELEASE" =~ ^v[0-9]+\.[0-9]+\.[0-9]+ ]]; then tag=("$RELEASE"); fi
# Bash 3.2 of macOS takes an empty array for an unset variable.
gh release download ${tag[@]+"${tag[@]}"} --repo "$RELEASES" --pattern "$archive" --dir "$folder" --clobber
gh attestation verify "$folder/$archive" --repo "$RELEASES"
tar -xJf "$folder/$archive" -C "$folder" --strip-components=1
echo "$folder" >> "$GITHUB_PATH"
