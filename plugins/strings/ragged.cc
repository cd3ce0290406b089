// SPDX-License-Identifier: Apache-2.0
#include "plugins/strings/ragged.h"

#include <limits>
#include <numeric>
#include <type_traits>

namespace fusebox::strings {
namespace {

constexpr int64_t kMostElements = std::numeric_limits<int32_t>::max();

size_t BytesOf(fbx_dtype dtype) {
  switch (dtype) {
    case FBX_I8:
    case FBX_U8:
    case FBX_BOOL: return 1;
    case FBX_F16:
    case FBX_BF16:
    case FBX_I16:
    case FBX_U16: return 2;
    case FBX_F32:
    case FBX_I32:
    case FBX_U32: return 4;
    case FBX_F64:
    case FBX_I64:
    case FBX_U64: return 8;
    default: return 0;
  }
}

int64_t CountOf(std::span<const int64_t> dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) {
    if (dim < 0 || (dim > 0 && count > kMostElements / dim))
      throw Error{FBX_OUT_OF_MEMORY, "the result is too large"};
    count *= dim;
  }
  return count;
}

// Splits of `rows` rows whose `count` values have these ascending row numbers.
std::vector<int64_t> SplitsOfIds(const Node& n, uint32_t operand, int64_t rows, int64_t count) {
  const std::vector<int64_t> ids = Integers(n.in(operand));
  if (rows < 0 || rows > kMostElements || static_cast<int64_t>(ids.size()) != count ||
      !std::ranges::is_sorted(ids) || (count > 0 && (ids.front() < 0 || ids.back() >= rows)))
    throw Error{
        FBX_INVALID,
        "are not row ids of " + std::to_string(count) + " values in " + std::to_string(rows) + " rows",
        Subject(operand)};
  std::vector<int64_t> splits(static_cast<size_t>(rows) + 1, 0);
  for (const int64_t id : ids) ++splits[static_cast<size_t>(id) + 1];
  std::partial_sum(splits.begin(), splits.end(), splits.begin());
  return splits;
}

// Returns the sizes that the operand `shape` requests, with -1 for as large as needed.
std::vector<int64_t> Requested(const Node& n, size_t rank) {
  std::vector<int64_t> shape = Integers(n.in(0));
  if (n.in(0).rank() == 0 && shape[0] == -1) return std::vector<int64_t>(rank, -1);
  if (n.in(0).rank() != 1 || shape.size() != rank ||
      std::ranges::any_of(shape, [](int64_t d) { return d < -1; }))
    throw Error{FBX_INVALID, "does not hold " + std::to_string(rank) + " sizes", Subject(0)};
  return shape;
}

int64_t Longest(const std::vector<int64_t>& splits) {
  int64_t longest = 0;
  for (size_t i = 1; i < splits.size(); ++i) longest = std::max(longest, splits[i] - splits[i - 1]);
  return longest;
}

// The row partitions and the shape of the dense result.
struct Layout {
  std::vector<std::vector<int64_t>> splits;  // per ragged dimension
  std::vector<int64_t> dims;

  size_t ragged() const { return splits.size(); }
  std::span<const int64_t> inner() const { return std::span(dims).subspan(ragged() + 1); }

  // Calls use(row) for each element in front of the inner dimensions, in order; row -1: the default.
  template <class F>
  void Each(const F& use) const {
    if (CountOf(dims) == 0) return;
    const auto rows = static_cast<int64_t>(splits[0].size()) - 1;
    for (int64_t row = 0; row < dims[0]; ++row) Below(0, row < rows ? row : -1, use);
  }

