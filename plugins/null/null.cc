// SPDX-License-Identifier: Apache-2.0
// A template to copy: a plugin with every part that a plugin can have, which declines everything.
//
// A plugin consists of rules, kernels and delegates, registered by the line at the end of this file. It
// includes <fusebox/...> and links nothing of Fusebox. Next to the library, fusebox-plugin.json declares the
// same rules, ops and delegates; the host rejects a plugin whose library differs from it.
#include <fusebox/plugin.hpp>

namespace {

using namespace fusebox::sdk;

// A rule replaces a composite (an operation with a name, attributes, operands and a body that defines it) by
// other ops.
struct Rule {
  // `id` starts with the plugin's namespace. `implements` is the composite's name, or a prefix ending in '*'.
  static constexpr std::string_view id = "fusebox.null.any";
  static constexpr std::string_view implements = "fusebox.null";

  // Checks types, constants and attributes of a site without changing it; may be called many times. A
  // rejection needs a reason, which `convert --explain` prints.
  static void match(const Site& s) {
    s.arity(1, 1);
    s.require(s.in(0).dtype() == FBX_F32, "DTYPE", "only f32 is supported", "operand 0");
    // Options of this plugin: the user's fusebox.json, else the defaults of the manifest.
    s.require(false, "NULL", s.options().s("because"));
  }

  // Builds the replacement; only called after match accepted. To transpose, split or slice weights, emit
  // these ops: the host folds constants.
  static void rewrite(const Site& s, Build& b) {
    const auto op = b.custom("fusebox.null", {b.in(0)}).attr("scale", s.attrs().f64("scale", 1.0));
    b.result(0, op[0]);
  }
};

// A kernel runs one op: a custom op as here, or `builtin = "FULLY_CONNECTED"`.
class Kernel {
 public:
  static constexpr std::string_view custom = "fusebox.null";

  // Throws Reject if this kernel cannot run the node; then the host tries the op's next kernel.
  static void supports(const Node& n) { throw Reject{"NULL", std::string(n.options().s("because"))}; }

  // Infers result types from operand types; also called during conversion, when nothing is run.
  static void infer(const Node& n, Infer& out) { out.like(0, n.in(0)); }

  // Once per node and model: reads attributes, packs constant weights. The instance is immutable afterwards.
  explicit Kernel(const Node& n) : scale_(static_cast<float>(n.attrs().f64("scale", 1.0))) {}

  // Once per session and input shapes: requests scratch memory. The returned state belongs to the session.
  struct State {
    uint32_t scratch;
  };
  State prepare(const Node& n, Plan& plan) const { return {plan.scratch(n.in(0).bytes())}; }

  // Called any number of times, possibly by several sessions at once. Must not allocate; errors are thrown.
  void invoke(const Node& n, State& state) const {
    const auto x = n.in(0).values<const float>();
    const auto y = n.out(0).values<float>();
    auto* scaled = n.scratch<float>(state.scratch);
    parallel_for(n.host(), x.size(), 4096, [&](size_t begin, size_t end, uint32_t) {
      for (size_t i = begin; i < end; ++i) scaled[i] = scale_ * x[i];
      for (size_t i = begin; i < end; ++i) y[i] = scaled[i];
    });
  }

 private:
  float scale_;
};

// A delegate runs whole partitions of a model, which the host forms from the nodes that it accepts.
struct Delegate {
  static constexpr std::string_view delegate = "fusebox.null";

  // Once per model, with the user's options for this delegate (`fusebox run --delegate
  // 'fusebox.null:{"reason":
  // "..."}'`).
  explicit Delegate(const Attrs& options) : why(options.s("reason")) {}

  // Throws Reject if the delegate cannot run the node; `run --explain` prints the reason.
  void supports(const Graph&, const GraphNode& n) const {
    n.require(n.out_count() == 1, "ARITY", "only nodes with one result are supported");
    throw Reject{"NULL", why};
  }

  // Once per partition and session. An exception here, in prepare or in invoke returns the partition to the
  // kernels.
  struct Partition {
    Partition(Delegate& delegate, const Graph&) { throw Reject{"NULL", delegate.why}; }
    void prepare(const Call&, Infer&, Plan&) {}
    void invoke(const Call&) {}
  };

  std::string why;
};

}  // namespace

FUSEBOX_PLUGIN("fusebox.null", "1.0.0", Rule, Kernel, Delegate)
