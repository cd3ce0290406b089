// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/bundle.h"

#include <cstring>

#include "models/saved_model/bundle_writer.h"
#include "tests/fuzz/targets.h"

namespace fusebox::fuzz {
namespace {

std::string Joined(const std::string& index, const std::string& data) {
  const auto length = static_cast<uint32_t>(index.size());
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + index + data;
}

}  // namespace

Status RunBundle(std::span<const std::byte> bytes) {
  uint32_t length = 0;
  if (bytes.size() < sizeof length) return Invalid("no length of the index");
  std::memcpy(&length, bytes.data(), sizeof length);
  bytes = bytes.subspan(sizeof length);
  const size_t index = std::min<size_t>(length, bytes.size());
  const std::string prefix = ScratchDir() + "/variables";
  WriteScratch(prefix + ".index", bytes.first(index));
  WriteScratch(prefix + ".data-00000-of-00001", bytes.subspan(index));
  FUSEBOX_ASSIGN(const auto bundle, saved_model::Bundle::Open(prefix));
  Status first;  // error; the other tensors are read all the same
  const auto keep = [&](Status status) {
    if (first && !status) first = std::move(status);
  };
  for (const auto& [key, tensor] : bundle.tensors()) {
    if (tensor.dtype == tf::DT_STRING) {
      const auto read = bundle.ReadStrings(key);
      keep(read ? Status() : std::unexpected(read.error()));
    } else {
      const auto read = bundle.Read(key);
      if (read) FUSEBOX_CHECK(bundle.Read(key)->SameAs(*read));
      keep(read ? Status() : std::unexpected(read.error()));
    }
  }
  return first;
}

std::vector<std::string> BundleSeeds() {
  models::BundleWriter writer;
  writer.Add("a/.ATTRIBUTES/VARIABLE_VALUE", models::Ints({1, 2, 3}));
  writer.Add("b/.ATTRIBUTES/VARIABLE_VALUE", models::Zeros({4, 3}));
  writer.Add("names", models::Strings({"first", "", std::string(300, 'x')}));
  models::BundleWriter parts;
  parts.AddPartitioned("table", models::Zeros({7, 2}), 3);
  models::BundleWriter empty;
  std::vector<std::string> seeds;
  for (const models::BundleWriter* each : {&writer, &parts, &empty})
    seeds.push_back(Joined(each->IndexBytes(), each->DataBytes(0)));
  return seeds;
}

}  // namespace fusebox::fuzz
