// SPDX-License-Identifier: Apache-2.0
// Constants that a file stores without most of their zeros are dense in the graph.
#include <gmock/gmock.h>

#include <random>

#include "tests/host/tflite/models.h"
#include "tests/host/tflite/sparse_file.h"
#include "tflite_generated.h"

namespace fusebox::tflite {
namespace {

using fusebox::testing::SparseForm;
using fusebox::testing::WithSparse;
using ::testing::HasSubstr;
using Sparsity = ::tflite::SparsityParametersT;
using Bytes = std::vector<uint8_t>;

constexpr int64_t kRows = 8, kColumns = 12;

// y = FULLY_CONNECTED(x, w), three of four weights of which are 0.
Module Dense(DType dtype) {
  Module module;
  Function& f = module.Add("main");
  const ValueId x = f.AddInput({dtype, {1, kColumns}}, "x");
  std::mt19937 random(3);
  const size_t element = BitsOf(dtype) / 8;
  const Buffer weights =
      Buffer::Make(static_cast<size_t>(kRows * kColumns) * element, [&](std::span<std::byte> to) {
        for (size_t i = 0; i < to.size(); i += element) {
          if (random() % 4 != 0) continue;
          for (size_t k = 0; k < element; ++k) to[i + k] = static_cast<std::byte>(1 + random() % 60);
        }
      });
  const ValueId w = f.AddConst({dtype, {kRows, kColumns}}, weights, "w");
  const Node& node = f.AddNode(Op::kFullyConnected, {x, w, kNoValue}, {{dtype, {1, kRows}}});
  f.outputs = {node.results[0]};
  return module;
}

std::string File(const Module& module) {
  const auto bytes = Write(module);
  EXPECT_TRUE(bytes) << bytes.error().message;
  return bytes ? *bytes : std::string();
}

const std::vector<std::pair<const char*, SparseForm>> kForms = {
    {"rows", {.order = {0, 1}, .sparse = {false, true}}},
    {"rows, bytes", {.order = {0, 1}, .sparse = {false, true}, .index_bits = 8}},
    {"rows, 16 bits", {.order = {0, 1}, .sparse = {false, true}, .index_bits = 16}},
    {"columns", {.order = {1, 0}, .sparse = {false, true}}},
    {"both", {.order = {0, 1}, .sparse = {true, true}}},
    {"nothing", {.order = {0, 1}, .sparse = {false, false}}},
    {"blocks of 4 columns",
     {.order = {0, 1, 2}, .block_of = {1}, .block_size = {4}, .sparse = {false, true, false}}},
    {"blocks of 2 by 3",
     {.order = {0, 1, 2, 3},
      .block_of = {0, 1},
      .block_size = {2, 3},
      .sparse = {false, true, false, false}}},
    {"blocks of 2 by 3, columns first",
     {.order = {1, 0, 3, 2}, .block_of = {0, 1}, .block_size = {2, 3}, .sparse = {true, true, false, false}}},
};

TEST(Sparse, IsDenseInTheGraphWhateverItsForm) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kI8}) {
    const Module dense = Dense(dtype);
    const std::string file = File(dense);
    for (const auto& [name, form] : kForms) {
      for (const bool densify : {false, true}) {
        SCOPED_TRACE(std::string(Name(dtype)) + ", " + name + (densify ? ", DENSIFY" : ""));
        const auto module = ReadBytes(WithSparse(file, "w", form, densify));
        ASSERT_TRUE(module) << module.error().message;
        const Function& f = *(*module)->functions[0];
        ASSERT_EQ(f.nodes.size(), 1u);
        const Value& w = f.value(f.nodes[0]->operands[1]);
        EXPECT_EQ(w.name, "w");
        const Value& expected = dense.functions[0]->value(dense.functions[0]->nodes[0]->operands[1]);
        EXPECT_EQ((Tensor{w.type, w.data}), (Tensor{expected.type, expected.data}));
        EXPECT_TRUE(Verify(**module, Strictness::kWritable));
        ExpectRoundTrip(**module);
      }
    }
  }
}

using Damage = std::function<void(Sparsity&, Bytes&)>;

std::string Refusal(const SparseForm& form, Damage damage) {
  SparseForm damaged = form;
  damaged.damage = std::move(damage);
  const auto module = ReadBytes(WithSparse(File(Dense(DType::kF32)), "w", damaged, false));
  return module ? "" : module.error().message;
}

