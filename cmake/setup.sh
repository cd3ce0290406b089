# SPDX-License-Identifier: Apache-2.0
# Read by ./dev: `setup` brings a Debian 12 or 13 machine to where the build runs.

etc=${etc:-/etc}

# Package; where Debian 12 takes it from (own, trixie; a word more: what alone needs it: tools of `./dev ci`, the arm64 build,
# `./dev compilers`, the browser of the test of pages); what shows that it is here: a command, a header with a condition, or
# a module of Debian's Python.
requirements() {
  cat <<'E'
g++                   own    g++
cmake                 own    cmake
ninja-build           own    ninja
ccache                own    ccache
python3               own    python3
dpkg-dev              own    dpkg-shlibdeps
file                  own    file
python3-dask          own    python:dask.array
python3-distributed   own    python:distributed
patchelf              own    patchelf
python3-numpy         own    python:numpy
protobuf-compiler     own    protoc
libboost-dev          own    <boost/dll/shared_library.hpp>
libcli11-dev          own    <CLI/CLI.hpp>
libfmt-dev            own    <fmt/core.h>
libgmock-dev          own    <gmock/gmock.h>
libgtest-dev          own    <gtest/gtest.h>
libhdf5-dev           own    <hdf5/serial/hdf5.h>
libleveldb-dev        own    <leveldb/table.h>
libprotobuf-dev       own    <google/protobuf/message.h>
libre2-dev            own    <re2/re2.h>
libspdlog-dev         own    <spdlog/spdlog.h>
libutf8proc-dev       own    <utf8proc.h>
libvalijson-dev       own    <valijson/validator.hpp>
libxxhash-dev         own    <xxh_x86dispatch.h>
libzip-dev            own    <zip.h>
nlohmann-json3-dev    own    <nlohmann/json.hpp>
openssl               own    openssl
flatbuffers-compiler  trixie flatc
libflatbuffers-dev    trixie <flatbuffers/base.h> FLATBUFFERS_VERSION_MAJOR>=23
libhwy-dev            trixie <hwy/base.h> HWY_MAJOR>=1&&HWY_MINOR>=2
libpthreadpool-dev    trixie <pthreadpool.h>
libxnnpack-dev        trixie <xnnpack.h> defined(XNN_MIN_BLOCKSIZE)
clang-19              tools  clang++-19
clang-format-19       tools  clang-format-19
clang-tidy-19         tools  clang-tidy-19
fish                  tools  fish
zsh                   tools  zsh
g++-aarch64-linux-gnu arm64  aarch64-linux-gnu-g++
qemu-user-static      arm64  qemu-aarch64-static
binfmt-support        arm64  update-binfmts
mmdebstrap            arm64  mmdebstrap
mmdebstrap            packages mmdebstrap
chromium              browser chromium
libclang-rt-19-dev    tools  </usr/lib/llvm-19/lib/clang/19/include/fuzzer/FuzzedDataProvider.h>
g++-14                compilers-trixie g++-14
clang-19              compilers clang++-19
libc++-dev            compilers libc++.so
libc++abi-dev         compilers libc++abi.so
musl-tools            compilers musl-gcc
E
}

# missing ORIGIN: the packages of that origin that are not here. Asks no package manager, so that it holds anywhere.
missing() {
  program=$(mktemp)
  requirements | while read -r package where probe condition; do
    [ "$where" = "$1" ] || continue
    case $probe in
      '<'*) printf '#if !__has_include(%s)\nMISSING %s\n' "$probe" "$package"
        [ -z "$condition" ] || printf '#else\n#include %s\n#if !(%s)\nMISSING %s\n#endif\n' "$probe" "$condition" "$package"
        echo '#endif' ;;
      python:*) /usr/bin/python3 -c "import ${probe#python:}" 2>/dev/null || echo "MISSING $package" ;;
      *.so) [ -e "$(g++ "-print-file-name=$probe" 2>/dev/null)" ] || ls /usr/lib/llvm-*/lib/"$probe" >/dev/null 2>&1 ||
        echo "MISSING $package" ;;
      *) command -v "$probe" >/dev/null || echo "MISSING $package" ;;
    esac
  done >"$program"
  if command -v g++ >/dev/null; then
    g++ -std=c++20 -E -P -x c++ "$program"
  else
    cat "$program"
  fi | sed -n 's/^MISSING //p' | sort -u | tr '\n' ' '
  rm -f "$program"
}

