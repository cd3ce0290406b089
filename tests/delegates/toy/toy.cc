// SPDX-License-Identifier: Apache-2.0
#include "tests/delegates/toy/toy.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <fusebox/compiled.hpp>
#include <fusebox/plugin.hpp>
#include <fusebox/resources.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

namespace toy {

Counts counts;

namespace {

using namespace fusebox::sdk;

struct Toy {
  static constexpr std::string_view delegate = "toy";

  explicit Toy(const Attrs& options)
      : lie(options.s("lie", "")),
        join(options.s("join", "")),
        reshape(options.b("reshape", false)),
        level(options.i64("level", 0)),
        version(options.i64("version", 1)),
        border_ns(options.f64("border_ns", 0)),
        byte_ns(options.f64("byte_ns", 0)) {
    if (lie == "create") throw Reject{"LIE", "it creates nothing"};
    ++counts.delegates;
  }
  ~Toy() { --counts.delegates; }

  // toy.add is an op that no kernel runs.
  static bool Mine(std::string_view op) {
    return op == "ADD" || op == "MUL" || op == "toy.add" || op == "test.packed_add";
  }

  void claim(const Graph& graph, Claim& claim) {
    if (lie == "claim") throw std::runtime_error("claim threw");
    if (lie == "stray") claim.accept(graph.node_count() + 7);
    for (uint32_t i = 0; i < graph.node_count(); ++i) {
      const GraphNode node = graph.node(i);
      if (lie == "everything") {
        claim.accept(i);
      } else if (lie == "forget" && node.op() == "MUL") {
        continue;
      } else if (lie == "contradict" && node.op() == "MUL") {
        claim.reject(i, "LIE", "no");
        claim.accept(i);
      } else if (!Mine(node.op())) {
        claim.reject(i, "OP", "only ADD and MUL are for toys");
      } else if (node.in(0).dtype() != FBX_F32) {
        claim.reject(i, "DTYPE", "not f32");
      } else if (!std::ranges::equal(node.in(0).dims(), node.in(1).dims())) {
        claim.reject(i, "SHAPE", "toys do not broadcast");
      } else if (node.attrs().s("fused_activation_function", "NONE") != "NONE") {
        claim.reject(i, "ATTR", "toys do not activate");
      } else {
        claim.accept(i, node.op() == join ? Accept::kJoin : Accept::kAlone);
        if (lie == "twice") claim.accept(i);
      }
    }
  }

  // Made up, by an attribute.
  double cost(const Graph&, const GraphNode& n) const { return n.attrs().f64("toy_ns", FBX_NO_COST); }
  double border(uint64_t bytes) const { return border_ns + byte_ns * static_cast<double>(bytes); }

  struct Session {
    Session(Toy& toy, const fbx_host*) : toy(toy) {
      if (toy.lie == "open") throw std::bad_alloc();
      ++counts.sessions;
    }
    ~Session() { --counts.sessions; }
    void finish(const fbx_host*) {
      ++counts.finished;
      if (toy.lie == "finish") throw Error{FBX_IO, "nothing to finish with"};
    }
    Toy& toy;
  };

  struct Partition {
    struct Step {
      bool add;
      fbx_value a, b, out;
    };
    Partition(Toy& toy, Session&, const Graph& graph) : toy(toy) {
      if (toy.lie == "compile") throw Reject{"LIE", "it compiles nothing"};
      const int64_t size = graph.value(graph.inputs()[0]).dim(0);
      if (toy.lie == "sizes" && size < 0) throw Reject{"SHAPE", "an unknown size"};
      if (toy.lie == "two" && size != 2) throw Reject{"SHAPE", "only two"};
      recompiled = size < 0;
      program.emplace(graph,
                      WeightsRecipe{.what = "program", .layout = "toy", .numbers = {toy.version, toy.level}},
                      [&] { return Translate(graph); });
      counts.found += program->found();
      steps.resize(program->bytes().size() / sizeof(Step));
      std::memcpy(steps.data(), program->bytes().data(), steps.size() * sizeof(Step));
      where.resize(graph.value_count());
      for (fbx_value id = 0; id < graph.value_count(); ++id)
        if (graph.value(id).is_const()) {
          where[id] = graph.value(id).data<float>();
          constants = true;
        }
      inputs.assign(graph.inputs().begin(), graph.inputs().end());
      outputs.assign(graph.outputs().begin(), graph.outputs().end());
      ++counts.partitions;
      ++counts.compiled;
    }
    ~Partition() { --counts.partitions; }

