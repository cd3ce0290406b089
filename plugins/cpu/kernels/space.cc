// SPDX-License-Identifier: Apache-2.0
// SPACE_TO_DEPTH, DEPTH_TO_SPACE, SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND.
#include "plugins/cpu/elements/move.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

int64_t BlockSize(const Node& n) {
  const int64_t block = n.attrs().i64("block_size");
  if (block < 1 || block > INT32_MAX) Fail("is " + std::to_string(block), "attr block_size");
  return block;
}

int64_t Divided(int64_t dim, int64_t by, const char* what) {
  if (dim >= 0 && dim % by != 0)
    Fail(std::string(what) + " " + std::to_string(dim) + " is not a multiple of " + std::to_string(by),
         Operand(0));
  return dim < 0 ? -1 : dim / by;
}

int64_t Times(int64_t dim, int64_t by) { return dim < 0 ? -1 : Product(dim, by); }

// Copies between [b, y, x, c] with y = blocks of height, x = blocks of width, and [b, y/s, x/s, s*s*c].
void MoveBlocks(const Node& n, const Shape& space, int64_t block, bool to_depth) {
  const int64_t b = space[0];
  const int64_t y = space[1] / block;
  const int64_t x = space[2] / block;
  const int64_t c = space[3];
  const int64_t row = space[2] * c;
  const int64_t cell = block * block * c;
  const Shape dims{b, y, x, block, block, c};
  const Shape in_space{space[1] * row, block * row, block * c, row, c, 1};
  const Shape in_depth{y * x * cell, x * cell, cell, block * c, c, 1};
  CopyBox(n.host(), ElementSize(n.in(0).dtype()), dims, Elements(n.in(0)), to_depth ? in_space : in_depth,
          MutableElements(n.out(0)), to_depth ? in_depth : in_space);
}

struct SpaceToDepth {
  static constexpr std::string_view builtin = "SPACE_TO_DEPTH";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { RequireMovable(n, 0); }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 1);
    const int64_t s = BlockSize(n);
    const Tensor in = n.in(0);
    if (in.rank() < 0) return out.unranked(0, in.dtype());
    if (in.rank() != 4) Fail("expected rank 4, got " + std::to_string(in.rank()), Operand(0));
    out.set(0, in.dtype(),
            {in.dim(0), Divided(in.dim(1), s, "height"), Divided(in.dim(2), s, "width"),
             Times(in.dim(3), s * s)});
  }
  void invoke(const Node& n) const { MoveBlocks(n, Shape(n.in(0)), BlockSize(n), true); }
};

struct DepthToSpace {
  static constexpr std::string_view builtin = "DEPTH_TO_SPACE";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { RequireMovable(n, 0); }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 1, 1);
    const int64_t s = BlockSize(n);
    const Tensor in = n.in(0);
    if (in.rank() < 0) return out.unranked(0, in.dtype());
    if (in.rank() != 4) Fail("expected rank 4, got " + std::to_string(in.rank()), Operand(0));
    out.set(0, in.dtype(),
            {in.dim(0), Times(in.dim(1), s), Times(in.dim(2), s), Divided(in.dim(3), s * s, "depth")});
  }
  void invoke(const Node& n) const { MoveBlocks(n, Shape(n.out(0)), BlockSize(n), false); }
};

// Operands of the batch ops: block sizes [m], and paddings or crops [m, 2], of the m dims after the batch.
struct Blocks {
  Shape size, before, after;
  int64_t count = 1;
};

bool HasBlocks(const Node& n, Infer& out) {
  for (uint32_t i = 1; i < 3; ++i)
    if (!n.in(i).has_value()) out.needs_value(i);
  return n.in(1).has_value() && n.in(2).has_value();
}

Blocks BlocksOf(const Node& n) {
  Blocks b;
  b.size = IntList(n.in(1), 1);
  const Tensor edges = n.in(2);
  if (n.in(0).rank() <= b.size.rank())
    Fail("has " + std::to_string(b.size.rank()) + " values for rank " + std::to_string(n.in(0).rank()),
         Operand(1));
  if (edges.rank() != 2 || edges.dim(0) != b.size.rank() || edges.dim(1) != 2)
    Fail("has shape " + Text(edges.dims()), Operand(2));
  for (int i = 0; i < b.size.rank(); ++i) {
    b.before.push_back(IntAt(edges, 2 * i));
    b.after.push_back(IntAt(edges, 2 * i + 1));
    if (b.size[i] < 1) Fail("a block of " + std::to_string(b.size[i]), Operand(1));
    if (b.before[i] < 0 || b.after[i] < 0 || b.before[i] > INT32_MAX || b.after[i] > INT32_MAX)
      Fail("a negative or huge edge", Operand(2));
    b.count = Product(b.count, b.size[i]);
  }
  return b;
}

// Calls f(k, position) for each block position, in row-major order.
template <class F>
void ForPositions(const Blocks& b, const F& f) {
  Walk<1> walk(b.size, {b.size});
  for (int64_t k = 0; k < b.count; ++k, walk.Next()) {
    Shape position = b.size;
    for (int i = 0; i < position.rank(); ++i) position[i] = walk.index(i);
    f(k, position);
  }
}

