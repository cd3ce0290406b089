#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# packages_in_root.sh: in a clean root of a release, with this tree in /src and the packages in /debs: installs them as README.md
# says, builds and tests a plugin, which converts and runs its model, then purges them.
set -eu
export DEBIAN_FRONTEND=noninteractive
cd /src
die() { echo "packages_in_root: $*" >&2; exit 1; }
as_root=
. cmake/setup.sh
suite=
if [ "$(debian_release)" = 12 ]; then
  add_trixie
  suite='-t trixie'
fi
apt-get -q update
# shellcheck disable=SC2086 # two words, or none
apt-get -y -q --no-install-recommends install $suite /debs/*.deb
apt-get -y -q --no-install-recommends install g++ cmake make
# shellcheck disable=SC2086
apt-get -y -q --no-install-recommends install $suite lintian
for package in libfusebox0 libfusebox-convert0 libfusebox-models0 libfusebox-dev fusebox python3-fusebox; do
  [ -s /usr/share/doc/$package/copyright ] || die "$package has no copyright file"
done
[ -s /usr/share/doc/fusebox/docs/run.md ] || die "there are no guides"
[ -s /usr/lib/fusebox/plugins/fusebox-plugins.index ] || die "there is no index of the plugins"
lintian --allow-root --fail-on error /debs/*.deb

cd /tmp
fusebox --version
if fusebox plugin list | grep -E ' (broken|denied) '; then die "a plugin is not usable"; fi
fusebox plugin new my_op
cmake -S my_op -B my_op/build
cmake --build my_op/build
ctest --test-dir my_op/build --output-on-failure
fusebox run my_op/build/fused.tflite
python3 /src/tests/install/python_in_root.py my_op/build/fused.tflite

apt-get -y -q purge 'libfusebox*' fusebox python3-fusebox
left=$(find / -xdev \( -path /src -o -path /debs -o -path /tmp -o -path /proc -o -path '/etc/apt/*' -o -path /var/lib/apt \) -prune -o \
  -name '*fusebox*' -print)
[ -z "$left" ] || die "files are left after purge: $left"
