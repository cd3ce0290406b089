// SPDX-License-Identifier: Apache-2.0
#include "tests/host/tflite/sparse_file.h"

#include <algorithm>
#include <cassert>
#include <memory>

#include "tflite_generated.h"

namespace fusebox::testing {
namespace {

using namespace ::tflite;

size_t ElementSize(TensorType type) {
  switch (type) {
    case TensorType_FLOAT32: return 4;
    case TensorType_FLOAT16: return 2;
    default: return 1;
  }
}

class Encoder {
 public:
  Encoder(const TensorT& tensor, const std::vector<uint8_t>& dense, const SparseForm& form)
      : form_(form), dense_(dense), element_(ElementSize(tensor.type)), dims_(tensor.shape) {
    std::vector<int64_t> weight(dims_.size(), 1);
    for (size_t d = dims_.size(); d-- > 1;) weight[d - 1] = weight[d] * dims_[d];
    std::vector<int64_t> left(dims_.begin(), dims_.end());
    extent_.resize(form.order.size());
    weight_.resize(form.order.size());
    for (size_t l = form.order.size(); l-- > 0;) {
      const bool of_block = l >= dims_.size();
      const auto block = static_cast<size_t>(form.order[l]) - (of_block ? dims_.size() : 0);
      const auto d = static_cast<size_t>(of_block ? form.block_of[block] : form.order[l]);
      extent_[l] = of_block ? form.block_size[block] : left[d];
      weight_[l] = weight[d];
      if (!of_block) continue;
      weight[d] *= extent_[l];
      left[d] /= extent_[l];
    }
    segments_.resize(extent_.size(), {0});
    indices_.resize(extent_.size());
  }

  void Run(std::vector<uint8_t>& stored, SparsityParametersT& sparsity) {
    Below(0, 0);
    stored = stored_;
    sparsity.traversal_order = form_.order;
    sparsity.block_map = form_.block_of;
    for (size_t l = 0; l < extent_.size(); ++l) {
      auto level = std::make_unique<DimensionMetadataT>();
      level->format = form_.sparse[l] ? DimensionType_SPARSE_CSR : DimensionType_DENSE;
      level->dense_size = static_cast<int32_t>(extent_[l]);
      if (form_.sparse[l]) {
        level->dense_size = l < dims_.size() ? 0 : level->dense_size;
        Set(level->array_segments, segments_[l]);
        Set(level->array_indices, indices_[l]);
      }
      sparsity.dim_metadata.push_back(std::move(level));
    }
  }

 private:
  bool AnyBelow(size_t l, int64_t offset) const {
    if (l == extent_.size()) {
      const auto* const at = dense_.data() + static_cast<size_t>(offset) * element_;
      return std::any_of(at, at + element_, [](uint8_t byte) { return byte != 0; });
    }
    for (int64_t i = 0; i < extent_[l]; ++i) {
      if (AnyBelow(l + 1, offset + i * weight_[l])) return true;
    }
    return false;
  }

  void Below(size_t l, int64_t offset) {
    if (l == extent_.size()) {
      const auto* const at = dense_.data() + static_cast<size_t>(offset) * element_;
      stored_.insert(stored_.end(), at, at + element_);
      return;
    }
    for (int64_t i = 0; i < extent_[l]; ++i) {
      const int64_t at = offset + i * weight_[l];
      if (form_.sparse[l]) {
        if (!AnyBelow(l + 1, at)) continue;
        indices_[l].push_back(static_cast<int32_t>(i));
      }
      Below(l + 1, at);
    }
    if (form_.sparse[l]) segments_[l].push_back(static_cast<int32_t>(indices_[l].size()));
  }

  void Set(SparseIndexVectorUnion& to, const std::vector<int32_t>& values) const {
    if (form_.index_bits == 8) {
      Uint8VectorT vector;
      vector.values.assign(values.begin(), values.end());
      to.Set(std::move(vector));
    } else if (form_.index_bits == 16) {
      Uint16VectorT vector;
      vector.values.assign(values.begin(), values.end());
      to.Set(std::move(vector));
    } else {
      Int32VectorT vector;
      vector.values = values;
      to.Set(std::move(vector));
    }
  }

  const SparseForm& form_;
  const std::vector<uint8_t>& dense_;
  size_t element_;
  std::vector<int32_t> dims_;
  std::vector<int64_t> extent_, weight_;
  std::vector<std::vector<int32_t>> segments_, indices_;
  std::vector<uint8_t> stored_;
};

// A tensor that a DENSIFY at the front makes of the constant; its number.
int32_t AddDensify(ModelT& model, SubGraphT& graph, int32_t constant) {
  auto code = std::make_unique<OperatorCodeT>();
  code->deprecated_builtin_code = static_cast<int8_t>(BuiltinOperator_DENSIFY);
  code->builtin_code = BuiltinOperator_DENSIFY;
  code->version = 1;
  model.operator_codes.push_back(std::move(code));
  const TensorT& sparse = *graph.tensors[static_cast<size_t>(constant)];
  auto dense = std::make_unique<TensorT>();
  dense->shape = sparse.shape;
  dense->type = sparse.type;
  dense->name = sparse.name + "/dense";
  dense->has_rank = true;
  graph.tensors.push_back(std::move(dense));
  const auto number = static_cast<int32_t>(graph.tensors.size() - 1);
  auto node = std::make_unique<OperatorT>();
  node->opcode_index = static_cast<uint32_t>(model.operator_codes.size() - 1);
  node->inputs = {constant};
  node->outputs = {number};
  node->builtin_options.Set(DensifyOptionsT());
  graph.operators.insert(graph.operators.begin(), std::move(node));
  return number;
}

}  // namespace

std::string WithSparse(std::string_view file, const std::string& name, const SparseForm& form, bool densify) {
  const std::unique_ptr<ModelT> model(GetModel(file.data())->UnPack());
  SubGraphT& graph = *model->subgraphs[0];
  const auto found = std::find_if(graph.tensors.begin(), graph.tensors.end(),
                                  [&](const auto& t) { return t->name == name; });
  assert(found != graph.tensors.end());
  TensorT& tensor = **found;
  const auto number = static_cast<int32_t>(found - graph.tensors.begin());
  auto stored = std::make_unique<BufferT>();
  tensor.sparsity = std::make_unique<SparsityParametersT>();
  Encoder(tensor, model->buffers[tensor.buffer]->data, form).Run(stored->data, *tensor.sparsity);
  if (form.damage) form.damage(*tensor.sparsity, stored->data);
  tensor.buffer = static_cast<uint32_t>(model->buffers.size());
  model->buffers.push_back(std::move(stored));
  if (densify) {
    const int32_t dense = AddDensify(*model, graph, number);
    for (size_t i = 1; i < graph.operators.size(); ++i)
      std::replace(graph.operators[i]->inputs.begin(), graph.operators[i]->inputs.end(), number, dense);
  }
  flatbuffers::FlatBufferBuilder out;
  FinishModelBuffer(out, Model::Pack(out, model.get()));
  return {reinterpret_cast<const char*>(out.GetBufferPointer()), out.GetSize()};
}

}  // namespace fusebox::testing
