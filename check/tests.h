// SPDX-License-Identifier: Apache-2.0
// The tests, by group. All tests but the file tests run in a child process.
#pragma once

#include <span>
#include <string>

#include "check/check.h"
#include "check/child.h"

namespace fusebox::check {

// The result of a test.
struct Finding {
  Row::State state = Row::State::kPassed;
  std::string why;
};
inline Finding Passed(std::string remark = {}) { return {Row::State::kPassed, std::move(remark)}; }
inline Finding Failed(std::string why) { return {Row::State::kFailed, std::move(why)}; }
inline Finding NotTested(std::string why) { return {Row::State::kNotTested, std::move(why)}; }

struct Subject {
  const Manifest& manifest;
  const Options& options;
  const std::vector<std::string>& models;  // paths of .tflite files
  std::string model = {};  // the one of this test; empty: the test is of the plugin as a whole
};

struct Test {
  // kFile: without code of the plugin, in the calling process. kModel: once per model.
  enum class Of { kFile, kPlugin, kModel };
  const char* name;
  const char* purpose;
  Of of;
  Finding (*run)(const Subject&);
  Finding (*after)(const Ended&) = nullptr;  // of a child whose `run` passed, in the calling process
};

// In the order in which they run.
std::span<const Test> FileTests();      // static facts of the library
std::span<const Test> LoadTests();      // load and unload
std::span<const Test> ProcessTests();   // what the process looks like afterwards
std::span<const Test> AbiTests();       // hosts of other versions
std::span<const Test> RuleTests();      // sites that a rule was not made for
std::span<const Test> KernelTests();    // memory and threads of kernels
std::span<const Test> BodyTests();      // fused ops and the bodies that they replace
std::span<const Test> DelegateTests();  // partitions

}  // namespace fusebox::check
