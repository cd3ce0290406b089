// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/slice_spec.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>

namespace fusebox::saved_model {
namespace {

// Removes and returns the text before `mark`, or all of it if there is no mark.
std::string_view Take(std::string_view& text, char mark) {
  const std::string_view part = text.substr(0, text.find(mark));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

bool Number(std::string_view text, int64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out >= 0;
}

}  // namespace

Result<SliceSpec> SliceSpec::Parse(std::string_view text) {
  const std::string place = "\"" + std::string(text) + "\"";
  SliceSpec spec;
  while (text.find(' ') != text.npos) {
    int64_t dim = 0;
    if (!Number(Take(text, ' '), dim)) return Invalid(place + " names no part of a tensor");
    spec.shape.push_back(dim);
  }
  while (!text.empty()) {
    std::string_view extent = Take(text, ':');
    const size_t d = spec.start.size();
    if (d == spec.shape.size()) return Invalid(place + " has more parts than dimensions");
    int64_t start = 0;
    int64_t size = spec.shape[d];
    if (extent != "-" && (!Number(Take(extent, ','), start) || !Number(extent, size)))
      return Invalid(place + " names no part of a tensor");
    if (start > spec.shape[d] || size > spec.shape[d] - start)
      return Invalid(place + " is outside of its tensor");
    spec.start.push_back(start);
    spec.size.push_back(size);
  }
  if (spec.start.size() != spec.shape.size() || spec.shape.empty())
    return Invalid(place + " has fewer parts than dimensions");
  return spec;
}

Buffer SliceSpec::Cut(const Buffer& whole, size_t element_size) const {
  const size_t rank = shape.size();
  // From dimension `outer` on, only that dimension is cut: one contiguous run.
  size_t outer = rank - 1;
  size_t run = element_size;
  while (outer > 0 && size[outer] == shape[outer]) --outer;
  for (size_t d = outer + 1; d < rank; ++d) run *= static_cast<size_t>(shape[d]);
  const size_t length = run * static_cast<size_t>(size[outer]);
  size_t runs = 1;
  for (size_t d = 0; d < outer; ++d) runs *= static_cast<size_t>(size[d]);
  if (outer == 0) return whole.Slice(run * static_cast<size_t>(start[0]), length);
  std::vector<int64_t> index(outer, 0);
  return Buffer::Make(runs * length, [&](std::span<std::byte> out) {
    for (size_t done = 0; done < out.size(); done += length) {
      int64_t row = 0;
      for (size_t d = 0; d < outer; ++d) row = row * shape[d] + start[d] + index[d];
      const auto at = static_cast<size_t>(row * shape[outer] + start[outer]) * run;
      std::memcpy(out.data() + done, whole.data() + at, length);
      for (size_t d = outer; d-- > 0 && ++index[d] == size[d];) index[d] = 0;
    }
  });
}

}  // namespace fusebox::saved_model