# The machine's own source of the suite FROM (bookworm) with TO (trixie) for its suite; address, key and options are kept.
# Nothing when the machine has no such source. `own_sources` is for the deb822 form, `own_list` for the one-line form.
own_sources() { # [FROM TO]
  for file in "$etc"/apt/sources.list.d/*.sources; do
    case ${file##*/} in fusebox-trixie.sources | '*.sources') continue ;; esac
    awk -v "from=${1:-bookworm}" -v "to=${2:-trixie}" '
      function flush() {
        if (deb && ours && !off) print text
        text = ""; deb = ours = off = 0
      }
      /^[ \t]*$/ { flush(); next }
      /^#/ { next }
      { key = tolower($1) }
      key == "types:" { deb = ($0 ~ / deb( |$)/); $0 = "Types: deb" }
      key == "suites:" { for (i = 2; i <= NF; i++) if ($i == from) ours = 1; $0 = "Suites: " to }
      key == "components:" { $0 = "Components: main" }
      key == "enabled:" { off = (tolower($2) ~ /^(no|false|0|off)$/) }
      { text = text $0 "\n" }
      END { flush() }' "$file"
  done | awk 'BEGIN { RS = "" } NR == 1'
}

own_list() { # [FROM TO]
  cat "$etc/apt/sources.list" "$etc"/apt/sources.list.d/*.list 2>/dev/null |
    sed -nE 's/^[ \t]*deb[ \t]+(\[[^]]*\][ \t]+)?([^ \t]+)[ \t]+'"${1:-bookworm}"'[ \t].*$/deb \1\2 '"${2:-trixie}"' main/p' | head -n 1
}

# The source of a suite, by that of this machine's release.
source_of() { # SUITE
  for from in bookworm trixie; do
    { own_sources $from "$1"; [ -n "$(own_sources $from "$1")" ] || own_list $from "$1"; } | grep . && return 0
  done
  die "no source of Debian 12 or 13 in $etc/apt to take the address of $1 from"
}

# The release that this machine's packages come from. /etc/os-release is asked last: it belongs to a package that the
# upgrade of libc6 takes along, after which a Debian 12 calls itself 13.
debian_release() {
  if [ -n "$(own_sources)$(own_list)" ] || [ -f "$etc/apt/preferences.d/fusebox-trixie" ]; then
    echo 12
  else
    (. "$etc/os-release" && [ "$ID" = debian ] && echo "${VERSION_ID:-}") 2>/dev/null || true
  fi
}

# Adds trixie at a priority below everything installed, so that only what is asked for by name comes from it.
add_trixie() {
  if [ -n "$(own_sources)" ]; then
    own_sources | $as_root tee "$etc/apt/sources.list.d/fusebox-trixie.sources" >/dev/null
  else
    own_list | $as_root tee "$etc/apt/sources.list.d/fusebox-trixie.list" >/dev/null
  fi
  printf 'Package: *\nPin: release n=trixie\nPin-Priority: 50\n' |
    $as_root tee "$etc/apt/preferences.d/fusebox-trixie" >/dev/null
}

apt_install() {
  quiet "$1" $as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -q --no-install-recommends --no-remove \
    -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold install $2 || exit 2
}

become_root() {
  as_root=
  [ "$(id -u)" = 0 ] || as_root='sudo -n'
  $as_root true 2>/dev/null || die "installing needs root, or sudo without a password; then run ./dev setup again"
}

setup() { # [tools|arm64|compilers|browser]
  own=$(missing own)${1:+$(missing "$1")}
  trixie=$(missing trixie)${1:+$(missing "$1-trixie")}
  [ -n "$own$trixie" ] || return 0
  release=$(debian_release)
  if [ "${FUSEBOX_SETUP:-on}" = off ]; then
    die "missing (by Debian's names): $own$trixie"
  fi
  case $release in
    12) echo "setup: Debian 12. From bookworm: ${own:-nothing}"
        [ -z "$trixie" ] || echo "setup: from trixie, added at priority 50: $trixie(this upgrades libc6 and libstdc++6)" ;;
    13) own="$own$trixie"; trixie=
        echo "setup: Debian 13. From trixie: $own" ;;
    *) die "only Debian 12 and 13 are set up by this script; here these are missing (by Debian's names): $own$trixie" ;;
  esac
  become_root
  # The compiler comes before trixie's libc6 does: asked for afterwards, Debian 12's would not install.
  quiet apt-update $as_root apt-get -q update || exit 2
  [ -z "$own" ] || apt_install apt-install "$own"
  [ -n "$trixie" ] || return 0
  if [ -z "$(own_sources)$(own_list)" ]; then
    die "no Debian 12 source in $etc/apt to take trixie's address from; add one, or install by hand: $trixie"
  fi
  add_trixie
  quiet apt-update-trixie $as_root apt-get -q update || exit 2
  apt_install apt-install-trixie "-t trixie $trixie"
}

# The packages that the arm64 build links: those of the requirements that are libraries, and the compiler's own.
arm64_packages() {
  requirements | awk '($2 == "own" || $2 == "trixie") && $1 ~ /-dev$/ {print $1}'
  echo "libc6-dev libstdc++-$(aarch64-linux-gnu-g++ -dumpversion)-dev"
}

# build/arm64-root: Debian 13's arm64 packages, unpacked, none installed.
arm64_root() {
  root=build/arm64-root
  packages=$(arm64_packages | tr '\n ' ',,')
  [ "$(cat "$root/packages" 2>/dev/null)" != "$packages" ] || return 0
  if [ "${FUSEBOX_SETUP:-on}" = off ]; then die "missing: $root, the arm64 libraries; ./dev setup arm64 makes it"; fi
  become_root
  sources=$(mktemp)
  source_of trixie >"$sources" || exit 2
  sed -i -e '/^Architectures:/d' -e 's/arch=[^] ]*//' "$sources"
  $as_root rm -rf "$root"
  quiet arm64-root $as_root mmdebstrap --mode=root --variant=extract --architectures=arm64 "--include=${packages%,}" \
    trixie "$root" - <"$sources" || exit 2
  rm -f "$sources"
  [ -e "$root/lib" ] || $as_root ln -s usr/lib "$root/lib"
  # Libraries read the CPU's features there; without it they get those of this machine, and crash.
  $as_root mkdir -p "$root/proc"
  printf '%s\t: %s\n' processor 0 BogoMIPS 50.00 Features \
    'fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp' \
    'CPU implementer' 0x41 'CPU architecture' 8 'CPU variant' 0x3 'CPU part' 0xd0c 'CPU revision' 1 |
    $as_root tee "$root/proc/cpuinfo" >/dev/null
  echo "$packages" | $as_root tee "$root/packages" >/dev/null
}

# So that a program under emulation can start another one. Where the system does not allow it, those tests are skipped.
arm64_programs() {
  binfmt=/proc/sys/fs/binfmt_misc
  [ ! -e $binfmt/qemu-aarch64 ] || return 0
  become_root
  [ -e $binfmt/register ] || $as_root mount -t binfmt_misc binfmt_misc $binfmt 2>/dev/null || return 0
  $as_root update-binfmts --enable qemu-aarch64 2>/dev/null || true
}

setup_arm64() {
  setup arm64
  arm64_root
  arm64_programs
}
