// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD: fails one operator new of the main thread, whose number is in the environment,
// and all later ones if FUSEBOX_KEEP_FAILING is set. Prints the number of allocations if FUSEBOX_COUNT is
// set.
#include <cstdio>
#include <cstdlib>

#include "tests/allocations/failing.h"

namespace {

using namespace fusebox::allocations;

void PrintCount() {
  const unsigned long long count = Disarm();
  std::fprintf(stderr, "allocations: %llu\n", count);
}

[[gnu::constructor]] void ArmFromEnvironment() {
  const char* const number = std::getenv("FUSEBOX_FAIL");
  if (number == nullptr) return;
  if (std::getenv("FUSEBOX_COUNT") != nullptr) std::atexit(PrintCount);
  Arm(std::strtoull(number, nullptr, 10),
      std::getenv("FUSEBOX_KEEP_FAILING") != nullptr ? Then::kKeepFailing : Then::kRecover);
}

}  // namespace
