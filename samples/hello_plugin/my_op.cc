// SPDX-License-Identifier: Apache-2.0
// my_custom_fused_op(a, b) = (example_option * (a + b), a * b), for f32 tensors of one shape.
#include <cmath>
#include <fusebox/plugin.hpp>

namespace {

using namespace fusebox::sdk;

constexpr std::string_view kOp = "my_custom_fused_op";
constexpr std::string_view kScale = "example_option";

struct Rule {
  static constexpr std::string_view id = "acme.my_op.f32";
  static constexpr std::string_view implements = kOp;
  static void match(const Site& s) {
    s.arity(2, 2);
    for (const uint32_t i : {0u, 1u}) s.operand(i, FBX_F32);
  }
  static void rewrite(const Site& s, Build& b) {
    const auto op = b.custom(kOp, {b.in(0), b.in(1)}, 2).attr(kScale, s.attrs().i64(kScale));
    for (const uint32_t i : {0u, 1u}) b.result(i, op[i]);
  }
};

struct Kernel {
  static constexpr std::string_view custom = kOp;
  static void supports(const Node& n) {
    n.arity(2, 2);
    for (const uint32_t i : {0u, 1u}) n.operand(i, FBX_F32);
  }
  static void infer(const Node& n, Infer& out) {
    for (const uint32_t i : {0u, 1u}) out.like(i, n.in(0));
  }
  void invoke(const Node& n) const {
    const auto a = n.in(0).values<const float>();
    const auto b = n.in(1).values<const float>();
    if (a.size() != b.size()) throw Error{FBX_INVALID, "the operands differ in size"};
    const auto sum = n.out(0).values<float>();
    const auto product = n.out(1).values<float>();
    for (size_t i = 0; i < a.size(); ++i) sum[i] = Keep(scale * (a[i] + b[i]));
    for (size_t i = 0; i < a.size(); ++i) product[i] = Keep(a[i] * b[i]);
  }
  // The plugin's options (fusebox.json) select the handling of denormal results.
  explicit Kernel(const Node& n)
      : scale(static_cast<float>(n.attrs().i64(kScale))), flush(n.options().s("denormals") == "flush") {}
  float Keep(float x) const { return flush && std::fpclassify(x) == FP_SUBNORMAL ? 0.0f : x; }

  const float scale;
  const bool flush;
};

}  // namespace

FUSEBOX_PLUGIN("com.acme.my_op", "1.0.0", Rule, Kernel)
