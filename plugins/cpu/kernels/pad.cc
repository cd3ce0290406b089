// SPDX-License-Identifier: Apache-2.0
// PAD, PADV2 (with a value), MIRROR_PAD (mirrored elements); DILATE pads between elements.
#include <algorithm>
#include <array>

#include "plugins/cpu/elements/move.h"
#include "plugins/cpu/elements/strings.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

struct Paddings {
  Shape before, after;
};

// Operand 1, [rank, 2]; it must have a value.
Paddings PaddingsOf(const Node& n, int rank) {
  const Tensor t = n.in(1);
  if (t.dtype() != FBX_I32 && t.dtype() != FBX_I64)
    Fail("expected i32 or i64, got " + std::string(dtype_name(t.dtype())), Operand(1));
  if (t.rank() != 2 || t.dim(0) != rank || t.dim(1) != 2)
    Fail("paddings of shape " + Text(t.dims()) + " for rank " + std::to_string(rank), Operand(1));
  Paddings p;
  for (int i = 0; i < rank; ++i) {
    p.before.push_back(IntAt(t, 2 * i));
    p.after.push_back(IntAt(t, 2 * i + 1));
    if (p.before[i] < 0 || p.after[i] < 0) Fail("a negative padding", Operand(1));
  }
  return p;
}

int64_t Sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) Fail("the padded size overflows", Operand(1));
  return sum;
}

Shape Padded(const Shape& dims, const Paddings& p) {
  Shape padded = dims;
  for (int i = 0; i < dims.rank(); ++i)
    if (dims[i] >= 0) padded[i] = Sum(dims[i], Sum(p.before[i], p.after[i]));
  return padded;
}

void InferPadded(const Node& n, Infer& out) {
  const Tensor in = n.in(0);
  if (!n.in(1).has_value()) out.needs_value(1);
  if (in.rank() < 0 || !n.in(1).has_value()) return SetUnknownDims(out, in.dtype(), in.rank());
  out.set(0, in.dtype(), Padded(Shape(in), PaddingsOf(n, in.rank())));
}

// Rows of `run` elements, `stride` elements apart in the result.
struct Rows {
  int64_t count, run, stride;
};

// Copies the rows and fills the gaps between them.
void CopyPadded(const Rows& rows, size_t width, const void* value, const std::byte* from, std::byte* to) {
  constexpr size_t kMostBytes = 256;  // of a gap that is filled by copies
  const auto w = static_cast<int64_t>(width);
  const size_t bytes = static_cast<size_t>(rows.run) * width;
  const int64_t step = rows.stride * w;
  CopyEach(from, rows.run * w, to, step, rows.count, bytes);
  const int64_t gap = rows.stride - rows.run;
  std::byte* const first_gap = to + bytes;
  std::array<std::byte, kMostBytes> filled;
  if (gap * w > static_cast<int64_t>(kMostBytes)) {
    for (int64_t i = 0; i + 1 < rows.count; ++i) FillElements(width, value, first_gap + i * step, gap);
  } else if (rows.count > 1) {
    FillElements(width, value, filled.data(), gap);
    CopyEach(filled.data(), 0, first_gap, step, rows.count - 1, static_cast<size_t>(gap) * width);
  }
}

