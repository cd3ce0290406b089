// SPDX-License-Identifier: Apache-2.0
#include "cli/base/opened.h"

#include "cli/base/print.h"
#include "host/graph/values.h"

namespace fusebox::cli {

Result<Opened> Open(const std::string& path, const ModelOptions& model, const SessionOptions& options) {
  Opened out{.path = path};
  FUSEBOX_ASSIGN(out.model, Model::Open(path, model));
  PrintNotices(path, out.model->notices());
  FUSEBOX_ASSIGN(out.session, Session::Create(out.model, options));
  out.ports = PortsOf(*out.model, *out.session, options.signature);
  return out;
}

namespace {

// Applies the dims of --shape to inputs and their ports.
Status ResizeInputs(Opened& opened, const std::vector<std::string>& shapes) {
  std::vector<Port>& inputs = opened.ports.inputs;
  std::vector<bool> resized(inputs.size());
  for (const std::string& text : shapes) {
    const std::string place = opened.path + ": --shape " + text;
    FUSEBOX_ASSIGN(const auto named, ParseShape(text));
    FUSEBOX_ASSIGN(const size_t index, FindPort(inputs, named.first).At(place));
    if (resized[index]) return Invalid(place + ": given twice");
    resized[index] = true;
    // Strings get their shape with their values.
    if (inputs[index].type.dtype != DType::kString)
      FUSEBOX_TRY(opened.session->Resize(static_cast<int>(index), named.second));
    inputs[index].type.shape = named.second;
  }
  return {};
}

}  // namespace

Status ShapeInput(Session& session, size_t index, const Tensor& value) {
  if (value.type.dtype == DType::kString) return session.SetInput(static_cast<int>(index), value);
  if (session.inputs()[index].type.shape == value.type.shape) return {};
  return session.Resize(static_cast<int>(index), value.type.shape);
}

Result<std::vector<Tensor>> ReadInputs(const InputFlags& flags, Opened& opened) {
  FUSEBOX_TRY(ResizeInputs(opened, flags.shapes));
  FUSEBOX_ASSIGN(std::vector<Tensor> values, ReadValues(flags, opened.ports.inputs).At(opened.path));
  for (size_t i = 0; i < values.size(); ++i) FUSEBOX_TRY(ShapeInput(*opened.session, i, values[i]));
  return values;
}

Status SetInputs(Session& session, std::vector<Tensor>& values, uint64_t seed) {
  for (size_t i = 0; i < values.size(); ++i) {
    const auto index = static_cast<int>(i);
    if (values[i].data) {
      FUSEBOX_TRY(session.SetInput(index, values[i]));
      continue;
    }
    FUSEBOX_ASSIGN(const std::span<std::byte> memory, session.InputData(index));
    FillSeeded(values[i].type, seed, i, memory);
    values[i].data = Buffer::Borrow(memory);
  }
  return {};
}

const std::string& FunctionOf(const Opened& opened) {
  const Module& module = opened.model->module();
  for (const Signature& signature : module.signatures)
    if (signature.key == opened.session->signature()) return signature.function;
  return module.functions.front()->name;
}

Result<std::vector<Tensor>> Outputs(const Session& session) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < session.outputs().size(); ++i) {
    FUSEBOX_ASSIGN(Tensor output, session.output(static_cast<int>(i)));
    out.push_back(std::move(output));
  }
  return out;
}

}  // namespace fusebox::cli
