// SPDX-License-Identifier: Apache-2.0
// An interpreter: the model of a file with the application's options, its session, and the subgraphs in use.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "doors/tflite/model.h"
#include "doors/tflite/op_plugin.h"
#include "doors/tflite/options.h"
#include "doors/tflite/subgraph.h"

struct TfLiteInterpreter {
 public:
  // Null: reported. `selected`: only ops of the options.
  static std::unique_ptr<TfLiteInterpreter> Create(std::shared_ptr<fusebox::tflite::SharedFile> file,
                                                   const TfLiteInterpreterOptions& options, bool selected);

  fusebox::tflite::Subgraph& main() const { return *main_; }
  // The subgraph of a signature, which runners of one key share. Null: no such signature.
  fusebox::tflite::Subgraph* Find(const char* key);
  TfLiteStatus Allocate(fusebox::tflite::Subgraph& graph);
  TfLiteStatus Invoke(fusebox::tflite::Subgraph& graph);
  TfLiteStatus Resize(fusebox::tflite::Subgraph& graph, size_t input, const int* dims, int32_t rank,
                      bool strict);
  // Opens the model again, with one delegate more.
  TfLiteStatus Apply(TfLiteDelegate* delegate);
  TfLiteStatus ResetVariables();
  TfLiteStatus Cancel();
  // A tensor of the main subgraph. Null: a wrong number.
  TfLiteTensor* Tensor(int number);
  TfLiteStatus SetMemory(int number, const TfLiteCustomAllocation& memory);
  const std::vector<int>& variables();

  const fusebox_file* file() const { return file_->get(); }
  const fusebox::tflite::Reporter& reporter() const { return options_.reporter; }

 private:
  TfLiteInterpreter(std::shared_ptr<fusebox::tflite::SharedFile> file,
                    const TfLiteInterpreterOptions& options)
      : file_(std::move(file)), options_(options) {}
  TfLiteStatus ResolveOps(bool selected);
  TfLiteStatus Open();
  bool AddOps(fusebox_registry* registry);
  TfLiteStatus Select(fusebox::tflite::Subgraph& graph);
  fusebox_status Run(char** error);

  std::shared_ptr<fusebox::tflite::SharedFile> file_;
  TfLiteInterpreterOptions options_;
  std::vector<fusebox::tflite::AppOp> app_ops_;
  // The application's ops outlive registry and model, which call them.
  std::unique_ptr<fusebox::tflite::OpPlugin> ops_;
  fusebox::tflite::RegistryPtr registry_;
  fusebox::tflite::ModelPtr model_;
  fusebox::tflite::SessionPtr session_;
  std::unique_ptr<fusebox::tflite::Subgraph> main_;
  std::map<std::string, std::unique_ptr<fusebox::tflite::Subgraph>> others_;
  fusebox::tflite::Subgraph* selected_ = nullptr;
  std::map<int, fusebox::tflite::OwnedTensor> tensors_;  // neither inputs nor outputs
  std::vector<int> variables_;
  bool variables_known_ = false;

  std::mutex running_mutex_;
  bool running_ = false;
  bool cancelled_ = false;  // the run in progress, or one that has ended: the session may still hold a request
};
