// SPDX-License-Identifier: Apache-2.0
// Partitions for other dims than those that their functions declare.
#include <fmt/format.h>

#include <algorithm>

#include "host/delegate/delegate.h"

namespace fusebox::delegate {
namespace {

constexpr size_t kMostForms = 8;  // of a partition; more sizes that it cannot leave open run on kernels

// An unknown dim is not 0: most delegates cannot compute empty values, and reject them where they are
// declared.
bool Fits(const Shape& shape, const Shape& declared) {
  if (!declared.ranked() || !shape.ranked()) return true;
  return std::ranges::equal(shape.dims(), declared.dims(),
                            [](int64_t is, int64_t d) { return d < 0 ? is != 0 : d == is; });
}

bool Fits(const std::vector<Shape>& shapes, const Function& function) {
  for (ValueId id = 0; id < function.value_count(); ++id)
    if (!Fits(shapes[static_cast<size_t>(id)], function.value(id).type.shape)) return false;
  return true;
}

// Which dims a function gets.
enum class Dims {
  kOpen,   // those that differ become unknown unless they are 0
  kNew,    // those that differ become the new ones
  kKnown,  // all are the new ones
};

std::unique_ptr<Function> WithDims(const Function& function, const std::vector<Shape>& shapes, Dims dims) {
  auto out = Clone(function, function.name);
  for (ValueId id = 0; id < out->value_count(); ++id) {
    Shape& declared = out->value(id).type.shape;
    const Shape& shape = shapes[static_cast<size_t>(id)];
    if (out->value(id).is_const() || (Fits(shape, declared) && dims != Dims::kKnown)) continue;
    if (dims != Dims::kOpen) {
      declared = shape;
    } else if (shape.rank() != declared.rank()) {
      declared = Shape();
    } else {
      for (size_t i = 0; i < declared.dims().size(); ++i)
        if (declared.dims()[i] != shape.dims()[i]) declared.dims()[i] = shape.dims()[i] == 0 ? 0 : -1;
    }
  }
  return out;
}

}  // namespace

// Returns null if kernels run it.
Session::Form* Session::FormFor(size_t part, const fbx_call& call, const Misfit& misfit) {
  Slot& slot = slots_[part];
  if (!misfit) return slot.needs_dims() ? nullptr : &slot.forms.front();
  const auto known = std::find_if(slot.forms.begin() + 1, slot.forms.end(),
                                  [&](const Form& form) { return Fits(misfit.shapes, *form.function); });
  if (known != slot.forms.end()) return known->partition == nullptr ? nullptr : &*known;
  if (slot.needs_dims()) return Recompile(part, misfit);
  const Status fits = Reshape(slot, call);
  if (fits) return &slot.forms.front();
  if (FBX_HAS(slot.delegate, recompile) && fits.error().code == Code::kUnsupported)
    return Recompile(part, misfit);
  const std::string& why = fits.error().message;
  Decline(part, "prepare", {fits.error().code, misfit.what + (why.empty() ? "" : ": " + why)});
  return nullptr;
}

// A form without a partition is kept too, so that these dims are not compiled again.
Session::Form* Session::Recompile(size_t number, const Misfit& misfit) {
  Slot& slot = slots_[number];
  if (slot.forms.size() == kMostForms) return nullptr;
  const Part& part = *parts_[number];
  Opened& opened = *std::ranges::find(opened_, part.delegate, &Opened::delegate);
  slot.forms.reserve(kMostForms);
  Form form;
  Status status = CompileFor(misfit, opened, part, form);
  if (status) status = CallFinish(opened);
  if (IsCancelled(status)) {
    if (form.partition != nullptr) slot.delegate->destroy_partition(slot.delegate->user, form.partition);
    return nullptr;
  }
  Form& added = slot.forms.emplace_back(std::move(form));
  if (status) return &added;
  DropForm(number, added, std::move(status).At(misfit.what).error());
  return nullptr;
}

void Session::DropForm(size_t part, Form& form, const Error& error) {
  const fbx_delegate& abi = *slots_[part].delegate;
  if (form.partition != nullptr) abi.destroy_partition(abi.user, std::exchange(form.partition, nullptr));
  form.prepared = 0;
  Slot& slot = slots_[part];
  const char* const sizes = slot.needs_dims() ? "its sizes" : "other sizes";
  const std::string why = fmt::format("{} declined {}: {}", ToString(*parts_[part]), sizes, error.message);
  if (!slot.runs()) slot.why = why;
  Notice(part, why);
}

// With unknown dims if possible: that fits later sizes too.
Status Session::CompileFor(const Misfit& misfit, Opened& opened, const Part& part, Form& form) {
  Status status;
  const bool known = slots_[part.number].needs_dims();
  for (const Dims dims : {known ? Dims::kKnown : Dims::kOpen, Dims::kNew}) {
    form.function = WithDims(*part.function, misfit.shapes, dims);
    status = CompileForm(opened, part, part.delegate->abi().recompile, *form.function, form);
    if (status || known || status.error().code != Code::kUnsupported) return status;
  }
  return status;
}

Status Session::Reshape(Slot& slot, const fbx_call& call) {
  if (!FBX_HAS(slot.delegate, reshape)) return Unsupported("");
  const InCall in(*slot.call, "delegate", slot.delegate->name);
  return slot.call->Check(
      slot.delegate->reshape(slot.call->abi(), slot.delegate->user, slot.forms.front().partition, &call));
}

}  // namespace fusebox::delegate
