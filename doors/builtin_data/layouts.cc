// SPDX-License-Identifier: Apache-2.0
#include "doors/builtin_data/layouts.h"

#include <cstdlib>
#include <iterator>
#include <map>
#include <string>

namespace fusebox::builtin_data {
namespace {

size_t SizeOf(Kind kind) {
  switch (kind) {
    case Kind::kBool: return sizeof(bool);
    case Kind::kLong: return sizeof(int64_t);
    case Kind::kDims: return (kMaxDims + 1) * sizeof(int);
    default: return sizeof(int);
  }
}

size_t AlignmentOf(Kind kind) { return kind == Kind::kDims ? alignof(int) : SizeOf(kind); }

Layout Parse(int32_t code, int max_version, std::string_view text) {
  Layout out;
  out.code = code;
  out.max_version = max_version;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size() == text.size() ? word.size() : word.size() + 1);
    const size_t colon = word.find(':');
    const auto kind = static_cast<Kind>(word[colon + 1]);
    const std::string_view value = word.substr(colon + 2);
    const size_t alignment = AlignmentOf(kind);
    const size_t offset = (out.size + alignment - 1) / alignment * alignment;
    const int64_t standard = value.empty() ? 0 : std::atoi(std::string(value.substr(1)).c_str());
    out.members.push_back({word.substr(0, colon), kind, offset, standard});
    out.size = offset + SizeOf(kind);
  }
  return out;
}

const std::map<std::string_view, Layout>& All() {
  static const auto& all = *new std::map<std::string_view, Layout>{
#define LAYOUT(op, code, max_version, members) {op, Parse(code, max_version, members)},
#define EMPTY(op, code) {op, Parse(code, 0, "")},
#include "doors/builtin_data/layouts.def"
#undef LAYOUT
#undef EMPTY
  };
  return all;
}

// By TfLiteType: the numbers of the format.
constexpr int kFormatTypes[] = {-1, 0, 2, 3, 4, 5, 6, 7, 8, 9, 1, 10, 11, 12, 13, 14, 15, 16, 17, 18};

}  // namespace

const Layout* Find(std::string_view op) {
  const auto found = All().find(op);
  return found == All().end() ? nullptr : &found->second;
}

int ToFormatType(int tflite_type) {
  const bool known = tflite_type >= 0 && tflite_type < static_cast<int>(std::size(kFormatTypes));
  return known ? kFormatTypes[tflite_type] : -1;
}

}  // namespace fusebox::builtin_data
