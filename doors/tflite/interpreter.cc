// SPDX-License-Identifier: Apache-2.0
#include "doors/tflite/interpreter.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "doors/tflite/delegate.h"
#include "doors/tflite/settings.h"

using namespace fusebox::tflite;

namespace {

RegistryPtr NewRegistry(const Reporter& reporter) {
  fusebox_registry* registry = nullptr;
  ErrorText error;
  if (fusebox_registry_create(ConfigPath(), nullptr, &registry, error) == FUSEBOX_OK)
    return RegistryPtr(registry, Free());
  reporter.Report("%s", error.text());
  return nullptr;
}

// Returns a session of the first signature that can run, or null if none can.
fusebox_session* SessionOfAnySignature(fusebox_model* model, const std::string& options) {
  for (int32_t i = 0; i < fusebox_model_signature_count(model); ++i) {
    const char* why = nullptr;
    nlohmann::json with = nlohmann::json::parse(options);
    with["signature"] = fusebox_model_signature(model, i, &why);
    fusebox_session* session = nullptr;
    ErrorText error;
    if (why == nullptr &&
        fusebox_session_create(model, with.dump().c_str(), nullptr, &session, error) == FUSEBOX_OK)
      return session;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<TfLiteInterpreter> TfLiteInterpreter::Create(std::shared_ptr<SharedFile> file,
                                                             const TfLiteInterpreterOptions& options,
                                                             bool selected) {
  std::unique_ptr<TfLiteInterpreter> interpreter(new TfLiteInterpreter(std::move(file), options));
  if (options.refused_threads != 0)
    options.reporter.Report("%d threads are not possible, so one is used; -1 lets the library choose.",
                            options.refused_threads);
  interpreter->main_ = Subgraph::Create(interpreter->file(), "");
  if (interpreter->main_ == nullptr || interpreter->ResolveOps(selected) != kTfLiteOk) return nullptr;
  return interpreter->Open() == kTfLiteOk ? std::move(interpreter) : nullptr;
}

TfLiteStatus TfLiteInterpreter::ResolveOps(bool selected) {
  for (int32_t i = 0; i < fusebox_file_op_count(file()); ++i) {
    fusebox_opcode code = FUSEBOX_OPCODE;
    if (fusebox_file_op(file(), i, &code, nullptr) != FUSEBOX_OK) return kTfLiteError;
    if (auto op = options_.Resolve(code)) {
      app_ops_.push_back(*std::move(op));
    } else if (selected) {
      reporter().Report("Didn't find op for opcode '%s' version '%d'. Add it to the options.", code.name,
                        code.version);
      return kTfLiteError;
    }
  }
  return kTfLiteOk;
}

TfLiteStatus TfLiteInterpreter::Open() {
  const auto settings = DelegateSettings(options_.delegates, options_.threads, reporter());
  if (!settings) return kTfLiteApplicationError;
  session_.reset();
  model_.reset();
  registry_.reset();
  selected_ = nullptr;
  if (app_ops_.empty()) {
    model_ = file_->Open(settings->model, reporter());
  } else {
    OpEnvironment environment{.reporter = reporter(), .threads = options_.threads, .file = file_->shared()};
    ops_ = std::make_unique<OpPlugin>(app_ops_, environment);
    registry_ = NewRegistry(reporter());
    if (registry_ == nullptr || !AddOps(registry_.get())) return kTfLiteError;
    model_ = file_->Open(settings->model, registry_.get(), reporter());
  }
  if (model_ == nullptr) return kTfLiteError;
  fusebox_session* session = nullptr;
  ErrorText error;
  if (fusebox_session_create(model_.get(), settings->session.c_str(), nullptr, &session, error) ==
      FUSEBOX_OK) {
    session_.reset(session);
    selected_ = main_.get();
    return kTfLiteOk;
  }
  // Runners of other signatures work. Allocate reports why the main subgraph does not.
  session_.reset(SessionOfAnySignature(model_.get(), settings->session));
  if (session_ != nullptr) return kTfLiteOk;
  reporter().Report("%s", error.text());
  return kTfLiteError;
}

bool TfLiteInterpreter::AddOps(fusebox_registry* registry) {
  ErrorText error;
  if (ops_->AddTo(registry, error) == FUSEBOX_OK) return true;
  reporter().Report("%s", error.text());
  return false;
}

Subgraph* TfLiteInterpreter::Find(const char* key) {
  const std::string name = key != nullptr ? key : "";
  if (name == main_->key()) return main_.get();
  if (const auto found = others_.find(name); found != others_.end()) return found->second.get();
  auto graph = Subgraph::Create(file(), name.c_str());
  if (graph == nullptr || graph->key() != name) return nullptr;
  return (others_[name] = std::move(graph)).get();
}

TfLiteStatus TfLiteInterpreter::Select(Subgraph& graph) {
  if (selected_ == &graph) return kTfLiteOk;
  ErrorText error;
  if (fusebox_session_select(session_.get(), graph.key().c_str(), error) != FUSEBOX_OK) {
    reporter().Report("%s", error.text());
    return kTfLiteError;
  }
  // The session keeps no binding of the other one.
  if (selected_ != nullptr) selected_->set_bound(false);
  selected_ = &graph;
  return kTfLiteOk;
}

TfLiteStatus TfLiteInterpreter::Allocate(Subgraph& graph) {
  if (session_ == nullptr) return kTfLiteError;
  if (graph.allocated() && graph.bound()) return kTfLiteOk;
  const bool again = graph.allocated_before();
  if (Select(graph) != kTfLiteOk || graph.Allocate(session_.get(), reporter()) != kTfLiteOk)
    return kTfLiteError;
  return again && !variables().empty() ? ResetVariables() : kTfLiteOk;
}

TfLiteStatus TfLiteInterpreter::Invoke(Subgraph& graph) {
  if (!graph.allocated() || session_ == nullptr) {
    reporter().Report("Invoke called on a model that is not ready; call AllocateTensors.");
    return kTfLiteError;
  }
  if (!graph.bound() &&
      (Select(graph) != kTfLiteOk || graph.Allocate(session_.get(), reporter()) != kTfLiteOk))
    return kTfLiteError;
  if (graph.Push(session_.get(), reporter()) != kTfLiteOk) return kTfLiteError;
  ErrorText error;
  const fusebox_status status = Run(error);
  if (status == FUSEBOX_OK) return graph.Pull(session_.get(), reporter());
  reporter().Report("%s", error.text());
  return status == FUSEBOX_CANCELLED ? kTfLiteCancelled : kTfLiteError;
}

// A request that came when its run had ended must not end the next one.
fusebox_status TfLiteInterpreter::Run(char** error) {
  if (!options_.cancellable) return fusebox_session_run(session_.get(), error);
  const auto locked = [&](auto&& body) {
    const std::lock_guard lock(running_mutex_);
    return body();
  };
  const bool stale = locked([&] {
    running_ = true;
    return std::exchange(cancelled_, false);
  });
  fusebox_status status = fusebox_session_run(session_.get(), error);
  if (status == FUSEBOX_CANCELLED && stale && locked([&] { return !cancelled_; })) {
    fusebox_text_free(*error);
    status = fusebox_session_run(session_.get(), error);
  }
  locked([&] { running_ = false; });
  return status;
}

TfLiteStatus TfLiteInterpreter::Cancel() {
  if (!options_.cancellable) return kTfLiteError;
  const std::lock_guard lock(running_mutex_);
  if (running_) {
    cancelled_ = true;
    fusebox_session_cancel(session_.get());
  }
  return kTfLiteOk;
}

TfLiteStatus TfLiteInterpreter::Resize(Subgraph& graph, size_t input, const int* dims, int32_t rank,
                                       bool strict) {
  return graph.Resize(input, std::span(dims, static_cast<size_t>(rank < 0 ? 0 : rank)), strict, reporter());
}

TfLiteStatus TfLiteInterpreter::Apply(TfLiteDelegate* delegate) {
  if (delegate == nullptr) return kTfLiteDelegateError;
  const bool ready = main_->allocated();
  options_.delegates.push_back(delegate);
  main_->Invalidate();
  for (auto& [key, graph] : others_) graph->Invalidate();
  if (Open() == kTfLiteOk) return ready ? Allocate(*main_) : kTfLiteOk;
  options_.delegates.clear();  // as TensorFlow Lite: an error undoes all delegates
  if (Open() != kTfLiteOk || (ready && Allocate(*main_) != kTfLiteOk)) return kTfLiteError;
  return kTfLiteDelegateError;
}

TfLiteStatus TfLiteInterpreter::ResetVariables() {
  ErrorText error;
  if (fusebox_session_reset_state(session_.get(), error) == FUSEBOX_OK) return kTfLiteOk;
  reporter().Report("%s", error.text());
  return kTfLiteError;
}

const std::vector<int>& TfLiteInterpreter::variables() {
  if (variables_known_) return variables_;
  fusebox_function function = FUSEBOX_FUNCTION;
  fusebox_file_function(file(), "", &function, nullptr);
  for (int32_t i = 0; i < function.tensor_count; ++i) {
    fusebox_tensor tensor = FUSEBOX_TENSOR;
    uint32_t flags = 0;
    if (fusebox_file_tensor(file(), "", i, &tensor, &flags, nullptr) == FUSEBOX_OK &&
        (flags & FBX_TENSOR_VARIABLE) != 0)
      variables_.push_back(i);
  }
  variables_known_ = true;
  return variables_;
}

TfLiteTensor* TfLiteInterpreter::Tensor(int number) {
  for (std::deque<Port>* ports : {&main_->inputs, &main_->outputs}) {
    const auto port = std::ranges::find(*ports, number, &Port::number);
    if (port != ports->end()) return &port->tensor.get();
  }
  if (const auto found = tensors_.find(number); found != tensors_.end()) return &found->second.get();
  fusebox_tensor declared = FUSEBOX_TENSOR;
  uint32_t flags = 0;
  if (fusebox_file_tensor(file(), "", number, &declared, &flags, nullptr) != FUSEBOX_OK) return nullptr;
  TfLiteTensor& tensor = tensors_[number].get();
  Declare(tensor, declared);
  tensor.is_variable = (flags & FBX_TENSOR_VARIABLE) != 0;
  tensor.allocation_type = tensor.is_variable                ? kTfLiteArenaRwPersistent
                           : (flags & FBX_TENSOR_CONST) != 0 ? kTfLiteMmapRo
                                                             : kTfLiteArenaRw;
  tensor.data.data = const_cast<void*>(declared.data);
  if (declared.data != nullptr) tensor.bytes = declared.bytes;
  return &tensor;
}

TfLiteStatus TfLiteInterpreter::SetMemory(int number, const TfLiteCustomAllocation& memory) {
  bool found = false;
  for (std::deque<Port>* ports : {&main_->inputs, &main_->outputs}) {
    for (Port& port : *ports) {
      if (port.number != number || port.tensor.get().type == kTfLiteString) continue;
      port.custom = memory;
      found = true;
    }
  }
  if (!found) {
    reporter().Report(
        "Tensor %d is no input or output of fixed size, so it cannot have memory of the application.",
        number);
    return kTfLiteError;
  }
  main_->Invalidate();
  return kTfLiteOk;
}
