#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# headers.sh INCLUDE_DIR CC CXX: each header of the SDK compiles alone, the ABI as C11 and as C++20, the rest as C++20; and so
# do all of them together. The C API also compiles as C++11.
set -u
include=$1 cc=$2 cxx=$3
flags="-pedantic -Wall -Wextra -Werror -fsyntax-only -I$include"
count=0 failed=0
for file in $(cd "$include" && find fusebox -name '*.h' -o -name '*.hpp' | sort); do
  count=$((count + 1))
  case $file in
    *.h) echo "#include <$file>" | $cc -std=c11 $flags -x c - || { echo "$file: not alone as C11"; failed=1; } ;;
  esac
  echo "#include <$file>" | $cxx -std=c++20 $flags -x c++ - || { echo "$file: not alone as C++20"; failed=1; }
done
all() { (cd "$include" && find fusebox -name "$1" | sort | sed 's/.*/#include <&>/'); }
all '*.h' | $cc -std=c11 $flags -x c - || { echo "all: not together as C11"; failed=1; }
all '*.h*' | $cxx -std=c++20 $flags -x c++ - || { echo "all: not together as C++20"; failed=1; }
for file in c.h c_file.h c_convert.h c_models.h; do
  echo "#include <fusebox/$file>" | $cxx -std=c++11 $flags -x c++ - || { echo "$file: not as C++11"; failed=1; }
done
echo "$count headers"
[ $count -gt 0 ] && [ $failed = 0 ]
