// SPDX-License-Identifier: Apache-2.0
// The ops of an application as a plugin of Fusebox: a kernel for each.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "doors/tflite/app_op.h"
#include "doors/tflite/op_instance.h"
#include "fusebox/abi/plugin.h"

namespace fusebox::tflite {

// Serves one model and one session: an op has one state per node. Outlives the registry that it is added to.
class OpPlugin {
 public:
  OpPlugin(std::vector<AppOp> ops, const OpEnvironment& environment);
  OpPlugin(const OpPlugin&) = delete;
  OpPlugin& operator=(const OpPlugin&) = delete;

  fusebox_status AddTo(fusebox_registry* registry, char** error);

  struct Kernel {
    OpPlugin* plugin;
    const AppOp* op;
    fbx_kernel abi;
  };
  // The instance of a node: made once, also if shapes are inferred before the kernel is initialized.
  OpInstance* Find(const AppOp& op, const fbx_node& node);
  OpInstance* Claim(const AppOp& op, const fbx_node& node);
  void Release(const OpInstance* instance);

 private:
  struct Use {
    std::unique_ptr<OpInstance> instance;
    bool claimed = false;
  };
  std::vector<Use>& UsesOf(const fbx_node& node);

  const std::vector<AppOp> ops_;
  OpEnvironment environment_;
  std::deque<Kernel> kernels_;
  std::vector<const fbx_kernel*> list_;
  fbx_plugin abi_;
  fbx_entry entry_;
  std::map<std::string, std::vector<Use>> uses_;
};

}  // namespace fusebox::tflite
