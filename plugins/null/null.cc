// SPDX-License-Identifier: Apache-2.0
// A plugin that declines everything, written to be copied: every part that a plugin can have, with what
// belongs there.
//
// A plugin is rules, kernels and delegates, and the line at the end of this file that names them. It includes
// <fusebox/...> and links nothing of Fusebox. Beside the library stands fusebox-plugin.json, which promises
// the same rules, ops and delegates; the host refuses a plugin whose library differs from it.
#include <fusebox/plugin.hpp>

namespace {

// A rule turns a composite (an operation with a name, attributes, operands and a body that defines it) into
// other ops.
struct Rule {
  // `id` begins with the plugin's namespace. `implements` is the composite's name, or a prefix that ends in
  // '*'.
  static constexpr std::string_view id = "fusebox.null.any", implements = "fusebox.null";

  // Is this site for us? Looks at types, constants and attributes, and changes nothing: it may be asked many
  // times. Whoever declines says why; people read it in `convert --explain`.
  static void match(const fusebox::Site& s) {
    s.arity(1, 1);
    s.require(s.in(0).dtype() == FBX_F32, "DTYPE", "only f32 is supported", "operand 0");
    // The options of this plugin: what the user's fusebox.json says, over the defaults of the manifest.
    s.require(false, "NULL", s.options().s("because"));
  }

  // Builds what stands in the composite's place. Only asked where match accepted. Weights are transposed,
  // split and sliced by emitting those ops: the host computes them at once.
  static void rewrite(const fusebox::Site& s, fusebox::Build& b) {
    const auto op = b.custom("fusebox.null", {b.in(0)}).attr("scale", s.attrs().f64("scale", 1.0));
    b.result(0, op[0]);
  }
};

// A kernel runs one op: a custom one of your own as here, or `builtin = "FULLY_CONNECTED"`.
class Kernel {
 public:
  static constexpr std::string_view custom = "fusebox.null";

  // Would this kernel run this node? When it declines, the next kernel of the op is asked.
  static void supports(const fusebox::Node& n) {
    throw fusebox::Reject{"NULL", std::string(n.options().s("because"))};
  }

  // Result types from operand types; also asked at conversion, when there is nothing to run yet.
  static void infer(const fusebox::Node& n, fusebox::Infer& out) { out.like(0, n.in(0)); }

  // Once per node and model: read attributes, pack constant weights. The instance never changes afterwards.
  explicit Kernel(const fusebox::Node& n) : scale_(static_cast<float>(n.attrs().f64("scale", 1.0))) {}

  // Once per session and input shapes: ask for scratch memory. What it returns is the session's own state.
  struct State {
    uint32_t scratch;
  };
  State prepare(const fusebox::Node& n, fusebox::Plan& plan) const { return {plan.scratch(n.in(0).bytes())}; }

  // Any number of times, maybe in several sessions at once. Allocates nothing; an error is thrown.
  void invoke(const fusebox::Node& n, State& state) const {
    const auto x = n.in(0).values<const float>();
    const auto y = n.out(0).values<float>();
    auto* scaled = n.scratch<float>(state.scratch);
    fusebox::parallel_for(n.host(), x.size(), 4096, [&](size_t begin, size_t end, uint32_t) {
      for (size_t i = begin; i < end; ++i) scaled[i] = scale_ * x[i];
      for (size_t i = begin; i < end; ++i) y[i] = scaled[i];
    });
  }

 private:
  float scale_;
};

// A delegate runs whole partitions of a model: nodes that it accepts, gathered by the host.
struct Delegate {
  static constexpr std::string_view delegate = "fusebox.null";

  // Once per model, with what the user says of this delegate (`fusebox run --delegate 'fusebox.null:{"why":
  // "..."}'`).
  explicit Delegate(const fusebox::Attrs& options) : why(options.s("why")) {}

  // Would it run this node? Returning is yes; a Reject is no, and its reason is shown by `run --explain`.
  void supports(const fusebox::Graph&, const fusebox::GraphNode& n) const {
    n.require(n.out_count() == 1, "ARITY", "only nodes with one result are supported");
    throw fusebox::Reject{"NULL", why};
  }

  // Once per partition and session. What it throws sends the partition back to the kernels, here as in
  // prepare and invoke.
  struct Partition {
    Partition(Delegate& delegate, const fusebox::Graph&) { throw fusebox::Reject{"NULL", delegate.why}; }
    void prepare(const fusebox::Call&, fusebox::Infer&, fusebox::Plan&) {}
    void invoke(const fusebox::Call&) {}
  };

  std::string why;
};

}  // namespace

FUSEBOX_PLUGIN("fusebox.null", "1.0.0", Rule, Kernel, Delegate)
