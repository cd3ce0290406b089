// SPDX-License-Identifier: Apache-2.0
// The graphs that delegates see say where in the model's file a constant lies.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "host/delegate/delegate.h"
#include "host/tflite/tflite.h"

namespace fusebox::delegate {
namespace {

// y = x + c, with a constant that is large enough for the file to be mapped.
std::string WriteModel(int64_t n) {
  Module module;
  Function& f = module.Add("main");
  const Type type{DType::kF32, Shape({n})};
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const ValueId c = f.AddConst<float>(DType::kF32, {n}, values);
  f.outputs = {f.AddNode(Op::kAdd, {f.AddInput(type), c}, {type}).results[0]};
  const std::string path = testing::TempDir() + "file_test.tflite";
  EXPECT_TRUE(tflite::WriteFile(module, path));
  return path;
}

TEST(File, HoldsAConstantWhereTheGraphSays) {
  const std::string path = WriteModel(50'000);
  const auto module = tflite::ReadFile(path);
  ASSERT_TRUE(module) << module.error().message;
  const GraphView view(**module, *(*module)->functions[0]);
  const fbx_value* ids = nullptr;
  const fbx_node& node = *view.abi()->node(view.abi(), 0, &ids);
  EXPECT_EQ(node.operands[0]->file, nullptr) << "an input has no file";
  for (const fbx_tensor* tensor : {node.operands[1], view.abi()->value(view.abi(), ids[1])}) {
    ASSERT_NE(tensor->file, nullptr);
    const fbx_file& file = *tensor->file;
    EXPECT_EQ(FromAbi(file.path), std::filesystem::absolute(path).string());
    EXPECT_EQ(file.size, std::filesystem::file_size(path));
    EXPECT_GT(file.modified_ns, 0);
    const auto offset = static_cast<const char*>(tensor->data) - static_cast<const char*>(file.data);
    ASSERT_GT(offset, 0);
    ASSERT_LE(static_cast<size_t>(offset) + tensor->bytes, file.size);
    std::vector<char> bytes(tensor->bytes);
    std::ifstream stream(path, std::ios::binary);
    stream.seekg(offset).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    EXPECT_EQ(std::memcmp(bytes.data(), tensor->data, bytes.size()), 0);
  }
}

TEST(File, IsNotThereForWhatLiesInMemory) {
  Module module;
  Function& f = module.Add("main");
  f.AddConst<float>(DType::kF32, {1}, {1});
  const GraphView view(module, f);
  EXPECT_EQ(view.abi()->value(view.abi(), 0)->file, nullptr);
}

}  // namespace
}  // namespace fusebox::delegate