void PadWith(const Node& n, const void* value) {
  const Shape dims(n.in(0));
  const Paddings p = PaddingsOf(n, dims.rank());
  const Shape padded = Padded(dims, p);
  const Shape strides = Strides(padded);
  CheckPlanned(padded, n.out(0));
  const size_t width = ElementSize(n.in(0).dtype());
  const int64_t total = Count(padded);
  if (total == 0) return;
  if (Count(dims) == 0) return FillElements(width, value, MutableElements(n.out(0)), total);
  int last = dims.rank() - 1;  // of the padded dims: what follows is one run
  while (last > 0 && padded[last] == dims[last]) --last;
  const int64_t run = dims.rank() == 0 ? 1 : CountFrom(dims, last);
  int64_t origin = 0;
  Shape outer, outer_strides;
  for (int i = 0; i < dims.rank(); ++i) {
    origin += p.before[i] * strides[i];
    if (i < last) {
      outer.push_back(dims[i]);
      outer_strides.push_back(strides[i]);
    }
  }
  const auto fill = [&](int64_t first, int64_t end) {
    if (first < end) FillElements(width, value, MutableElements(n.out(0), first), end - first);
  };
  const Rows in_line{last > 0 ? dims[last - 1] : 1, run, last > 0 ? strides[last - 1] : run};
  // Rows are copied after what lies between them and the row before them is filled.
  const int64_t rows = Count(outer);
  ParallelFor(n.host(), static_cast<size_t>(rows), Grain(run), [&](size_t begin, size_t end, uint32_t) {
    Walk<1> walk(outer, {outer_strides});
    int64_t filled = 0;
    if (begin > 0) {
      walk.Seek(static_cast<int64_t>(begin) - 1);
      filled = origin + walk.offset(0) + run;
    }
    int64_t count = 0;
    for (auto row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); row += count) {
      walk.Seek(row);
      const int64_t at = origin + walk.offset(0);
      count = std::min(in_line.count - row % in_line.count, static_cast<int64_t>(end) - row);
      fill(filled, at);
      CopyPadded({count, run, in_line.stride}, width, value, Elements(n.in(0), row * run),
                 MutableElements(n.out(0), at));
      filled = at + (count - 1) * in_line.stride + run;
    }
    if (static_cast<int64_t>(end) == rows) fill(filled, total);
  });
}

struct Pad {
  static constexpr std::string_view builtin = "PAD";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { RequireMovable(n, 0); }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    InferPadded(n, out);
  }
  void invoke(const Node& n) const {
    Bits128 zero;
    PadWith(n, ZeroOf(n.in(0), zero));
  }
};

struct PadV2 {
  static constexpr std::string_view builtin = "PADV2";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) {
    RequireMovable(n, 0);
    RequireMovable(n, 2);
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 3, 3);
    SameDtype(n, 0, 2);
    if (n.in(2).is_static() && n.in(2).count() != 1)
      Fail("expected one value, got shape " + Text(n.in(2).dims()), Operand(2));
    InferPadded(n, out);
  }
  void invoke(const Node& n) const { PadWith(n, n.in(2).data<const void>()); }
};

struct MirrorPad {
  static constexpr std::string_view builtin = "MIRROR_PAD";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { RequireMovable(n, 0); }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    Edge(n);
    InferPadded(n, out);
  }
  // 1: the border element is not part of the mirror image.
  static int64_t Edge(const Node& n) {
    const std::string_view mode = n.attrs().s("mode", "REFLECT");
    if (mode != "REFLECT" && mode != "SYMMETRIC") Fail("unknown mode " + std::string(mode), "attr mode");
    return mode == "REFLECT" ? 1 : 0;
  }
  // Source of element i of a padded dim.
  static int64_t Source(int64_t i, int64_t before, int64_t dim, int64_t edge) {
    i -= before;
    if (i < 0) return -i - 1 + edge;
    return i < dim ? i : 2 * dim - 1 - i - edge;
  }
  void invoke(const Node& n) const {
    const Shape dims(n.in(0));
    const Shape strides = Strides(dims);
    const Paddings p = PaddingsOf(n, dims.rank());
    const Shape padded = Padded(dims, p);
    const int64_t edge = Edge(n);
    CheckPlanned(padded, n.out(0));
    for (int i = 0; i < dims.rank(); ++i)
      if (std::max(p.before[i], p.after[i]) > std::max<int64_t>(0, dims[i] - edge))
        Fail("a mirror of " + std::to_string(dims[i]) + " elements cannot fill " +
                 std::to_string(std::max(p.before[i], p.after[i])),
             Operand(1));
    if (Count(padded) == 0) return;
    DispatchWidth(ElementSize(n.in(0).dtype()), [&]<class T>() {
      Mirror(n, padded, p, dims, strides, edge, n.in(0).data<const T>(), n.out(0).data<T>());
    });
  }
  template <class T>
  static void Mirror(const Node& n, const Shape& padded, const Paddings& p, const Shape& dims,
                     const Shape& strides, int64_t edge, const T* from, T* to) {
    const int last = padded.rank() - 1;
    if (last < 0) {
      *to = *from;
      return;
    }
    Shape outer;
    for (int i = 0; i < last; ++i) outer.push_back(padded[i]);
    const int64_t columns = padded[last];
    ParallelFor(n.host(), static_cast<size_t>(Count(outer)), Grain(columns),
                [&](size_t begin, size_t end, uint32_t) {
                  Walk<1> walk(outer, {outer});
                  walk.Seek(static_cast<int64_t>(begin));
                  for (size_t row = begin; row < end; ++row, walk.Next()) {
                    int64_t origin = 0;
                    for (int i = 0; i < last; ++i)
                      origin += Source(walk.index(i), p.before[i], dims[i], edge) * strides[i];
                    T* y = to + static_cast<int64_t>(row) * columns;
                    for (int64_t c = 0; c < columns; ++c)
                      y[c] = from[origin + Source(c, p.before[last], dims[last], edge)];
                  }
                });
  }
};

