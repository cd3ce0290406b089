/* SPDX-License-Identifier: Apache-2.0 */
// tflite::InterpreterBuilder: makes interpreters of a model.
#ifndef FUSEBOX_TFLITE_INTERPRETER_BUILDER_H_
#define FUSEBOX_TFLITE_INTERPRETER_BUILDER_H_

#include <memory>
#include <vector>

#include "fusebox/tflite/delegates/xnnpack/xnnpack_delegate.h"
#include "fusebox/tflite/interpreter.h"
#include "fusebox/tflite/mutable_op_resolver.h"

namespace tflite {

class InterpreterBuilder {
 public:
  // The model and the resolver outlive the builder.
  InterpreterBuilder(const FlatBufferModel& model, const OpResolver& resolver)
      : model_(model), resolver_(resolver) {}

  TfLiteStatus SetNumThreads(int count) {
    threads_ = count;
    return kTfLiteOk;
  }
  // The delegate outlives the interpreters.
  void AddDelegate(TfLiteDelegate* delegate) { delegates_.push_back(delegate); }

  // Null: the model cannot run; reported.
  TfLiteStatus operator()(std::unique_ptr<Interpreter>* interpreter, int threads) {
    threads_ = threads;
    return (*this)(interpreter);
  }
  TfLiteStatus operator()(std::unique_ptr<Interpreter>* interpreter) {
    interpreter->reset();
    // Without its plugin, the default delegate is left out.
    if (delegates_.empty() && resolver_.has_default_delegates()) *interpreter = Made(true);
    if (*interpreter == nullptr) *interpreter = Made(false);
    return *interpreter != nullptr ? kTfLiteOk : kTfLiteError;
  }

 private:
  std::unique_ptr<Interpreter> Made(bool with_default) const {
    TfLiteInterpreterOptions* options = TfLiteInterpreterOptionsCreate();
    std::unique_ptr<Interpreter> made(new Interpreter(model_.handle(), options, !resolver_.has_builtins()));
    TfLiteInterpreterOptionsSetNumThreads(options, threads_);
    TfLiteInterpreterOptionsSetErrorReporter(options, Interpreter::Report, made->errors_.get());
    resolver_.AddTo(options);
    for (TfLiteDelegate* delegate : delegates_) TfLiteInterpreterOptionsAddDelegate(options, delegate);
    if (with_default) {
      made->owned_.emplace_back(TfLiteXNNPackDelegateCreate(nullptr), TfLiteXNNPackDelegateDelete);
      TfLiteInterpreterOptionsAddDelegate(options, made->owned_.back().get());
    }
    made->errors_->reporter = with_default ? nullptr : model_.error_reporter();
    if (made->Make() != kTfLiteOk) return nullptr;
    made->errors_->reporter = model_.error_reporter();
    return made;
  }

  const FlatBufferModel& model_;
  const OpResolver& resolver_;
  std::vector<TfLiteDelegate*> delegates_;
  int threads_ = -1;
};

}  // namespace tflite

#endif