    static std::vector<std::byte> Translate(const Graph& graph) {
      ++counts.translated;
      std::vector<Step> steps;
      for (uint32_t i = 0; i < graph.node_count(); ++i) {
        const GraphNode node = graph.node(i);
        if (!Mine(node.op())) throw Reject{"OP", "cannot run " + std::string(node.op())};
        steps.push_back({node.op() != "MUL", node.in_id(0), node.in_id(1), node.out_id(0)});
      }
      const auto bytes = std::as_bytes(std::span(steps));
      return {bytes.begin(), bytes.end()};
    }

    // With "reshape": other dims of one rank, as long as the constants fit.
    void reshape(const Call& call) {
      ++counts.reshaped;
      if (toy.lie == "reshape") throw std::runtime_error("reshape threw");
      if (!toy.reshape) throw Reject{"SHAPE", "toys do not grow"};
      if (constants) throw Reject{"SHAPE", "its constants keep their size"};
      for (uint32_t i = 0; i < call.out_count(); ++i)
        if (call.out(i).rank() != call.in(0).rank()) throw Error{FBX_INTERNAL, "an output lacks its shape"};
    }

    // All values are of the shape of the first input.
    void prepare(const Call& call, Infer& infer, Plan& plan) {
      ++counts.prepared;
      if (toy.lie == "prepare" || (toy.lie == "open prepare" && recompiled))
        throw std::runtime_error("prepare threw");
      std::vector<int64_t> dims(call.in(0).dims().begin(), call.in(0).dims().end());
      if (toy.lie == "shape") dims.push_back(7);
      for (uint32_t i = 0; i < call.out_count(); ++i) infer.set(i, FBX_F32, dims);
      if (toy.lie == "needs") infer.needs_value(0);
      if (toy.lie == "memory") plan.scratch(SIZE_MAX / 2);
      runs = session_memory<int64_t>(call.host(), "runs", toy.lie == "size" ? steps.size() : 1);
      count = static_cast<size_t>(call.in(0).count());
      slots.clear();
      for (size_t i = 0; i < steps.size(); ++i) slots.push_back(plan.scratch(count * sizeof(float)));
    }

    void invoke(const Call& call) {
      ++counts.invoked;
      counts.session_runs = static_cast<int>(++runs[0]);
      if (toy.lie == "invoke") throw 7;
      if (static_cast<size_t>(call.in(0).count()) != count)
        throw std::logic_error("other shapes than prepared for");
      for (size_t i = 0; i < steps.size(); ++i) where[steps[i].out] = call.scratch<float>(slots[i]);
      for (uint32_t i = 0; i < inputs.size(); ++i) where[inputs[i]] = call.in(i).data<float>();
      for (uint32_t i = 0; i < outputs.size(); ++i) where[outputs[i]] = call.out(i).data<float>();
      for (const Step& step : steps) {
        const float *a = where[step.a], *b = where[step.b];
        float* out = where[step.out];
        for (size_t i = 0; i < count; ++i) out[i] = step.add ? a[i] + b[i] : a[i] * b[i];
      }
    }

    Toy& toy;
    std::optional<CompiledPartition> program;
    std::vector<Step> steps;
    std::vector<fbx_value> inputs, outputs;
    std::vector<float*> where;
    std::vector<uint32_t> slots;
    std::span<int64_t> runs;  // of all partitions of the session
    size_t count = 0;
    bool constants = false, recompiled = false;
  };

  std::string lie, join;
  bool reshape;
  int64_t level, version;
  double border_ns, byte_ns;
};

// Compiles again for other dims.
struct Recompiler : Toy {
  static constexpr std::string_view delegate = "toy.recompiler";
  static constexpr bool recompiles = true;
  using Toy::Toy;
};

// An addition that would have weights to pack.
struct PackedAdd {
  static constexpr std::string_view custom = "test.packed_add";
  static void supports(const Node& n) {
    if (n.attrs().b("refuse", false)) throw Reject{"REFUSED", "as told"};
  }
  explicit PackedAdd(const Node&) { ++counts.packed; }
  static void infer(const Node& n, Infer& out) { out.like(0, n.in(0)); }
  static double cost(const Node& n) {
    if (n.attrs().b("throws", false)) throw std::runtime_error("cost threw");
    return n.attrs().f64("kernel_ns", FBX_NO_COST);
  }
  void invoke(const Node& n) const {
    const auto a = n.in(0).values<const float>(), b = n.in(1).values<const float>();
    std::ranges::transform(a, b, n.out(0).data<float>(), std::plus<float>());
  }
};

}  // namespace
}  // namespace toy

FUSEBOX_PLUGIN("test.toy", "1.0.0", toy::Toy, toy::Recompiler, toy::PackedAdd)
