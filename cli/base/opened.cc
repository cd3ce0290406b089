// SPDX-License-Identifier: Apache-2.0
#include "cli/base/opened.h"

#include "cli/base/print.h"

namespace fusebox::cli {

Result<Opened> Open(const std::string& path, const ModelOptions& model, const SessionOptions& options) {
  Opened out{.path = path};
  FUSEBOX_ASSIGN(out.model, Model::Open(path, model));
  for (const std::string& notice : out.model->notices()) Message(path + ": " + notice);
  FUSEBOX_ASSIGN(out.session, Session::Create(out.model, options));
  out.ports = PortsOf(*out.model, *out.session, options.signature);
  return out;
}

Status ResizeInputs(Opened& opened, const std::vector<std::string>& shapes) {
  std::vector<Port>& inputs = opened.ports.inputs;
  std::vector<bool> resized(inputs.size());
  for (const std::string& text : shapes) {
    const std::string place = opened.path + ": --shape " + text;
    FUSEBOX_ASSIGN(const auto named, ParseShape(text));
    FUSEBOX_ASSIGN(const size_t index, FindPort(inputs, named.first).At(place));
    if (resized[index]) return Invalid(place + ": given twice");
    resized[index] = true;
    FUSEBOX_TRY(opened.session->Resize(static_cast<int>(index), named.second));
    inputs[index].type.shape = named.second;
  }
  return {};
}

const std::string& FunctionOf(const Opened& opened) {
  const Module& module = opened.model->module();
  for (const Signature& signature : module.signatures)
    if (signature.key == opened.session->signature()) return signature.function;
  return module.functions.front()->name;
}

Status SetInputs(Session& session, const std::vector<Tensor>& values) {
  for (size_t i = 0; i < values.size(); ++i) FUSEBOX_TRY(session.SetInput(static_cast<int>(i), values[i]));
  return {};
}

Result<std::vector<Tensor>> CopyOutputs(const Session& session) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < session.outputs().size(); ++i) {
    FUSEBOX_ASSIGN(const Tensor borrowed, session.output(static_cast<int>(i)));
    out.push_back({borrowed.type, Buffer::Copy(borrowed.data.bytes())});
  }
  return out;
}

}  // namespace fusebox::cli