TEST(Sparse, WhatDoesNotFitTogetherIsRefused) {
  const SparseForm &rows = kForms[0].second, &blocks = kForms[6].second;
  const std::vector<std::tuple<const char*, SparseForm, Damage>> cases = {
      {"has more elements than the", rows, [](Sparsity&, Bytes& b) { b.resize(b.size() - 4); }},
      {"are stored", rows, [](Sparsity&, Bytes& b) { b.resize(b.size() + 4); }},
      {"index 12 of 12", rows,
       [](Sparsity& s, Bytes&) { s.dim_metadata[1]->array_indices.AsInt32Vector()->values[0] = 12; }},
      {"index -1 of 12", rows,
       [](Sparsity& s, Bytes&) { s.dim_metadata[1]->array_indices.AsInt32Vector()->values[0] = -1; }},
      {"segment 0 goes from", rows,
       [](Sparsity& s, Bytes&) { s.dim_metadata[1]->array_segments.AsInt32Vector()->values[1] = 1000; }},
      {"has no segment 7", rows,
       [](Sparsity& s, Bytes&) { s.dim_metadata[1]->array_segments.AsInt32Vector()->values.pop_back(); }},
      {"has no segment 0", rows, [](Sparsity& s, Bytes&) { s.dim_metadata[1]->array_segments.Reset(); }},
      {"has 9 indices, expected 8", rows, [](Sparsity& s, Bytes&) { s.dim_metadata[0]->dense_size = 9; }},
      {"has 2 levels for 2 dimensions and 1 of blocks", rows, [](Sparsity& s, Bytes&) { s.block_map = {1}; }},
      {"traversal order 0 at level 1", rows, [](Sparsity& s, Bytes&) { s.traversal_order = {0, 0}; }},
      {"traversal order -3", rows, [](Sparsity& s, Bytes&) { s.traversal_order[0] = -3; }},
      {"blocks of dimension 2", blocks, [](Sparsity& s, Bytes&) { s.block_map = {2}; }},
      {"blocks of 5 in a dimension of 12", blocks,
       [](Sparsity& s, Bytes&) { s.dim_metadata[2]->dense_size = 5; }},
      {"blocks of 0", blocks, [](Sparsity& s, Bytes&) { s.dim_metadata[2]->dense_size = 0; }},
      {"levels for", rows, [](Sparsity& s, Bytes&) { s.dim_metadata.clear(); }},
  };
  for (const auto& [reason, form, damage] : cases) EXPECT_THAT(Refusal(form, damage), HasSubstr(reason));
}

// A few bytes that say to be gigabytes.
TEST(Sparse, BombsAreRefused) {
  Module module = Dense(DType::kF32);
  const std::string file = File(module);
  const SparseForm rows = kForms[0].second;
  std::string bomb = WithSparse(file, "w", rows, false);
  const std::unique_ptr<::tflite::ModelT> model(::tflite::GetModel(bomb.data())->UnPack());
  for (const auto& tensor : model->subgraphs[0]->tensors) {
    if (tensor->name != "w") continue;
    tensor->shape = {1 << 15, 1 << 15};
    tensor->sparsity->dim_metadata[0]->dense_size = 1 << 15;
  }
  flatbuffers::FlatBufferBuilder out;
  ::tflite::FinishModelBuffer(out, ::tflite::Model::Pack(out, model.get()));
  const auto read = ReadBytes({reinterpret_cast<const char*>(out.GetBufferPointer()), out.GetSize()});
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("would unpack to 4294967296 bytes from a file of"));
}

// Nothing is unpacked, and nothing walked: the levels say to have 2^28 places for it.
TEST(Sparse, WhatHasNoElementsIsEmptyAtOnce) {
  std::string file = WithSparse(File(Dense(DType::kF32)), "w", kForms[5].second, false);
  const std::unique_ptr<::tflite::ModelT> model(::tflite::GetModel(file.data())->UnPack());
  for (const auto& tensor : model->subgraphs[0]->tensors) {
    if (tensor->name != "w") continue;
    tensor->shape = {1 << 14, 1 << 14, 0};
    tensor->sparsity->traversal_order = {0, 1, 2};
    tensor->sparsity->dim_metadata.push_back(std::make_unique<::tflite::DimensionMetadataT>());
    for (size_t l = 0; l < 3; ++l) tensor->sparsity->dim_metadata[l]->dense_size = tensor->shape[l];
  }
  flatbuffers::FlatBufferBuilder out;
  ::tflite::FinishModelBuffer(out, ::tflite::Model::Pack(out, model.get()));
  const auto read = ReadBytes({reinterpret_cast<const char*>(out.GetBufferPointer()), out.GetSize()});
  ASSERT_TRUE(read) << read.error().message;
  const Function& f = *(*read)->functions[0];
  EXPECT_EQ(f.value(f.nodes[0]->operands[1]).data.size(), 0u);
}

// What the graph does not interpret says nothing about a constant's size.
TEST(Sparse, AConstantOfTooFewBytesIsRefusedWhateverElseItSays) {
  const std::string file = File(Dense(DType::kF32));
  const std::unique_ptr<::tflite::ModelT> model(::tflite::GetModel(file.data())->UnPack());
  for (const auto& tensor : model->subgraphs[0]->tensors) {
    if (tensor->name != "w") continue;
    tensor->quantization = std::make_unique<::tflite::QuantizationParametersT>();
    tensor->quantization->details.Set(::tflite::CustomQuantizationT());
    model->buffers[tensor->buffer]->data.resize(16);
  }
  flatbuffers::FlatBufferBuilder out;
  ::tflite::FinishModelBuffer(out, ::tflite::Model::Pack(out, model.get()));
  const auto read = ReadBytes({reinterpret_cast<const char*>(out.GetBufferPointer()), out.GetSize()});
  const Status status = read ? Verify(**read, Strictness::kLoose) : Status(std::unexpected(read.error()));
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("has 16 bytes, expected 384"));
}

}  // namespace
}  // namespace fusebox::tflite
