#!/usr/bin/env bash
# Tries an archive of the program as whoever fetches it will: unpacked into an empty folder and called there.
#
# $1  the archive, .tar.xz or .zip
# $2  the version that the program has to say
set -euo pipefail

archive=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
case "$archive" in
  *.zip) unzip -q "$archive" ;;
  *) tar -xJf "$archive" ;;
esac
program=$(find . -type f \( -name shardscope -o -name shardscope.exe \))
if [[ ! -f "$program" ]]; then echo "error: $archive holds no program" >&2 && exit 1; fi

said=$("$program" --version | tr -d '\r')
if [[ "$said" != "shardscope $2" ]]; then echo "error: it says '$said', and not 'shardscope $2'" >&2 && exit 1; fi

# A run that fits and one that does not: the exit code is the verdict.
run="torchrun --nproc_per_node 1 pretrain_gpt.py --num-layers 2 --num-attention-heads 4 --seq-length 512 \
--micro-batch-size 1 --global-batch-size 8 --vocab-size 32000 --bf16"
"$program" check --accelerator H100-SXM - <<< "$run --hidden-size 256"
code=0
"$program" check --accelerator H100-SXM - <<< "$run --hidden-size 65536" || code=$?
if ((code != 1)); then echo "error: a run that does not fit ended with $code, and not with 1" >&2 && exit 1; fi

# The archives for Linux promise that no library of the system is wanted.
if [[ "$archive" == *-linux-musl* ]] && ! { ldd "$program" 2>&1 || true; } | grep -qE 'statically linked|not a dynamic executable'; then
  echo "error: it wants libraries of the system: $(ldd "$program" 2>&1 || true)" >&2 && exit 1
fi
echo "$(basename "$archive"): ok"