 private:
  template <class F>
  void Below(size_t level, int64_t row, const F& use) const {
    if (level == ragged()) return use(row);
    const std::vector<int64_t>& own = splits[level];
    const int64_t begin = row < 0 ? 0 : own[static_cast<size_t>(row)];
    const int64_t end = row < 0 ? 0 : own[static_cast<size_t>(row) + 1];
    for (int64_t i = 0; i < dims[level + 1]; ++i) Below(level + 1, begin + i < end ? begin + i : -1, use);
  }
};

// The number of values that a row partition describes.
int64_t ValuesOf(const Node& n, bool by_splits, uint32_t operand) {
  if (!by_splits) return n.in(operand).count();
  const std::vector<int64_t> splits = Integers(n.in(operand));
  return splits.empty() ? 0 : splits.back();
}

void AddInner(const Node& n, Layout& layout) {
  const auto own = n.in(1).dims();
  for (size_t i = 1; i < own.size(); ++i) {
    int64_t& dim = layout.dims[layout.ragged() + i];
    if (dim >= 0 && dim != own[i])
      throw Error{FBX_INVALID,
                  "requests size " + std::to_string(dim) + " for values of size " + std::to_string(own[i]),
                  Subject(0)};
    dim = own[i];
  }
}

void CopyStrings(const Node& n, const Layout& layout) {
  const Strings values(n.in(1));
  const Strings otherwise(n.in(2));
  const Broadcast defaults(n.in(2), layout.inner());
  const int64_t width = CountOf(layout.inner());
  StringList out;
  layout.Each([&](int64_t row) {
    for (int64_t k = 0; k < width; ++k)
      out.Add(row < 0 ? otherwise[defaults.at(k)] : values[row * width + k]);
  });
  out.Store(n, 0, layout.dims);
}

void CopyNumbers(const Node& n, const Layout& layout) {
  const size_t bytes = BytesOf(n.in(1).dtype());
  const int64_t width = CountOf(layout.inner());
  const Broadcast defaults(n.in(2), layout.inner());
  const char* const values = n.in(1).data<const char>();
  const char* const otherwise = n.in(2).data<const char>();
  char* to = n.resize(0, layout.dims).data<char>();
  layout.Each([&](int64_t row) {
    for (int64_t k = 0; k < width; ++k, to += bytes)
      std::memcpy(to,
                  row < 0 ? otherwise + static_cast<size_t>(defaults.at(k)) * bytes
                          : values + static_cast<size_t>(row * width + k) * bytes,
                  bytes);
  });
}

}  // namespace

void Dense::supports(const Node& n) {
  const auto types = n.attrs().strs("row_partition_types");
  n.require(!types.empty() && types.size() <= 16, "ATTR", "has " + std::to_string(types.size()) + " elements",
            "attr row_partition_types");
  n.arity(3 + static_cast<uint32_t>(types.size()), 1);
  RequireInteger(n, 0);
  n.require(n.has_in(1) && n.has_in(2), "ARITY", "is absent", "values or default");
  const fbx_dtype dtype = n.in(1).dtype();
  n.require(dtype == FBX_STRING || BytesOf(dtype) > 0, "DTYPE", std::string("is ") + dtype_name(dtype),
            Subject(1));
  n.operand(2, dtype);
  for (uint32_t i = 0; i < types.size(); ++i) {
    RequireInteger(n, 3 + i);
    const bool first = types[0] == "FIRST_DIM_SIZE";
    const bool known =
        i == 0 ? first || types[i] == "ROW_SPLITS" : types[i] == (first ? "VALUE_ROWIDS" : "ROW_SPLITS");
    n.require(known && (!first || types.size() > 1), "ATTR",
              "has " + std::string(types[i]) + " at " + std::to_string(i), "attr row_partition_types");
  }
}

Dense::Dense(const Node& n) {
  for (const std::string_view type : n.attrs().strs("row_partition_types")) {
    if (type == "FIRST_DIM_SIZE") first_size_ = true;
    else by_splits_.push_back(type == "ROW_SPLITS");
  }
}

void Dense::infer(const Node& n, Infer& out) {
  if (!n.in(0).has_value()) out.needs_value(0);
  const size_t ragged = Dense(n).by_splits_.size();
  const Tensor values = n.in(1);
  if (values.rank() == 0) throw Error{FBX_INVALID, "is a scalar", Subject(1)};
  if (values.rank() < 0) return out.unranked(0, values.dtype());
  std::vector<int64_t> dims(ragged + static_cast<size_t>(values.rank()), -1);
  for (size_t i = ragged + 1; i < dims.size(); ++i) dims[i] = values.dim(static_cast<int>(i - ragged));
  if (n.in(0).has_value() && n.in(0).is_static()) {
    const std::vector<int64_t> requested = Requested(n, dims.size());
    std::copy_n(requested.begin(), ragged + 1, dims.begin());
  }
  dims[0] = -1;  // memory is allocated when all sizes are known
  out.set(0, values.dtype(), dims);
}

