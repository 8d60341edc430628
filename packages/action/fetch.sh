#!/usr/bin/env bash
# Fetches the program of the release that this action is of, and goes on only if the release workflow of that repository built it.
#
# RELEASES  owner/name of the repository with the releases
# RELEASE   tag by which the action is called; where it is none (a commit, a branch) the version of this checkout says which
set -euo pipefail

case "$(uname -s)-$(uname -m)" in
  Linux-x86_64) target=x86_64-unknown-linux-musl ;;
  Linux-aarch64) target=aarch64-unknown-linux-musl ;;
  Darwin-x86_64) target=x86_64-apple-darwin ;;
  Darwin-arm64) target=aarch64-apple-darwin ;;
  *) echo "::error::there is no program for $(uname -s) on $(uname -m); build it and give its path as 'program'" && exit 1 ;;
esac

tag="$RELEASE"
if [[ ! "$tag" =~ ^v[0-9]+\.[0-9]+\.[0-9]+ ]]; then
  manifest="$(dirname "$0")/../../Cargo.toml"
  tag="v$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' "$manifest")"
fi

folder="$RUNNER_TEMP/shardscope"
mkdir -p "$folder"
archive="shardscope-cli-$target.tar.xz"
if ! gh release download "$tag" --repo "$RELEASES" --pattern "$archive" --dir "$folder" --clobber; then
  echo "::error::$RELEASES has no release $tag with $archive; pin the commit of a release, or give a built program's path as 'program'"
  exit 1
fi
gh attestation verify "$folder/$archive" --repo "$RELEASES"
tar -xJf "$folder/$archive" -C "$folder" --strip-components=1
echo "$folder" >> "$GITHUB_PATH"
