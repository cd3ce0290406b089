// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "host/base/trace.h"
#include "host/graph/npy.h"
#include "host/session_impl.h"

namespace fusebox {
namespace {

// Checks the packing of a STRING tensor, and its number of strings.
Status CheckStrings(const Tensor& value) {
  FUSEBOX_ASSIGN(const auto strings, UnpackStrings(value.data));
  const auto count = value.type.shape.element_count();
  if (count && static_cast<size_t>(*count) == strings.size()) return {};
  return Invalid(fmt::format("{} strings for {}", strings.size(), ToString(value.type)));
}

}  // namespace

namespace {

// Without a key, returns the only signature, or the main function's, if any.
Result<const Signature*> FindSignature(const Module& module, std::string_view key) {
  if (key.empty()) {
    if (module.signatures.size() == 1) return &module.signatures[0];
    const auto main = std::ranges::find(module.signatures, module.functions[0]->name, &Signature::function);
    return main == module.signatures.end() ? nullptr : &*main;
  }
  std::vector<std::string> keys;
  for (const Signature& signature : module.signatures) {
    if (signature.key == key) return &signature;
    keys.push_back(signature.key);
  }
  return NotFound(fmt::format("no signature '{}'; there {} {}", key, keys.size() == 1 ? "is" : "are",
                              keys.empty() ? std::string("none") : fmt::format("{}", fmt::join(keys, ", "))));
}

// The name of an entry in messages: "signature save".
std::string Described(const Signature* signature) {
  return signature == nullptr ? "the main subgraph" : "signature " + signature->key;
}

// The error for a function that cannot run. Lists the signatures that can.
Status CannotRun(const Model& model, const Signature* signature, const Error& why) {
  std::vector<std::string> others;
  for (const Model::Entry& entry : model.entries()) {
    if (entry.status) others.push_back(entry.signature.empty() ? "the main subgraph" : entry.signature);
  }
  return Fail(why.code, fmt::format("{}: {} cannot run: {}; signatures that can run: {}", model.name(),
                                    Described(signature), why.message, fmt::join(others, ", ")));
}

std::vector<Session::Slot> Slots(const Function& function, const std::vector<ValueId>& ids,
                                 const std::vector<std::string>* names) {
  std::vector<Session::Slot> slots;
  for (size_t i = 0; i < ids.size(); ++i) {
    const Value& value = function.value(ids[i]);
    const bool named = names != nullptr && i < names->size() && !(*names)[i].empty();
    slots.push_back({named ? (*names)[i] : value.name, value.type});
  }
  return slots;
}

Result<int> FindSlot(const std::vector<Session::Slot>& slots, const char* what, std::string_view name) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].name == name) return static_cast<int>(i);
    names.push_back(slots[i].name);
  }
  return NotFound(fmt::format("no {} '{}'; {}s: {}", what, name, what,
                              names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

}  // namespace

void Session::Impl::Select(const plan::Code& chosen, const Signature* signature) {
  const Function& function = *chosen.function;
  code = &chosen;
  inputs = Slots(function, function.inputs, signature != nullptr ? &signature->input_names : nullptr);
  outputs = Slots(function, function.outputs, signature != nullptr ? &signature->output_names : nullptr);
  input_ports.clear();
  output_ports.clear();
  operands.clear();
  outs.clear();
  ran = has_values = false;
  for (const Slot& slot : inputs) {
    Port& port = *input_ports.emplace_back(std::make_unique<Port>());
    port.tensor.head = FBX_HEAD(fbx_tensor);
    port.tensor.dtype = static_cast<fbx_dtype>(slot.type.dtype);
    operands.push_back(&port.tensor);
  }
  for (const Slot& slot : outputs) {
    Port& port = *output_ports.emplace_back(std::make_unique<Port>());
    port.tensor.head = FBX_HEAD(fbx_tensor);
    port.tensor.dtype = static_cast<fbx_dtype>(slot.type.dtype);
    outs.push_back({&port.tensor, &port.memory});
  }
}

Status Session::Impl::Check(int index) const {
  if (index >= 0 && static_cast<size_t>(index) < inputs.size()) return {};
  return Invalid(fmt::format("{}: no input {}; there are {}", model->name(), index, inputs.size()));
}

Status Session::Impl::CheckOutput(int index) const {
  if (index >= 0 && static_cast<size_t>(index) < outputs.size()) return {};
  return Invalid(fmt::format("{}: no output {}; there are {}", model->name(), index, outputs.size()));
}

// Sets dims and memory of an input, if they are compatible.
Status Session::Impl::Shape(int index, const Type& type, size_t bytes, bool blank) {
  const Slot& slot = inputs[static_cast<size_t>(index)];
  if (!type.shape.is_static() || !Compatible(type, slot.type)) {
    return Invalid(fmt::format("{}: {} got {}, expected {}", model->name(), Quoted(slot, index),
                               ToString(type), ToString(slot.type)));
  }
  Port& port = *input_ports[static_cast<size_t>(index)];
  const bool reshaped = !port.shaped || TypeOf(port.tensor).shape != type.shape;
  for (size_t i = 0; reshaped && i < outputs.size(); ++i) UnbindOutput(i);
  port.bound = {};
  port.copies = false;
  port.shaped = false;
  for (run::Out& out : outs)
    if (out.input == index) out.input = -1;
  FUSEBOX_TRY(Allocate([&] { return Quoted(slot, index); }, type,
                       [&] {
                         const bool moved = port.memory.Resize(port.tensor, type.shape.dims().data(),
                                                               type.shape.rank(), bytes, blank);
                         port.blank = blank && !moved;
                       }));
  port.shaped = true;
  if (port.lent) port.Fill();
  return {};
}

// Outputs whose sizes are known before a run. A result in memory that moves is lost.
Status Session::Impl::ReserveOutputs() {
  FUSEBOX_ASSIGN(const std::vector<Type> types, runner->OutputTypes(*code, operands).At(model->name()));
  for (size_t i = 0; i < types.size(); ++i) {
    const auto bytes = ByteSize(types[i]);
    if (!bytes || outs[i].memory == nullptr) continue;
    FUSEBOX_TRY(Allocate([&] { return Named(i); }, types[i],
                         [&] {
                           if (outs[i].memory->Reserve(*bytes)) ran = false;
                         }));
  }
  return {};
}

std::string Session::Impl::Named(size_t output) const {
  const std::string& name = outputs[output].name;
  return fmt::format("output {}{}", output, name.empty() ? "" : " '" + name + "'");
}

Status Session::Impl::Ready(bool with_data) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    Port& port = *input_ports[i];
    if (with_data && port.shaped) port.Fill();
    if (port.shaped && (!with_data || port.tensor.data != nullptr)) continue;
    return Invalid(fmt::format("{}: {}, {}, has no value yet", model->name(),
                               Quoted(inputs[i], static_cast<int>(i)), ToString(inputs[i].type)));
  }
  return {};
}

