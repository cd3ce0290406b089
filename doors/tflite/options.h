// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "doors/tflite/app_op.h"
#include "doors/tflite/reporter.h"
#include "fusebox/tflite/c/c_api_experimental.h"

namespace fusebox::tflite {

// An op that the application has added. `name`: of a custom op.
struct AddedOp {
  int32_t builtin_code;
  std::string name;
  int min_version, max_version;
  std::variant<TfLiteRegistration_V1, const TfLiteOperator*> functions;
};

// Functions of the application that find ops. All registrations begin with the members of V1.
struct Resolver {
  const void* (*find_builtin)(const Resolver&, int32_t code, int version) = nullptr;
  const void* (*find_custom)(const Resolver&, const char* name, int version) = nullptr;
  void (*builtin_function)() = nullptr;
  void (*custom_function)() = nullptr;
  void* user_data = nullptr;
  bool external = false;  // they return TfLiteOperator
};

}  // namespace fusebox::tflite

struct TfLiteInterpreterOptions {
  int threads = 1;
  int refused_threads = 0;  // set by the application, below -1; an interpreter reports it
  bool cancellable = false;
  fusebox::tflite::Reporter reporter;
  std::vector<TfLiteDelegate*> delegates;
  std::vector<fusebox::tflite::AddedOp> ops;
  std::optional<fusebox::tflite::Resolver> resolver;

  // The application's op for this one of a file; nothing: it has none.
  std::optional<fusebox::tflite::AppOp> Resolve(const fusebox_opcode& code) const;
};
