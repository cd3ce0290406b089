// SPDX-License-Identifier: Apache-2.0
// Memory of the caller as inputs and outputs of a session.
#include "host/plan/variables.h"
#include "host/session_impl.h"

namespace fusebox {
namespace {

bool IsAligned(std::span<const std::byte> memory) {
  return reinterpret_cast<uintptr_t>(memory.data()) % kAlignment == 0;
}

bool MayReadBehind(std::span<const std::byte> memory, size_t bytes) {
  constexpr uintptr_t kSmallestPage = 4096;
  const uintptr_t end = reinterpret_cast<uintptr_t>(memory.data()) + bytes;
  return memory.size() > bytes || (end - 1) / kSmallestPage == (end + kOverread - 1) / kSmallestPage;
}

Status CheckSize(std::span<const std::byte> memory, size_t bytes) {
  if (memory.size() == bytes || memory.size() == bytes + kOverread) return {};
  return Invalid(fmt::format("memory of {} bytes, expected {}, or {} of which the last {} are only readable",
                             memory.size(), bytes, bytes + kOverread, kOverread));
}

}  // namespace

Status Session::Impl::CheckApart(std::span<const std::byte> memory, const Port& self) const {
  const auto overlaps = [&](const Port& port) {
    return &port != &self && !port.bound.empty() && port.bound.data() < memory.data() + memory.size() &&
           memory.data() < port.bound.data() + port.bound.size();
  };
  const auto same = [&](const Port& port) {
    return port.bound.data() == memory.data() && port.bound.size() == memory.size();
  };
  const bool is_input =
      std::ranges::find(input_ports, &self, &std::unique_ptr<Port>::get) != input_ports.end();
  for (size_t i = 0; !is_input && i < inputs.size(); ++i) {
    if (overlaps(*input_ports[i]) && !same(*input_ports[i]))
      return Invalid("the memory overlaps that of " + Quoted(inputs[i], static_cast<int>(i)) +
                     "; it must be the same or other memory");
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (overlaps(*output_ports[i]) && !(is_input && same(*output_ports[i])))
      return Invalid("the memory overlaps that of " + Named(i));
  }
  return {};
}

void Session::Impl::FindShared() {
  for (size_t o = 0; o < outputs.size(); ++o) {
    const Port& output = *output_ports[o];
    outs[o].input = -1;
    if (output.bound.empty() || output.copies) continue;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Port& input = *input_ports[i];
      if (!input.copies && input.bound.data() == output.bound.data()) outs[o].input = static_cast<int>(i);
    }
  }
}

bool Session::Impl::KernelsCanUse(std::span<const std::byte> memory, size_t bytes, ValueId value) const {
  return IsAligned(memory) && (MayReadBehind(memory, bytes) || plan::IsReadExactly(*code, value));
}

Status Session::BindInput(int index, std::span<std::byte> memory) {
  FUSEBOX_TRY(impl_->Check(index));
  const Slot& slot = impl_->inputs[static_cast<size_t>(index)];
  Impl::Port& port = *impl_->input_ports[static_cast<size_t>(index)];
  const auto place = [&] { return fmt::format("{}: {}", impl_->model->name(), Quoted(slot, index)); };
  const Type type = TypeOf(port.tensor);
  const auto bytes = port.shaped ? ByteSize(type) : std::nullopt;
  if (!bytes)
    return Invalid(fmt::format("{}, {}, has no fixed size to bind memory to{}", place(), ToString(slot.type),
                               slot.type.dtype == DType::kString ? "" : "; call Resize first"));
  if (!memory.empty()) {
    FUSEBOX_TRY(CheckSize(memory, *bytes).At(place));
    FUSEBOX_TRY(impl_->CheckApart(memory.first(*bytes), port).At(place));
  }
  FUSEBOX_TRY(impl_->Shape(index, type, *bytes, true));
  if (memory.empty()) return {};
  port.bound = memory.first(*bytes);
  port.copies =
      !impl_->KernelsCanUse(memory, *bytes, impl_->code->function->inputs[static_cast<size_t>(index)]);
  port.blank = false;
  impl_->FindShared();
  if (port.copies) return {};
  if (!port.lent) port.memory.Free();
  port.tensor.data = memory.data();
  return {};
}

void Session::Impl::UnbindOutput(size_t index) {
  Port& port = *output_ports[index];
  if (port.bound.empty()) return;
  port.bound = {};
  port.copies = false;
  outs[index] = {&port.tensor, &port.memory};
  ran = false;
}

Status Session::BindOutput(int index, std::span<std::byte> memory) {
  FUSEBOX_TRY(impl_->CheckOutput(index));
  const auto at = static_cast<size_t>(index);
  impl_->UnbindOutput(at);
  if (memory.empty()) return {};
  const auto place = [&] { return impl_->model->name() + ": " + impl_->Named(at); };
  FUSEBOX_TRY(impl_->Ready(false));
  impl_->has_values = false;
  FUSEBOX_ASSIGN(const std::vector<Type> types,
                 impl_->runner->OutputTypes(*impl_->code, impl_->operands).At(impl_->model->name()));
  const Type& type = types[at];
  const auto bytes = ByteSize(type);
  if (!bytes)
    return Unsupported(place() +
                       ": its size depends on data, so memory cannot be bound to it; read it with "
                       "output() after Run");
  Impl::Port& port = *impl_->output_ports[at];
  FUSEBOX_TRY(CheckSize(memory, *bytes).At(place));
  FUSEBOX_TRY(impl_->CheckApart(memory.first(*bytes), port).At(place));
  port.bound = memory.first(*bytes);
  port.copies = !impl_->KernelsCanUse(memory, *bytes, impl_->code->function->outputs[at]);
  impl_->ran = false;
  if (port.copies) return {};
  port.dims = type.shape.dims();
  port.tensor.dims = port.dims.data();
  port.tensor.rank = static_cast<int32_t>(port.dims.size());
  port.tensor.data = memory.data();
  port.tensor.bytes = *bytes;
  impl_->outs[at] = {&port.tensor, nullptr};
  impl_->FindShared();
  return {};
}

}  // namespace fusebox