Session::Session() : impl_(std::make_unique<Impl>()) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::Create(std::shared_ptr<const Model> model,
                                                 const SessionOptions& options) {
  if (model == nullptr) return Invalid("a session needs a model");
  std::unique_ptr<Session> session(new Session());
  session->impl_->model = std::move(model);
  if (options.shadow > 0)
    session->impl_->shadow = std::make_unique<verify::Shadow>(
        session->impl_->model->module(), session->impl_->model->registry(), options.shadow);
  FUSEBOX_ASSIGN(session->impl_->runner,
                 run::Runner::Create(session->impl_->model->program(),
                                     {.pool = options.pool,
                                      .threads = options.threads,
                                      .progress = Traced(options.progress),
                                      .memory_limit = options.memory_limit,
                                      .keep_values = options.keep_values,
                                      .profile = options.profile || Trace::Current() != nullptr,
                                      .observer = session->impl_->shadow.get()}));
  session->impl_->keeps_values = options.keep_values;
  FUSEBOX_TRY(session->SelectSignature(options.signature));
  return session;
}

Status Session::SelectSignature(std::string_view key) {
  Impl& impl = *impl_;
  const Module& module = impl.model->module();
  if (module.functions.empty())
    return Invalid(fmt::format("{}: the model has no function", impl.model->name()));
  FUSEBOX_ASSIGN(const Signature* signature, FindSignature(module, key).At(impl.model->name()));
  const std::string& function = signature != nullptr ? signature->function : module.functions[0]->name;
  if (const Status able = impl.model->program().StatusOf(function); !able)
    return CannotRun(*impl.model, signature, able.error());
  const plan::Code* code = impl.model->program().Find(function);
  if (code == nullptr)
    return Invalid(fmt::format("{}: function {} does not exist", impl.model->name(), function));
  impl.signature = signature != nullptr ? signature->key : "";
  impl.Select(*code, signature);
  // Inputs of known shape need no Resize before InputData.
  for (size_t i = 0; i < impl.inputs.size(); ++i) {
    const Type& type = impl.inputs[i].type;
    const auto bytes = ByteSize(type);
    if (!bytes && type.shape.is_static() && BitsOf(type.dtype) > 0)
      return Unsupported(fmt::format("{}: {} is {}, which cannot be stored", impl.model->name(),
                                     Quoted(impl.inputs[i], static_cast<int>(i)), ToString(type)));
    if (bytes) FUSEBOX_TRY(impl.Shape(static_cast<int>(i), type, *bytes, true));
  }
  return {};
}

