// SPDX-License-Identifier: Apache-2.0
// The plugin nn: attention beside its body through the delegate xnnpack, in time and memory; the time to load
// the plugin; and what the ABI costs per node. Composites of decoders and the sample swiglu_block beside
// their bodies.
//
//   nn_bench --nn FOLDER --xnnpack FOLDER [--swiglu FOLDER] [--seconds S] [--rounds N]
//
// Attention is f32 with 1024 positions and keys and heads of 64. Its body is what litert-torch writes:
// transposes, two BATCH_MATMUL, an added mask if it is causal, SOFTMAX.
#include <malloc.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fusebox/plugin.hpp>
#include <limits>
#include <string>

#include "host/session.h"
#include "tests/bench/interleave.h"
#include "tests/bench/nn_composites.h"
#include "tests/bench/row.h"

namespace fusebox::bench {
namespace {

constexpr int64_t kPositions = 1024, kSize = 64;

struct Arguments {
  std::string nn, xnnpack, swiglu;
  double seconds = 2;
  int rounds = 21;
};

Type F32(std::vector<int64_t> dims) { return {DType::kF32, Shape(std::move(dims))}; }

struct Attention {
  int64_t heads;
  bool causal;

  std::string Name() const {
    return std::string(causal ? "causal" : "full") + ", " + std::to_string(heads) + " heads";
  }
  Type Operand() const { return F32({1, kPositions, heads, kSize}); }

  void AddBody(Function& f) const {
    const ValueId q = f.AddInput(Operand()), k = f.AddInput(Operand()), v = f.AddInput(Operand());
    const auto transposed = [&](ValueId x, std::vector<int32_t> order, std::vector<int64_t> dims) {
      const ValueId permutation = f.AddConst<int32_t>(DType::kI32, {4}, std::move(order));
      return f.AddNode(Op::kTranspose, {x, permutation}, {F32(std::move(dims))}).results[0];
    };
    const ValueId scale = f.AddConst<float>(DType::kF32, Shape::Scalar(), {0.125f});
    const ValueId scaled = f.AddNode(Op::kMul, {q, scale}, {Operand()}).results[0];
    const std::vector<int64_t> scores = {1, heads, kPositions, kPositions},
                               rows = {1, heads, kPositions, kSize};
    ValueId x = f.AddNode(Op::kBatchMatmul,
                          {transposed(scaled, {0, 2, 1, 3}, rows),
                           transposed(k, {0, 2, 3, 1}, {1, heads, kSize, kPositions})},
                          {F32(scores)})
                    .results[0];
    if (causal) x = f.AddNode(Op::kAdd, {x, Mask(f)}, {F32(scores)}).results[0];
    Attrs beta;
    beta.Set("beta", 1.0);
    x = f.AddNode(Op::kSoftmax, {x}, {F32(scores)}, beta).results[0];
    x = f.AddNode(Op::kBatchMatmul, {x, transposed(v, {0, 2, 1, 3}, rows)}, {F32(rows)}).results[0];
    f.outputs = {transposed(x, {0, 2, 1, 3}, {1, kPositions, heads, kSize})};
  }

  static ValueId Mask(Function& f) {
    std::vector<float> hidden(static_cast<size_t>(kPositions * kPositions), 0.0f);
    for (int64_t t = 0; t < kPositions; ++t)
      for (int64_t key = t + 1; key < kPositions; ++key)
        hidden[static_cast<size_t>(t * kPositions + key)] = std::numeric_limits<float>::lowest();
    return f.AddConst<float>(DType::kF32, {1, 1, kPositions, kPositions}, std::move(hidden));
  }

