# Shared by the commands of this folder; sourced, not run. Bash 3.2 (macOS) is enough.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# The project's own tools. Linked git worktrees share the folder of the main one.
if [ -z "${SHARDSCOPE_TOOLS:-}" ]; then
  git_dir=$(git -C "$ROOT" rev-parse --git-common-dir 2>/dev/null || true)
  case $git_dir in
    /*/.git) SHARDSCOPE_TOOLS=${git_dir%/.git}/.tools ;;
    *) SHARDSCOPE_TOOLS=$ROOT/.tools ;;
  esac
fi
TOOLS=$SHARDSCOPE_TOOLS
export SHARDSCOPE_TOOLS PATH="$TOOLS/bin:$TOOLS/npm/node_modules/.bin:$PATH"

# Trunk takes no other word for it: it refuses NO_COLOR=1.
if [ -n "${NO_COLOR:-}" ]; then export NO_COLOR=true; fi

WASM=wasm32-unknown-unknown

say() { printf '%s\n' "==> $*"; }
note() { printf '%s\n' "    $*"; }
die() {
  printf '%s\n' "error: $1" >&2
  shift
  [ $# = 0 ] || printf '       %s\n' "$@" >&2
  exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }

# The first version number in what `TOOL --version` says; nothing where the tool is absent or broken.
version_of() {
  { "$1" --version 2>/dev/null || true; } | grep -oE '[0-9]+(\.[0-9]+)*' | head -n 1 || true
}
# at_least HAVE WANT, both dotted numbers
at_least() {
  [ -n "$1" ] && [ "$(printf '%s\n%s\n' "$2" "$1" | sort -t . -k1,1n -k2,2n -k3,3n | head -n 1)" = "$2" ]
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif has sudo; then
    note "needs administrator rights: sudo $*"
    sudo "$@"
  else
    return 1
  fi
}
apt_updated=
apt_install() { # PACKAGE...
  has apt-get || return 1
  if [ -z "$apt_updated" ]; then
    as_root apt-get -qq update || note 'apt-get update failed; trying with the lists at hand'
    apt_updated=1
  fi
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends "$@" >/dev/null
}

# timed WHAT COMMAND...: announces an installation and says how long it took
timed() {
  local what=$1 start=$SECONDS
  shift
  say "installing $what"
  "$@" || return 1
  note "installed $what in $((SECONDS - start)) s"
}

# Whether this compiler's own library is here as source.
has_rust_src() { [ -f "$(rustc --print sysroot)/lib/rustlib/src/rust/library/Cargo.lock" ]; }

# What makes LLVM copy, move and clear more than one word of memory by an instruction for all of it, not word by word
# (6 KB less page), leave loops as they are, instead of giving each of their addresses a counter of its own (4 KB), and
# keep to the order of the source and to its loads, which compresses better (1.5 KB). Compilers before Rust 1.95 (LLVM 22)
# do not know all of the options, and build the same without.
small_code() {
  [[ $(rustc -Cllvm-args=--help-list-hidden 2>/dev/null) == *--max-store-memcpy* ]] || return 0
  printf ' -Cllvm-args=%s' --max-store-memcpy=1 --max-store-memmove=1 --max-store-memset=1 --disable-lsr \
    --pre-RA-sched=source --enable-load-pre=false
}

# lean COMMAND...: with Rust's own library compiled along, for size, and without the words and places of panics, none of
# which a reader should ever meet: 15 KB less page. The compiler must be told to allow it (RUSTC_BOOTSTRAP). Where the
# source is missing, what is built is the same, heavier.
lean() {
  if ! has_rust_src; then
    env CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS="$(small_code)" "$@"
    return
  fi
  env RUSTC_BOOTSTRAP=1 CARGO_UNSTABLE_BUILD_STD=std,panic_abort CARGO_UNSTABLE_BUILD_STD_FEATURES=optimize_for_size \
    CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS="-Zlocation-detail=none -Zfmt-debug=none -Zunstable-options -Cpanic=immediate-abort$(small_code)" \
    "$@"
}

# The release page, into dist/. Trunk 0.21 cannot minify what wasm-bindgen 0.2.129 writes and warns of it
# every time, which costs a kilobyte and nothing else: its log is kept to errors.
build_page() {
  rm -rf "$ROOT/dist" # a build that fails leaves no older page behind
  (cd "$ROOT" && lean trunk build --release --log error)
}