// Moves all elements of one block position between the unblocked tensor (`space`) and the blocked one: index
// i of a blocked dim is index i * size + position - before in `space`.
void MovePosition(const Node& n, const Blocks& b, int64_t k, const Shape& position, const Shape& space,
                  const Shape& blocked, int64_t batch, bool to_batch) {
  const Shape dense_space = Strides(space);
  const Shape dense_blocked = Strides(blocked);
  Shape dims = space;
  Shape in_space = dense_space;
  int64_t space_origin = 0;
  int64_t blocked_origin = k * batch * dense_blocked[0];
  dims[0] = batch;
  for (int i = 0; i < b.size.rank(); ++i) {
    const int d = i + 1;
    const int64_t shift = b.before[i] - position[i];
    const int64_t first = shift <= 0 ? 0 : (shift + b.size[i] - 1) / b.size[i];
    const int64_t limit = space[d] + shift <= 0 ? 0 : (space[d] + shift + b.size[i] - 1) / b.size[i];
    dims[d] = std::max<int64_t>(0, std::min(blocked[d], limit) - first);
    in_space[d] = b.size[i] * dense_space[d];
    space_origin += (first * b.size[i] - shift) * dense_space[d];
    blocked_origin += first * dense_blocked[d];
  }
  if (Count(dims) == 0) return;
  const size_t width = ElementSize(n.in(0).dtype());
  if (to_batch)
    CopyBox(n.host(), width, dims, Elements(n.in(0), space_origin), in_space,
            MutableElements(n.out(0), blocked_origin), dense_blocked);
  else
    CopyBox(n.host(), width, dims, Elements(n.in(0), blocked_origin), dense_blocked,
            MutableElements(n.out(0), space_origin), in_space);
}

struct SpaceToBatchNd {
  static constexpr std::string_view builtin = "SPACE_TO_BATCH_ND";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { RequireMovable(n, 0); }
  static Shape Blocked(const Node& n, const Blocks& b) {
    Shape dims(n.in(0));
    dims[0] = Times(dims[0], b.count);
    for (int i = 0; i < b.size.rank(); ++i)
      if (dims[i + 1] >= 0)
        dims[i + 1] = Divided(dims[i + 1] + b.before[i] + b.after[i], b.size[i], "the padded dimension");
    return dims;
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 3, 3);
    const Tensor in = n.in(0);
    if (!HasBlocks(n, out) || in.rank() < 0) return SetUnknownDims(out, in.dtype(), in.rank());
    out.set(0, in.dtype(), Blocked(n, BlocksOf(n)));
  }
  void invoke(const Node& n) const {
    const Blocks b = BlocksOf(n);
    const Shape space(n.in(0));
    const Shape blocked = Blocked(n, b);
    CheckPlanned(blocked, n.out(0));
    if (Count(blocked) == 0) return;
    Bits128 zero;
    FillElements(ElementSize(n.in(0).dtype()), ZeroOf(n.in(0), zero), MutableElements(n.out(0)),
                 Count(blocked));
    ForPositions(b, [&](int64_t k, const Shape& position) {
      MovePosition(n, b, k, position, space, blocked, space[0], true);
    });
  }
};

struct BatchToSpaceNd {
  static constexpr std::string_view builtin = "BATCH_TO_SPACE_ND";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n) { RequireMovable(n, 0); }
  static Shape Spread(const Node& n, const Blocks& b) {
    Shape dims(n.in(0));
    dims[0] = Divided(dims[0], b.count, "the batch");
    for (int i = 0; i < b.size.rank(); ++i) {
      int64_t& d = dims[i + 1];
      if (d < 0) continue;
      d = Product(d, b.size[i]) - b.before[i] - b.after[i];
      if (d < 0) Fail("crops exceed dimension " + std::to_string(i + 1), Operand(2));
    }
    return dims;
  }
  static void infer(const Node& n, Infer& out) {
    Arity(n, 3, 3);
    const Tensor in = n.in(0);
    if (!HasBlocks(n, out) || in.rank() < 0) return SetUnknownDims(out, in.dtype(), in.rank());
    out.set(0, in.dtype(), Spread(n, BlocksOf(n)));
  }
  void invoke(const Node& n) const {
    const Blocks b = BlocksOf(n);
    const Shape blocked(n.in(0));
    const Shape space = Spread(n, b);
    CheckPlanned(space, n.out(0));
    if (Count(space) == 0) return;
    ForPositions(b, [&](int64_t k, const Shape& position) {
      MovePosition(n, b, k, position, space, blocked, space[0], false);
    });
  }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<SpaceToDepth>, &kernel_of<DepthToSpace>,
                                        &kernel_of<SpaceToBatchNd>, &kernel_of<BatchToSpaceNd>};

}  // namespace

constinit const KernelTable kSpaceKernels = kTable;

}  // namespace fusebox::cpu
