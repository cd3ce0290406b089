// SPDX-License-Identifier: Apache-2.0
// A node with an op of the application: TfLiteNode, context, and what init returned.
#pragma once

#include <string>
#include <vector>

#include "doors/tflite/app_op.h"
#include "doors/tflite/op_context.h"
#include "fusebox/abi/ext/resize.h"

namespace fusebox::tflite {

class OpInstance {
 public:
  // Calls init. `op` and `environment` outlive the instance.
  OpInstance(const AppOp& op, OpEnvironment& environment, const fbx_node& node);
  OpInstance(const OpInstance&) = delete;
  OpInstance& operator=(const OpInstance&) = delete;
  ~OpInstance();

  bool failed() const { return node_.user_data == TfLiteKernelInitFailed(); }
  // Calls prepare, unless it was called for these types and dims of operands.
  TfLiteStatus Prepare(const fbx_node& node, bool quiet);
  // A result as prepare left it.
  const TfLiteTensor& result(size_t i) const { return results_[i] < 0 ? absent_ : At(results_[i]); }
  // Calls prepare if needed, then invoke. `resize` may be null.
  TfLiteStatus Invoke(const fbx_host* host, const fbx_node& node, const fbx_resize* resize);

 private:
  TfLiteTensor& At(int index) { return context_.tensors()[static_cast<size_t>(index)]; }
  const TfLiteTensor& At(int index) const {
    return const_cast<OpContext&>(context_).tensors()[static_cast<size_t>(index)];
  }
  void Number(const fbx_node& node);
  TfLiteStatus Deliver(const fbx_host* host, const fbx_node& node, const fbx_resize* resize);

  const AppOp& op_;
  OpContext context_;
  TfLiteNode node_{};
  TfLiteTensor absent_{};
  std::vector<int> operands_, results_;
  std::vector<TfLiteIntArray*> declared_;  // dims of results in the file
  std::string options_;
  std::string prepared_;  // types and dims of the operands; empty: not prepared
};

}  // namespace fusebox::tflite
