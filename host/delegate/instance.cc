// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "host/delegate/delegate.h"

namespace fusebox::delegate {

Result<std::unique_ptr<Instance>> Instance::Create(DelegateRef ref, HostCalls& calls) {
  std::unique_ptr<Instance> instance(new Instance(std::move(ref)));
  const fbx_delegate& abi = instance->abi();
  HostCall& call = calls.For(instance->plugin());
  void* self = nullptr;
  const InCall in(call, "delegate", abi.name);
  FUSEBOX_TRY(call.Check(abi.create(call.abi(), abi.user, AsAbi(*instance->ref_.options), &self)));
  instance->self_ = self;
  return instance;
}

Instance::~Instance() {
  const InCall in({AsAbi(plugin().id()), "delegate", abi().name, {}});
  if (self_ != nullptr) abi().destroy(abi().user, self_);
}

std::string ToString(const Part& part) {
  return fmt::format("{} (partition {})", part.delegate->name(), part.number);
}

}  // namespace fusebox::delegate
