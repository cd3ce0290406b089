// SPDX-License-Identifier: Apache-2.0
// SLICE, STRIDED_SLICE, DYNAMIC_UPDATE_SLICE.
#include <cstring>

#include "plugins/cpu/elements/move.h"
#include "plugins/cpu/elements/strings.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

int64_t Clamped(int64_t x, int64_t low, int64_t high) { return std::max(low, std::min(x, high)); }

struct Slice {
  static constexpr std::string_view builtin = "SLICE";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { RequireMovable(n, 0); }

  static Shape Values(const Node& n, uint32_t operand) {
    const Shape values = IntList(n.in(operand), operand);
    if (n.in(0).rank() >= 0 && values.rank() != n.in(0).rank())
      Fail("has " + std::to_string(values.rank()) + " values for rank " + std::to_string(n.in(0).rank()),
           Operand(operand));
    return values;
  }

  // Size -1 means up to the end. Only known values are checked.
  static Shape Sizes(const Node& n) {
    const Tensor in = n.in(0);
    Shape sizes = Values(n, 2);
    const Shape begin = n.in(1).has_value() ? Values(n, 1) : Shape();
    for (int i = 0; i < sizes.rank(); ++i) {
      const int64_t dim = in.rank() < 0 ? -1 : in.dim(i);
      const int64_t at = begin.rank() > i ? begin[i] : -1;
      if (sizes[i] < -1) Fail("a size of " + std::to_string(sizes[i]), Operand(2));
      if (begin.rank() > 0 && (at < 0 || (dim >= 0 && at > dim)))
        Fail("begin " + std::to_string(at) + " of dimension " + std::to_string(dim), Operand(1));
      if (sizes[i] == -1 && dim >= 0 && at >= 0) sizes[i] = dim - at;
      if (dim >= 0 && sizes[i] > dim - std::max<int64_t>(at, 0))
        Fail("size " + std::to_string(sizes[i]) + " from " + std::to_string(at) + " on of dimension " +
                 std::to_string(dim),
             Operand(2));
    }
    return sizes;
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 3, 3);
    const Tensor in = n.in(0);
    if (!n.in(2).has_value()) out.needs_value(2);
    if (!n.in(1).has_value()) out.needs_value(1);
    if (n.in(2).has_value()) return out.set(0, in.dtype(), Sizes(n));
    SetUnknownDims(out, in.dtype(), in.rank());
  }

  void invoke(const Node& n) const {
    const Shape strides = Strides(Shape(n.in(0)));
    const Shape sizes = Sizes(n);
    const Shape begin = Values(n, 1);
    CheckPlanned(sizes, n.out(0));
    int64_t origin = 0;
    for (int i = 0; i < begin.rank(); ++i) origin += begin[i] * strides[i];
    CopyBox(n.host(), ElementSize(n.in(0).dtype()), sizes, Elements(n.in(0), origin), strides,
            MutableElements(n.out(0)), Strides(sizes));
  }
};

// A resolved strided slice: per operand dim its start, step and count (-1: unknown), and the dims of the
// result.
struct StridedBox {
  Shape start, step, count, result;
};

