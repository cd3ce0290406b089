// SPDX-License-Identifier: Apache-2.0
#include "tests/host/run/test_plugin.h"

#include <algorithm>
#include <atomic>
#include <fusebox/plugin.hpp>
#include <numeric>
#include <thread>

int test_made = 0;

namespace fusebox {
namespace {

using namespace sdk;

struct Twice {
  static constexpr std::string_view custom = "test.twice";
  static void infer(const Node& n, Infer& out) { out.like(0, n.in(0)); }
  void invoke(const Node& n) const {
    const auto x = n.in(0).values<float>();
    std::transform(x.begin(), x.end(), n.out(0).data<float>(), [](float v) { return 2 * v; });
  }
};

struct InPlace {
  static constexpr std::string_view custom = "test.inplace";
  static constexpr uint32_t flags = FBX_KERNEL_INPLACE;
  static void infer(const Node& n, Infer& out) { out.like(0, n.in(0)); }
  void invoke(const Node& n) const {
    const auto x = n.in(0).values<float>();
    std::transform(x.begin(), x.end(), n.out(0).data<float>(), [](float v) { return v + 1; });
  }
};

struct NonZero {
  static constexpr std::string_view custom = "test.nonzero";
  static void infer(const Node&, Infer& out) { out.set(0, FBX_I64, {-1}); }
  void invoke(const Node& n) const {
    const auto x = n.in(0).values<float>();
    const int64_t count = std::count_if(x.begin(), x.end(), [](float v) { return v != 0; });
    int64_t* out = n.resize(0, std::span(&count, 1)).data<int64_t>();
    for (size_t i = 0; i < x.size(); ++i) {
      if (x[i] != 0) *out++ = static_cast<int64_t>(i);
    }
  }
};

struct Iota {
  static constexpr std::string_view custom = "test.iota";
  static void infer(const Node& n, Infer& out) {
    if (!n.in(0).has_value()) return out.needs_value(0);
    out.set(0, FBX_F32, {*n.in(0).data<int32_t>()});
  }
  void invoke(const Node& n) const {
    const auto out = n.out(0).values<float>();
    std::iota(out.begin(), out.end(), 0.0f);
  }
};

struct Append {
  static constexpr std::string_view custom = "test.append";
  static void infer(const Node& n, Infer& out) {
    const int64_t dim = n.in(0).rank() == 1 ? n.in(0).dim(0) : -1;
    out.set(0, FBX_F32, {dim < 0 ? -1 : dim + 1});
  }
  void invoke(const Node& n) const {
    const auto x = n.in(0).values<float>();
    float* out = std::copy(x.begin(), x.end(), n.out(0).data<float>());
    *out = std::accumulate(x.begin(), x.end(), 0.0f);
  }
};

struct Shorter {
  static constexpr std::string_view custom = "test.shorter";
  static void infer(const Node&, Infer& out) { out.set(0, FBX_BOOL, std::span<const int64_t>()); }
  void invoke(const Node& n) const { *n.out(0).data<bool>() = n.in(0).count() < n.attrs().i64("than"); }
};

struct Count {
  static constexpr std::string_view custom = "test.count";
  struct State {
    uint32_t scratch, persistent;
  };
  static void infer(const Node& n, Infer& out) { out.like(0, n.in(0)); }
  State prepare(const Node& n, Plan& plan) const {
    const auto bytes = static_cast<size_t>(n.in(0).count()) * sizeof(float);
    return {plan.scratch(bytes), plan.persistent(sizeof(float))};
  }
  void invoke(const Node& n, State& state) const {
    const auto x = n.in(0).values<float>();
    float* scratch = n.scratch<float>(state.scratch);
    float& runs = *n.scratch<float>(state.persistent);
    runs += 1;
    std::transform(x.begin(), x.end(), scratch, [&](float v) { return v + runs; });
    std::copy_n(scratch, x.size(), n.out(0).data<float>());
  }
};

struct Parallel {
  static constexpr std::string_view custom = "test.parallel";
  static void infer(const Node& n, Infer& out) { out.like(0, n.in(0)); }
  void invoke(const Node& n) const {
    const auto x = n.in(0).values<float>();
    float* out = n.out(0).data<float>();
    std::atomic<bool> in_range = true;
    parallel_for(n.host(), x.size(), 8, [&](size_t begin, size_t end, uint32_t worker) {
      if (worker >= thread_count(n.host())) in_range = false;
      parallel_for(n.host(), end - begin, 2, [&](size_t b, size_t e, uint32_t) {
        for (size_t i = begin + b; i < begin + e; ++i) out[i] = x[i] + 1;
      });
    });
    if (!in_range) throw Error{FBX_INTERNAL, "a worker number is out of range"};
  }
};

struct Fail {
  static constexpr std::string_view custom = "test.fail";
  static void infer(const Node& n, Infer& out) { out.like(0, n.in(0)); }
  void invoke(const Node&) const { throw Error{FBX_INVALID, "no luck today"}; }
};

// Accepts two elements only, and copies them.
struct Pair {
  static constexpr std::string_view custom = "test.pair";
  static void infer(const Node& n, Infer& out) {
    if (n.in(0).rank() == 1 && n.in(0).dim(0) >= 0 && n.in(0).dim(0) != 2)
      throw Error{FBX_INVALID, "not a pair"};
    out.like(0, n.in(0));
  }
  void invoke(const Node& n) const {
    const auto x = n.in(0).values<float>();
    if (x.size() != 2) throw Error{FBX_INTERNAL, "the operand has another shape than planned"};
    std::ranges::copy(x, n.out(0).data<float>());
  }
};

struct Unsized {
  static constexpr std::string_view custom = "test.unsized";
  static void infer(const Node&, Infer& out) { out.set(0, FBX_I64, {-1}); }
  void invoke(const Node&) const {}
};

struct Rnn {
  static constexpr std::string_view builtin = "UNIDIRECTIONAL_SEQUENCE_RNN";
  static void infer(const Node& n, Infer& out) { out.like(0, n.in(0)); }
  void invoke(const Node& n) const {
    if (!n.in(4).is_variable()) throw Error{FBX_INTERNAL, "the state is no variable"};
    const auto x = n.in(0).values<float>();
    float* state = n.in(4).data<float>();
    if (state != n.out(1).data<float>()) throw Error{FBX_INTERNAL, "the final state lies elsewhere"};
    for (size_t i = 0; i < x.size(); ++i) n.out(0).data<float>()[i] = state[i] += x[i];
  }
};

struct Dequantize {
  static constexpr std::string_view builtin = "DEQUANTIZE";
  static void infer(const Node& n, Infer& out) { out.set(0, FBX_F32, {n.in(0).dim(0)}); }
  void invoke(const Node& n) const {
    static std::atomic<int> runs = 0;
    const auto x = n.in(0).values<int8_t>();
    const auto run = static_cast<float>(++runs);
    std::transform(x.begin(), x.end(), n.out(0).data<float>(), [&](int8_t v) { return run * v; });
  }
};

// How many there are is for a test to see.
struct Made {
  static constexpr std::string_view custom = "test.made";
  explicit Made(const Node& n) {
    if (n.attrs().i64("fail", 0) != 0) throw Error{FBX_INVALID, "cannot be made"};
    if (n.attrs().i64("poll", 0) != 0) {
      while (!n.cancelled()) std::this_thread::yield();
      throw Error{FBX_CANCELLED, ""};
    }
    ++test_made;
  }
  ~Made() { --test_made; }
  static void infer(const Node& n, Infer& out) { out.like(0, n.in(0)); }
  void invoke(const Node& n) const { std::ranges::copy(n.in(0).values<float>(), n.out(0).data<float>()); }
};

constexpr const fbx_kernel* kKernels[] = {
    &kernel_of<Twice>,   &kernel_of<InPlace>,    &kernel_of<NonZero>,  &kernel_of<Iota>, &kernel_of<Append>,
    &kernel_of<Shorter>, &kernel_of<Count>,      &kernel_of<Parallel>, &kernel_of<Fail>, &kernel_of<Unsized>,
    &kernel_of<Rnn>,     &kernel_of<Dequantize>, &kernel_of<Made>,     &kernel_of<Pair>};
constexpr fbx_plugin kPlugin =
    detail::make_plugin("test.plugin", "1.0.0", nullptr, 0, kKernels, std::size(kKernels));

fbx_status Load(const fbx_host*, const fbx_plugin** out) noexcept {
  *out = &kPlugin;
  return FBX_OK;
}

}  // namespace
}  // namespace fusebox

constinit const fbx_entry kTestPlugin = fusebox::sdk::detail::make_entry(&fusebox::Load);