  std::unique_ptr<Module> Build(bool composite) const {
    auto module = std::make_unique<Module>();
    module->source = Name();
    Function& main = module->Add("main");
    if (!composite) return AddBody(main), std::move(module);
    AddBody(module->Add("body"));
    std::vector<ValueId> operands;
    for (int i = 0; i < 3; ++i) operands.push_back(main.AddInput(Operand()));
    Attrs attrs;
    attrs.Set("scale", 0.125);
    Node& node = main.AddNode(Op::kStablehloComposite, operands, {Operand()}, attrs);
    node.name = "odml.scaled_dot_product_attention";
    node.version = 1;
    node.body = "body";
    main.outputs = node.results;
    return module;
  }
};

Result<std::shared_ptr<Registry>> OnlyPlugins(std::vector<std::string> folders) {
  Config config;
  config.search_default_path = false;
  config.plugins = {folders.begin(), folders.end()};
  return Registry::Create(config);
}

// A session that has run once, and the memory that it holds besides its inputs and outputs.
struct Opened {
  std::unique_ptr<Session> session;
  double bytes = 0;
};

// Integers are their own numbers; `seen` of the elements along the last dimension of a mask are true.
Status Fill(Session& session, size_t seen = 0) {
  uint64_t state = 1;
  for (int i = 0; i < static_cast<int>(session.inputs().size()); ++i) {
    FUSEBOX_ASSIGN(const auto bytes, session.InputData(i));
    const Type& type = session.inputs()[static_cast<size_t>(i)].type;
    if (type.dtype == DType::kBool) {
      const auto keys = static_cast<size_t>(type.shape.dims().back());
      for (size_t k = 0; k < bytes.size(); ++k) bytes[k] = std::byte{k % keys < seen};
      continue;
    }
    if (type.dtype == DType::kI32) {
      auto* const integers = reinterpret_cast<int32_t*>(bytes.data());
      for (size_t k = 0; k < bytes.size() / sizeof(int32_t); ++k) integers[k] = static_cast<int32_t>(k);
      continue;
    }
    auto* const values = reinterpret_cast<float*>(bytes.data());
    for (size_t k = 0; k < bytes.size() / sizeof(float); ++k) {
      state = state * 6364136223846793005 + 1442695040888963407;
      values[k] = static_cast<float>(static_cast<int32_t>(state >> 32)) / 1073741824.0F;
    }
  }
  return {};
}

size_t Allocated() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

Result<Opened> Open(std::unique_ptr<Module> module, std::vector<std::string> plugins,
                    const std::shared_ptr<ThreadPool>& pool, size_t seen = 0) {
  FUSEBOX_ASSIGN(const auto registry, OnlyPlugins(std::move(plugins)));
  FUSEBOX_ASSIGN(const auto model, Model::FromModule(std::move(module), {.registry = registry}));
  const size_t before = Allocated();
  Opened out;
  FUSEBOX_ASSIGN(out.session, Session::Create(model, {.pool = pool}));
  FUSEBOX_TRY(Fill(*out.session, seen));
  FUSEBOX_TRY(out.session->Run());
  const size_t io = 4 * ByteSize(out.session->outputs()[0].type).value_or(0);
  out.bytes = static_cast<double>(Allocated() - before) - static_cast<double>(io);
  return out;
}

double LargestDifference(Session& a, Session& b) {
  const auto x = a.output(0), y = b.output(0);
  if (!x || !y) return INFINITY;
  double most = 0;
  for (size_t i = 0; i < x->data.As<float>().size(); ++i)
    most = std::max(most, std::fabs(static_cast<double>(x->data.As<float>()[i] - y->data.As<float>()[i])));
  return most;
}

Status CompareAttention(const Attention& attention, int threads, const Arguments& arguments) {
  // One pool: the waiting threads of another one would spin on the cores that this one needs.
  FUSEBOX_ASSIGN(const auto pool, ThreadPool::Create(threads));
  FUSEBOX_ASSIGN(const Opened fused, Open(attention.Build(true), {arguments.nn}, pool));
  FUSEBOX_ASSIGN(const Opened body, Open(attention.Build(false), {arguments.xnnpack}, pool));
  const std::string job = "attention, " + attention.Name() + ", " + std::to_string(threads) + " threads";
  const double difference = LargestDifference(*fused.session, *body.session);
  if (!(difference < 1e-5)) return Internal(job + " differs from its body by " + std::to_string(difference));
  for (const Placement& node : body.session->placements())
    if (!node.runner.starts_with("xnnpack"))
      return Internal(job + ": " + node.op + " does not run on XNNPACK");
  constexpr char kPeer[] = "body through XNNPACK";
  if (threads == 1) {
    const Metric memory{"nn", job, "memory besides inputs and outputs", "MB"};
    WriteRow(memory, kOurs, 0, fused.bytes / 1e6);
    WriteRow(memory, kPeer, 0, body.bytes / 1e6);
  }
  FUSEBOX_ASSIGN(const auto rounds,
                 Interleave([&] { return fused.session->Run(); }, [&] { return body.session->Run(); },
                            arguments.seconds, threads));
  for (size_t i = 0; i < rounds.size(); ++i) {
    WriteRow({"nn", job, "run", "ms"}, kOurs, static_cast<int>(i), rounds[i].a);
    WriteRow({"nn", job, "run", "ms"}, kPeer, static_cast<int>(i), rounds[i].b);
  }
  return {};
}

// Both sides may use XNNPACK, which places the builtin ops.
Status CompareComposite(const CompositeJob& composite, int threads, const Arguments& arguments) {
  FUSEBOX_ASSIGN(const auto pool, ThreadPool::Create(threads));
  const std::vector<std::string> plugins = {arguments.nn, arguments.xnnpack};
  const auto seen = static_cast<size_t>(composite.seen);
  FUSEBOX_ASSIGN(const Opened fused, Open(composite.Build(true), plugins, pool, seen));
  FUSEBOX_ASSIGN(const Opened body, Open(composite.Build(false), plugins, pool, seen));
  const std::string job = composite.title + ", " + std::to_string(threads) + " threads";
  const double difference = LargestDifference(*fused.session, *body.session);
  if (!(difference < 1e-3)) return Internal(job + " differs from its body by " + std::to_string(difference));
  FUSEBOX_ASSIGN(const auto rounds,
                 Interleave([&] { return fused.session->Run(); }, [&] { return body.session->Run(); },
                            arguments.seconds, threads));
  for (size_t i = 0; i < rounds.size(); ++i) {
    WriteRow({"nn", job, "run", "ms"}, kOurs, static_cast<int>(i), rounds[i].a);
    WriteRow({"nn", job, "run", "ms"}, "body", static_cast<int>(i), rounds[i].b);
  }
  return {};
}

// The gated MLP of samples/plugins/swiglu_block, f32.
struct GatedMlp {
  int64_t rows, size, hidden;

