// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/packing/pack_key.h"

#include <utility>

#include "plugins/xnnpack/packing/fingerprint.h"

namespace fusebox::xnnpack {

namespace {

constexpr std::pair<std::string_view, std::string PackNote::*> kLines[] = {
    {"cpu=", &PackNote::cpu},
    {"library=", &PackNote::library},
    {"recipe=", &PackNote::recipe},
    {"source=", &PackNote::source},
};

std::string Describe(const fbx_tensor& t) {
  std::string text = dtype_name(t.dtype);
  for (int32_t i = 0; i < t.rank; ++i) text += (i == 0 ? " " : "x") + std::to_string(t.dims[i]);
  return text;
}

cache::Digest SourceOf(ModelWeights& weights, const PackRequest& request, cache::KeyBuilder builder) {
  builder.Text(request.recipe.text()).Buffer(weights.Of(*request.kernel), request.kernel->bytes);
  if (request.bias != nullptr) builder.Buffer(weights.Of(*request.bias), request.bias->bytes);
  return builder.Build(0).identity;
}

}  // namespace

std::string PackNote::Text() const {
  std::string text = what;
  for (const auto& [name, member] : kLines)
    if (!(this->*member).empty()) text += "\n" + std::string(name) + this->*member;
  return text;
}

PackNote PackNote::Parse(std::string_view text) {
  PackNote note;
  note.what = text.substr(0, text.find('\n'));
  for (size_t at = text.find('\n'); at != std::string_view::npos;) {
    const size_t end = text.find('\n', at + 1);
    const std::string_view line = text.substr(at + 1, end == std::string_view::npos ? end : end - at - 1);
    for (const auto& [name, member] : kLines)
      if (line.starts_with(name)) note.*member = line.substr(name.size());
    at = end;
  }
  return note;
}

cache::Key KeyOf(ModelWeights& weights, const PackRequest& request) {
  const Recipe& recipe = request.recipe;
  cache::KeyBuilder builder(FamilyName(recipe.family()));
  if (weights.in_memory()) return {SourceOf(weights, request, builder), 0};
  builder.Text(CpuText()).Text(LibraryName());
  return {SourceOf(weights, request, builder), FingerprintOf(recipe.family(), recipe.form())};
}

PackNote NoteOf(ModelWeights& weights, const PackRequest& request) {
  const std::string_view family = FamilyName(request.recipe.family());
  PackNote note;
  note.what = Describe(*request.kernel);
  if (request.bias != nullptr) note.what += std::string(", bias ") + dtype_name(request.bias->dtype);
  note.cpu = CpuText();
  note.library = LibraryBuildText();
  const std::string recipe = std::string(family) + request.recipe.text();
  note.recipe = cache::Hex(cache::Hash(std::as_bytes(std::span(recipe))));
  note.source = cache::Hex(SourceOf(weights, request, cache::KeyBuilder(family)));
  return note;
}

}  // namespace fusebox::xnnpack
