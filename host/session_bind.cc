// SPDX-License-Identifier: Apache-2.0
// Memory of the caller as inputs and outputs of a session.
#include "host/session_impl.h"

namespace fusebox {
namespace {

// Returns whether memory has what the ABI promises to kernels: alignment, and readable bytes at the end.
bool KernelsCanUse(std::span<const std::byte> memory, size_t bytes) {
  constexpr uintptr_t kSmallestPage = 4096;
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  if (address % kAlignment != 0) return false;
  const uintptr_t end = address + bytes;
  return memory.size() > bytes || (end - 1) / kSmallestPage == (end + kOverread - 1) / kSmallestPage;
}

Status CheckSize(std::span<const std::byte> memory, size_t bytes) {
  if (memory.size() == bytes || memory.size() == bytes + kOverread) return {};
  return Invalid(fmt::format("memory of {} bytes, expected {}, or {} of which the last {} are only readable",
                             memory.size(), bytes, bytes + kOverread, kOverread));
}

}  // namespace

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
  if (!memory.empty()) FUSEBOX_TRY(CheckSize(memory, *bytes).At(place));
  FUSEBOX_TRY(impl_->Shape(index, type, *bytes, true));
  if (memory.empty()) return {};
  port.bound = memory.first(*bytes);
  port.copies = !KernelsCanUse(memory, *bytes);
  port.blank = false;
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
  FUSEBOX_TRY(CheckSize(memory, *bytes).At(place));
  Impl::Port& port = *impl_->output_ports[at];
  port.bound = memory.first(*bytes);
  port.copies = !KernelsCanUse(memory, *bytes);
  impl_->ran = false;
  if (port.copies) return {};
  port.dims = type.shape.dims();
  port.tensor.dims = port.dims.data();
  port.tensor.rank = static_cast<int32_t>(port.dims.size());
  port.tensor.data = memory.data();
  port.tensor.bytes = *bytes;
  impl_->outs[at] = {&port.tensor, nullptr};
  return {};
}

}  // namespace fusebox
