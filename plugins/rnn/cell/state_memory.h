// SPDX-License-Identifier: Apache-2.0
// Where an op that updates a state operand keeps it.
#pragma once

#include <cstring>

#include <fusebox/kernel.hpp>

namespace fusebox::rnn {

// The memory of the final state, with the initial value in it: that of the result, which hosts let share the
// operand's.
template <class T>
T* StateMemory(const Node& node, uint32_t operand, uint32_t result) {
  if (result >= node.out_count() || !node.out(result).present()) return node.in(operand).data<T>();
  T* const final_state = node.out(result).data<T>();
  const Tensor initial = node.in(operand);
  if (final_state != initial.data<T>() && initial.count() > 0)
    std::memcpy(final_state, initial.data<T>(), static_cast<size_t>(initial.count()) * sizeof(T));
  return final_state;
}

}  // namespace fusebox::rnn
