// SPDX-License-Identifier: Apache-2.0
#include "cli/base/inputs.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <map>

#include "cli/base/checks.h"
#include "host/base/json.h"
#include "host/graph/npy.h"
#include "host/graph/values.h"

namespace fusebox::cli {

Result<size_t> FindPort(const std::vector<Port>& ports, const std::string& name) {
  for (size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].name == name || ports[i].tensor == name) return i;
  }
  std::vector<std::string> names;
  std::string list;
  for (const Port& port : ports) {
    names.push_back(port.name);
    list += (list.empty() ? "" : ", ") + port.name;
  }
  return NotFound("the model has no input " + name + DidYouMean(name, names) +
                  "; inputs: " + (list.empty() ? "none" : list));
}

namespace {

namespace fs = std::filesystem;

std::vector<Port> Named(const std::vector<Session::Slot>& slots, const Function& function,
                        const std::vector<ValueId>& ids) {
  std::vector<Port> ports;
  for (size_t i = 0; i < slots.size(); ++i) {
    const std::string tensor = i < ids.size() ? function.value(ids[i]).name : slots[i].name;
    ports.push_back({slots[i].name, tensor, slots[i].type});
  }
  return ports;
}

// Flattens nested lists of strings row by row; lists of equal depth must have equal length.
Status Flatten(const nlohmann::json& value, size_t depth, std::vector<int64_t>& dims,
               std::vector<std::string>& strings) {
  if (value.is_string()) {
    if (depth != dims.size()) return Invalid("the lists are nested unevenly");
    strings.push_back(value.get<std::string>());
    return {};
  }
  if (!value.is_array()) return Invalid("an element is not a string");
  const auto size = static_cast<int64_t>(value.size());
  if (depth == dims.size() && strings.empty()) dims.push_back(size);
  else if (depth >= dims.size() || dims[depth] != size)
    return Invalid("the lists of one depth differ in length");
  for (const nlohmann::json& element : value) FUSEBOX_TRY(Flatten(element, depth + 1, dims, strings));
  return {};
}

Result<Tensor> ReadStrings(const std::string& path) {
  FUSEBOX_ASSIGN(const std::string text, ReadTextFile(path));
  FUSEBOX_ASSIGN(const nlohmann::json value, ParseJson(text, path));
  std::vector<int64_t> dims;
  std::vector<std::string> strings;
  FUSEBOX_TRY(Flatten(value, 0, dims, strings).At(path));
  return Tensor{{DType::kString, Shape(dims)}, PackStrings(strings)};
}

Result<Tensor> ReadTensor(const std::string& path) {
  return path.ends_with(".json") ? ReadStrings(path) : ReadNpy(path);
}

// Returns the file of --input-dir for an input, or an empty string if there is none.
std::string FileIn(const std::string& dir, const Port& port, size_t index) {
  std::vector<std::string> stems = {"in" + std::to_string(index)};
  for (const std::string& name : {port.name, port.tensor}) {
    // A name with a slash could leave the folder.
    if (!name.empty() && name.find('/') == std::string::npos) stems.push_back(name);
  }
  for (const std::string& stem : stems) {
    for (const char* end : {".npy", ".json"}) {
      const fs::path path = fs::path(dir) / (stem + end);
      std::error_code error;
      if (fs::exists(path, error)) return path.string();
    }
  }
  return {};
}

Result<std::map<size_t, std::string>> GivenFiles(const std::vector<std::string>& files,
                                                 const std::vector<Port>& ports) {
  std::map<size_t, std::string> given;
  for (const std::string& text : files) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      return Invalid("--input " + text + ": expected NAME=FILE");
    FUSEBOX_ASSIGN(const size_t index, FindPort(ports, text.substr(0, equals)).At("--input " + text));
    if (!given.emplace(index, text.substr(equals + 1)).second)
      return Invalid("--input " + text + ": given twice");
  }
  return given;
}

}  // namespace

Result<std::pair<std::string, Shape>> ParseShape(const std::string& text) {
  const auto fail = [&] {
    return Invalid("--shape " + text + ": expected NAME=DIM,DIM,..., each at least 0");
  };
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) return fail();
  std::vector<int64_t> dims;
  for (const char *at = text.c_str() + equals + 1, *end = text.c_str() + text.size(); at < end;) {
    int64_t dim = -1;
    const auto [next, error] = std::from_chars(at, end, dim);
    if (error != std::errc() || dim < 0 || (next < end && (*next != ',' || next + 1 == end))) return fail();
    dims.push_back(dim);
    at = next < end ? next + 1 : next;
  }
  return std::pair(text.substr(0, equals), Shape(dims));
}

Ports PortsOf(const Model& model, const Session& session, const std::string& signature) {
  const Module& module = model.module();
  const Function* function = module.functions[0].get();
  for (const Signature& s : module.signatures) {
    if (s.key == signature || (signature.empty() && module.signatures.size() == 1))
      function = module.Find(s.function);
  }
  FUSEBOX_CHECK(function != nullptr);
  return {Named(session.inputs(), *function, function->inputs),
          Named(session.outputs(), *function, function->outputs)};
}

void AddInputFlags(CLI::App& app, InputFlags& flags) {
  app.add_option("--shape", flags.shapes,
                 "Dims of one input; also overrides fixed dims if the ops support it (repeatable)")
      ->type_name("NAME=1,28,28")
      ->allow_extra_args(false);
  app.add_option("--input", flags.files,
                 "Value of one input, by name: .npy, or .json for strings (repeatable)")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  app.add_option("--input-dir", flags.dir, "Folder with in0.npy, in1.npy, ... or <input name>.npy")
      ->type_name("DIR")
      ->check(CheckNotEmpty);
  app.add_option("--seed", flags.seed, "Seed of the inputs without a file")
      ->check(CheckWholeNumber)
      ->capture_default_str();
}

void AddMemoryLimit(CLI::App& app, SessionOptions& options) {
  app.add_option("--memory-limit", options.memory_limit,
                 "Limit for inputs, outputs, intermediate values and scratch memory of a session, such as "
                 "500M; default: half of the available memory")
      ->type_name("BYTES")
      ->transform(CLI::AsSizeValue(true))
      ->transform([](std::string text) {
        if (std::string error = CheckSomeBytes(text); !error.empty()) throw CLI::ValidationError(error);
        return text;
      });
}

Result<std::vector<Tensor>> ReadValues(const InputFlags& flags, const std::vector<Port>& inputs) {
  FUSEBOX_ASSIGN(const auto given, GivenFiles(flags.files, inputs));
  std::error_code error;
  if (!flags.dir.empty() && !fs::is_directory(flags.dir, error))
    return NotFound(flags.dir + ": " + (error ? error.message() : "not a folder"));
  std::vector<Tensor> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto file = given.find(i);
    std::string path = file != given.end() ? file->second : "";
    if (path.empty() && !flags.dir.empty()) {
      path = FileIn(flags.dir, inputs[i], i);
      if (path.empty())
        return NotFound(flags.dir + ": no in" + std::to_string(i) + ".npy and no " + inputs[i].name +
                        ".npy for input " + std::to_string(i) + ", " + ToString(inputs[i].type));
    }
    const std::string place = "input " + std::to_string(i) + " " + inputs[i].name;
    FUSEBOX_ASSIGN(Tensor value,
                   path.empty() ? SeededValue(inputs[i].type, flags.seed, i).At(place) : ReadTensor(path));
    if (!Compatible(value.type, inputs[i].type))
      return Invalid(path + ": " + ToString(value.type) + ", but " + place + " takes " +
                     ToString(inputs[i].type));
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace fusebox::cli
