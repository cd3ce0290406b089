// SPDX-License-Identifier: Apache-2.0
// SELECT, SELECT_V2 choose by a condition; WHERE returns the indices of true elements.
#include <cstring>

#include "plugins/cpu/elements/move.h"
#include "plugins/cpu/elements/strings.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

void SupportsSelect(const Node& n) {
  RequireDtype(n, 0, kBool);
  RequireMovable(n, 1);
  RequireMovable(n, 2);
}

// z = c ? x : y over an index space, each operand with its own strides.
template <class T>
void Choose(const Node& n, const Shape& dims, const std::array<Shape, 3>& strides) {
  const bool* c = n.in(0).data<const bool>();
  const T* x = n.in(1).data<const T>();
  const T* y = n.in(2).data<const T>();
  T* z = n.out(0).data<T>();
  if (Count(dims) == 0) return;
  const int last = dims.rank() - 1;
  const int64_t columns = last < 0 ? 1 : dims[last];
  Shape outer;
  std::array<Shape, 3> steps;
  std::array<int64_t, 3> inner{};
  for (int i = 0; i < last; ++i) outer.push_back(dims[i]);
  for (size_t k = 0; k < 3; ++k) {
    for (int i = 0; i < last; ++i) steps[k].push_back(strides[k][i]);
    inner[k] = last < 0 ? 0 : strides[k][last];
  }
  ParallelFor(n.host(), static_cast<size_t>(Count(outer)), Grain(columns),
              [&](size_t begin, size_t end, uint32_t) {
                Walk<3> walk(outer, steps);
                walk.Seek(static_cast<int64_t>(begin));
                for (size_t row = begin; row < end; ++row, walk.Next()) {
                  const bool* cr = c + walk.offset(0);
                  const T* xr = x + walk.offset(1);
                  const T* yr = y + walk.offset(2);
                  T* zr = z + static_cast<int64_t>(row) * columns;
                  if (inner[0] == 0) {
                    const T* from = *cr ? xr : yr;
                    const int64_t step = *cr ? inner[1] : inner[2];
                    for (int64_t i = 0; i < columns; ++i) zr[i] = from[i * step];
                  } else if (inner[1] == 1 && inner[2] == 1) {
                    for (int64_t i = 0; i < columns; ++i) zr[i] = cr[i] ? xr[i] : yr[i];
                  } else {
                    for (int64_t i = 0; i < columns; ++i)
                      zr[i] = cr[i * inner[0]] ? xr[i * inner[1]] : yr[i * inner[2]];
                  }
                }
              });
}

void InvokeSelect(const Node& n, const Shape& dims, const std::array<Shape, 3>& strides) {
  DispatchWidth(ElementSize(n.in(1).dtype()), [&]<class T>() { Choose<T>(n, dims, strides); });
}

// Both values have the same shape; the condition has it too, is a scalar, or a list along the first dim.
struct Select {
  static constexpr std::string_view builtin = "SELECT";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { SupportsSelect(n); }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 3, 3);
    SameDtype(n, 1, 2);
    const Tensor x = n.in(1);
    const Tensor y = n.in(2);
    const Tensor c = n.in(0);
    if (x.rank() < 0) return out.like(0, y);
    Shape dims(x);
    if (y.rank() >= 0) {
      if (y.rank() != x.rank())
        Fail("the two values have ranks " + std::to_string(x.rank()) + " and " + std::to_string(y.rank()),
             Operand(2));
      for (int i = 0; i < dims.rank(); ++i)
        dims[i] = SameDim(dims[i], y.dim(i), "dimensions of the two values");
    }
    if (c.rank() > 1 && c.rank() != dims.rank())
      Fail("has rank " + std::to_string(c.rank()) + ", the values " + std::to_string(dims.rank()),
           Operand(0));
    if (c.rank() == 1 && dims.rank() > 0 && c.dim(0) != 1)
      dims[0] = SameDim(dims[0], c.dim(0), "condition and first dimension");
    if (c.rank() == dims.rank())
      for (int i = 0; i < dims.rank(); ++i)
        if (dims.rank() > 1 || c.dim(i) != 1) dims[i] = SameDim(dims[i], c.dim(i), "condition and values");
    out.set(0, x.dtype(), dims);
  }
  void invoke(const Node& n) const {
    const Shape dims(n.out(0));
    const Shape c(n.in(0));
    const Shape dense = Strides(dims);
    Shape steps = dense;
    if (c.rank() != dims.rank() || Count(c) == 1)
      for (int i = 0; i < dims.rank(); ++i) steps[i] = i == 0 && c.rank() == 1 && c[0] != 1 ? 1 : 0;
    InvokeSelect(n, dims, {steps, dense, dense});
  }
};

struct SelectV2 {
  static constexpr std::string_view builtin = "SELECT_V2";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { SupportsSelect(n); }
  static Shape Dims(const Node& n) {
    return Broadcast(Broadcast(Shape(n.in(0)), Shape(n.in(1))), Shape(n.in(2)));
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 3, 3);
    SameDtype(n, 1, 2);
    for (uint32_t i = 0; i < 3; ++i)
      if (n.in(i).rank() < 0) return out.unranked(0, n.in(1).dtype());
    out.set(0, n.in(1).dtype(), Dims(n));
  }
  void invoke(const Node& n) const {
    const Shape dims = Dims(n);
    std::array<Shape, 3> strides;
    for (uint32_t i = 0; i < 3; ++i) strides[i] = BroadcastStrides(Shape(n.in(i)), dims);
    InvokeSelect(n, dims, strides);
  }
};

// Indices of nonzero elements in row-major order: [count, rank].
struct Where {
  static constexpr std::string_view builtin = "WHERE";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  inline static constexpr Types<bool, float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
                                uint32_t, uint64_t>
      kTypes{};
  static void supports(const Node& n) { RequireDtype(n, 0, kTypes); }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 1);
    out.set(0, FBX_I64, {-1, n.in(0).rank()});
  }
  void invoke(const Node& n) const {
    Dispatch(kTypes, n.in(0).dtype(), [&]<class T>() {
      const Shape dims(n.in(0));
      const T* x = n.in(0).data<const T>();
      const int64_t count = Count(dims);
      int64_t found = 0;
      for (int64_t i = 0; i < count; ++i) found += x[i] != T(0);
      const Shape size{found, dims.rank()};
      int64_t* to = n.resize(0, size).data<int64_t>();
      if (found == 0) return;
      Walk<1> walk(dims, {dims});
      for (int64_t i = 0; i < count; ++i, walk.Next()) {
        if (x[i] == T(0)) continue;
        for (int d = 0; d < dims.rank(); ++d) *to++ = walk.index(d);
      }
    });
  }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<MovesStrings<Select>>, &kernel_of<MovesStrings<SelectV2>>,
                                        &kernel_of<Where>};

}  // namespace

constinit const KernelTable kSelectKernels = kTable;

}  // namespace fusebox::cpu