  std::string Name() const {
    return "gated MLP, " + std::to_string(size) + " to " + std::to_string(hidden) + ", " +
           std::to_string(rows) + (rows == 1 ? " row" : " rows");
  }
  std::vector<ValueId> Weights(Function& f) const {
    std::vector<ValueId> out;
    uint32_t state = 1;
    for (const auto& dims :
         {std::vector{hidden, size}, std::vector{hidden, size}, std::vector{size, hidden}}) {
      std::vector<float> values(static_cast<size_t>(size * hidden));
      for (float& v : values)
        v = static_cast<float>((state = state * 1664525 + 1013904223) >> 8) / 8388608.0F / 16 - 0.0625F;
      out.push_back(f.AddConst<float>(DType::kF32, Shape(dims), std::move(values)));
    }
    return out;
  }
  void AddBody(Function& f) const {
    const ValueId x = f.AddInput(F32({rows, size}));
    const std::vector<ValueId> w = Weights(f);
    const auto dense = [&](ValueId from, ValueId weights, int64_t outputs) {
      return f.AddNode(Op::kFullyConnected, {from, weights, kNoValue}, {F32({rows, outputs})}).results[0];
    };
    const auto wide = [&](Op op, std::vector<ValueId> operands) {
      return f.AddNode(op, std::move(operands), {F32({rows, hidden})}).results[0];
    };
    const ValueId gate = dense(x, w[0], hidden);
    const ValueId silu = wide(Op::kMul, {gate, wide(Op::kLogistic, {gate})});
    f.outputs = {dense(wide(Op::kMul, {silu, dense(x, w[1], hidden)}), w[2], size)};
  }
  std::unique_ptr<Module> Build(bool fused) const {
    auto module = std::make_unique<Module>();
    module->source = Name();
    Function& main = module->Add("main");
    if (!fused) return AddBody(main), std::move(module);
    std::vector<ValueId> operands = {main.AddInput(F32({rows, size}))};
    for (const ValueId w : Weights(main)) operands.push_back(w);
    Node& node = main.AddNode(Op::kCustom, operands, {F32({rows, size})});
    node.name = "acme.swiglu_block";
    main.outputs = node.results;
    return module;
  }
};

Status CompareMlp(const GatedMlp& mlp, int threads, const Arguments& arguments) {
  FUSEBOX_ASSIGN(const auto pool, ThreadPool::Create(threads));
  FUSEBOX_ASSIGN(const Opened fused, Open(mlp.Build(true), {arguments.swiglu}, pool));
  FUSEBOX_ASSIGN(const Opened body, Open(mlp.Build(false), {arguments.xnnpack}, pool));
  const std::string job = mlp.Name() + ", " + std::to_string(threads) + " threads";
  const double difference = LargestDifference(*fused.session, *body.session);
  if (!(difference < 1e-4)) return Internal(job + " differs from its body by " + std::to_string(difference));
  FUSEBOX_ASSIGN(const auto rounds,
                 Interleave([&] { return fused.session->Run(); }, [&] { return body.session->Run(); },
                            arguments.seconds, threads));
  for (size_t i = 0; i < rounds.size(); ++i) {
    WriteRow({"nn", job, "run", "ms"}, kOurs, static_cast<int>(i), rounds[i].a);
    WriteRow({"nn", job, "run", "ms"}, "body through XNNPACK", static_cast<int>(i), rounds[i].b);
  }
  return {};
}

// Does nothing: what is left is what the host and the ABI cost.
struct Empty {
  static constexpr std::string_view custom = "bench.empty";
  static void infer(const sdk::Node& n, sdk::Infer& out) { out.like(0, n.in(0)); }
  void invoke(const sdk::Node&) const {}
};

constexpr const fbx_kernel* kKernels[] = {&sdk::kernel_of<Empty>};
constexpr fbx_plugin kPlugin = sdk::detail::make_plugin("bench.empty", "1.0.0", nullptr, 0, kKernels, 1);
fbx_status Load(const fbx_host*, const fbx_plugin** out) noexcept { return *out = &kPlugin, FBX_OK; }
constinit const fbx_entry kEntry = sdk::detail::make_entry(&Load);

// Nanoseconds per call, of `count` calls in a run.
template <class F>
double Nanoseconds(size_t count, const F& run) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  run();
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count() / static_cast<double>(count);
}

Status MeasureEmpty(int rounds) {
  constexpr size_t kNodes = 2000;
  static const fbx_entry* const kEntries[] = {&kEntry};
  Config config;
  config.search_default_path = false;
  FUSEBOX_ASSIGN(const auto registry, Registry::Create(config, kEntries));
  auto module = std::make_unique<Module>();
  Function& f = module->Add("main");
  ValueId x = f.AddInput(F32({4}));
  for (size_t i = 0; i < kNodes; ++i) {
    Node& node = f.AddNode(Op::kCustom, {x}, {F32({4})});
    node.name = "bench.empty";
    x = node.results[0];
  }
  f.outputs = {x};
  FUSEBOX_ASSIGN(const auto model, Model::FromModule(std::move(module), {.registry = registry}));
  FUSEBOX_ASSIGN(const auto session, Session::Create(model));
  FUSEBOX_TRY(session->Run());
  decltype(fbx_kernel::invoke) volatile direct = kKernels[0]->invoke;
  const Metric cost{"nn", "empty kernel", "cost of a node", "ns"};
  Status status;
  for (int round = 0; round < rounds; ++round) {
    const double run = Nanoseconds(kNodes, [&] { status = session->Run(); });
    const double call = Nanoseconds(kNodes, [&] {
      for (size_t i = 0; i < kNodes; ++i) direct(nullptr, nullptr, nullptr, nullptr, nullptr);
    });
    WriteRow(cost, kOurs, round, run - call);
  }
  return status;
}

Status MeasureLoad(const std::string& folder) {
  FUSEBOX_ASSIGN(const auto registry, OnlyPlugins({folder}));
  Status status;
  const double load = Nanoseconds(1, [&] { status = registry->LoadAll(); }) / 1000;
  WriteRow({"nn", "plugin fusebox.nn", "load", "us"}, kOurs, 0, load);
  return status;
}

bool Report(const std::string& job, const Status& status) {
  if (!status) WriteError("nn", job, kOurs, status.error().message);
  return status.has_value();
}

int Main(const Arguments& arguments) {
  bool good = Report("load", MeasureLoad(arguments.nn));  // first: the library is not in memory yet
  good = Report("empty kernel", MeasureEmpty(arguments.rounds)) && good;
  for (const int threads : {1, 2})
    for (const Attention& attention :
         {Attention{1, true}, Attention{1, false}, Attention{8, true}, Attention{8, false}})
      good =
          Report("attention, " + attention.Name(), CompareAttention(attention, threads, arguments)) && good;
  for (const int threads : {1, 2})
    for (const CompositeJob& composite : CompositeJobs())
      good = Report(composite.title, CompareComposite(composite, threads, arguments)) && good;
  for (const int threads : {1, 2})
    for (const GatedMlp& mlp :
         {GatedMlp{1, 128, 512}, GatedMlp{64, 128, 512}, GatedMlp{1, 512, 1408}, GatedMlp{64, 512, 1408}})
      if (!arguments.swiglu.empty()) good = Report(mlp.Name(), CompareMlp(mlp, threads, arguments)) && good;
  return good ? 0 : 1;
}

}  // namespace
}  // namespace fusebox::bench

int main(int argc, char** argv) {
  fusebox::bench::Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string word = argv[i];
    if (word == "--nn") arguments.nn = argv[i + 1];
    else if (word == "--xnnpack") arguments.xnnpack = argv[i + 1];
    else if (word == "--swiglu") arguments.swiglu = argv[i + 1];
    else if (word == "--seconds") arguments.seconds = std::atof(argv[i + 1]);
    else if (word == "--rounds") arguments.rounds = std::max(1, std::atoi(argv[i + 1]));
  }
  if (arguments.nn.empty() || arguments.xnnpack.empty()) {
    std::fprintf(
        stderr,
        "usage: nn_bench --nn FOLDER --xnnpack FOLDER [--swiglu FOLDER] [--seconds S] [--rounds N]\n");
    return 2;
  }
  return fusebox::bench::Main(arguments);
}
