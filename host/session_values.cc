// SPDX-License-Identifier: Apache-2.0
// Intermediate values and times of a session.
#include "host/session_impl.h"

namespace fusebox {

Result<Tensor> Session::Impl::ValueOf(const Function& function, ValueId id) const {
  const Value& value = function.value(id);
  if (value.is_const()) return Tensor{value.type, value.data};
  if (!has_values) return Invalid(model->name() + ": no values; call Run first");
  FUSEBOX_ASSIGN(const fbx_tensor* tensor, runner->ValueOf(function, id).At(model->name()));
  return ViewOf(*tensor);
}

Status Session::Impl::KeepsValues() const {
  if (keeps_values) return {};
  return Invalid(
      model->name() +
      ": values inside the model are not kept; create the session with SessionOptions::keep_values");
}

Result<Tensor> Session::value(std::string_view name) const {
  FUSEBOX_TRY(impl_->KeepsValues());
  const Module& module = impl_->model->module();
  const auto in = [&](const Function& function) {
    ValueId id = 0;
    while (id < function.value_count() && function.value(id).name != name) ++id;
    return id < function.value_count() ? id : kNoValue;
  };
  const Function* const first = module.Find(impl_->code->name());
  if (const ValueId id = in(*first); !name.empty() && id != kNoValue) return impl_->ValueOf(*first, id);
  for (const auto& function : module.functions) {
    if (const ValueId id = in(*function); !name.empty() && id != kNoValue)
      return impl_->ValueOf(*function, id);
  }
  return NotFound(fmt::format("{}: no value '{}' in the model", impl_->model->name(), name));
}

Result<Tensor> Session::value(std::string_view function, int index) const {
  FUSEBOX_TRY(impl_->KeepsValues());
  const Function* const found = impl_->model->module().Find(std::string(function));
  if (found == nullptr)
    return NotFound(fmt::format("{}: no function '{}' in the model", impl_->model->name(), function));
  if (index < 0 || index >= found->value_count()) {
    return NotFound(fmt::format("{}: function {}: no value {}; there are {}", impl_->model->name(), function,
                                index, found->value_count()));
  }
  return impl_->ValueOf(*found, index);
}

// As loaded, without partitions.
const Function& Session::function() const { return *impl_->model->module().Find(impl_->code->name()); }

std::vector<NodeTime> Session::times() const { return impl_->runner->times(); }

}  // namespace fusebox
