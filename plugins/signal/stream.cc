// SPDX-License-Identifier: Apache-2.0
#include "plugins/signal/stream.h"

#include <algorithm>

#include "plugins/math/simd/fixed_point.h"
#include "plugins/signal/operands.h"

namespace fusebox::signal {
namespace {

constexpr int64_t kMostSize = 1 << 20;

size_t Size(const Node& n, std::string_view key) { return static_cast<size_t>(n.attrs().i64(key)); }

size_t StreamCount(const Tensor& t, int64_t each) {
  return each == 0 ? 0 : static_cast<size_t>(t.count() / each);
}

int16_t Sum(int16_t a, int16_t b) { return math::Saturate<int16_t>(int64_t{a} + b); }
float Sum(float a, float b) { return a + b; }

}  // namespace

void Framer::supports(const Node& n) {
  for (const std::string_view key : {"frame_size", "frame_step"}) Option(n, key, 1, kMostSize);
  RequireTypes(n, {FBX_I16});
}

void Framer::infer(const Node& n, Infer& out) {
  RequireArity(n, 1, 2);
  const int64_t samples = LastDim(n, 0);
  const int64_t step = n.attrs().i64("frame_step");
  if (samples >= 0 && (samples == 0 || samples % step != 0))
    Fail(std::to_string(samples) + " samples for steps of " + std::to_string(step), 0);
  SetDims(n, out, 0, FBX_I16, 1, {samples < 0 ? -1 : samples / step, n.attrs().i64("frame_size")});
  out.set(1, FBX_BOOL, {});
}

Streams Framer::prepare(const Node& n, Plan&) const {
  const size_t size = Size(n, "frame_size");
  const size_t step = Size(n, "frame_step");
  const bool prefill = n.attrs().b("prefill", false);
  return Streams(StreamCount(n.in(0), n.in(0).dim(-1)), size + step,
                 prefill && size > step ? size - step : 0);
}

void Framer::invoke(const Node& n, Streams& streams) const {
  const size_t size = Size(n, "frame_size");
  const size_t step = Size(n, "frame_step");
  const int16_t* in = n.in(0).data<const int16_t>();
  int16_t* out = n.out(0).data<int16_t>();
  bool complete = true;
  for (Queue& queue : streams.queues) {
    for (int64_t frame = 0; frame < n.out(0).dim(-2); ++frame, in += step, out += size) {
      queue.Push(in, step);
      if (queue.size() < size) {
        complete = false;
        std::fill_n(out, size, int16_t{0});
        continue;
      }
      std::copy_n(queue.data(), size, out);
      queue.Pop(step);
    }
  }
  *n.out(1).data<bool>() = complete;
}

void OverlapAdd::supports(const Node& n) {
  Option(n, "frame_step", 1, kMostSize);
  if (n.in_count() == 0 || n.in(0).dtype() != FBX_F32) RequireTypes(n, {FBX_I16});
}

void OverlapAdd::infer(const Node& n, Infer& out) {
  RequireArity(n, 1, 1);
  const int64_t size = LastDim(n, 0);
  const int64_t step = n.attrs().i64("frame_step");
  if (n.in(0).rank() == 1) Fail("has rank 1", 0);
  if (size >= 0 && size < step)
    Fail("frames of " + std::to_string(size) + " samples for steps of " + std::to_string(step), 0);
  const int64_t frames = n.in(0).rank() < 0 ? -1 : n.in(0).dim(-2);
  if (frames > kMostSize) Fail(std::to_string(frames) + " frames", 0);
  SetDims(n, out, 0, n.in(0).dtype(), 2, {frames < 0 ? -1 : frames * step});
}

OverlapAdd::State OverlapAdd::prepare(const Node& n, Plan&) const {
  const int64_t each = n.in(0).dim(-1) * n.in(0).dim(-2);
  const size_t size = StreamCount(n.in(0), each) * static_cast<size_t>(n.in(0).dim(-1));
  if (n.in(0).dtype() == FBX_F32) return std::vector<float>(size);
  return std::vector<int16_t>(size);
}

void OverlapAdd::reset(State& sums) {
  std::visit([](auto& values) { std::ranges::fill(values, 0); }, sums);
}

void OverlapAdd::invoke(const Node& n, State& state) const {
  const auto size = n.in(0).dim(-1);
  const auto frames = n.in(0).dim(-2);
  const auto step = static_cast<int64_t>(Size(n, "frame_step"));
  std::visit(
      [&]<class T>(std::vector<T>& sums) {
        const T* in = n.in(0).data<const T>();
        T* out = n.out(0).data<T>();
        for (T* sum = sums.data(); sum != sums.data() + sums.size(); sum += size) {
          for (int64_t frame = 0; frame < frames; ++frame, in += size, out += step) {
            for (int64_t i = 0; i < size; ++i) sum[i] = Sum(in[i], sum[i]);
            std::copy_n(sum, step, out);
            std::copy(sum + step, sum + size, sum);
            std::fill_n(sum + size - step, step, T(0));
          }
        }
      },
      state);
}

void Stacker::supports(const Node& n) {
  Option(n, "num_channels", 1, kMostSize);
  const int64_t before = Option(n, "stacker_left_context", 0, 1024);
  const int64_t after = Option(n, "stacker_right_context", 0, 1024);
  Option(n, "stacker_step", 1, before + after + 1);
  RequireTypes(n, {FBX_I16});
}

void Stacker::infer(const Node& n, Infer& out) {
  RequireArity(n, 1, 2);
  const Attrs attrs = n.attrs();
  const int64_t channels = attrs.i64("num_channels");
  RequireCount(n, 0, channels, channels);
  out.set(0, FBX_I16,
          {channels * (attrs.i64("stacker_left_context") + attrs.i64("stacker_right_context") + 1)});
  out.set(1, FBX_BOOL, {});
}

Stacker::State Stacker::prepare(const Node& n, Plan&) const {
  return {Queue(static_cast<size_t>(n.out(0).count() + n.in(0).count()))};
}

void Stacker::reset(State& state) {
  state.queue.Clear();
  state.started = false;
}

void Stacker::invoke(const Node& n, State& state) const {
  const size_t channels = Size(n, "num_channels");
  const size_t stack = static_cast<size_t>(n.out(0).count());
  const auto features = n.in(0).data<const int16_t>();
  const size_t times = state.started ? 1 : 1 + Size(n, "stacker_left_context");
  for (size_t i = 0; i < times; ++i) state.queue.Push(features, channels);
  state.started = true;
  const bool complete = state.queue.size() >= stack;
  if (complete) {
    std::copy_n(state.queue.data(), stack, n.out(0).data<int16_t>());
    state.queue.Pop(channels * Size(n, "stacker_step"));
  } else {
    std::fill_n(n.out(0).data<int16_t>(), stack, int16_t{0});
  }
  *n.out(1).data<bool>() = complete;
}

void Delay::supports(const Node& n) {
  Option(n, "delay_length", 0, kMostSize);
  RequireTypes(n, {FBX_I16});
}

void Delay::infer(const Node& n, Infer& out) {
  RequireArity(n, 1, 1);
  LastDim(n, 0);
  out.like(0, n.in(0));
}

Streams Delay::prepare(const Node& n, Plan&) const {
  const int64_t samples = n.in(0).dim(-1);
  const size_t length = Size(n, "delay_length");
  return Streams(StreamCount(n.in(0), samples), length + static_cast<size_t>(samples), length);
}

void Delay::invoke(const Node& n, Streams& streams) const {
  const auto samples = static_cast<size_t>(n.in(0).dim(-1));
  const int16_t* in = n.in(0).data<const int16_t>();
  int16_t* out = n.out(0).data<int16_t>();
  for (Queue& queue : streams.queues) {
    queue.Push(in, samples);
    std::copy_n(queue.data(), samples, out);
    queue.Pop(samples);
    in += samples;
    out += samples;
  }
}

}  // namespace fusebox::signal
