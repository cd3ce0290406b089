// SPDX-License-Identifier: Apache-2.0
// A delegate for ADD and MUL of f32 tensors of one shape, with at most one fault, which FAULT selects.
#include <algorithm>
#include <fusebox/plugin.hpp>
#include <vector>

namespace {

using namespace fusebox::sdk;

enum Fault {
  None,
  SumsOnly,
  WholeGraphOnly,
  OldSizeAfterResize,
  SessionNeedsPartition,
  FailsCreate,
  FailsPrepare,
  NeedsOption
};
constexpr bool Is(Fault fault) { return FAULT == fault; }

struct Sums {
  static constexpr std::string_view delegate = "sums";

  explicit Sums(const Attrs& options) {
    if (Is(FailsCreate)) throw Error{FBX_INTERNAL, "no device"};
    if (Is(NeedsOption) && options.s("device", "") != "one")
      throw Error{FBX_INVALID, "the device is not set"};
  }
  void supports(const Graph&, const GraphNode& n) {
    n.require(n.op() == "ADD" || n.op() == "MUL", "OP", "only ADD and MUL");
    n.require(n.in(0).dtype() == FBX_F32, "DTYPE", "only f32");
    n.require(std::ranges::equal(n.in(0).dims(), n.in(1).dims()), "SHAPE", "only equal shapes");
    n.require(n.attrs().s("fused_activation_function", "NONE") == "NONE", "ATTR", "no activation");
  }

  struct Session {
    Session(Sums&, const fbx_host*) {}
    ~Session() {
      if (Is(SessionNeedsPartition)) *last = 1;
    }
    volatile int* last = nullptr;
  };

  struct Partition {
    struct Step {
      bool add;
      fbx_value a, b, out;
    };
    Partition(Sums&, Session& session, const Graph& graph)
        : values(graph.value_count()),
          inputs(graph.inputs().begin(), graph.inputs().end()),
          outputs(graph.outputs().begin(), graph.outputs().end()) {
      static int any;
      session.last = &any;
      for (uint32_t i = 0; i < graph.node_count(); ++i) {
        const GraphNode n = graph.node(i);
        steps.push_back({n.op() == "ADD" || Is(SumsOnly), n.in_id(0), n.in_id(1), n.out_id(0)});
      }
      if (Is(WholeGraphOnly) && steps.size() != 6) steps.clear();
      for (fbx_value v = 0; v < graph.value_count(); ++v)
        if (graph.value(v).is_const())
          values[v].assign(graph.value(v).values<const float>().begin(),
                           graph.value(v).values<const float>().end());
    }
    void reshape(const Call&) {}
    void prepare(const Call& call, Infer&, Plan&) {
      if (Is(FailsPrepare)) throw Error{FBX_INTERNAL, "no memory on the device"};
      if (count == 0 || !Is(OldSizeAfterResize)) count = static_cast<size_t>(call.in(0).count());
    }
    void invoke(const Call& call) {
      for (uint32_t i = 0; i < inputs.size(); ++i) {
        const auto in = call.in(i).values<const float>();
        values[inputs[i]].assign(in.begin(), in.end());
      }
      for (const Step& s : steps) {
        auto &a = values[s.a], &b = values[s.b];
        a.resize(count), b.resize(count);
        std::vector<float> out(count);
        for (size_t i = 0; i < count; ++i) out[i] = s.add ? a[i] + b[i] : a[i] * b[i];
        values[s.out] = std::move(out);
      }
      for (uint32_t i = 0; i < outputs.size(); ++i) {
        const auto out = call.out(i).values<float>();
        values[outputs[i]].resize(out.size());
        std::ranges::copy(values[outputs[i]], out.begin());
      }
    }
    std::vector<std::vector<float>> values;
    std::vector<fbx_value> inputs, outputs;
    std::vector<Step> steps;
    size_t count = 0;
  };
};

}  // namespace

FUSEBOX_PLUGIN("planted.delegate", "1.0.0", Sums)
