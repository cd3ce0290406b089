// SPDX-License-Identifier: Apache-2.0
// Graphs and files shared by the tests in this folder.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "host/tflite/tflite.h"

namespace fusebox::tflite {

inline Result<std::unique_ptr<Module>> ReadBytes(std::string_view bytes) {
  return Read(Buffer::Of(std::span<const char>(bytes)), "bytes");
}

// Expects that the module is unchanged after writing and reading.
inline void ExpectRoundTrip(const Module& module) {
  const auto bytes = Write(module);
  ASSERT_TRUE(bytes) << bytes.error().message;
  const auto back = ReadBytes(*bytes);
  ASSERT_TRUE(back) << back.error().message;
  std::string why;
  EXPECT_TRUE(Equal(module, **back, &why)) << why;
}

// A recurrent net with weights, quantization, state, a custom op, a loop, a composite, signatures and
// metadata.
std::unique_ptr<Module> Everything();

// The .tflite files below FUSEBOX_MODELS; empty if that is not set.
inline std::vector<std::string> RealFiles() {
  std::vector<std::string> files;
  const char* root = std::getenv("FUSEBOX_MODELS");
  if (root == nullptr) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(root) + "/tflite")) {
    if (entry.is_regular_file() &&
        (entry.path().extension() == ".tflite" || entry.path().extension() == ".lite")) {
      files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace fusebox::tflite
