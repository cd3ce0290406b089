// SPDX-License-Identifier: Apache-2.0
// TILE, BROADCAST_TO, BROADCAST_ARGS.
#include <utility>

#include "plugins/cpu/elements/move.h"
#include "plugins/cpu/elements/strings.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

struct Tile {
  static constexpr std::string_view builtin = "TILE";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { RequireMovable(n, 0); }

  static Shape Tiled(const Node& n) {
    Shape dims(n.in(0));
    const Shape multiples = IntList(n.in(1), 1);
    if (multiples.rank() != dims.rank())
      Fail("has " + std::to_string(multiples.rank()) + " values for rank " + std::to_string(dims.rank()),
           Operand(1));
    for (int i = 0; i < dims.rank(); ++i) {
      if (multiples[i] < 0) Fail("a multiple of " + std::to_string(multiples[i]), Operand(1));
      if (dims[i] >= 0) dims[i] = Product(dims[i], multiples[i]);
    }
    return dims;
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    const Tensor in = n.in(0);
    if (!n.in(1).has_value()) out.needs_value(1);
    if (in.rank() < 0 || !n.in(1).has_value()) return SetUnknownDims(out, in.dtype(), in.rank());
    out.set(0, in.dtype(), Tiled(n));
  }
  // Dims before and after, where a dim that is not repeated belongs to the one before it.
  static std::pair<Shape, Shape> Merged(const Shape& in, const Shape& out) {
    Shape before, after;
    for (int i = 0; i < in.rank(); ++i) {
      if (i > 0 && in[i] == out[i]) {
        before[before.rank() - 1] *= in[i];
        after[after.rank() - 1] *= in[i];
      } else {
        before.push_back(in[i]);
        after.push_back(out[i]);
      }
    }
    return {before, after};
  }
  void invoke(const Node& n) const {
    CheckPlanned(Tiled(n), n.out(0));
    if (n.out(0).count() == 0) return;
    const auto [in, dims] = Merged(Shape(n.in(0)), Shape(n.out(0)));
    const Shape strides = Strides(in);
    const int last = dims.rank() - 1;
    const int64_t run = last < 0 ? 1 : in[last];
    const int64_t copies = last < 0 ? 1 : dims[last] / run;
    Shape outer;
    for (int i = 0; i < last; ++i) outer.push_back(dims[i]);
    const size_t width = ElementSize(n.in(0).dtype());
    const size_t bytes = static_cast<size_t>(run) * width;
    ParallelFor(n.host(), static_cast<size_t>(Count(outer)), Grain(run * copies),
                [&](size_t begin, size_t end, uint32_t) {
                  Walk<1> walk(outer, {outer});
                  walk.Seek(static_cast<int64_t>(begin));
                  std::byte* to = MutableElements(n.out(0), static_cast<int64_t>(begin) * run * copies);
                  for (size_t row = begin; row < end; ++row, walk.Next()) {
                    int64_t origin = 0;
                    for (int i = 0; i < last; ++i) origin += walk.index(i) % in[i] * strides[i];
                    const std::byte* from = Elements(n.in(0), origin);
                    if (run == 1) {
                      FillElements(width, from, to, copies);
                      to += static_cast<size_t>(copies) * width;
                    } else {
                      for (int64_t c = 0; c < copies; ++c, to += bytes) CopyBytes(to, from, bytes);
                    }
                  }
                });
  }
};

struct BroadcastTo {
  static constexpr std::string_view builtin = "BROADCAST_TO";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { RequireMovable(n, 0); }

  static Shape Target(const Node& n) {
    const Shape dims = IntList(n.in(1), 1);
    for (const int64_t d : dims)
      if (d < 0) Fail("a dimension of " + std::to_string(d), Operand(1));
    if (!n.in(0).is_static()) return dims;
    const Shape in(n.in(0));
    if (in.rank() > dims.rank() || Broadcast(in, dims) != dims)
      Fail(Text(in) + " does not broadcast to " + Text(dims), Operand(1));
    return dims;
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    const Tensor in = n.in(0);
    const Tensor shape = n.in(1);
    if (shape.has_value()) return out.set(0, in.dtype(), Target(n));
    SetUnknownDimsOfList(n, out, 1, in.dtype());
  }
  void invoke(const Node& n) const {
    const Shape dims = Target(n);
    CheckPlanned(dims, n.out(0));
    CopyBox(n.host(), ElementSize(n.in(0).dtype()), dims, Elements(n.in(0)),
            BroadcastStrides(Shape(n.in(0)), dims), MutableElements(n.out(0)), Strides(dims));
  }
};

// Two shapes as values; the result is their broadcast shape.
struct BroadcastArgs {
  static constexpr std::string_view builtin = "BROADCAST_ARGS";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) {
    RequireDtype(n, 0, kIndices);
    RequireDtype(n, 1, kIndices);
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    SameDtype(n, 0, 1);
    int64_t length = 0;
    for (uint32_t i = 0; i < 2; ++i) {
      if (n.in(i).rank() >= 0 && n.in(i).rank() != 1)
        Fail("expected a list, got rank " + std::to_string(n.in(i).rank()), Operand(i));
      const int64_t own = n.in(i).rank() < 0 ? -1 : n.in(i).dim(0);
      length = length < 0 || own < 0 ? -1 : std::max(length, own);
    }
    out.set(0, n.in(0).dtype(), {length});
  }
  void invoke(const Node& n) const {
    const Shape a = IntList(n.in(0), 0);
    const Shape b = IntList(n.in(1), 1);
    for (const Shape& s : {a, b})
      for (const int64_t d : s)
        if (d < 0) Fail("a shape with a dimension of " + std::to_string(d));
    const Shape dims = Broadcast(a, b);
    Dispatch(kIndices, n.out(0).dtype(), [&]<class T>() {
      for (int i = 0; i < dims.rank(); ++i) n.out(0).data<T>()[i] = static_cast<T>(dims[i]);
    });
  }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<MovesStrings<Tile>>, &kernel_of<MovesStrings<BroadcastTo>>,
                                        &kernel_of<BroadcastArgs>};

}  // namespace

constinit const KernelTable kTileKernels = kTable;

}  // namespace fusebox::cpu
