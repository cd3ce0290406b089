// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/bundle.h"

#include <cstring>

#include "samples/models/bundle_writer.h"
#include "tests/fuzz/targets.h"

namespace fusebox::fuzz {
namespace {

std::string Joined(const std::string& index, const std::string& data) {
  const auto length = static_cast<uint32_t>(index.size());
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + index + data;
}

}  // namespace

void RunBundle(std::span<const std::byte> bytes) {
  uint32_t length = 0;
  if (bytes.size() < sizeof length) return;
  std::memcpy(&length, bytes.data(), sizeof length);
  bytes = bytes.subspan(sizeof length);
  const size_t index = std::min<size_t>(length, bytes.size());
  const std::string prefix = ScratchDir() + "/variables";
  WriteScratch(prefix + ".index", bytes.first(index));
  WriteScratch(prefix + ".data-00000-of-00001", bytes.subspan(index));
  const auto bundle = saved_model::Bundle::Open(prefix);
  if (!bundle) return;
  for (const auto& [key, tensor] : bundle->tensors()) {
    if (tensor.dtype == tf::DT_STRING) {
      (void)bundle->ReadStrings(key);
    } else if (const auto read = bundle->Read(key)) {
      FUSEBOX_CHECK(bundle->Read(key)->SameAs(*read));
    }
  }
}

std::vector<std::string> BundleSeeds() {
  samples::BundleWriter writer;
  writer.Add("a/.ATTRIBUTES/VARIABLE_VALUE", samples::Ints({1, 2, 3}));
  writer.Add("b/.ATTRIBUTES/VARIABLE_VALUE", samples::Zeros({4, 3}));
  writer.Add("names", samples::Strings({"first", "", std::string(300, 'x')}));
  samples::BundleWriter parts;
  parts.AddPartitioned("table", samples::Zeros({7, 2}), 3);
  samples::BundleWriter empty;
  std::vector<std::string> seeds;
  for (const samples::BundleWriter* each : {&writer, &parts, &empty})
    seeds.push_back(Joined(each->IndexBytes(), each->DataBytes(0)));
  return seeds;
}

}  // namespace fusebox::fuzz