const std::vector<Session::Slot>& Session::inputs() const { return impl_->inputs; }
const std::vector<Session::Slot>& Session::outputs() const { return impl_->outputs; }

Result<int> Session::FindInput(std::string_view name) const {
  return FindSlot(impl_->inputs, "input", name).At(impl_->model->name());
}

Result<int> Session::FindOutput(std::string_view name) const {
  return FindSlot(impl_->outputs, "output", name).At(impl_->model->name());
}

Status Session::SetInput(int index, const Tensor& value) {
  FUSEBOX_TRY(impl_->Check(index));
  const Slot& slot = impl_->inputs[static_cast<size_t>(index)];
  const auto place = [&] { return fmt::format("{}: {}", impl_->model->name(), Quoted(slot, index)); };
  if (value.type.dtype == DType::kString) {
    FUSEBOX_TRY(CheckStrings(value).At(place()));
  } else if (const auto bytes = ByteSize(value.type);
             value.type.shape.is_static() && BitsOf(value.type.dtype) > 0 && bytes != value.data.size()) {
    return Invalid(fmt::format("{} has {} bytes, but {} requires {}", place(), value.data.size(),
                               ToString(value.type),
                               bytes ? std::to_string(*bytes) : "more than can be stored"));
  } else if (value.type.dtype == DType::kBool &&
             std::ranges::any_of(value.data.bytes(), [](std::byte byte) { return byte > std::byte{1}; })) {
    return Invalid(place() + " has bools that are neither 0 nor 1");
  }
  FUSEBOX_TRY(impl_->Shape(index, value.type, value.data.size(), false));
  if (value.data.size() > 0) {
    std::memcpy(impl_->input_ports[static_cast<size_t>(index)]->tensor.data, value.data.data(),
                value.data.size());
  }
  return {};
}

