// SPDX-License-Identifier: Apache-2.0
// Makes allocations of this thread fail: operator new, and the malloc, calloc, posix_memalign and mmap of our
// own objects. Allocations that other libraries make are left alone, for most cannot survive their failure:
// protobuf, valijson, the destructor of nlohmann::json, directory iterators.
#pragma once

#include <cstdint>
#include <vector>

namespace fusebox::allocations {

enum class Then { kRecover, kKeepFailing };

// Counts the allocations of this thread from now on, and fails number `fail`, counted from 1. 0: none.
void Arm(uint64_t fail, Then then = Then::kRecover);
// Stops counting. Returns the number of allocations.
uint64_t Disarm();
// Returns whether an allocation has failed since Arm.
bool Failed();
// Blocks of operator new of this thread that are not freed.
int64_t Living();

// Counts, and records the first allocation of each call site: its innermost callers, `depth` of them.
void ArmSites(int depth);
std::vector<uint64_t> DisarmSites();

}  // namespace fusebox::allocations
