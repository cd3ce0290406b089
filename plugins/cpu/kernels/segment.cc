// SPDX-License-Identifier: Apache-2.0
// Segment reductions: SEGMENT_SUM, UNSORTED_SEGMENT_SUM, _PROD, _MAX, _MIN.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/elements/extremes.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

// Integers wrap: they are combined as unsigned.
template <class T>
using Wrapping =
    typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;

// An empty segment's value, and how a row is combined.
struct Sum {
  static constexpr std::string_view kName = "UNSORTED_SEGMENT_SUM";
  template <class T>
  static constexpr T kStart = T(0);
  template <class T>
  static T Join(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
  }
};
struct Prod {
  static constexpr std::string_view kName = "UNSORTED_SEGMENT_PROD";
  template <class T>
  static constexpr T kStart = T(1);
  template <class T>
  static T Join(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b));
  }
};
struct Most {
  static constexpr std::string_view kName = "UNSORTED_SEGMENT_MAX";
  template <class T>
  static constexpr T kStart = std::numeric_limits<T>::lowest();
  template <class T>
  static T Join(T a, T b) {
    return LargerOf(b, a);
  }
};
struct Least {
  static constexpr std::string_view kName = "UNSORTED_SEGMENT_MIN";
  template <class T>
  static constexpr T kStart = std::numeric_limits<T>::max();
  template <class T>
  static T Join(T a, T b) {
    return SmallerOf(b, a);
  }
};

// Adds row i of `rows` to row ids[i] of the result; negative ids are skipped.
template <class Op, class T>
void Gather(const Node& n, int64_t rows, int64_t segments) {
  for (int64_t i = 0; i < rows; ++i)
    if (IntAt(n.in(1), i) >= segments)
      Fail("segment " + std::to_string(IntAt(n.in(1), i)) + " of " + std::to_string(segments), Operand(1));
  const int64_t width = rows == 0 ? 0 : n.in(0).count() / rows;
  const T* in = n.in(0).data<const T>();
  T* out = n.out(0).data<T>();
  std::fill_n(out, n.out(0).count(), Op::template kStart<T>);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t id = IntAt(n.in(1), i);
    if (id < 0) continue;
    for (int64_t c = 0; c < width; ++c)
      out[id * width + c] = Op::Join(out[id * width + c], in[i * width + c]);
  }
}

// Operands: data, segment ids of its leading dimensions, number of segments.
template <class Op>
struct Unsorted {
  static constexpr std::string_view builtin = Op::kName;
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n) {
    RequireDtype(n, 0, kNumbers);
    RequireDtype(n, 1, kIndices);
    RequireDtype(n, 2, kIndices);
  }

  static int64_t Segments(const Node& n) {
    const int64_t segments = IntScalar(n.in(2), 2);
    if (segments < 0) Fail(std::to_string(segments) + " segments", Operand(2));
    return segments;
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 3, 3);
    const Tensor in = n.in(0);
    const Tensor ids = n.in(1);
    if (!n.in(2).has_value()) out.needs_value(2);
    if (in.rank() < 0 || ids.rank() < 0) return out.unranked(0, in.dtype());
    if (ids.rank() > in.rank()) Fail("more dimensions than the data", Operand(1));
    Shape dims{n.in(2).has_value() ? Segments(n) : -1};
    for (int i = 0; i < in.rank(); ++i) {
      if (i < ids.rank()) SameDim(in.dim(i), ids.dim(i), "sizes of the data and of the segments");
      else dims.push_back(in.dim(i));
    }
    out.set(0, in.dtype(), dims);
  }

  void invoke(const Node& n) const {
    const int64_t segments = Segments(n);
    if (n.out(0).dim(0) != segments) Fail("the number differs from the planned one", Operand(2));
    Dispatch(kNumbers, n.in(0).dtype(), [&]<class T>() { Gather<Op, T>(n, n.in(1).count(), segments); });
  }
};

// Segment ids are ascending.
struct SegmentSum {
  static constexpr std::string_view builtin = "SEGMENT_SUM";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n) {
    RequireDtype(n, 0, kNumbers);
    RequireDtype(n, 1, kIndices);
  }

  static int64_t Segments(const Node& n) {
    const Tensor ids = n.in(1);
    int64_t last = 0;
    for (int64_t i = 0; i < ids.count(); ++i) {
      const int64_t id = IntAt(ids, i);
      if (id < last || id > INT32_MAX)
        Fail("segment " + std::to_string(id) + " after segment " + std::to_string(last), Operand(1));
      last = id;
    }
    return ids.count() == 0 ? 0 : last + 1;
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    const Tensor in = n.in(0);
    const Tensor ids = n.in(1);
    if (ids.rank() >= 0 && ids.rank() != 1) Fail("expected a list", Operand(1));
    if (!ids.has_value()) out.needs_value(1);
    if (in.rank() < 0) return out.unranked(0, in.dtype());
    if (in.rank() == 0) Fail("is a scalar", Operand(0));
    if (ids.rank() == 1) SameDim(in.dim(0), ids.dim(0), "sizes of the data and of the segments");
    Shape dims(in);
    dims[0] = ids.has_value() ? Segments(n) : -1;
    out.set(0, in.dtype(), dims);
  }

  void invoke(const Node& n) const {
    const int64_t segments = Segments(n);
    if (n.out(0).dim(0) != segments) Fail("the segments differ from the planned ones", Operand(1));
    Dispatch(kNumbers, n.in(0).dtype(), [&]<class T>() { Gather<Sum, T>(n, n.in(0).dim(0), segments); });
  }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<SegmentSum>, &kernel_of<Unsorted<Sum>>,
                                        &kernel_of<Unsorted<Prod>>, &kernel_of<Unsorted<Most>>,
                                        &kernel_of<Unsorted<Least>>};

}  // namespace

constinit const KernelTable kSegmentKernels = kTable;

}  // namespace fusebox::cpu
