// SPDX-License-Identifier: Apache-2.0
// cost_bench XNNPACK [SECONDS]: times nodes of many shapes, each alone in a model, on kernels and on XNNPACK.
// Prints a line of JSON per node, with its amounts of work, for cost_constants.py. One thread.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "host/graph/view.h"
#include "host/session.h"
#include "plugins/common/cost.h"

namespace fusebox::bench {
namespace {

using nlohmann::json;
using Dims = std::vector<int64_t>;

struct Case {
  Op op;
  DType input = DType::kF32;
  DType filter = DType::kNone;  // kNone: the op has none
  Dims in, weights, out;
  int stride = 1;
  int repeat = 1;  // nodes in a row
};

size_t CountOf(const Dims& dims) {
  size_t count = 1;
  for (const int64_t d : dims) count *= static_cast<size_t>(d);
  return count;
}

std::shared_ptr<const Quant> Scales(size_t count, float scale) {
  Quant quant;
  quant.scales = std::vector<float>(count, scale);
  quant.zero_points = std::vector<int64_t>(count);
  return std::make_shared<const Quant>(std::move(quant));
}

Buffer Noise(DType type, size_t count) {
  uint64_t state = 88172645463325252;
  const size_t bytes = count * (type == DType::kI8 ? 1 : 4);
  return Buffer::Make(bytes, [&](std::span<std::byte> to) {
    for (size_t i = 0; i < count; ++i) {
      state = state * 6364136223846793005 + 1442695040888963407;
      const auto value = static_cast<int8_t>(state >> 56);
      if (type == DType::kI8) to[i] = static_cast<std::byte>(value);
      const float real = static_cast<float>(value) / 128;
      if (type == DType::kF32) std::memcpy(&to[4 * i], &real, 4);
      if (type == DType::kI32) std::memset(&to[4 * i], 0, 4);
    }
  });
}

class OneNode {
 public:
  explicit OneNode(const Case& c) : module_(std::make_unique<Module>()), f_(module_->Add("main")), c_(c) {
    module_->source = "node.tflite";
    ValueId value = f_.AddInput({c.input, Shape(c.in)}, "x");
    Quantize(value);
    for (int i = 0; i < c.repeat; ++i) value = AddNode(value);
    f_.outputs = {value};
  }
  std::unique_ptr<Module> Take() { return std::move(module_); }
  const Function& function() const { return f_; }

 private:
  void Quantize(ValueId id) {
    if (c_.input == DType::kI8) f_.value(id).quant = Scales(1, 0.05F);
  }
  ValueId Constant(DType type, const Dims& dims, float scale = 0, size_t scales = 1) {
    const ValueId id = f_.AddConst({type, Shape(dims)}, Noise(type, CountOf(dims)));
    if (scale > 0) f_.value(id).quant = Scales(scales, scale);
    return id;
  }
  ValueId Integers(const std::vector<int32_t>& values) {
    return f_.AddConst<int32_t>(DType::kI32, {static_cast<int64_t>(values.size())}, values);
  }

  std::vector<ValueId> Operands(ValueId x) {
    const bool bytes = c_.input == DType::kI8;
    switch (c_.op) {
      case Op::kAdd:
      case Op::kMul:
      case Op::kSub:
      case Op::kSquaredDifference: return {x, x};
      case Op::kPrelu: return {x, Constant(c_.input, {c_.in.back()}, bytes ? 0.01F : 0)};
      case Op::kMean: return {x, Integers({1, 2})};
      case Op::kPad: return {x, f_.AddConst<int32_t>(DType::kI32, {4, 2}, {0, 0, 1, 1, 1, 1, 0, 0})};
      case Op::kConcatenation: return {x, x};
      case Op::kResizeBilinear:
        return {x, Integers({static_cast<int32_t>(c_.out[1]), static_cast<int32_t>(c_.out[2])})};
      default: break;
    }
    if (c_.filter == DType::kNone) return {x};
    const ValueId filter = Constant(c_.filter, c_.weights, c_.filter == DType::kI8 ? 0.01F : 0);
    const int64_t results = c_.op == Op::kDepthwiseConv2D ? c_.weights[3] : c_.weights[0];
    if (c_.op == Op::kBatchMatmul) return {x, filter};
    const ValueId bias = bytes ? Constant(DType::kI32, {results}, 0.0005F) : Constant(DType::kF32, {results});
    if (c_.op != Op::kTransposeConv) return {x, filter, bias};
    return {Integers({c_.out.begin(), c_.out.end()}), filter, x, bias};
  }

