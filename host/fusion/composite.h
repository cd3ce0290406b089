// SPDX-License-Identifier: Apache-2.0
// View of a composite node for rules: the fbx_composite and all data that it points to.
#pragma once

#include <memory>
#include <vector>

#include "fusebox/abi/rule.h"
#include "host/graph/view.h"

namespace fusebox {

class CompositeView {
 public:
  CompositeView(const Module&, const Function& caller, const Node& composite, const Uses&);
  const fbx_composite* abi() const { return &composite_; }

 private:
  std::vector<std::unique_ptr<TensorView>> operands_, results_;
  std::vector<const fbx_tensor*> operand_ptrs_, result_ptrs_;
  std::unique_ptr<GraphView> body_;
  std::string location_;
  fbx_composite composite_;
};

}  // namespace fusebox
