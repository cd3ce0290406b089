// SPDX-License-Identifier: Apache-2.0
// MobileNetV2 through Fusebox beside the same layers through XNNPACK's subgraph API.
#include <pthreadpool.h>
#include <unistd.h>
#include <xnnpack.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/tflite/tflite.h"
#include "tests/bench/interleave.h"
#include "tests/bench/mobilenet.h"
#include "tests/bench/net_bench.h"
#include "tests/bench/row.h"

namespace fusebox::bench {
namespace {

namespace fs = std::filesystem;

// Bytes that XNNPACK allocates in whole lines of the cache while it makes a runtime: weights that are packed
// past any cache.
constexpr size_t kLine = 64;
size_t allocated = 0;

void* Allocate(void*, size_t size) { return std::malloc(size); }
void* Reallocate(void*, void* memory, size_t size) { return std::realloc(memory, size); }
void Free(void*, void* memory) { std::free(memory); }
void* AllocateAligned(void*, size_t alignment, size_t size) {
  if (size % kLine == 0) allocated += size;
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
constexpr xnn_allocator kCounting{nullptr, Allocate, Reallocate, Free, AllocateAligned, Free};

// A cache that holds what it is given and finds nothing, to count what goes through it.
struct Counting {
  std::vector<void*> blocks;
  size_t bytes = 0;
  ~Counting() {
    for (void* block : blocks) std::free(block);
  }
  static Counting& Of(void* self) { return *static_cast<Counting*>(self); }
  xnn_weights_cache_provider provider() {
    xnn_weights_cache_provider p{};
    p.context = this;
    p.look_up = [](void*, const xnn_weights_cache_look_up_key*) { return SIZE_MAX; };
    p.reserve_space = [](void* self, size_t n) {
      Of(self).blocks.push_back(std::aligned_alloc(64, (n + 63) / 64 * 64));
      return Of(self).blocks.back();
    };
    p.look_up_or_insert = [](void* self, const xnn_weights_cache_look_up_key*, void*, size_t n) {
      Of(self).bytes += n;
      return Of(self).blocks.size() - 1;
    };
    p.is_finalized = [](void*) { return true; };
    p.offset_to_addr = [](void* self, size_t at) { return Of(self).blocks[at]; };
    p.delete_cache = [](void*) { return xnn_status_success; };
    return p;
  }
};

class Direct {
 public:
  Direct(const MobileNet& net, int threads, xnn_weights_cache_t cache = nullptr) {
    if (threads > 1) pool_ = pthreadpool_create(static_cast<size_t>(threads));
    Check(xnn_create_subgraph(2, 0, &subgraph_));
    Define(net);
    const size_t before = allocated;
    Check(xnn_create_runtime_v3(subgraph_, cache, pool_, 0, &runtime_));
    packed_privately_ = allocated - before;
  }
  ~Direct() {
    xnn_delete_runtime(runtime_);
    xnn_delete_subgraph(subgraph_);
    if (pool_ != nullptr) pthreadpool_destroy(pool_);
  }
  Direct(const Direct&) = delete;

  size_t packed_privately() const { return packed_privately_; }
  void SetUp(std::span<const std::byte> image) {
    // 16 bytes behind an input are read.
    std::memcpy(image_.data(), image.data(), image.size());
    const xnn_external_value values[] = {{0, image_.data()}, {1, classes_.data()}};
    Check(xnn_reshape_runtime(runtime_));
    Check(xnn_setup_runtime_v2(runtime_, 2, values));
  }
  Status Run() {
    return xnn_invoke_runtime(runtime_) == xnn_status_success ? Status() : Internal("XNNPACK does not run");
  }
  std::span<const float> classes() const { return {classes_.data(), MobileNet::kClasses}; }

 private:
  static void Check(xnn_status status) {
    if (status == xnn_status_success) return;
    std::fprintf(stderr, "XNNPACK: status %d\n", static_cast<int>(status));
    std::exit(3);
  }
  uint32_t Value(const std::vector<size_t>& dims, const void* data = nullptr,
                 uint32_t external = XNN_INVALID_VALUE_ID, uint32_t flags = 0) {
    uint32_t id = 0;
    Check(xnn_define_tensor_value(subgraph_, xnn_datatype_fp32, dims.size(), dims.data(), data, external,
                                  flags, &id));
    return id;
  }
  uint32_t Value(const Weights& weights) {
    const auto& dims = weights.type.shape.dims();
    return Value({dims.begin(), dims.end()}, weights.data.data());
  }

  uint32_t Convolve(const MobileLayer& layer, uint32_t x, std::vector<size_t>& dims) {
    const auto& filter = layer.filter.type.shape.dims();
    const auto window = static_cast<uint32_t>(filter[1]), stride = static_cast<uint32_t>(layer.stride);
    const size_t in = dims[3], out = static_cast<size_t>(filter[layer.depthwise ? 3 : 0]);
    const float low = layer.relu6 ? 0 : -INFINITY, high = layer.relu6 ? 6 : INFINITY;
    dims = {1, (dims[1] + stride - 1) / stride, (dims[2] + stride - 1) / stride, out};
    const uint32_t weights = Value(layer.filter), bias = Value(layer.bias), y = Value(dims);
    if (layer.depthwise) {
      Check(xnn_define_depthwise_convolution_2d(subgraph_, 0, 0, 0, 0, window, window, stride, stride, 1, 1,
                                                1, in, low, high, x, weights, bias, y,
                                                XNN_FLAG_TENSORFLOW_SAME_PADDING));
    } else {
      Check(xnn_define_convolution_2d(subgraph_, 0, 0, 0, 0, window, window, stride, stride, 1, 1, 1, in, out,
                                      low, high, x, weights, bias, y, XNN_FLAG_TENSORFLOW_SAME_PADDING));
    }
    return y;
  }

  void Define(const MobileNet& net) {
    std::vector<size_t> dims = {1, MobileNet::kSide, MobileNet::kSide, 3};
    uint32_t x = Value(dims, nullptr, 0, XNN_VALUE_FLAG_EXTERNAL_INPUT), kept = x;
    for (const MobileLayer& layer : net.layers) {
      if (layer.begins_sum) kept = x;
      x = Convolve(layer, x, dims);
      if (!layer.ends_sum) continue;
      const uint32_t sum = Value(dims);
      const xnn_binary_params params{-INFINITY, INFINITY};
      Check(xnn_define_binary(subgraph_, xnn_binary_add, &params, kept, x, sum, 0));
      x = sum;
    }
    const uint32_t mean = Value({1, dims[3]}), logits = Value({1, MobileNet::kClasses});
    const int64_t axes[] = {1, 2};
    Check(xnn_define_static_reduce_v2(subgraph_, xnn_reduce_mean, 2, axes, x, mean, 0));
    Check(xnn_define_fully_connected(subgraph_, -INFINITY, INFINITY, mean, Value(net.classes),
                                     Value(net.class_bias), logits, 0));
    const uint32_t out = Value({1, MobileNet::kClasses}, nullptr, 1, XNN_VALUE_FLAG_EXTERNAL_OUTPUT);
    Check(xnn_define_softmax(subgraph_, logits, out, 0));
  }

  xnn_subgraph_t subgraph_ = nullptr;
  xnn_runtime_t runtime_ = nullptr;
  pthreadpool_t pool_ = nullptr;
  size_t packed_privately_ = 0;
  std::vector<float> image_ = std::vector<float>(MobileNet::kSide * MobileNet::kSide * 3 + 4);
  std::vector<float> classes_ = std::vector<float>(MobileNet::kClasses + 4);
};

// Ours and XNNPACK's in turn; the outputs differ by rounding, since kernels run depthwise convolutions.
Result<std::vector<Round>> Compare(const MobileNet& net, const std::string& path,
                                   const NetArguments& arguments, int threads) {
  FUSEBOX_ASSIGN(const auto session, OpenNet(path, arguments, threads));
  Direct direct(net, threads);
  FUSEBOX_ASSIGN(const auto image, session->InputData(0));
  direct.SetUp(image);
  FUSEBOX_ASSIGN(auto rounds, Interleave([&] { return session->Run(); }, [&] { return direct.Run(); },
                                         arguments.seconds, threads));
  FUSEBOX_ASSIGN(const Tensor output, session->output(0));
  const auto ours = output.data.As<float>();
  const auto near = [](float a, float b) { return std::abs(a - b) <= 1e-5f; };
  if (!std::equal(ours.begin(), ours.end(), direct.classes().begin(), direct.classes().end(), near))
    return Internal("the two do not compute the same");
  return rounds;
}

struct Share {
  size_t cached = 0, privately = 0;  // bytes of packed weights
  uintmax_t file = 0;                // bytes on disk
};

uintmax_t BytesBelow(const fs::path& dir) {
  uintmax_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(dir))
    if (entry.is_regular_file()) bytes += entry.file_size();
  return bytes;
}

// Measures the bytes that go through a weights cache and past it, and checks that our cache holds them after
// one start, so that the next start adds nothing.
Result<Share> MeasureShare(const MobileNet& net, const std::string& path, const NetArguments& arguments) {
  Share share;
  Counting counting;
  xnn_weights_cache_provider provider = counting.provider();
  share.privately = Direct(net, 1, &provider).packed_privately();
  share.cached = counting.bytes;
  const fs::path dir = fs::path(path).replace_extension(".cache");
  const std::string options = nlohmann::json{{"xnnpack", {{"weight_cache_path", dir.string() + "/"}}}}.dump();
  for (int start = 0; start < 2; ++start) {
    // Closing a session waits until its part of the cache is on disk.
    const auto said = InChild(
        [&]() -> std::string {
          const auto session = OpenNet(path, arguments, 1, options);
          return session && (*session)->Run() ? "ran" : "failed";
        },
        60);
    if (!said || *said != "ran") return Internal("a start with a weight cache failed");
    const uintmax_t bytes = BytesBelow(dir);
    if (start > 0 && bytes != share.file) return Internal("a warm start writes to the weight cache");
    share.file = bytes;
  }
  return share;
}

}  // namespace

bool CompareMobileNet(const NetArguments& arguments) {
  if (xnn_initialize(&kCounting) != xnn_status_success)
    return std::fprintf(stderr, "XNNPACK does not start\n"), false;
  const fs::path dir = fs::temp_directory_path() / ("fusebox_net_bench_" + std::to_string(getpid()));
  fs::create_directories(dir);
  const std::string path = dir / "mobilenet_v2.tflite";
  const MobileNet net = MakeMobileNet();
  const auto measure = [&]() -> Status {
    FUSEBOX_TRY(tflite::WriteFile(ModuleOf(net), path));
    for (const int threads : {1, 2}) {
      FUSEBOX_ASSIGN(const auto rounds, Compare(net, path, arguments, threads));
      const Metric time{"net", "MobileNetV2" + OnThreads(threads), "run", "ms"};
      for (size_t i = 0; i < rounds.size(); ++i) {
        WriteRow(time, kOurs, static_cast<int>(i), rounds[i].a);
        WriteRow(time, "XNNPACK", static_cast<int>(i), rounds[i].b);
      }
    }
    FUSEBOX_ASSIGN(const Share share, MeasureShare(net, path, arguments));
    const Metric weights{"net", "MobileNetV2", "weights packed at a warm start", "MB", true};
    WriteRow(weights, kOurs, 0, static_cast<double>(share.privately) / 1e6);
    WriteRow(weights, "all packed weights", 0, static_cast<double>(share.cached + share.privately) / 1e6);
    return {};
  };
  const Status status = measure();
  fs::remove_all(dir);
  if (!status) std::fprintf(stderr, "%s\n", status.error().message.c_str());
  return static_cast<bool>(status);
}

}  // namespace fusebox::bench