  Attrs Options() {
    Attrs attrs;
    const bool window = c_.weights.size() == 4 || c_.op == Op::kMaxPool2D || c_.op == Op::kAveragePool2D;
    if (window) {
      attrs.Set("padding", "SAME");
      attrs.Set("stride_h", c_.stride);
      attrs.Set("stride_w", c_.stride);
    }
    if (c_.op == Op::kMaxPool2D || c_.op == Op::kAveragePool2D) {
      attrs.Set("filter_height", 2);
      attrs.Set("filter_width", 2);
    }
    if (c_.op == Op::kDepthwiseConv2D) attrs.Set("depth_multiplier", 1);
    if (c_.op == Op::kSoftmax) attrs.Set("beta", 1.0);
    if (c_.op == Op::kMean) attrs.Set("keep_dims", true);
    if (c_.op == Op::kConcatenation) attrs.Set("axis", -1);
    return attrs;
  }

  ValueId AddNode(ValueId x) {
    DType type = c_.input;
    if (c_.op == Op::kQuantize) type = DType::kI8;
    if (c_.op == Op::kDequantize) type = DType::kF32;
    Node& node = f_.AddNode(c_.op, Operands(x), {{type, Shape(c_.out)}}, Options());
    const ValueId result = node.results[0];
    if (type == DType::kI8) {
      auto quant =
          std::make_shared<Quant>(*Scales(1, c_.op == Op::kSoftmax || c_.op == Op::kLogistic ? 1.0F / 256
                                             : c_.op == Op::kTanh                            ? 1.0F / 128
                                                                                             : 0.05F));
      if (c_.op == Op::kSoftmax || c_.op == Op::kLogistic) quant->zero_points = {-128};
      f_.value(result).quant = quant;
    }
    return result;
  }

