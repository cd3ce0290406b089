// SPDX-License-Identifier: Apache-2.0
// The TfLiteContext of one node: its tensors, numbered operands first, then results, intermediates and what
// the op adds. Functions for delegates fail, as they do in TensorFlow Lite.
#pragma once

#include <deque>
#include <vector>

#include "doors/tflite/handles.h"
#include "doors/tflite/reporter.h"
#include "doors/tflite/tensors.h"

namespace fusebox::tflite {

// The state that the ops of one interpreter share.
struct OpEnvironment {
  Reporter reporter;
  int threads = 1;
  FilePtr file;  // for metadata; may be null
  TfLiteExternalContext* external[kTfLiteMaxExternalContexts] = {};
};

class OpContext {
 public:
  OpContext(OpEnvironment& environment, size_t tensors);
  OpContext(const OpContext&) = delete;
  OpContext& operator=(const OpContext&) = delete;
  ~OpContext();

  TfLiteContext* abi() { return &context_; }
  std::vector<TfLiteTensor>& tensors() { return tensors_; }
  // Drops what prepare has added, before it runs again.
  void Restart();
  // Memory for what prepare has added and requested. Throws std::bad_alloc.
  void Allocate();
  void EndInvoke() { buffers_.clear(); }
  // Errors that ops report are dropped while set.
  void set_quiet(bool quiet) { quiet_ = quiet; }

  static OpContext& Of(const TfLiteContext* context) { return *static_cast<OpContext*>(context->impl_); }

  void Report(const char* format, va_list args) const;
  [[gnu::format(printf, 2, 3)]] void Report(const char* format, ...) const;
  TfLiteStatus Resize(TfLiteTensor* tensor, TfLiteIntArray* dims);
  TfLiteStatus AddTensors(int count, int* first);
  TfLiteStatus Metadata(const char* name, const char** data, size_t* bytes) const;
  OpEnvironment& environment() { return environment_; }
  void* Persistent(size_t bytes);
  TfLiteStatus Buffer(size_t bytes, void** memory);
  int RequestScratch(size_t bytes);
  void* Scratch(int index);

 private:
  OpEnvironment& environment_;
  TfLiteContext context_{};
  const size_t own_;  // tensors of the node
  std::vector<TfLiteTensor> tensors_;
  std::deque<AlignedMemory> added_;       // memory of added tensors
  std::deque<AlignedMemory> persistent_;  // until the op ends
  std::deque<AlignedMemory> buffers_;     // until invoke ends
  std::deque<AlignedMemory> scratch_;     // until prepare runs again
  bool quiet_ = false;
};

}  // namespace fusebox::tflite
