// SPDX-License-Identifier: Apache-2.0
// The text beside an entry of a store: what was packed, for people, and what it was packed from and for, so that somebody
// who does not find an entry can be told what differs. A line for people, then NAME=VALUE lines.
#pragma once

#include <string>
#include <string_view>

namespace fusebox::xnnpack {

struct PackNote {
  std::string what;     // "f32 64x3x3x32, bias f32"
  std::string cpu;      // as Fingerprints has it
  std::string library;  // its build, in hexadecimal
  std::string recipe;   // a digest of how it is packed, whatever the weights are
  std::string source;   // a digest of recipe and weights, whatever the CPU is

  std::string Text() const;
  // Of any text: what it does not say is empty.
  static PackNote Parse(std::string_view text);
};

}  // namespace fusebox::xnnpack