void Dense::invoke(const Node& n) const {
  const size_t ragged = by_splits_.size();
  const uint32_t first = first_size_ ? 4 : 3;
  Layout layout;
  layout.dims = Requested(n, ragged + static_cast<size_t>(n.in(1).rank()));
  int64_t rows = first_size_ ? IntegerOf(n, 3) : n.in(first).count() - 1;
  if (layout.dims[0] < 0) layout.dims[0] = rows;
  for (uint32_t i = 0; i < ragged; ++i) {
    const int64_t below = i + 1 < ragged ? ValuesOf(n, by_splits_[i], first + i) : n.in(1).dim(0);
    layout.splits.push_back(by_splits_[i] ? Splits(n, first + i, below)
                                          : SplitsOfIds(n, first + i, rows, below));
    if (static_cast<int64_t>(layout.splits.back().size()) != rows + 1)
      throw Error{FBX_INVALID, "does not partition " + std::to_string(rows) + " rows", Subject(first + i)};
    if (layout.dims[i + 1] < 0) layout.dims[i + 1] = Longest(layout.splits.back());
    rows = below;
  }
  AddInner(n, layout);
  CountOf(layout.dims);
  n.in(1).dtype() == FBX_STRING ? CopyStrings(n, layout) : CopyNumbers(n, layout);
}

namespace {

// Integers wrap.
template <class T>
T Sum(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
  else return a + b;
}

template <class T>
void Count(const Node& n, const std::vector<int64_t>& splits, int64_t size) {
  const std::vector<int64_t> values = Integers(n.in(1));
  const auto weights = n.in(3).values<const T>();
  if (!weights.empty() && weights.size() != values.size())
    throw Error{
        FBX_INVALID,
        "has " + std::to_string(weights.size()) + " weights for " + std::to_string(values.size()) + " values",
        Subject(3)};
  if (std::ranges::any_of(values, [](int64_t v) { return v < 0; }))
    throw Error{FBX_INVALID, "has negative values", Subject(1)};
  const bool binary = n.attrs().b("binary_output", false);
  const std::vector<int64_t> dims = {static_cast<int64_t>(splits.size()) - 1, size};
  const int64_t count = CountOf(dims);
  T* out = n.resize(0, dims).template data<T>();
  std::fill_n(out, count, T{0});
  for (size_t row = 0; row + 1 < splits.size(); ++row, out += size) {
    for (auto i = static_cast<size_t>(splits[row]); i < static_cast<size_t>(splits[row + 1]); ++i) {
      if (values[i] >= size) continue;
      out[values[i]] = binary ? T{1} : Sum(out[values[i]], weights.empty() ? T{1} : weights[i]);
    }
  }
}

}  // namespace

void Counted::supports(const Node& n) {
  n.arity(4, 1);
  n.operand(0, FBX_I64);
  RequireInteger(n, 1);
  RequireInteger(n, 2);
  n.require(n.has_in(3), "ARITY", "is absent", Subject(3));
  const fbx_dtype dtype = n.in(3).dtype();
  n.require(dtype == FBX_F32 || dtype == FBX_F64 || dtype == FBX_I32 || dtype == FBX_I64, "DTYPE",
            std::string("is ") + dtype_name(dtype), Subject(3));
}

void Counted::infer(const Node& n, Infer& out) {
  if (!n.in(2).has_value()) out.needs_value(2);
  const int64_t size = n.in(2).has_value() && n.in(2).is_static() ? IntegerOf(n, 2) : -1;
  out.set(0, n.in(3).dtype(), {-1, std::max<int64_t>(size, -1)});
}

void Counted::invoke(const Node& n) const {
  const std::vector<int64_t> splits = Splits(n, 0, n.in(1).count());
  const int64_t size = IntegerOf(n, 2);
  if (size < 0) throw Error{FBX_INVALID, "is " + std::to_string(size), Subject(2)};
  switch (n.in(3).dtype()) {
    case FBX_F64: return Count<double>(n, splits, size);
    case FBX_I32: return Count<int32_t>(n, splits, size);
    case FBX_I64: return Count<int64_t>(n, splits, size);
    default: return Count<float>(n, splits, size);
  }
}

}  // namespace fusebox::strings