  std::unique_ptr<Module> module_;
  Function& f_;
  const Case c_;
};

// In a net, other nodes have used the caches, but for the input, which was just written. Of use for products,
// which read filters and tables.
void LeaveOnlyInput(std::span<const std::byte> input) {
  static const std::vector<std::byte> other(3 << 20, std::byte{1});
  constexpr size_t kLine = 64;
  unsigned sum = 0;
  for (size_t i = 0; i < other.size(); i += kLine) sum += static_cast<unsigned>(other[i]);
  for (size_t i = 0; i < input.size(); i += kLine) sum += static_cast<unsigned>(input[i]);
  [[maybe_unused]] static volatile unsigned read;
  read = sum;
}

// A session and the least median of its turns, in ns: other load only adds time.
struct Contestant {
  const char* name;
  std::unique_ptr<Session> session;
  std::span<const std::byte> input;
  double best = std::numeric_limits<double>::infinity();
};

Status TakeTurn(Contestant& contestant, bool cold) {
  using Clock = std::chrono::steady_clock;
  constexpr size_t kRuns = 9;
  std::vector<double> times;
  while (times.size() < kRuns) {
    if (cold) LeaveOnlyInput(contestant.input);
    const auto begin = Clock::now();
    FUSEBOX_TRY(contestant.session->Run());
    times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count());
  }
  std::ranges::nth_element(times, times.begin() + kRuns / 2);
  contestant.best = std::min(contestant.best, times[kRuns / 2]);
  return {};
}

json WorkJson(const Function& function) {
  static const fbx_host host = [] {
    fbx_host h{};
    h.head = FBX_HEAD(fbx_host);
    h.attrs = &AttrApi();
    return h;
  }();
  const NodeView view(function, *function.nodes[0]);
  json out = json::object();
  for (const int columns : {1, 8, 16, 32}) {
    const cost::Work work = cost::WorkOf(sdk::Node(&host, view.abi()), columns);
    out[std::to_string(columns)] = {work.products, work.lookups, work.elements, work.weights};
  }
  return out;
}

Result<Contestant> Open(const Case& c, const std::shared_ptr<Registry>& registry, bool delegated) {
  std::vector<Config::Delegate> delegates;
  if (delegated) {
    delegates.emplace_back("xnnpack");
    delegates[0].options.Set("placement", "all");
  }
  FUSEBOX_ASSIGN(const auto model,
                 Model::FromModule(OneNode(c).Take(), {.registry = registry, .delegates = delegates}));
  Contestant out{delegated ? "xnnpack" : "kernels", nullptr, {}};
  FUSEBOX_ASSIGN(out.session, Session::Create(model, {.threads = 1}));
  FUSEBOX_ASSIGN(const auto bytes, out.session->InputData(0));
  std::ranges::copy(Noise(c.input, CountOf(c.in)).bytes(), bytes.begin());
  out.input = bytes;
  FUSEBOX_TRY(out.session->Run());
  for (const Placement& row : out.session->placements())
    if (delegated && !row.runner.starts_with("xnnpack")) return Unsupported(row.why);
  return out;
}

// Adds the times of both sides, which take turns.
Status Measure(const Case& c, const std::shared_ptr<Registry>& registry, double seconds, json& row) {
  using Clock = std::chrono::steady_clock;
  std::vector<Contestant> contestants;
  for (const bool delegated : {false, true}) {
    FUSEBOX_ASSIGN(Contestant contestant, Open(c, registry, delegated));
    contestants.push_back(std::move(contestant));
  }
  const auto start = Clock::now();
  do {
    for (Contestant& contestant : contestants) FUSEBOX_TRY(TakeTurn(contestant, c.filter != DType::kNone));
  } while (std::chrono::duration<double>(Clock::now() - start).count() < seconds);
  for (const Contestant& contestant : contestants) row[contestant.name] = contestant.best;
  return {};
}

void Images(std::vector<Case>& cases) {
  const DType f32 = DType::kF32, i8 = DType::kI8;
  for (const auto& [input, filter] : {std::pair(f32, f32), std::pair(i8, i8), std::pair(f32, i8)}) {
    for (const int64_t side : {4, 7, 14, 28, 56, 112})
      for (const int64_t channels : {3, 16, 40, 96, 256, 512})
        for (const int64_t results : {1, 2, 4, 8, 16, 24, 40, 96, 256, 512})
          for (const auto& [window, stride] :
               {std::pair(1, 1), std::pair(3, 1), std::pair(3, 2), std::pair(5, 1)}) {
            const int64_t out = (side + stride - 1) / stride;
            const double products = static_cast<double>(out * out * results * window * window * channels);
            if (products < 2e4 || products > 3e7 || (side + channels + results / 2 + window) % 4 != 0)
              continue;
            cases.push_back({Op::kConv2D,
                             input,
                             filter,
                             {1, side, side, channels},
                             {results, window, window, channels},
                             {1, out, out, results},
                             stride});
          }
    for (const int64_t side : {4, 8, 16, 40})
      for (const int64_t channels : {8, 64, 256})
        for (const int64_t results : {1, 3, 16, 64})
          for (const auto& [window, stride] :
               {std::pair(2, 2), std::pair(3, 2), std::pair(4, 2), std::pair(3, 1)}) {
            const double products = static_cast<double>(side * side * results * window * window * channels);
            if (products < 2e4 || products > 5e6) continue;
            cases.push_back({Op::kTransposeConv,
                             input,
                             filter,
                             {1, side, side, channels},
                             {results, window, window, channels},
                             {1, side * stride, side * stride, results},
                             stride});
          }
    for (const int64_t rows : {1, 4, 16, 64})
      for (const int64_t length : {16, 64, 256, 1024})
        for (const int64_t columns : {2, 4, 8, 12, 16, 40, 128, 512})
          if (rows * length * columns >= 1000 && rows * length * columns < 10'000'000)
            cases.push_back(
                {Op::kFullyConnected, input, filter, {rows, length}, {columns, length}, {rows, columns}});
    if (input != filter) continue;
    for (const int64_t side : {4, 7, 14, 28, 56, 112})
      for (const int64_t channels : {8, 24, 32, 64, 96, 144, 320, 960})
        for (const auto& [window, stride] :
             {std::pair(3, 1), std::pair(3, 2), std::pair(5, 1), std::pair(5, 2), std::pair(7, 1)}) {
          const int64_t out = (side + stride - 1) / stride;
          const double products = static_cast<double>(out * out * window * window * channels);
          if (products < 1e4 || products > 5e6 || (window == 7 && side != 7)) continue;
          cases.push_back({Op::kDepthwiseConv2D,
                           input,
                           filter,
                           {1, side, side, channels},
                           {1, window, window, channels},
                           {1, out, out, channels},
                           stride});
        }
  }
  for (const int64_t rows : {1, 16, 64})
    for (const int64_t length : {32, 64, 256})
      for (const int64_t columns : {8, 24, 64, 256})
        cases.push_back(
            {Op::kBatchMatmul, f32, f32, {1, rows, length}, {1, length, columns}, {1, rows, columns}});
}

void Others(std::vector<Case>& cases) {
  for (const DType type : {DType::kF32, DType::kI8}) {
    for (const int64_t side : {2, 8, 24, 56})
      for (const int64_t channels : {4, 24, 96, 320}) {
        const Dims same = {1, side, side, channels};
        for (const Op op : {Op::kAdd, Op::kMul, Op::kSub, Op::kSquaredDifference, Op::kPrelu, Op::kLogistic,
                            Op::kTanh, Op::kHardSwish, Op::kRelu, Op::kRelu6})
          cases.push_back({op, type, DType::kNone, same, {}, same});
        cases.push_back({Op::kMean, type, DType::kNone, same, {}, {1, 1, 1, channels}});
        cases.push_back({Op::kPad, type, DType::kNone, same, {}, {1, side + 2, side + 2, channels}});
        cases.push_back({Op::kConcatenation, type, DType::kNone, same, {}, {1, side, side, 2 * channels}});
        cases.push_back(
            {Op::kResizeBilinear, type, DType::kNone, same, {}, {1, 2 * side, 2 * side, channels}});
        for (const Op op : {Op::kMaxPool2D, Op::kAveragePool2D})
          cases.push_back({op, type, DType::kNone, same, {}, {1, side / 2, side / 2, channels}, 2});
        cases.push_back(
            {type == DType::kF32 ? Op::kQuantize : Op::kDequantize, type, DType::kNone, same, {}, same});
      }
    for (const int64_t rows : {1, 16, 256, 2048})
      for (const int64_t length : {2, 6, 12, 64, 500})
        cases.push_back({Op::kSoftmax, type, DType::kNone, {rows, length}, {}, {rows, length}});
  }
}

int Main(const std::string& plugin, double seconds, const char* only) {
  Config config;
  config.plugins = {plugin};
  config.search_default_path = false;
  const auto registry = Registry::Create(config);
  if (!registry) return std::fprintf(stderr, "cost_bench: %s\n", registry.error().message.c_str()), 1;
  std::vector<Case> cases;
  const Dims small = {1, 64};
  for (const int repeat : {1, 17})
    cases.push_back({Op::kTanh, DType::kF32, DType::kNone, small, {}, small, 1, repeat});
  Images(cases);
  Others(cases);
  for (const Case& c : cases) {
    if (only != nullptr && Name(c.op) != only) continue;
    const OneNode model(c);
    json row = {{"op", Name(c.op)},   {"input", Name(c.input)}, {"filter", Name(c.filter)},
                {"in", c.in},         {"weights", c.weights},   {"out", c.out},
                {"stride", c.stride}, {"repeat", c.repeat},     {"work", WorkJson(model.function())}};
    if (const Status done = Measure(c, *registry, seconds, row); !done) row["error"] = done.error().message;
    std::printf("%s\n", row.dump().c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace fusebox::bench

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: cost_bench XNNPACK [SECONDS [OP]]\n"), 2;
  return fusebox::bench::Main(argv[1], argc > 2 ? std::atof(argv[2]) : 0.02, argc > 3 ? argv[3] : nullptr);
}
