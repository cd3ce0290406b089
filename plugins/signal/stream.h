// SPDX-License-Identifier: Apache-2.0
// Ops that keep samples between calls. Outer dimensions are separate streams.
//
// SignalFramer: samples i16 [..., n] -> frames i16 [..., n / frame_step, frame_size], and bool []: whether
//   all are complete (others are zeros). With prefill, zeros come before the first sample.
// SignalOverlapAdd: frames i16 or f32 [..., n, size] -> [..., n * frame_step], the sums of overlapping
//   frames.
// SignalStacker: features i16 [num_channels] -> the last stacker_left_context, this and the next
//   stacker_right_context ones, i16 [num_channels * (left + 1 + right)], and bool []: whether they are
//   complete. There is one result in stacker_step calls. The first features stand for the missing ones
//   before them.
// SignalDelay: samples i16 -> the samples of delay_length samples ago.
#pragma once

#include <variant>
#include <vector>

#include <fusebox/kernel.hpp>

namespace fusebox::signal {

using namespace sdk;

// A queue of samples with memory for `capacity`.
class Queue {
 public:
  explicit Queue(size_t capacity) { values_.reserve(capacity); }
  void Clear() { values_.clear(); }
  void Push(const int16_t* values, size_t count) { values_.insert(values_.end(), values, values + count); }
  void PushZeros(size_t count) { values_.insert(values_.end(), count, int16_t{0}); }
  void Pop(size_t count) {
    values_.erase(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(count));
  }
  size_t size() const { return values_.size(); }
  const int16_t* data() const { return values_.data(); }

 private:
  std::vector<int16_t> values_;
};

struct Streams {
  std::vector<Queue> queues;
  size_t zeros = 0;  // at the begin

  Streams(size_t count, size_t capacity, size_t at_begin) : queues(count, Queue(0)), zeros(at_begin) {
    for (Queue& queue : queues) queue = Queue(capacity);
    Restart();
  }
  void Restart() {
    for (Queue& queue : queues) {
      queue.Clear();
      queue.PushZeros(zeros);
    }
  }
};

struct Framer {
  static constexpr std::string_view custom = "SignalFramer";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out);
  Streams prepare(const Node& n, Plan& plan) const;
  void invoke(const Node& n, Streams& streams) const;
  static void reset(Streams& streams) { streams.Restart(); }
};

struct OverlapAdd {
  using State = std::variant<std::vector<int16_t>, std::vector<float>>;  // of the last frames of all streams

  static constexpr std::string_view custom = "SignalOverlapAdd";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out);
  State prepare(const Node& n, Plan& plan) const;
  void invoke(const Node& n, State& sums) const;
  static void reset(State& sums);
};

struct Stacker {
  static constexpr std::string_view custom = "SignalStacker";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  struct State {
    Queue queue;
    bool started = false;
  };

  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out);
  State prepare(const Node& n, Plan& plan) const;
  void invoke(const Node& n, State& state) const;
  static void reset(State& state);
};

struct Delay {
  static constexpr std::string_view custom = "SignalDelay";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out);
  Streams prepare(const Node& n, Plan& plan) const;
  void invoke(const Node& n, Streams& streams) const;
  static void reset(Streams& streams) { streams.Restart(); }
};

}  // namespace fusebox::signal
