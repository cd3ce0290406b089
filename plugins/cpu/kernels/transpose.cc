// SPDX-License-Identifier: Apache-2.0
// TRANSPOSE, REVERSE_V2, REVERSE_SEQUENCE.
#include "plugins/cpu/elements/move.h"
#include "plugins/cpu/elements/strings.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

struct Transpose {
  static constexpr std::string_view builtin = "TRANSPOSE";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { RequireMovable(n, 0); }

  static Shape Permutation(const Node& n, int rank) {
    Shape perm = IntList(n.in(1), 1);
    if (perm.rank() != rank)
      Fail("a permutation of " + std::to_string(perm.rank()) + " for rank " + std::to_string(rank),
           Operand(1));
    std::array<bool, kMaxRank> seen{};
    for (int i = 0; i < rank; ++i) {
      perm[i] = Axis(perm[i], rank);
      bool& at = seen[static_cast<size_t>(perm[i])];
      if (at) Fail("not a permutation: axis " + std::to_string(perm[i]) + " is duplicated", Operand(1));
      at = true;
    }
    return perm;
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    const Tensor in = n.in(0);
    if (!n.in(1).has_value()) out.needs_value(1);
    if (in.rank() < 0 || !n.in(1).has_value()) return SetUnknownDims(out, in.dtype(), in.rank());
    Shape dims(in);
    const Shape perm = Permutation(n, in.rank());
    for (int i = 0; i < dims.rank(); ++i) dims[i] = in.dim(static_cast<int>(perm[i]));
    out.set(0, in.dtype(), dims);
  }

  void invoke(const Node& n) const {
    const Shape in(n.in(0));
    const Shape strides = Strides(in);
    const Shape perm = Permutation(n, in.rank());
    Shape dims = in;
    Shape from = in;
    for (int i = 0; i < in.rank(); ++i) {
      dims[i] = in[static_cast<int>(perm[i])];
      from[i] = strides[static_cast<int>(perm[i])];
    }
    CheckPlanned(dims, n.out(0));
    CopyBox(n.host(), ElementSize(n.in(0).dtype()), dims, Elements(n.in(0)), from, MutableElements(n.out(0)),
            Strides(dims));
  }
};

struct ReverseV2 {
  static constexpr std::string_view builtin = "REVERSE_V2";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { RequireMovable(n, 0); }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    out.like(0, n.in(0));
  }
  void invoke(const Node& n) const {
    const Shape dims(n.in(0));
    const Shape dense = Strides(dims);
    const Shape axes = IntList(n.in(1), 1);
    Shape from = dense;
    int64_t origin = 0;
    if (Count(dims) == 0) return;
    for (const int64_t a : axes) {
      const int axis = Axis(a, dims.rank());
      if (from[axis] < 0) Fail("axis " + std::to_string(a) + " is duplicated", Operand(1));
      from[axis] = -dense[axis];
      origin += (dims[axis] - 1) * dense[axis];
    }
    CopyBox(n.host(), ElementSize(n.in(0).dtype()), dims, Elements(n.in(0), origin), from,
            MutableElements(n.out(0)), dense);
  }
};

// Along seq_dim, reverses the first lengths[b] elements of each b along batch_dim.
struct ReverseSequence {
  static constexpr std::string_view builtin = "REVERSE_SEQUENCE";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) {
    RequireMovable(n, 0);
    RequireDtype(n, 1, kIndices);
  }
  struct Axes {
    int seq, batch;
  };
  static Axes AxesOf(const Node& n) {
    const int rank = n.in(0).rank();
    const Axes axes{Axis(n.attrs().i64("seq_dim", 0), rank), Axis(n.attrs().i64("batch_dim", 0), rank)};
    if (axes.seq == axes.batch) Fail("seq_dim and batch_dim are both " + std::to_string(axes.seq));
    if (n.in(1).rank() >= 0 && n.in(1).rank() != 1)
      Fail("lengths have rank " + std::to_string(n.in(1).rank()), Operand(1));
    if (n.in(1).rank() == 1)
      SameDim(n.in(1).dim(0), n.in(0).dim(axes.batch), "the number of lengths and the batch");
    return axes;
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 2);
    if (n.in(0).rank() >= 0) AxesOf(n);
    out.like(0, n.in(0));
  }
  void invoke(const Node& n) const {
    const auto [seq, batch] = AxesOf(n);
    const Shape dims(n.in(0));
    const Shape dense = Strides(dims);
    const size_t width = ElementSize(n.in(0).dtype());
    Shape part = dims;
    part[batch] = 1;
    for (int64_t b = 0; b < dims[batch]; ++b) {
      const int64_t length = IntAt(n.in(1), b);
      const int64_t base = b * dense[batch];
      if (length < 0 || length > dims[seq])
        Fail("length " + std::to_string(length) + " of a sequence of " + std::to_string(dims[seq]),
             Operand(1));
      Shape from = dense;
      from[seq] = -dense[seq];
      part[seq] = length;
      CopyBox(n.host(), width, part, Elements(n.in(0), base + (length - 1) * dense[seq]), from,
              MutableElements(n.out(0), base), dense);
      part[seq] = dims[seq] - length;
      const int64_t rest = base + length * dense[seq];
      CopyBox(n.host(), width, part, Elements(n.in(0), rest), dense, MutableElements(n.out(0), rest), dense);
    }
  }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<MovesStrings<Transpose>>,
                                        &kernel_of<MovesStrings<ReverseV2>>, &kernel_of<ReverseSequence>};

}  // namespace

constinit const KernelTable kTransposeKernels = kTable;

}  // namespace fusebox::cpu
