// SPDX-License-Identifier: Apache-2.0
// The host as the plugin under test sees it: copies of its structs, of the ABI version that the conditions
// state, in pages that lose access when the callback returns.
#pragma once

#include "check/guard.h"
#include "check/rig.h"

namespace fusebox::check {

class Invocation;

// The host's table, and how to get back to it. The host's own functions find a HostCall behind the table, as
// in HostCall::Table.
struct ShownHost {
  fbx_host host;
  HostCall* self;
  const fbx_host* real;
  Rig* rig;
  Invocation* invocation;  // null: not in invoke of a kernel
};
const fbx_host* Show(const fbx_host* real, Rig& rig, ViewPages& pages, Invocation* invocation = nullptr);
inline const ShownHost& ShownOf(const fbx_host* host) { return *reinterpret_cast<const ShownHost*>(host); }

// While it lives, texts and lists of the node's attributes are copies in `pages`, for callbacks of this
// thread.
class ShownTexts {
 public:
  ShownTexts(const fbx_node& node, ViewPages& pages);
  ShownTexts(const ShownTexts&) = delete;
  ~ShownTexts();
};

struct ShownNode {
  fbx_node* node;
  std::vector<fbx_tensor*> operands, results;
};
ShownNode Show(const fbx_node& real, const Rig& rig, ViewPages& pages);
std::vector<fbx_tensor*> Show(const fbx_tensor* const* tensors, size_t count, const Rig& rig,
                              ViewPages& pages);

// Sets version and size of a struct of the host.
void Age(fbx_head& head, size_t size_in_1_0, Conditions::Abi abi);
#define FUSEBOX_AGE(object, last_member_of_1_0, abi)                                        \
  Age((object).head,                                                                        \
      static_cast<size_t>(reinterpret_cast<const char*>(&(object).last_member_of_1_0 + 1) - \
                          reinterpret_cast<const char*>(&(object))),                        \
      abi)

// For a struct that the host finds its own data by: changed in place, and back at the end.
class AgedInPlace {
 public:
  AgedInPlace(const fbx_head& head, size_t size_in_1_0, Conditions::Abi abi)
      : head_(abi == Conditions::Abi::kOfHost ? nullptr : const_cast<fbx_head*>(&head)), was_(head) {
    if (head_ != nullptr) Age(*head_, size_in_1_0, abi);
  }
  AgedInPlace(const AgedInPlace&) = delete;
  ~AgedInPlace() {
    if (head_ != nullptr) *head_ = was_;
  }

 private:
  fbx_head* const head_;
  const fbx_head was_;
};

// The tables for the host. `user` of each is the object itself.
struct KernelProxy {
  fbx_kernel abi;
  const fbx_kernel* real;
  Rig* rig;
};
struct RuleProxy {
  fbx_rule abi;
  const fbx_rule* real;
  Rig* rig;
};
struct DelegateProxy {
  fbx_delegate abi;
  const fbx_delegate* real;
  Rig* rig;
};
void Wrap(KernelProxy&);
void Wrap(RuleProxy&);
void Wrap(DelegateProxy&);

}  // namespace fusebox::check
