// SPDX-License-Identifier: Apache-2.0
// Import: a .tflite file with ops of TensorFlow (custom ops "Flex" + name) becomes one without them.
//
// libfusebox-convert does it, the library of `fusebox convert`, which is loaded when it is first needed: the
// host itself links none of its libraries. Bytes go in and bytes come out, so the two need not be of one
// build.
#pragma once

#include <string>
#include <string_view>

#include "host/base/buffer.h"
#include "host/graph/graph.h"
#include "host/plugin/registry.h"

namespace fusebox {

// Ops of TensorFlow are custom ops with this before their names.
inline constexpr std::string_view kFlex = "Flex";

// True if the module has entries, and each of them reaches a Flex op that no plugin here has a kernel for.
bool NeedsImport(const Module&, Registry&);

struct ImportOptions {
  bool fuse = true;          // by the rules of the registry's plugins
  bool keep_bodies = false;  // of all fused ops, not of custom ones only
};
struct Imported {
  Buffer file;
  std::string report;  // JSON; SitesOf returns the composites that the importer found
};
// `name` stands in messages. The limits of CancelScope hold. Errors: the importer's, with the node; the
// library is missing.
Result<Imported> ImportFile(const Buffer& file, const std::string& name, const Registry&,
                            const ImportOptions&);

}  // namespace fusebox