Status Session::Resize(int index, const fusebox::Shape& shape) {
  FUSEBOX_TRY(impl_->Check(index));
  Slot& slot = impl_->inputs[static_cast<size_t>(index)];
  const Type type{slot.type.dtype, shape};
  const Type before = slot.type;
  const auto bytes = ByteSize(type);
  if (!bytes || (before.shape.ranked() && before.shape.rank() != shape.rank())) {
    const char* const why = type.dtype == DType::kString ? "strings get their shape with their values"
                            : !bytes                     ? "it is too large"
                                                         : "it has another number of dims";
    return Invalid(fmt::format("{}: {}, {}, cannot be resized to {}: {}", impl_->model->name(),
                               Quoted(slot, index), ToString(before), ToString(type), why));
  }
  const Impl::Port& port = *impl_->input_ports[static_cast<size_t>(index)];
  if (!port.bound.empty() && TypeOf(port.tensor).shape == shape) return {};
  for (size_t i = 0; i < slot.type.shape.dims().size(); ++i) {
    int64_t& dim = slot.type.shape.dims()[i];
    if (dim >= 0) dim = shape[i];
  }
  const Status shaped = impl_->Shape(index, type, *bytes, true);
  if (!shaped) slot.type = before;
  return shaped;
}

Result<std::span<std::byte>> Session::InputData(int index) {
  FUSEBOX_TRY(impl_->Check(index));
  Impl::Port& port = *impl_->input_ports[static_cast<size_t>(index)];
  if (!port.shaped) {
    const Slot& slot = impl_->inputs[static_cast<size_t>(index)];
    return Invalid(fmt::format("{}: {}, {}, has no shape yet", impl_->model->name(), Quoted(slot, index),
                               ToString(slot.type)));
  }
  if (!port.bound.empty()) return port.bound;
  port.Fill();
  port.lent = true;
  return std::span(static_cast<std::byte*>(port.tensor.data), port.tensor.bytes);
}

Status Session::Prepare() {
  FUSEBOX_TRY(impl_->Ready(false));
  impl_->has_values = false;
  FUSEBOX_TRY(impl_->runner->Prepare(*impl_->code, impl_->operands).At(impl_->model->name()));
  return impl_->ReserveOutputs();
}

Result<std::vector<Type>> Session::OutputTypes() {
  return impl_->runner->OutputTypes(*impl_->code, impl_->operands).At(impl_->model->name());
}

Status Session::Run() {
  FUSEBOX_TRY(impl_->Ready(true));
  impl_->ran = impl_->has_values = false;
  for (const auto& port : impl_->input_ports) {
    if (port->copies) std::memcpy(port->tensor.data, port->bound.data(), port->bound.size());
  }
  Status status = impl_->runner->Call(*impl_->code, impl_->operands, impl_->outs);
  if (!status) return std::move(status).At(impl_->model->name());
  for (const auto& port : impl_->output_ports) {
    if (port->copies) std::memcpy(port->bound.data(), port->tensor.data, port->bound.size());
  }
  impl_->ran = impl_->has_values = true;
  return {};
}

void Session::Cancel() { impl_->runner->Cancel(); }

Tensor Session::Impl::ViewOf(const fbx_tensor& tensor) const {
  // No ownership: the memory belongs to the session.
  return {TypeOf(tensor), Buffer::Borrow({static_cast<const std::byte*>(tensor.data), tensor.bytes})};
}

Result<Tensor> Session::output(int index) const {
  FUSEBOX_TRY(impl_->CheckOutput(index));
  if (!impl_->ran) return Invalid(fmt::format("{}: no output yet; call Run first", impl_->model->name()));
  return impl_->ViewOf(impl_->output_ports[static_cast<size_t>(index)]->tensor);
}

void Session::ResetState() { impl_->runner->Reset(); }

std::vector<Placement> Session::placements() const { return impl_->runner->placements(); }

std::vector<verify::ShadowRow> Session::shadows() const {
  return impl_->shadow ? impl_->shadow->rows() : std::vector<verify::ShadowRow>();
}
std::vector<std::string> Session::notices() const { return impl_->runner->notices(); }

std::string Session::Explain() const { return impl_->runner->Explain(); }

std::vector<MemoryPlan> Session::memory_plans() const { return impl_->runner->memory_plans(); }

size_t Session::arena_bytes() const { return impl_->runner->arena_bytes(); }
const std::string& Session::signature() const { return impl_->signature; }
int Session::threads() const { return static_cast<int>(impl_->runner->threads()); }

}  // namespace fusebox
