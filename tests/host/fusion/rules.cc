// SPDX-License-Identifier: Apache-2.0
#include "tests/host/fusion/rules.h"

#include <algorithm>
#include <array>
#include <fusebox/plugin.hpp>
#include <stdexcept>

namespace fusebox {
namespace {

using namespace sdk;

struct Swap {
  static constexpr std::string_view id = "t.swap", implements = "t.swap";
  static void match(const Site& s) { s.arity(2, 1); }
  static void rewrite(const Site& s, Build& b) {
    b.result(0, b.custom("t.op", {b.in(1), b.in(0)}).attr("k", s.attrs().i64("k", 0))[0]);
  }
};
struct Twice {
  static constexpr std::string_view id = "t.twice", implements = "t.twice";
  static void match(const Site&) {}
  static void rewrite(const Site&, Build& b) { b.result(0, b.custom("t.op", {b.in(0), b.in(0)})[0]); }
};
struct Gap {
  static constexpr std::string_view id = "t.gap", implements = "t.gap";
  static void match(const Site&) {}
  static void rewrite(const Site&, Build& b) {
    b.result(0, b.custom("t.op", {b.in(0), b.in(1), no_value})[0]);
  }
};
struct Pass {
  static constexpr std::string_view id = "t.pass", implements = "t.pass";
  static void match(const Site&) {}
  static void rewrite(const Site&, Build& b) { b.result(0, b.in(0)); }
};
struct Two {
  static constexpr std::string_view id = "t.two", implements = "t.two";
  static constexpr double rtol = 0.5;
  static void match(const Site&) {}
  static void rewrite(const Site&, Build& b) {
    b.result(0, b.builtin("RELU", {b.custom("t.op", {b.in(0), b.in(1)})[0]})[0]);
  }
};
struct First {
  static constexpr std::string_view id = "t.first", implements = "t.first";
  static void match(const Site&) {}
  static void rewrite(const Site&, Build& b) { b.result(0, b.custom("t.id", {b.in(0)})[0]); }
};
struct Scale {
  static constexpr std::string_view id = "t.scale", implements = "t.scale";
  static void match(const Site&) {}
  static void rewrite(const Site&, Build& b) {
    const float two = 2;
    const Value factor = b.constant<float>({&two, 1}, {});
    b.result(0, b.custom("t.id", {b.builtin("MUL", {b.in(0), factor})[0]})[0]);
  }
};
struct Const : First {
  static constexpr std::string_view id = "t.const", implements = "t.const";
  static void match(const Site& s) {
    s.require(s.in(1).is_const() && s.in(1).has_value(), "NONCONST", "scale is not constant", "operand 1");
  }
};
struct Product {
  static constexpr std::string_view id = "t.product", implements = "t.product";
  static void match(const Site&) {}
  static void rewrite(const Site&, Build& b) {
    const Value weights = b.transpose(b.in(1), {1, 0});
    b.result(0, b.builtin("FULLY_CONNECTED", {b.in(0), weights, no_value})[0]);
  }
};
// How its operand 1 reaches t.weights.
struct Weigh {
  static constexpr std::string_view id = "t.weigh", implements = "t.weigh";
  static void match(const Site& s) { s.require(s.in(1).is_const(), "NONCONST", "it is computed"); }
  static void rewrite(const Site& s, Build& b) {
    const std::string_view how = s.attrs().s("how", "pass");
    Value weights = b.in(1);
    if (how == "reversed") weights = b.reverse(weights, 0);
    if (how == "transposed")
      weights = b.reshape(b.transpose(b.reshape(b.reverse(weights, 0), {1, 2}), {1, 0}), {2});
    b.result(0, b.custom("t.weights", {b.in(0), weights}).attr("first", s.attrs().f64("first", 3))[0]);
  }
};
struct StateRule : First {
  static constexpr std::string_view id = "t.state", implements = "t.state";
  static void match(const Site& s) { s.require(s.in(1).is_variable(), "STATELESS", "it is no variable"); }
};
struct Unread {
  static constexpr std::string_view id = "t.unread", implements = "t.unread";
  static void match(const Site& s) {
    s.require(s.out(1).uses() == 0, "READ", "has " + std::to_string(s.out(1).uses()) + " readers",
              "result 1");
  }
  static void rewrite(const Site&, Build& b) {
    b.result(0, b.custom("t.id", {b.in(0)})[0]);
    b.result(1, b.in(0));
  }
};
struct Outer : First {
  static constexpr std::string_view id = "t.outer", implements = "t.outer";
  static void match(const Site& s) { s.require(false, "NO", "never"); }
};
struct Outer2 : Swap {
  static constexpr std::string_view id = "t.outer2", implements = "t.outer2";
};
struct Low : Outer {
  static constexpr std::string_view id = "t.better.low", implements = "t.better";
};
struct High : Outer {
  static constexpr std::string_view id = "t.better.high", implements = "t.better";
  static constexpr int benefit = 9;
};
struct Control {
  static constexpr std::string_view id = "t.control", implements = "t.control";
  static void match(const Site&) {}
  static void rewrite(const Site&, Build& b) { b.result(0, b.builtin("WHILE", {b.in(0)})[0]); }
};
struct Huge {
  static constexpr std::string_view id = "t.huge", implements = "t.huge";
  static void match(const Site&) {}
  static void rewrite(const Site&, Build& b) {
    const int64_t dims[] = {int64_t{1} << 50};
    b.result(0, b.constant<float>({}, dims));
  }
};
struct Typo {
  static constexpr std::string_view id = "t.typo", implements = "t.typo";
  static void match(const Site&) {}
  static void rewrite(const Site& s, Build& b) {
    b.result(0, b.builtin("ADD", {b.in(0), b.in(1)}).attr(s.attrs().s("key"), s.attrs().s("value"))[0]);
  }
};
struct Checked {
  static constexpr std::string_view id = "t.checked", implements = "t.checked";
  static void match(const Site&) {}
  static void rewrite(const Site& s, Build& b) {
    auto node = b.custom("t.op", {b.in(0), b.in(1)});
    if (s.attrs().has("raw")) b.raw_options(s.attrs().s("raw"));
    else node.attr("k", s.attrs().i64("k", 0));
    b.result(0, node[0]);
  }
};
struct Throws : First {
  static constexpr std::string_view id = "t.throws", implements = "t.throws";
  static void match(const Site&) { throw std::runtime_error("match threw"); }
};
struct Shared : First {
  static constexpr std::string_view id = "t.shared", implements = "t.shared";
};
struct OtherShared : Swap {
  static constexpr std::string_view id = "o.shared", implements = "t.shared";
};

fbx_status MatchAny(const fbx_host*, void*, const fbx_composite*) noexcept { return FBX_OK; }
// In C, to fill a constant after a node has read it.
fbx_status RewriteLate(const fbx_host*, void*, const fbx_composite*, const fbx_builder* b) noexcept {
  void* data = nullptr;
  const fbx_value operands[] = {b->operand(b, 1), b->add_const(b, FBX_F32, nullptr, 0, &data)};
  fbx_value scaled = FBX_NO_VALUE;
  if (b->add_node(b, FBX_OP_BUILTIN, to_fbx_str("MUL"), 0, operands, 2, &scaled, 1) != FBX_OK)
    return FBX_INVALID;
  (void)b->type(b, scaled);
  *static_cast<float*>(data) = 2;
  b->set_result(b, 0, scaled);
  return FBX_OK;
}
constexpr fbx_rule kLate = {.head = FBX_HEAD(fbx_rule),
                            .id = {"t.late", 6},
                            .implements = {"t.late", 6},
                            .match = MatchAny,
                            .rewrite = RewriteLate};

struct Subtract {
  static constexpr std::string_view custom = "t.op";
  static void infer(const Node& n, Infer& out) { out.like(0, n.in(0)); }
  void invoke(const Node& n) const {
    const auto x = n.in(0).values<float>(), y = n.in(1).values<float>();
    std::transform(x.begin(), x.end(), y.begin(), n.out(0).data<float>(), std::minus<>());
  }
};
// Demands what a kernel that packs its weights demands: they are there.
struct Weights : Subtract {
  static constexpr std::string_view custom = "t.weights";
  static void supports(const Node& n) {
    n.require(n.in(1).is_const() && n.in(1).has_value(), "NONCONST", "weights are computed");
    n.require(n.in(1).values<float>()[0] == n.attrs().f64("first", 0), "VALUE", "they are others");
  }
};
struct Same {
  static constexpr std::string_view custom = "t.id";
  static void infer(const Node& n, Infer& out) { out.like(0, n.in(0)); }
  void invoke(const Node& n) const {
    const auto x = n.in(0).values<float>();
    std::copy(x.begin(), x.end(), n.out(0).data<float>());
  }
};

template <class... Ts>
constexpr fbx_plugin PluginOf(std::string_view id) {
  using T = detail::Tables<Ts...>;
  return detail::make_plugin(id, "1.2.3", T::rule_table.data(), T::kRules, T::kernel_table.data(),
                             T::kKernels);
}
constexpr fbx_plugin kOne =
    PluginOf<Product, Swap, Twice, Gap, Pass, Two, First, Scale, Const, StateRule, Unread, Outer, Outer2, Low,
             High, Control, Huge, Typo, Checked, Throws, Weigh, Shared, Subtract, Weights, Same>("t.rules");
constexpr const fbx_rule* kOthers[] = {detail::Tables<OtherShared>::rule_table[0], &kLate};
constexpr fbx_plugin kTwo =
    detail::make_plugin("t.other", "1.2.3", kOthers, std::array<const fbx_kernel*, 0>{});

template <const fbx_plugin& P>
fbx_status LoadOf(const fbx_host*, const fbx_plugin** out) noexcept {
  *out = &P;
  return FBX_OK;
}

}  // namespace
}  // namespace fusebox

constinit const fbx_entry kRules = fusebox::sdk::detail::make_entry(&fusebox::LoadOf<fusebox::kOne>);
constinit const fbx_entry kOtherRules = fusebox::sdk::detail::make_entry(&fusebox::LoadOf<fusebox::kTwo>);
