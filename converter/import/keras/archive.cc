// SPDX-License-Identifier: Apache-2.0
#include "converter/import/keras/archive.h"

#include <algorithm>
#include <array>
#include <bit>
#include <fstream>

#include "converter/import/keras/keras1.h"
#include "host/base/json.h"

namespace fusebox::keras {
namespace {

constexpr size_t kMaxConfig = size_t{256} << 20;
constexpr size_t kMaxWeights = size_t{1} << 36;

enum class Container { kNone, kHdf5, kZip };

Result<Container> ContainerOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return NotFound(path + ": cannot be opened");
  std::array<char, 8> bytes{};
  file.read(bytes.data(), bytes.size());
  const std::string_view first(bytes.data(), static_cast<size_t>(file.gcount()));
  if (first.starts_with(kHdf5Signature)) return Container::kHdf5;
  return first.starts_with(kZipSignature) ? Container::kZip : Container::kNone;
}

}  // namespace

Result<bool> IsKerasFile(const std::string& path) {
  FUSEBOX_ASSIGN(const Container container, ContainerOf(path));
  return container != Container::kNone;
}

Result<Archive> Archive::Load(const std::string& path) {
  Archive out;
  out.path_ = path;
  FUSEBOX_ASSIGN(const Container container, ContainerOf(path));
  if (container == Container::kHdf5) FUSEBOX_TRY(out.LoadHdf5().At(path));
  else if (container == Container::kZip) FUSEBOX_TRY(out.LoadZip().At(path));
  else return Invalid(path + ": not a Keras file: neither HDF5 (.h5) nor a zip archive (.keras)");
  return out;
}

Status Archive::LoadHdf5() {
  FUSEBOX_ASSIGN(Hdf5File weights, Hdf5File::Open(path_));
  weights_ = std::make_unique<Hdf5File>(std::move(weights));
  FUSEBOX_ASSIGN(const auto config, weights_->Text("/", "model_config"));
  if (!config) {
    if (weights_->IsGroup("layers") || weights_->IsGroup("_layer_checkpoint_dependencies") ||
        weights_->IsGroup("model_weights") ||
        !weights_->Texts("/", "layer_names").value_or(std::vector<std::string>()).empty())
      return Unsupported("weights only, no model; save the whole model (model.save, not save_weights)");
    return Invalid("not a Keras file: no attribute model_config");
  }
  root_ = weights_->IsGroup("model_weights") ? "model_weights" : "/";
  std::string version;
  for (const std::string& group : {std::string("/"), root_}) {
    FUSEBOX_ASSIGN(const auto written, weights_->Text(group, "keras_version"));
    FUSEBOX_ASSIGN(const auto backend, weights_->Text(group, "backend"));
    if (written && version.empty()) version = *written;
    if (backend) backend_ = *backend;
  }
  FUSEBOX_TRY(SetVersion(version.empty() ? "1" : version));  // missing in some Keras 1 files
  return ParseConfig(*config, "model_config");
}

Status Archive::LoadZip() {
  FUSEBOX_ASSIGN(Buffer bytes, MapFile(path_));
  FUSEBOX_ASSIGN(ZipFile opened, ZipFile::Open(std::move(bytes)));
  zip_ = std::make_unique<ZipFile>(std::move(opened));
  const ZipFile& zip = *zip_;
  if (!zip.Has("config.json"))
    return Invalid(
        "not a Keras file: the archive has no config.json; unpack other archives, such as .task bundles");
  FUSEBOX_ASSIGN(const Buffer config, zip.Read("config.json", kMaxConfig));
  major_ = 3;
  if (zip.Has("metadata.json")) {
    FUSEBOX_ASSIGN(const Buffer metadata, zip.Read("metadata.json", kMaxConfig));
    const auto chars = metadata.As<char>();
    FUSEBOX_ASSIGN(const auto parsed, ParseJson({chars.data(), chars.size()}, "metadata.json"));
    if (const auto it = parsed.find("keras_version"); it != parsed.end() && it->is_string())
      FUSEBOX_TRY(SetVersion(*it));
  }
  const auto chars = config.As<char>();
  FUSEBOX_TRY(ParseConfig({chars.data(), chars.size()}, "config.json"));
  by_object_ = true;
  if (!zip.Has("model.weights.h5")) {
    return Unsupported(std::string("the archive has no model.weights.h5") +
                       (zip.Has("model.weights.npz") || zip.Has("model.weights.json")
                            ? "; NumPy archives and sharded weights are unsupported; save the model again"
                            : ""));
  }
  FUSEBOX_ASSIGN(Buffer stored, zip.Read("model.weights.h5", kMaxWeights));
  FUSEBOX_ASSIGN(Hdf5File weights, Hdf5File::FromBytes(std::move(stored), "model.weights.h5"));
  weights_ = std::make_unique<Hdf5File>(std::move(weights));
  objects_.emplace(*weights_);
  return {};
}

Status Archive::ParseConfig(const std::string& text, const std::string& place) {
  FUSEBOX_ASSIGN(config_, ParseJson(text, place));
  if (!config_.is_object() || !config_.contains("class_name") || !config_["class_name"].is_string() ||
      !config_.contains("config"))
    return Invalid(place + ": no model; class_name and config are required");
  if (major_ == 1) return Modernize(config_).At(place);
  return {};
}

Status Archive::SetVersion(const std::string& version) {
  for (const int known : {1, 2, 3}) {
    if (!version.starts_with(std::to_string(known) + ".") && version != std::to_string(known)) continue;
    major_ = known;
    const bool old = known == 1 || std::ranges::any_of(std::array{"2.0.", "2.1.", "2.2.", "2.3."},
                                                       [&](const char* v) { return version.starts_with(v); });
    multi_backend_ = old && !version.ends_with("-tf");
    return {};
  }
  return Unsupported("written by Keras " + version + "; versions 1 to 3 are supported");
}

Result<std::optional<std::vector<std::string>>> Archive::LayerWeights(const std::string& layer) const {
  const std::string group = root_ + "/" + layer;
  if (!weights_->IsGroup(group)) return std::optional<std::vector<std::string>>();
  FUSEBOX_ASSIGN(auto names, weights_->Texts(group, "weight_names"));
  for (std::string& name : names) name = group + "/" + name;
  return std::optional(std::move(names));
}

Result<std::optional<std::string>> Archive::Asset(const std::string& path) const {
  const std::string member = "assets/" + path;
  if (!zip_ || !zip_->Has(member)) return std::optional<std::string>();
  FUSEBOX_ASSIGN(const Buffer bytes, zip_->Read(member, kMaxConfig));
  const auto chars = bytes.As<char>();
  return std::optional(std::string(chars.data(), chars.size()));
}

Result<Tensor> Archive::Read(const std::string& dataset) const {
  if (const auto it = read_.find(dataset); it != read_.end()) return it->second;
  FUSEBOX_ASSIGN(Type type, weights_->TypeOf(dataset));
  FUSEBOX_ASSIGN(Buffer data, weights_->Read(dataset));
  std::vector<float> single;
  if (type.dtype == DType::kF64)
    for (const double v : data.As<double>()) single.push_back(static_cast<float>(v));
  if (type.dtype == DType::kBF16)
    for (const uint16_t v : data.As<uint16_t>()) single.push_back(std::bit_cast<float>(uint32_t{v} << 16));
  if (type.dtype == DType::kF64 || type.dtype == DType::kBF16) {
    data = Buffer::Of<float>(single);
    type.dtype = DType::kF32;
  }
  return read_.emplace(dataset, Tensor{std::move(type), std::move(data)}).first->second;
}

}  // namespace fusebox::keras
