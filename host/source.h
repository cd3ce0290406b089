// SPDX-License-Identifier: Apache-2.0
// Source: the module that a model is made of. It is the file, or, if ops of TensorFlow are in the way of
// every signature, what libfusebox-convert makes of the file (import.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/base/buffer.h"
#include "host/graph/graph.h"

namespace fusebox {

struct ModelOptions;

// The treatment of a file none of whose signatures can run because of ops of TensorFlow ("Flex").
enum class ImportOps { kNever, kAuto };

struct Source {
  std::unique_ptr<Module> module;
  std::string report = {};                // of the import, for SitesOf
  std::vector<std::string> notices = {};  // likewise: one, with its time
  bool imported() const { return !notices.empty(); }
};
// Reads and checks a file, for Model::FromModule. `name` stands in messages.
Result<std::unique_ptr<Module>> ReadModule(Buffer file, const std::string& name);
// Reads, checks and imports a file. Needs a registry in the options. An import without another limit ends
// after ten seconds.
Result<Source> ReadSource(const std::string& path, const ModelOptions&);
Result<Source> ReadSource(Buffer file, const std::string& name, const ModelOptions&);

}  // namespace fusebox
