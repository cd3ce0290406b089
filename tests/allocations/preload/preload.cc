// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD: from main on, fails one operator new of the main thread, whose number is in the
// environment, and all later ones if FUSEBOX_KEEP_FAILING is set. Prints the number of allocations if
// FUSEBOX_COUNT is set.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "tests/allocations/failing.h"

namespace {

using namespace fusebox::allocations;

void PrintCount() {
  const unsigned long long count = Disarm();
  std::fprintf(stderr, "allocations: %llu\n", count);
}

using Main = int(int, char**, char**);
Main* real_main = nullptr;

void ArmFromEnvironment() {
  const char* const number = std::getenv("FUSEBOX_FAIL");
  if (number == nullptr) return;
  if (std::getenv("FUSEBOX_COUNT") != nullptr) std::atexit(PrintCount);
  Arm(std::strtoull(number, nullptr, 10),
      std::getenv("FUSEBOX_KEEP_FAILING") != nullptr ? Then::kKeepFailing : Then::kRecover);
}

int ArmedMain(int argc, char** argv, char** environment) {
  ArmFromEnvironment();
  return real_main(argc, argv, environment);
}

}  // namespace

// The start of a C program.
extern "C" [[gnu::visibility("default")]] int __libc_start_main(Main* main, int argc, char** argv,
                                                                void (*init)(), void (*fini)(),
                                                                void (*dynamic_fini)(), void* stack_end) {
  using Start = int(Main*, int, char**, void (*)(), void (*)(), void (*)(), void*);
  real_main = main;
  return reinterpret_cast<Start*>(dlsym(RTLD_NEXT, "__libc_start_main"))(&ArmedMain, argc, argv, init, fini,
                                                                         dynamic_fini, stack_end);
}