class StridedSlice {
 public:
  static constexpr std::string_view builtin = "STRIDED_SLICE";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { RequireMovable(n, 0); }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 4, 4);
    const Tensor in = n.in(0);
    for (uint32_t i = 1; i < 4; ++i)
      if (!n.in(i).has_value()) out.needs_value(i);
    int64_t length = -1;  // of begin, end and strides
    for (uint32_t i = 1; i < 4; ++i) {
      if (n.in(i).rank() >= 0 && n.in(i).rank() != 1)
        Fail("expected a list, got rank " + std::to_string(n.in(i).rank()), Operand(i));
      if (n.in(i).rank() == 1)
        length = SameDim(length, n.in(i).dim(0), "the lengths of begin, end and strides");
    }
    if (in.rank() < 0 || length < 0) return out.unranked(0, in.dtype());
    out.set(0, in.dtype(), Box(n, static_cast<int>(std::min<int64_t>(length, 2 * kMaxRank))).result);
  }

  void invoke(const Node& n) const {
    const StridedBox box = Box(n, static_cast<int>(n.in(1).dim(0)));
    CheckPlanned(box.result, n.out(0));
    const Shape dense = Strides(Shape(n.in(0)));
    Shape from = dense;
    int64_t origin = 0;
    for (int i = 0; i < dense.rank(); ++i) {
      origin += box.start[i] * dense[i];
      from[i] = box.step[i] * dense[i];
    }
    CopyBox(n.host(), ElementSize(n.in(0).dtype()), box.count, Elements(n.in(0), origin), from,
            MutableElements(n.out(0)), Strides(box.count));
  }

 private:
  struct Masks {
    int64_t begin, end, ellipsis, new_axis, shrink;
    bool offset;
    explicit Masks(const Node& n)
        : begin(n.attrs().i64("begin_mask", 0)),
          end(n.attrs().i64("end_mask", 0)),
          ellipsis(n.attrs().i64("ellipsis_mask", 0)),
          new_axis(n.attrs().i64("new_axis_mask", 0)),
          shrink(n.attrs().i64("shrink_axis_mask", 0)),
          offset(n.attrs().b("offset", false)) {}
  };
  static bool Bit(int64_t mask, int i) { return mask >> i & 1; }

  static StridedBox Box(const Node& n, int length) {
    const Masks masks(n);
    const Shape dims(n.in(0));
    if (masks.ellipsis & (masks.ellipsis - 1)) Fail("more than one ellipsis", "attr ellipsis_mask");
    int named = 0;  // operand dims that have an entry
    for (int i = 0; i < length; ++i) named += !Bit(masks.ellipsis, i) && !Bit(masks.new_axis, i);
    if (named > dims.rank())
      Fail(std::to_string(named) + " dimensions in a slice of rank " + std::to_string(dims.rank()));
    StridedBox box;
    const auto whole = [&] {
      const int64_t dim = dims[box.count.rank()];
      AddDim(box, 0, 1, dim);
      box.result.push_back(dim);
    };
    for (int i = 0; i < length; ++i) {
      if (Bit(masks.ellipsis, i)) {
        for (int k = named; k < dims.rank(); ++k) whole();
        named = dims.rank();
      } else if (Bit(masks.new_axis, i)) {
        box.result.push_back(1);
      } else {
        AddNamed(n, masks, i, dims[box.count.rank()], box);
      }
    }
    while (box.count.rank() < dims.rank()) whole();
    return box;
  }

  static void AddDim(StridedBox& box, int64_t start, int64_t step, int64_t count) {
    box.start.push_back(start);
    box.step.push_back(step);
    box.count.push_back(count);
  }

  static void AddNamed(const Node& n, const Masks& masks, int i, int64_t dim, StridedBox& box) {
    const Tensor begin = n.in(1);
    const Tensor end = n.in(2);
    const Tensor strides = n.in(3);
    const bool shrink = Bit(masks.shrink, i);
    const bool from_first = Bit(masks.begin, i);
    const bool to_last = Bit(masks.end, i);
    const int64_t step = strides.has_value() ? IntAt(strides, i) : 0;
    if (strides.has_value() && step == 0) Fail("a stride of 0", Operand(3));
    const bool known = dim >= 0 && strides.has_value() && (from_first || begin.has_value()) &&
                       (shrink || to_last || end.has_value());
    if (!known) {
      AddDim(box, 0, 1, shrink ? 1 : -1);
      if (!shrink) box.result.push_back(-1);
      return;
    }
    const int64_t low = step > 0 ? 0 : -1;
    const int64_t high = step > 0 ? dim : dim - 1;
    const int64_t asked = from_first ? (step > 0 ? 0 : dim - 1) : IntAt(begin, i);
    const int64_t first = asked < 0 && !from_first ? asked + dim : asked;
    if (shrink) {
      if (first < 0 || first >= dim)
        Fail("index " + std::to_string(asked) + " is outside of dimension " + std::to_string(dim),
             Operand(1));
      return AddDim(box, first, 1, 1);
    }
    const int64_t start = Clamped(first, low, high);
    int64_t stop = to_last ? (step > 0 ? dim : -1) : IntAt(end, i);
    if (!to_last && masks.offset) {
      if (__builtin_add_overflow(stop, start, &stop)) stop = step > 0 ? dim : -1;
    } else if (!to_last && stop < 0) {
      stop += dim;
    }
    stop = Clamped(stop, low, high);
    const int64_t span = step > 0 ? stop - start : start - stop;
    // -INT64_MIN overflows; no dim is long enough for two steps of that size.
    const int64_t size = step > 0 ? step : step == INT64_MIN ? INT64_MAX : -step;
    const int64_t count = span <= 0 ? 0 : (span - 1) / size + 1;
    AddDim(box, start, count <= 1 ? 1 : step, count);
    box.result.push_back(count);
  }
};

// The operand with a box replaced; the start is clamped so that the box fits.
struct DynamicUpdateSlice {
  static constexpr std::string_view builtin = "DYNAMIC_UPDATE_SLICE";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC | FBX_KERNEL_INPLACE;
  static void supports(const Node& n) {
    RequireMovable(n, 0);
    RequireMovable(n, 1);
    RequireDtype(n, 2, kIndices);
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 3, 3);
    SameDtype(n, 0, 1);
    const Tensor in = n.in(0);
    const Tensor update = n.in(1);
    if (in.rank() >= 0 && update.rank() >= 0) {
      if (in.rank() != update.rank())
        Fail("has rank " + std::to_string(update.rank()) + ", the operand " + std::to_string(in.rank()),
             Operand(1));
      for (int i = 0; i < in.rank(); ++i)
        if (in.dim(i) >= 0 && update.dim(i) > in.dim(i))
          Fail("is larger than the operand: " + Text(update.dims()) + " in " + Text(in.dims()), Operand(1));
    }
    out.like(0, in);
  }
  void invoke(const Node& n) const {
    const Tensor in = n.in(0);
    const Tensor out = n.out(0);
    const Shape dims(in);
    const Shape update(n.in(1));
    const Shape strides = Strides(dims);
    const Shape start = IntList(n.in(2), 2);
    if (start.rank() != dims.rank())
      Fail("has " + std::to_string(start.rank()) + " values for rank " + std::to_string(dims.rank()),
           Operand(2));
    const size_t width = ElementSize(in.dtype());
    // If the update is in the result's memory, copying the operand first would overwrite it.
    if (n.in(1).data<void>() == out.data<void>() && Count(update) == Count(dims)) return;
    if (Count(dims) > 0 && in.data<void>() != out.data<void>())
      std::memcpy(out.data<void>(), in.data<void>(), static_cast<size_t>(Count(dims)) * width);
    int64_t origin = 0;
    for (int i = 0; i < dims.rank(); ++i) origin += Clamped(start[i], 0, dims[i] - update[i]) * strides[i];
    CopyBox(n.host(), width, update, Elements(n.in(1)), Strides(update), MutableElements(out, origin),
            strides);
  }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<MovesStrings<Slice>>,
                                        &kernel_of<MovesStrings<StridedSlice>>,
                                        &kernel_of<MovesStrings<DynamicUpdateSlice>>};

}  // namespace

constinit const KernelTable kSliceKernels = kTable;

}  // namespace fusebox::cpu
