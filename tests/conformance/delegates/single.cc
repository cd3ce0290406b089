// SPDX-License-Identifier: Apache-2.0
#include "host/model.h"
#include "host/session.h"
#include "host/tflite/tflite.h"

// The plugin side has a Node, a Tensor and an Attrs of its own.
namespace host {
using fusebox::Attrs;
using fusebox::AttrValue;
using fusebox::Node;
using fusebox::Quant;
using fusebox::Tensor;
}  // namespace host

#include "tests/conformance/delegates/single.h"

namespace fusebox::conformance {
namespace {

Type TypeOf(const Data& data) { return {static_cast<DType>(data.dtype), fusebox::Shape(data.dims)}; }

Buffer BytesOf(const Data& data) { return Buffer::Copy(std::as_bytes(std::span(data.bytes))); }

host::AttrValue Converted(const Attr& attr) {
  return std::visit(
      [](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Dtype>) {
          return host::AttrValue(static_cast<DType>(value.value));
        } else {
          return host::AttrValue(value);
        }
      },
      attr.value);
}

void SetQuant(Value& value, const Data& data) {
  if (data.quant.scales.empty()) return;
  auto quant = std::make_shared<host::Quant>();
  quant->scales = data.quant.scales;
  quant->zero_points = data.quant.zero_points;
  quant->axis = data.quant.axis;
  value.quant = std::move(quant);
}

bool CanHaveCompany(const Case& c) { return c.results.size() == 1 && c.results[0].dtype == FBX_F32; }

std::unique_ptr<Module> ModelOf(const Case& c, Op op, size_t inputs, bool company) {
  auto module = std::make_unique<Module>();
  module->source = c.op + ": " + c.name;
  Function& f = module->Add("main");
  std::vector<ValueId> operands;
  for (const Data& data : c.operands) {
    if (data.dtype == FBX_DTYPE_NONE) {
      operands.push_back(kNoValue);
      continue;
    }
    const bool input = f.inputs.size() < inputs;
    operands.push_back(input ? f.AddInput(TypeOf(data)) : f.AddConst(TypeOf(data), BytesOf(data)));
    SetQuant(f.value(operands.back()), data);
  }
  host::Attrs attrs;
  for (const Attr& attr : c.attrs) attrs.Set(attr.key, Converted(attr));
  std::vector<Type> types;
  for (const Data& data : c.results) types.push_back(TypeOf(data));
  f.outputs = f.AddNode(op, operands, types, attrs).results;
  for (size_t i = 0; i < c.results.size(); ++i) SetQuant(f.value(f.outputs[i]), c.results[i]);
  if (company) {
    const ValueId sum = f.AddNode(Op::kAdd, {f.outputs[0], f.outputs[0]}, types).results[0];
    f.outputs.push_back(sum);
  }
  return module;
}

Status Run(Session& session, const Case& c, size_t inputs) {
  int input = 0;
  for (const Data& data : c.operands) {
    if (data.dtype == FBX_DTYPE_NONE || static_cast<size_t>(input) >= inputs) continue;
    FUSEBOX_TRY(session.SetInput(input++, host::Tensor{TypeOf(data), BytesOf(data)}));
  }
  return session.Run();
}

Answered Try(const std::shared_ptr<Registry>& registry, const Config::Delegate& delegate, const Case& c,
             std::unique_ptr<Module> module, size_t inputs) {
  const auto model =
      Model::FromModule(std::move(module), {.registry = registry, .delegates = std::vector{delegate}});
  if (!model) return {.error = model.error().message};
  auto session = Session::Create(*model);
  if (!session) return {.error = session.error().message};
  for (int i = 0; i < 2; ++i) {
    if (const Status status = Run(**session, c, inputs); !status) return {.error = status.error().message};
  }
  Answered answer;
  const Placement row = (*session)->placements()[0];
  answer.taken = row.runner.starts_with(delegate.name);
  answer.why = row.why;
  for (size_t i = 0; i < c.results.size(); ++i) {
    const auto value = (*session)->output(static_cast<int>(i));
    if (!value) return {.error = value.error().message};
    const auto* bytes = reinterpret_cast<const uint8_t*>(value->data.data());
    const auto& dims = value->type.shape.dims();
    answer.results.push_back({static_cast<fbx_dtype>(value->type.dtype),
                              {dims.begin(), dims.end()},
                              {bytes, bytes + value->data.size()}});
  }
  return answer;
}

}  // namespace

std::string FileOf(const Case& c, size_t inputs, bool company) {
  const auto op = FindOp(c.op);
  if (!op) return "";
  const auto file = tflite::Write(*ModelOf(c, *op, inputs, company && CanHaveCompany(c)));
  return file ? *file : "";
}

std::shared_ptr<Registry> RegistryWith(const std::string& plugin_folder) {
  Config config;
  config.plugins = {plugin_folder};
  config.search_default_path = false;
  auto registry = Registry::Create(config);
  return registry ? *registry : nullptr;
}

Answered RunThrough(const std::shared_ptr<Registry>& registry, const Config::Delegate& delegate,
                    const Case& c, size_t inputs) {
  const auto op = FindOp(c.op);
  if (!op) return {.error = "there is no op " + c.op};
  Answered answer = Try(registry, delegate, c, ModelOf(c, *op, inputs, false), inputs);
  const bool alone = !answer.taken && answer.why.find("alone it is not worth") != std::string::npos;
  if (!alone || !CanHaveCompany(c)) return answer;
  return Try(registry, delegate, c, ModelOf(c, *op, inputs, true), inputs);
}

}  // namespace fusebox::conformance
