// SPDX-License-Identifier: Apache-2.0
// acme.swiglu_block(x, gate, up, down) = (silu(x gate^T) * (x up^T)) down^T: the feed-forward layer of LLaMA.
//
// x is f32 [..., D], gate and up are [H, D], down is [D, H]: constants of f32, f16 or i8. Result: f32 [...,
// D].
#include <fusebox/gemm.hpp>
#include <fusebox/plugin.hpp>

using namespace fusebox::sdk;

namespace {

bool Is(Tensor t, int64_t rows, int64_t columns) {
  return t.rank() == 2 && t.dim(0) == rows && t.dim(1) == columns;
}

struct SwigluBlock {
  static constexpr std::string_view custom = "acme.swiglu_block";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n) {
    n.arity(4, 1);
    n.operand(0, FBX_F32);
    for (const uint32_t i : {1u, 2u, 3u}) Gemm::supports(n, {.weights = n.in(i)});
  }
  static void infer(const Node& n, Infer& out) {
    const Tensor x = n.in(0);
    const int64_t d = x.rank() > 0 ? x.dim(-1) : -1;
    const int64_t h = n.in(1).rank() > 0 ? n.in(1).dim(0) : -1;
    if (!Is(n.in(1), h, d) || !Is(n.in(2), h, d) || !Is(n.in(3), d, h))
      throw Error{FBX_INVALID, "x [..., D], gate and up [H, D], and down [D, H] do not fit together"};
    out.like(0, x);
  }

  explicit SwigluBlock(const Node& n)
      : gate_(n, {.weights = n.in(1), .activation = FBX_GEMM_SILU}),
        up_(n, {.weights = n.in(2)}),
        down_(n, {.weights = n.in(3)}) {}

  struct State {
    int64_t rows;
    uint32_t gate, up, down, ups, hidden;
  };
  State prepare(const Node& n, Plan& plan) const {
    const int64_t rows = n.in(0).count() / std::max<int64_t>(1, n.in(1).dim(1));
    const auto bytes = static_cast<size_t>(rows * n.in(1).dim(0)) * sizeof(float);
    return {rows,
            gate_.prepare(plan, rows),
            up_.prepare(plan, rows),
            down_.prepare(plan, rows),
            plan.scratch(bytes),
            plan.scratch(bytes)};
  }
  void invoke(const Node& n, const State& s) const {
    const auto* const x = n.in(0).data<const float>();
    auto* const ups = n.scratch<float>(s.ups);
    auto* const hidden = n.scratch<float>(s.hidden);
    up_.run(n, s.up, x, s.rows, ups);
    gate_.run(n, s.gate, x, s.rows, hidden, {.times = ups});
    down_.run(n, s.down, hidden, s.rows, n.out(0).data<float>());
  }

  Gemm gate_, up_, down_;
};

}  // namespace

FUSEBOX_PLUGIN("com.acme.swiglu_block", "1.0.0", SwigluBlock)
