// SPDX-License-Identifier: Apache-2.0
// <fusebox/c_file.h>: files that are read, but not opened.
#include <gmock/gmock.h>

#include <span>

#include "fusebox/c_file.h"
#include "tests/host/c/fixture.h"

namespace fusebox::c {
namespace {

using testing::ElementsAre, testing::HasSubstr;
using FileHandle = std::unique_ptr<fusebox_file, FreeWith<fusebox_file_free>>;

FileHandle ReadFile(const std::string& bytes) {
  fusebox_file* file = nullptr;
  EXPECT_EQ(fusebox_file_from_memory(bytes.data(), bytes.size(), nullptr, nullptr, &file, nullptr),
            FUSEBOX_OK);
  return FileHandle(file);
}

TEST(CFile, ShowsSignaturesTensorsAndOps) {
  const std::string bytes = SumModel();
  const FileHandle file = ReadFile(bytes);
  ASSERT_EQ(fusebox_file_signature_count(file.get()), 2);
  EXPECT_STREQ(fusebox_file_signature(file.get(), 1), "negate");
  EXPECT_EQ(fusebox_file_signature(file.get(), 2), nullptr);
  fusebox_function function = FUSEBOX_FUNCTION;
  ASSERT_EQ(fusebox_file_function(file.get(), "", &function, nullptr), FUSEBOX_OK);
  EXPECT_STREQ(function.signature, "add");
  EXPECT_THAT(std::span(function.inputs, static_cast<size_t>(function.input_count)), ElementsAre(0, 1));
  EXPECT_STREQ(function.input_names[1], "y");
  fusebox_tensor tensor = FUSEBOX_TENSOR;
  uint32_t flags = 9;
  ASSERT_EQ(fusebox_file_tensor(file.get(), "add", function.outputs[0], &tensor, &flags, nullptr),
            FUSEBOX_OK);
  EXPECT_STREQ(tensor.name, "sum");
  EXPECT_EQ(tensor.rank, 2);
  EXPECT_EQ(flags, 0u);
  ASSERT_EQ(fusebox_file_op_count(file.get()), 3);
  fusebox_opcode op = FUSEBOX_OPCODE;
  ASSERT_EQ(fusebox_file_op(file.get(), 0, &op, nullptr), FUSEBOX_OK);
  EXPECT_STREQ(op.name, "ADD");
}

TEST(CFile, NamesWhatIsWrong) {
  const std::string bytes = SumModel();
  const FileHandle file = ReadFile(bytes);
  fusebox_tensor tensor = FUSEBOX_TENSOR;
  EXPECT_THAT(Said([&](char** e) { return fusebox_file_tensor(file.get(), "add", 99, &tensor, nullptr, e); }),
              HasSubstr("no tensor 99"));
  EXPECT_THAT(Said([&](char** e) { return fusebox_file_tensor(file.get(), "foo", 0, &tensor, nullptr, e); }),
              HasSubstr("no signature 'foo'"));
  const void* data;
  size_t size;
  EXPECT_THAT(Said([&](char** e) { return fusebox_file_metadata(file.get(), "note", &data, &size, e); }),
              HasSubstr("no metadata 'note'"));
  fusebox_file* none = nullptr;
  EXPECT_THAT(Said([&](char** e) { return fusebox_file_open("missing.tflite", &none, e); }),
              HasSubstr("missing.tflite"));
  EXPECT_EQ(fusebox_file_signature_count(nullptr), -1);
}

TEST(CFile, OpensModelsThatOutliveIt) {
  const std::string bytes = SumModel();
  FileHandle file = ReadFile(bytes);
  ModelHandle models[2];
  for (ModelHandle& model : models) {
    fusebox_model* opened = nullptr;
    ASSERT_EQ(fusebox_file_model(file.get(), nullptr, TestRegistry(), &opened, nullptr), FUSEBOX_OK);
    model.reset(opened);
  }
  file.reset();
  for (const ModelHandle& model : models) {
    fusebox_session* session = nullptr;
    ASSERT_EQ(fusebox_session_create(model.get(), "{\"signature\": \"add\"}", nullptr, &session, nullptr),
              FUSEBOX_OK);
    const SessionHandle owned(session);
    EXPECT_EQ(fusebox_session_prepare(session, nullptr), FUSEBOX_OK);
    fusebox_tensor output = FUSEBOX_TENSOR;
    ASSERT_EQ(fusebox_session_output(session, 0, &output, nullptr), FUSEBOX_OK);
    EXPECT_EQ(output.data, nullptr);
    EXPECT_EQ(fusebox_session_run(session, nullptr), FUSEBOX_OK);
  }
}

TEST(CFile, PlannedDimsOfOutputsAreKnownAfterPrepare) {
  const std::string bytes = DynamicModel();
  fusebox_model* opened = nullptr;
  const FileHandle file = ReadFile(bytes);
  ASSERT_EQ(fusebox_file_model(file.get(), nullptr, TestRegistry(), &opened, nullptr), FUSEBOX_OK);
  const ModelHandle model(opened);
  fusebox_session* session = nullptr;
  ASSERT_EQ(fusebox_session_create(opened, nullptr, nullptr, &session, nullptr), FUSEBOX_OK);
  const SessionHandle owned(session);
  const int64_t dims[] = {5, 2};
  ASSERT_EQ(fusebox_session_resize_input(session, 0, dims, 2, nullptr), FUSEBOX_OK);
  ASSERT_EQ(fusebox_session_prepare(session, nullptr), FUSEBOX_OK);
  fusebox_tensor output = FUSEBOX_TENSOR;
  ASSERT_EQ(fusebox_session_output(session, 0, &output, nullptr), FUSEBOX_OK);
  EXPECT_EQ(output.dims[0], 5);
}

}  // namespace
}  // namespace fusebox::c
