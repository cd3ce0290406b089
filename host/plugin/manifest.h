// SPDX-License-Identifier: Apache-2.0
// Manifest: what a fusebox-plugin.json says of its plugin.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "fusebox/abi/plugin.h"
#include "host/base/status.h"
#include "host/graph/graph.h"

namespace fusebox {

// Roles of a custom op's operands in post-training quantization, by index. All other f32 operands and results
// are activations.
struct OpQuantization {
  struct Weights {
    size_t operand = 0;
    int axis = -1;  // of the scales; -1: one scale
    bool operator==(const Weights&) const = default;
  };
  struct Bias {
    size_t operand = 0;  // its scale is the product of input and weight scales
    size_t input = 0;
    size_t weights = 0;
    bool operator==(const Bias&) const = default;
  };
  struct SameScale {
    std::vector<size_t> operands, results;
    bool operator==(const SameScale&) const = default;
  };
  std::vector<Weights> weights;
  std::vector<Bias> biases;
  std::vector<SameScale> same_scale;
  bool asymmetric_inputs = false;  // the op has the option asymmetric_quantize_inputs
  bool operator==(const OpQuantization&) const = default;
};

// An op, rule or delegate listed in a manifest.
struct ManifestOp {
  fbx_op_kind kind = FBX_OP_CUSTOM;
  std::string name;
  int version = 0;             // 0: unspecified
  std::string options_schema;  // JSON Schema text; empty: none
  std::optional<OpQuantization> quantization;
  bool operator==(const ManifestOp&) const = default;
};
// A rewrite without code: the composite becomes the op in `emits` of its rule.
struct DeclaredRewrite {
  struct Operand {
    int from = -1;                     // operand of the composite; -1: absent operand of the op
    std::vector<int64_t> permutation;  // transpose; empty: none
    std::optional<DType> dtype;        // required type
    std::optional<int> rank;
    bool constant = false;
    bool operator==(const Operand&) const = default;
  };
  struct Attribute {
    std::string name, from;          // of the op, and of the composite; empty: none
    std::optional<AttrValue> value;  // replaces a missing attribute of the composite
    bool operator==(const Attribute&) const = default;
  };
  std::optional<std::vector<Operand>> operands;  // nothing: the composite's operands
  std::optional<std::vector<int>> results;       // per result of the composite, the op's; nothing: the same
  std::vector<Attribute> attributes;
  fbx_tolerance tolerance = {};
  bool operator==(const DeclaredRewrite& other) const {
    const auto members = [](const DeclaredRewrite& d) {
      return std::tie(d.operands, d.results, d.attributes, d.tolerance.atol, d.tolerance.rtol);
    };
    return members(*this) == members(other);
  }
};
struct ManifestRule {
  std::string id;
  std::vector<std::string> implements;  // names, or prefixes ending in '*'
  int min_version = 0;
  int max_version = 0;  // 0: unbounded
  std::string when;     // JSON object: attribute name -> JSON Schema of its value; empty: always
  std::vector<ManifestOp> emits;
  std::optional<DeclaredRewrite> rewrite;  // set: a rule without library code
  bool operator==(const ManifestRule&) const = default;
};
struct ManifestDelegate {
  std::string name, options_schema;
  bool is_default = false;        // models use it by default
  std::optional<Attrs> defaults;  // options where none are given; nothing: some must be given
  bool operator==(const ManifestDelegate&) const = default;
};
struct ManifestLibrary {
  std::string platform;  // "linux-x86_64"
  std::string file;      // as the manifest states it
  std::vector<std::string> requires_cpu;
  std::string sha256;  // of the file, in hexadecimal; empty: not sealed
  std::string path;    // absolute
  bool operator==(const ManifestLibrary&) const = default;
};
struct Manifest {
  std::string path;        // of the JSON file
  std::string text;        // its content
  std::string library;     // absolute path of the library for this machine; need not exist. Empty: none,
  std::string no_library;  // for this reason; both empty: the plugin has no code
  std::vector<ManifestLibrary> libraries;  // for all machines
  const ManifestLibrary* Chosen() const;   // the entry of `library`; null: none
  std::string id, version, name_space, description, license;
  int abi_major = 1;
  int abi_min_minor = 0;
  std::vector<std::string> requires_cpu, requires_extensions, provides_extensions;
  std::vector<ManifestRule> rules;
  std::vector<ManifestOp> ops;
  std::vector<ManifestDelegate> delegates;
  std::string options_schema;     // empty: no options
  std::optional<Attrs> defaults;  // options where none are given; nothing: some must be given
  int priority = 0;
  bool operator==(const Manifest&) const = default;
};
// Validated by sdk/schema/plugin-manifest-1.json (embedded). Errors: "file:line:column: problem; did you
// mean".
Result<Manifest> ReadManifest(const std::string& path);

// Writes fusebox-plugins.index into a folder of plugins: the manifests in it, as they were read. A registry
// takes a manifest from there if its file or text is the same, the index is of this version, and nobody but
// root and the user could have written it. Error: the folder has no plugins, or the file cannot be written.
struct IndexWritten {
  std::string path;
  size_t plugins = 0;
  std::vector<std::string> left_out;  // why each invalid manifest is not in it
};
Result<IndexWritten> WriteIndex(const std::string& folder);

}  // namespace fusebox
