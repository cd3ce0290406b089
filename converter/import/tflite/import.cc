// SPDX-License-Identifier: Apache-2.0
#include "converter/import/tflite/import.h"

#include <algorithm>

#include "host/fusion/fusion.h"
#include "host/graph/quant.h"
#include "host/tflite/tflite.h"

namespace fusebox::tflite_import {
namespace {

// A default signature: names of the main subgraph's tensors, numbered if they are missing or not unique.
Signature OfMain(const Function& main) {
  Signature made{"main", main.name, {}, {}};
  const auto name = [&](std::vector<std::string>& names, ValueId v, const char* prefix) {
    std::string wish = v == kNoValue ? "" : main.value(v).name;
    if (wish.empty() || std::find(names.begin(), names.end(), wish) != names.end())
      wish = prefix + std::to_string(names.size());
    names.push_back(std::move(wish));
  };
  for (ValueId v : main.inputs) name(made.input_names, v, "in");
  for (ValueId v : main.outputs) name(made.output_names, v, "out");
  return made;
}

Status Select(Module& module, const std::vector<std::string>& wanted) {
  if (wanted.empty()) return {};
  std::vector<Signature> kept;
  for (const std::string& key : wanted) {
    const auto it = std::find_if(module.signatures.begin(), module.signatures.end(),
                                 [&](const Signature& s) { return s.key == key; });
    if (it != module.signatures.end()) {
      kept.push_back(*it);
      continue;
    }
    std::string known;
    for (const Signature& s : module.signatures) known += (known.empty() ? "" : ", ") + s.key;
    return NotFound("signature " + key + ": no such signature; available: " + known);
  }
  module.signatures = std::move(kept);
  return {};
}

bool StoresFloat16(const Module& module) {
  for (const auto& f : module.functions) {
    for (const auto& node : f->nodes) {
      if (!node->is(Op::kDequantize) || node->operands.empty() || node->operands[0] == kNoValue) continue;
      const Value& stored = f->value(node->operands[0]);
      if (stored.is_const() && stored.type.dtype == DType::kF16) return true;
    }
  }
  return false;
}

// Options of custom ops, as at load. Instead of a node with a kept body, the host runs the body.
Status CheckCustomOptions(Module& module, Registry& registry, std::vector<std::string>& notes) {
  registry.FillOptions(module);
  for (const auto& f : module.functions) {
    for (const auto& node : f->nodes) {
      Status status =
          registry.CheckOptions(*node).At([&] { return "function " + f->name + ": " + Describe(*f, *node); });
      if (status) continue;
      if (node->body.empty()) return status;
      notes.push_back(status.error().message + "; its kept body runs instead");
    }
  }
  return {};
}

}  // namespace

Result<Imported> Import(Buffer file, const std::string& name, const std::vector<std::string>& signatures,
                        Registry& registry) {
  Imported out;
  FUSEBOX_ASSIGN(out.module, tflite::Read(std::move(file), name));
  Module& module = *out.module;
  FUSEBOX_TRY(VerifyQuants(module).At(name));
  FUSEBOX_TRY(AttachFused(module).At(name));
  out.f16_weights = StoresFloat16(module);
  out.unsigned_file = module.signatures.empty();
  if (out.unsigned_file) module.signatures.push_back(OfMain(*module.functions[0]));
  FUSEBOX_TRY(Select(module, signatures).At(name));
  FUSEBOX_TRY(CheckCustomOptions(module, registry, out.notes).At(name));
  CheckHints(module, registry);
  LiftFlex(module, out.notes);
  return out;
}

}  // namespace fusebox::tflite_import