// Operands: tensor, step between elements per dimension of the result, fill value.
struct Dilate {
  static constexpr std::string_view builtin = "DILATE";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) {
    RequireMovable(n, 0);
    RequireDtype(n, 1, kIndices);
    RequireMovable(n, 2);
  }
  static Shape Steps(const Node& n, int rank) {
    const Shape steps = IntList(n.in(1), 1);
    if (steps.rank() != rank)
      Fail("has " + std::to_string(steps.rank()) + " values for rank " + std::to_string(rank), Operand(1));
    for (const int64_t step : steps)
      if (step < 1) Fail("a dilation of " + std::to_string(step), Operand(1));
    return steps;
  }
  static Shape Dilated(Shape dims, const Shape& steps) {
    for (int i = 0; i < dims.rank(); ++i)
      if (dims[i] > 0) dims[i] = Sum(Product(dims[i] - 1, steps[i]), 1);
    return dims;
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 3, 3);
    SameDtype(n, 0, 2);
    const Tensor in = n.in(0);
    if (n.in(2).is_static() && Count(n.in(2).dims()) != 1)
      Fail("expected one value, got shape " + Text(n.in(2).dims()), Operand(2));
    if (!n.in(1).has_value()) out.needs_value(1);
    if (in.rank() < 0 || !n.in(1).has_value()) return SetUnknownDims(out, in.dtype(), in.rank());
    out.set(0, in.dtype(), Dilated(Shape(in), Steps(n, in.rank())));
  }
  void invoke(const Node& n) const {
    const Shape dims(n.in(0));
    const Shape steps = Steps(n, dims.rank());
    const Shape dilated = Dilated(dims, steps);
    CheckPlanned(dilated, n.out(0));
    const size_t width = ElementSize(n.in(0).dtype());
    if (Count(dilated) == 0) return;
    FillElements(width, n.in(2).data<const void>(), MutableElements(n.out(0)), Count(dilated));
    Shape to = Strides(dilated);
    // The step of a single element is unused and may have any value.
    for (int i = 0; i < dims.rank(); ++i) to[i] = dims[i] == 1 ? 0 : to[i] * steps[i];
    CopyBox(n.host(), width, dims, Elements(n.in(0)), Strides(dims), MutableElements(n.out(0)), to);
  }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<Pad>, &kernel_of<PadV2>, &kernel_of<MirrorPad>,
                                        &kernel_of<MovesStrings<Dilate>>};

}  // namespace

constinit const KernelTable kPadKernels = kTable;

}  // namespace fusebox::cpu
