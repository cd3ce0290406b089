// SPDX-License-Identifier: Apache-2.0
// A group of nodes of a TensorFlow Lite graph as a model and a session of Fusebox.
#pragma once

#include <fusebox/session.hpp>

#include "doors/external_delegate/model_writer.h"
#include "doors/external_delegate/settings.h"

namespace fusebox::external_delegate {

// Used by the thread of its interpreter only. Functions throw std::runtime_error with the reason of a
// failure.
class Partition {
 public:
  // Opens the nodes for the dims that their tensors have now.
  Partition(TfLiteContext* context, Part part, const Settings& settings);

  // Plans for the dims that the inputs have now, without writing to the context.
  void Plan(TfLiteContext* context);
  // The same, and sets the dims of the outputs. Those that only a run determines become dynamic tensors.
  void Prepare(TfLiteContext* context);
  void Invoke(TfLiteContext* context);

 private:
  void Open(TfLiteContext* context);
  void Bind(TfLiteContext* context);
  void CopyOut(TfLiteContext* context, size_t output);
  bool IsBindable(size_t output) const {
    return !dynamic_[output] && output + model_.states < dynamic_.size();
  }

  const Part part_;
  const Settings& settings_;
  WrittenModel model_;
  std::optional<Session> session_;
  std::vector<char> dynamic_;                        // by output
  std::vector<void*> bound_inputs_, bound_outputs_;  // null: not bound
};

}  // namespace fusebox::external_delegate
