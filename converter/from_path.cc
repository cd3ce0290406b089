// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <filesystem>

#include "converter/import/keras/archive.h"
#include "converter/import/saved_model/frozen_graph.h"
#include "converter/words.h"
#include "host/base/buffer.h"

namespace fusebox::converter {
namespace {

Result<bool> IsTflite(const std::string& path) {
  FUSEBOX_ASSIGN(const Buffer file, MapFile(path));
  return file.size() >= 8 && std::memcmp(file.data() + 4, "TFL3", 4) == 0;
}

// A graph, or the file of a SavedModel in place of its folder.
Result<Conversion> FromGraphFile(const std::string& path) {
  const std::filesystem::path file(path);
  const bool named = file.filename() == "saved_model.pb";
  FUSEBOX_ASSIGN(const bool whole, saved_model::IsSavedModelFile(path));
  if (!named || !whole) return FromFrozenGraph(path);
  return FromSavedModel(file.has_parent_path() ? file.parent_path().string() : ".");
}

// Names files of other frameworks, which people try.
std::string KindOf(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::file_size(file, ignored) == 0) return "the file is empty; ";
  for (const auto& [ends, kind] : {std::pair(".onnx", "an ONNX model is "),
                                   {".pt", "a PyTorch file is "},
                                   {".pth", "a PyTorch file is "},
                                   {".py", "Python code is "},
                                   {".ckpt", "a checkpoint without a graph is "},
                                   {".safetensors", "weights without a graph are "}}) {
    if (file.ends_with(ends)) return kind;
  }
  return "";
}

}  // namespace

Result<Conversion> FromPath(const std::string& source) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(source, error);
  if (error) return NotFound(source + ": " + error.message());
  if (folder) return FromSavedModel(source);
  FUSEBOX_ASSIGN(const bool keras, keras::IsKerasFile(source));
  if (keras) return FromKeras(source);
  FUSEBOX_ASSIGN(const bool tflite, IsTflite(source));
  if (tflite || source.ends_with(".tflite")) return FromTflite(source);
  if (source.ends_with(".pb") || source.ends_with(".pbtxt")) return FromGraphFile(source);
  return Unsupported(source + ": " + KindOf(source) +
                     "not supported; expected the folder of a SavedModel, a Keras file (.h5, .keras), a "
                     ".tflite file or a frozen graph (.pb, .pbtxt)");
}

}  // namespace fusebox::converter
