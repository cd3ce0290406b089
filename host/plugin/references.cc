// SPDX-License-Identifier: Apache-2.0
// Checks references within a JSON Schema. Its users follow them recursively, so they must end soon.
#include <algorithm>
#include <set>

#include "host/plugin/steps.h"

namespace fusebox {
namespace {

using nlohmann::json;

constexpr size_t kDeepest = 400;  // levels of objects and lists

const std::string* ReferenceOf(const json& schema) {
  if (!schema.is_object()) return nullptr;
  const auto reference = schema.find("$ref");
  const bool there = reference != schema.end() && reference->is_string();
  return there ? &reference->get_ref<const std::string&>() : nullptr;
}

// Null for escapes and empty parts, which implementations interpret differently.
const json* Target(const json& root, const std::string& reference) {
  if (reference == "#") return &root;
  if (!reference.starts_with("#/") || reference.ends_with('/') || reference.find('%') != std::string::npos ||
      reference.find("//") != std::string::npos)
    return nullptr;
  try {
    return &root.at(json::json_pointer(reference.substr(1)));
  } catch (const json::exception&) {
    return nullptr;
  }
}

size_t HeightOf(const json& value) {
  size_t highest = 0;
  if (value.is_structured())
    for (const json& member : value) highest = std::max(highest, HeightOf(member));
  return highest + 1;
}

class ReferenceCheck {
 public:
  explicit ReferenceCheck(const json& root) : root_(root), levels_(HeightOf(root)) {}

  std::string Unsound() {
    if (std::string why = Collect(root_); !why.empty()) return why;
    if (levels_ > kDeepest) return "its references nest deeper than " + std::to_string(kDeepest) + " levels";
    for (const json* schema : referring_) {
      if (Leads(*schema)) return "the reference \"" + *ReferenceOf(*schema) + "\" refers to itself";
    }
    return {};
  }

 private:
  std::string Collect(const json& value) {
    if (const std::string* reference = ReferenceOf(value)) {
      const json* const target = Target(root_, *reference);
      if (target == nullptr) return "the reference \"" + *reference + "\" has no target";
      referring_.push_back(&value);
      if (targets_.insert(target).second) levels_ += HeightOf(*target);
    }
    if (!value.is_structured()) return {};
    for (const json& member : value) {
      if (std::string why = Collect(member); !why.empty()) return why;
    }
    return {};
  }

  // Returns whether the schema applies itself to its own value.
  bool Leads(const json& schema) {
    if (!schema.is_object() || done_.contains(&schema)) return false;
    if (!path_.insert(&schema).second) return true;
    bool back = false;
    if (const std::string* reference = ReferenceOf(schema)) {
      back = Leads(*Target(root_, *reference));  // siblings of a reference are ignored
    } else {
      for (const char* key : {"not", "if", "then", "else"}) back = back || LeadsAt(schema, key);
      for (const char* key : {"allOf", "anyOf", "oneOf", "dependencies"}) {
        const auto several = schema.find(key);
        if (several == schema.end() || !several->is_structured()) continue;
        back = back || std::any_of(several->begin(), several->end(), [&](const json& s) { return Leads(s); });
      }
    }
    path_.erase(&schema);
    done_.insert(&schema);
    return back;
  }
  bool LeadsAt(const json& schema, const char* key) {
    const auto found = schema.find(key);
    return found != schema.end() && Leads(*found);
  }

  const json& root_;
  std::vector<const json*> referring_;
  std::set<const json*> targets_, path_, done_;
  size_t levels_;  // maximum on one path
};

}  // namespace

std::string UnsoundReference(const json& schema) { return ReferenceCheck(schema).Unsound(); }

}  // namespace fusebox
