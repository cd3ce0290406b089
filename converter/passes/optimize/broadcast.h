// SPDX-License-Identifier: Apache-2.0
// Constants in double, combined with each other as elementwise ops do.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "host/graph/types.h"

namespace fusebox::converter::optimize {

struct Numbers {
  Shape shape;
  std::vector<double> values;

  static Numbers Of(double value) { return {Shape::Scalar(), {value}}; }
  bool IsAll(double wanted) const {
    return std::ranges::all_of(values, [&](double x) { return x == wanted; });
  }
};

template <class F>
Numbers Map(Numbers a, const F& f) {
  for (double& value : a.values) value = f(value);
  return a;
}

// The element of `a` that stands at these coordinates of a result of the same or a higher rank.
inline double ElementAt(const Numbers& a, const std::vector<int64_t>& at) {
  size_t index = 0;
  const size_t skipped = at.size() - a.shape.dims().size();
  for (size_t d = 0; d < a.shape.dims().size(); ++d) {
    index *= static_cast<size_t>(a.shape[d]);
    if (a.shape[d] != 1) index += static_cast<size_t>(at[skipped + d]);
  }
  return a.values[index];
}

// f of both, element by element. Nothing when the shapes do not fit each other, or when the result would have
// more elements than either: a constant must not grow.
template <class F>
std::optional<Numbers> Combine(const Numbers& a, const Numbers& b, const F& f) {
  std::vector<int64_t> dims(static_cast<size_t>(std::max(a.shape.rank(), b.shape.rank())), 1);
  for (const Numbers* n : {&a, &b}) {
    const size_t skipped = dims.size() - n->shape.dims().size();
    for (size_t d = 0; d < n->shape.dims().size(); ++d) {
      int64_t& dim = dims[skipped + d];
      if (n->shape[d] != 1 && dim != 1 && dim != n->shape[d]) return std::nullopt;
      if (n->shape[d] != 1) dim = n->shape[d];
    }
  }
  Numbers out{Shape(dims), {}};
  const auto count = out.shape.element_count();
  if (!count || static_cast<size_t>(*count) > std::max(a.values.size(), b.values.size())) return std::nullopt;
  std::vector<int64_t> at(dims.size(), 0);
  for (int64_t i = 0; i < *count; ++i) {
    out.values.push_back(f(ElementAt(a, at), ElementAt(b, at)));
    for (size_t d = dims.size(); d-- > 0 && ++at[d] == dims[d];) at[d] = 0;
  }
  return out;
}

}  // namespace fusebox::converter::optimize
