// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace fusebox::delegates_test {

extern std::atomic<int> allocations;  // calls of operator new in the whole program

}  // namespace fusebox::delegates_test
