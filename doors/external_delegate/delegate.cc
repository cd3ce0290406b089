// SPDX-License-Identifier: Apache-2.0
// The two functions of an external delegate of TensorFlow Lite, over <fusebox/c.h>.
#include <mutex>
#include <stdexcept>

#include "doors/builtin_data/int_arrays.h"
#include "doors/external_delegate/claim.h"

namespace fusebox::external_delegate {

using builtin_data::NewIntArray;
using builtin_data::ToVector;
namespace {

// The runtime holds a pointer to `base`, which points back.
struct Delegate {
  TfLiteDelegate base = {};
  Settings settings = {};
  // Partitions between Prepare and the init of their kernels, by context and nodes. Interpreters that share
  // the delegate may prepare at the same time.
  std::mutex mutex = {};
  std::map<std::pair<TfLiteContext*, std::vector<int>>, std::unique_ptr<Partition>> opened = {};
};

Delegate& Of(TfLiteDelegate* base) { return *static_cast<Delegate*>(base->data_); }

// Runs f. An exception becomes an error of the runtime.
template <class F>
TfLiteStatus Guard(TfLiteContext* context, F&& f) {
  try {
    f();
    return kTfLiteOk;
  } catch (const std::exception& e) {
    context->ReportError(context, "Fusebox: %s", e.what());
    return kTfLiteError;
  }
}

void* Init(TfLiteContext* context, const char* buffer, size_t) {
  const auto& params = *reinterpret_cast<const TfLiteDelegateParams*>(buffer);
  Delegate& delegate = Of(params.delegate);
  Partition* partition = nullptr;
  Guard(context, [&] {
    const std::vector<int> nodes = ToVector(params.nodes_to_replace);
    std::unique_lock lock(delegate.mutex);
    auto opened = delegate.opened.extract({context, nodes});
    lock.unlock();
    if (!opened.empty()) {
      partition = opened.mapped().release();
      return;
    }
    const Part part{nodes, ToVector(params.input_tensors), ToVector(params.output_tensors)};
    partition = std::make_unique<Partition>(context, part, delegate.settings).release();
  });
  return partition;
}

void Free(TfLiteContext*, void* partition) { delete static_cast<Partition*>(partition); }

TfLiteStatus PrepareKernel(TfLiteContext* context, TfLiteNode* node) {
  auto* partition = static_cast<Partition*>(node->user_data);
  if (partition == nullptr) return kTfLiteError;
  return Guard(context, [&] { partition->Prepare(context); });
}

TfLiteStatus Invoke(TfLiteContext* context, TfLiteNode* node) {
  return Guard(context, [&] { static_cast<Partition*>(node->user_data)->Invoke(context); });
}

// A failure leaves all nodes to the runtime: an error would make the interpreter fail.
TfLiteStatus Prepare(TfLiteContext* context, TfLiteDelegate* base) {
  Delegate& delegate = Of(base);
  TfLiteRegistration kernel = {};
  kernel.init = Init;
  kernel.free = Free;
  kernel.prepare = PrepareKernel;
  kernel.invoke = Invoke;
  kernel.builtin_code = 51;  // DELEGATE
  kernel.custom_name = "Fusebox";
  kernel.version = 1;
  TfLiteIntArray* nodes = nullptr;
  const TfLiteStatus chosen = Guard(context, [&] {
    Claim claim = ChooseNodes(context, delegate.settings);
    nodes = NewIntArray(claim.nodes);
    const std::lock_guard lock(delegate.mutex);
    for (auto& [part, partition] : claim.partitions) {
      delegate.opened.insert_or_assign({context, part}, std::move(partition));
    }
  });
  if (chosen != kTfLiteOk || nodes->size == 0) {
    std::free(nodes);
    return kTfLiteOk;
  }
  const TfLiteStatus status = context->ReplaceNodeSubsetsWithDelegateKernels(context, kernel, nodes, base);
  std::free(nodes);
  return status;
}

}  // namespace
}  // namespace fusebox::external_delegate

using fusebox::external_delegate::Delegate;

extern "C" TFL_CAPI_EXPORT TfLiteDelegate* tflite_plugin_create_delegate(char** keys, char** values,
                                                                         size_t count,
                                                                         void (*report)(const char*)) {
  try {
    auto delegate = std::make_unique<Delegate>();
    delegate->settings = fusebox::external_delegate::ReadSettings(keys, values, count);
    delegate->base.data_ = delegate.get();
    delegate->base.Prepare = fusebox::external_delegate::Prepare;
    // Without it, the runtime prepares all ops first, which fails if it lacks one or if sizes depend on
    // values.
    delegate->base.flags = kTfLiteDelegateFlagsAllowDynamicTensors;
    return &delegate.release()->base;
  } catch (const std::exception& e) {
    if (report != nullptr) report((std::string("Fusebox: ") + e.what()).c_str());
    return nullptr;
  }
}

extern "C" TFL_CAPI_EXPORT void tflite_plugin_destroy_delegate(TfLiteDelegate* delegate) {
  if (delegate != nullptr) delete static_cast<Delegate*>(delegate->data_);
}
