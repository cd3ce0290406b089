/* SPDX-License-Identifier: Apache-2.0 */
// tflite::Interpreter over the C API: made by InterpreterBuilder, used by one thread at a time.
#ifndef FUSEBOX_TFLITE_INTERPRETER_H_
#define FUSEBOX_TFLITE_INTERPRETER_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fusebox/tflite/c/c_api_experimental.h"
#include "fusebox/tflite/model.h"
#include "fusebox/tflite/signature_runner.h"
#include "fusebox/tflite/tensor_types.h"

namespace tflite {

class InterpreterBuilder;

// A member that Fusebox lacks compiles only until it is used.
#define FUSEBOX_TFLITE_MISSING(member, instead)                                                  \
  template <class T = void, class... Arguments>                                                  \
  void member(Arguments&&...) const {                                                            \
    static_assert(sizeof(T*) == 0, "Fusebox has no tflite::Interpreter::" #member ": " instead); \
  }

class Interpreter {
 public:
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;
  // Before the delegates that the interpreter owns.
  ~Interpreter() {
    runners_.clear();
    handle_.reset();
  }

  // ---- The main subgraph. Tensors have their numbers in the file.
  const std::vector<int>& inputs() const { return inputs_; }
  const std::vector<int>& outputs() const { return outputs_; }
  const char* GetInputName(int index) const { return input_tensor(static_cast<size_t>(index))->name; }
  const char* GetOutputName(int index) const { return output_tensor(static_cast<size_t>(index))->name; }
  // Null: a wrong number. Only inputs, outputs and constants have data.
  TfLiteTensor* tensor(int number) { return TfLiteInterpreterGetTensor(handle(), number); }
  const TfLiteTensor* tensor(int number) const { return TfLiteInterpreterGetTensor(handle(), number); }
  TfLiteTensor* input_tensor(size_t index) { return tensor(inputs_[index]); }
  const TfLiteTensor* input_tensor(size_t index) const { return tensor(inputs_[index]); }
  TfLiteTensor* output_tensor(size_t index) { return tensor(outputs_[index]); }
  const TfLiteTensor* output_tensor(size_t index) const { return tensor(outputs_[index]); }
  // Null: another type, or not allocated.
  template <class T>
  T* typed_tensor(int number) const {
    static_assert(typeToTfLiteType<T>() != kTfLiteNoType, "no element type of TensorFlow Lite is T");
    TfLiteTensor* tensor = TfLiteInterpreterGetTensor(handle(), number);
    return tensor != nullptr && tensor->type == typeToTfLiteType<T>() ? static_cast<T*>(tensor->data.data)
                                                                      : nullptr;
  }
  template <class T>
  T* typed_input_tensor(int index) const {
    return typed_tensor<T>(inputs_[static_cast<size_t>(index)]);
  }
  template <class T>
  T* typed_output_tensor(int index) const {
    return typed_tensor<T>(outputs_[static_cast<size_t>(index)]);
  }

  // ---- Runs.
  TfLiteStatus ResizeInputTensor(int number, const std::vector<int>& dims) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i] == number)
        return TfLiteInterpreterResizeInputTensor(handle(), static_cast<int32_t>(i), dims.data(),
                                                  static_cast<int32_t>(dims.size()));
    }
    return kTfLiteError;
  }
  // Error: dims that the model fixes.
  TfLiteStatus ResizeInputTensorStrict(int number, const std::vector<int>& dims) {
    const TfLiteIntArray* open = TfLiteTensorGetDimsSignature(tensor(number));
    bool fits = open->size == static_cast<int>(dims.size());
    for (size_t i = 0; fits && i < dims.size(); ++i) fits = open->data[i] == -1 || open->data[i] == dims[i];
    return fits ? ResizeInputTensor(number, dims) : kTfLiteError;
  }
  TfLiteStatus AllocateTensors() { return TfLiteInterpreterAllocateTensors(handle()); }
  TfLiteStatus Invoke() { return TfLiteInterpreterInvoke(handle()); }
  TfLiteStatus Cancel() { return TfLiteInterpreterCancel(handle()); }
  TfLiteStatus ResetVariableTensors() { return TfLiteInterpreterResetVariableTensors(handle()); }
  TfLiteStatus SetCustomAllocationForTensor(int number, const TfLiteCustomAllocation& allocation,
                                            int64_t flags = kTfLiteCustomAllocationFlagsNone) {
    return TfLiteInterpreterSetCustomAllocationForTensor(handle(), number, &allocation, flags);
  }
  // Before AllocateTensors: makes the interpreter again.
  TfLiteStatus SetNumThreads(int count) {
    TfLiteInterpreterOptionsSetNumThreads(options_.get(), count);
    return Make();
  }

  // ---- Delegates. A delegate outlives the interpreter, unless it is passed with its ownership.
  TfLiteStatus ModifyGraphWithDelegate(TfLiteDelegate* delegate) {
    const TfLiteStatus status = TfLiteInterpreterModifyGraphWithDelegate(handle(), delegate);
    if (status == kTfLiteOk) TfLiteInterpreterOptionsAddDelegate(options_.get(), delegate);
    return status;
  }
  template <class Deleter>
  TfLiteStatus ModifyGraphWithDelegate(std::unique_ptr<TfLiteDelegate, Deleter> delegate) {
    owned_.emplace_back(std::move(delegate));
    return ModifyGraphWithDelegate(owned_.back().get());
  }

  // ---- Signatures.
  std::vector<const std::string*> signature_keys() const {
    std::vector<const std::string*> keys;
    for (const std::string& key : keys_) keys.push_back(&key);
    return keys;
  }
  // Null: no such signature. Lives as long as the interpreter.
  SignatureRunner* GetSignatureRunner(const char* key) {
    std::unique_ptr<SignatureRunner>& runner = runners_[key];
    if (runner != nullptr) return runner.get();
    TfLiteSignatureRunner* made = TfLiteInterpreterGetSignatureRunner(handle(), key);
    if (made != nullptr) runner = std::make_unique<SignatureRunner>(made, key);
    return runner.get();
  }

  TfLiteInterpreter* handle() const { return handle_.get(); }

  FUSEBOX_TFLITE_MISSING(execution_plan, "`fusebox inspect` lists the nodes of a file")
  FUSEBOX_TFLITE_MISSING(node_and_registration, "`fusebox inspect` lists the nodes of a file")
  FUSEBOX_TFLITE_MISSING(nodes_size, "`fusebox inspect` lists the nodes of a file")
  FUSEBOX_TFLITE_MISSING(subgraph, "use signature runners")
  FUSEBOX_TFLITE_MISSING(primary_subgraph, "use signature runners")
  FUSEBOX_TFLITE_MISSING(AddTensors, "write the graph to a .tflite file")
  FUSEBOX_TFLITE_MISSING(AddNodeWithParameters, "write the graph to a .tflite file")
  FUSEBOX_TFLITE_MISSING(SetProfiler, "set the option \"profile\" of a session (<fusebox/c.h>)")
  FUSEBOX_TFLITE_MISSING(SetAllowFp16PrecisionForFp32, "set the option \"precision\" of the delegate xnnpack")
  FUSEBOX_TFLITE_MISSING(SetExternalContext, "keep the context in the op")

 private:
  friend class InterpreterBuilder;
  Interpreter(std::shared_ptr<TfLiteModel> model, TfLiteInterpreterOptions* options, bool selected)
      : model_(std::move(model)), options_(options, TfLiteInterpreterOptionsDelete), selected_(selected) {}

  // Its address is known to the C API.
  struct Errors {
    ErrorReporter* reporter = nullptr;  // null: dropped
  };
  static void Report(void* errors, const char* format, va_list args) {
    ErrorReporter* reporter = static_cast<Errors*>(errors)->reporter;
    if (reporter != nullptr) reporter->Report(format, args);
  }

  TfLiteStatus Make() {
    runners_.clear();
    TfLiteInterpreter* made = selected_ ? TfLiteInterpreterCreateWithSelectedOps(model_.get(), options_.get())
                                        : TfLiteInterpreterCreate(model_.get(), options_.get());
    if (made == nullptr) return kTfLiteError;
    handle_.reset(made);
    inputs_.assign(TfLiteInterpreterInputTensorIndices(made),
                   TfLiteInterpreterInputTensorIndices(made) + TfLiteInterpreterGetInputTensorCount(made));
    outputs_.assign(TfLiteInterpreterOutputTensorIndices(made),
                    TfLiteInterpreterOutputTensorIndices(made) + TfLiteInterpreterGetOutputTensorCount(made));
    keys_.clear();
    for (int32_t i = 0; i < TfLiteInterpreterGetSignatureCount(made); ++i)
      keys_.push_back(TfLiteInterpreterGetSignatureKey(made, i));
    return kTfLiteOk;
  }

  std::shared_ptr<TfLiteModel> model_;
  std::unique_ptr<Errors> errors_{new Errors()};
  std::unique_ptr<TfLiteInterpreterOptions, void (*)(TfLiteInterpreterOptions*)> options_;
  bool selected_;
  std::vector<std::shared_ptr<TfLiteDelegate>> owned_;
  std::unique_ptr<TfLiteInterpreter, void (*)(TfLiteInterpreter*)> handle_{nullptr, TfLiteInterpreterDelete};
  std::vector<int> inputs_, outputs_;
  std::vector<std::string> keys_;
  std::map<std::string, std::unique_ptr<SignatureRunner>> runners_;
};

#undef FUSEBOX_TFLITE_MISSING

}  // namespace tflite

#include "fusebox/tflite/interpreter_builder.h"

#endif
