// SPDX-License-Identifier: Apache-2.0
// A .tflite file of a test, and its conversion.
#pragma once

#include "converter/import/tflite/import.h"
#include "host/tflite/tflite.h"
#include "tests/converter/import/files.h"
#include "tests/converter/passes/bench.h"

namespace fusebox::converter {

struct File : Bench {
  std::string path = testing::FreshDir() + "/model.tflite";
  void Save() {
    const auto bytes = tflite::Write(module);
    ASSERT_TRUE(bytes) << bytes.error().message;
    testing::WriteAll(path, *bytes);
  }
  Result<Converted> Convert() {
    Save();
    Conversion conversion = FromTflite(path);
    conversion.options = options;
    conversion.options.registry = BuiltIn();
    auto converted = conversion.Convert();
    last = conversion.report();
    return converted;
  }
  // By way of a file.
  Result<std::unique_ptr<Module>> ConvertAndRead() {
    FUSEBOX_ASSIGN(const Converted converted, Convert());
    const std::string out = path + ".out";
    FUSEBOX_TRY(converted.Write(out));
    return tflite::ReadFile(out);
  }
  std::string Refusal() {
    const auto converted = Convert();
    return converted ? "it converts" : converted.error().message;
  }
  Report last;
};

}  // namespace fusebox::converter
