// SPDX-License-Identifier: Apache-2.0
#include "host/tflite/tflite.h"

#include "converter/convert.h"
#include "tests/fuzz/targets.h"
#include "tests/testing/models/models.h"

namespace fusebox::fuzz {

Status RunTflite(std::span<const std::byte> bytes) {
  FUSEBOX_ASSIGN(const auto module, tflite::Read(Buffer::Copy(bytes), "fuzz.tflite"));
  FUSEBOX_TRY(Verify(*module, Strictness::kWritable));
  FUSEBOX_ASSIGN(const auto written, tflite::Write(*module));
  const auto again = tflite::Read(Buffer::Copy(std::as_bytes(std::span(written))), "again.tflite");
  FUSEBOX_CHECK(again.has_value());
  std::string why;
  FUSEBOX_CHECK(Equal(*module, **again, &why));
  return {};
}

std::vector<std::string> TfliteSeeds() {
  std::vector<std::string> seeds;
  for (const auto& model : test_models::NamedModels()) {
    auto conversion = converter::FromSavedModel(SampleDir(std::string(model.name)));
    conversion.options.composites = converter::Composites::kKeep;
    if (const auto converted = conversion.Convert()) seeds.push_back(*tflite::Write(*converted->module));
  }
  return seeds;
}

}  // namespace fusebox::fuzz
