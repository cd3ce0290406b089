// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/packing/graph_key.h"

#include <bit>

namespace fusebox::xnnpack {
namespace {

void AddNumbers(cache::KeyBuilder& builder, std::span<const int64_t> numbers) {
  builder.Number(numbers.size());
  for (const int64_t n : numbers) builder.Number(static_cast<uint64_t>(n));
}

void AddIds(cache::KeyBuilder& builder, std::span<const fbx_value> ids) {
  builder.Number(ids.size());
  for (const fbx_value id : ids) builder.Number(id);
}

// Type and quantization.
void AddType(cache::KeyBuilder& builder, const fbx_tensor& tensor) {
  builder.Number(static_cast<uint64_t>(tensor.dtype)).Number(static_cast<uint64_t>(tensor.rank));
  for (int32_t i = 0; i < tensor.rank; ++i) builder.Number(static_cast<uint64_t>(tensor.dims[i]));
  const fbx_quant* const quant = tensor.quant;
  if (quant == nullptr) {
    builder.Text("plain");
    return;
  }
  builder.Number(static_cast<uint64_t>(quant->kind)).Number(static_cast<uint64_t>(quant->axis));
  builder.Number(static_cast<uint64_t>(quant->block_size)).Number(quant->count);
  for (uint32_t i = 0; i < quant->count; ++i)
    builder.Real(quant->scales[i]).Number(static_cast<uint64_t>(quant->zero_points[i]));
}

void AddAttrs(cache::KeyBuilder& builder, const Attrs& attrs, ModelWeights& weights);

void AddAttr(cache::KeyBuilder& builder, const Attrs& attrs, std::string_view key, ModelWeights& weights) {
  const fbx_attr_kind kind = attrs.kind(key);
  builder.Text(key).Number(static_cast<uint64_t>(kind));
  switch (kind) {
    case FBX_ATTR_BOOL: builder.Number(attrs.b(key)); return;
    case FBX_ATTR_I64: builder.Number(static_cast<uint64_t>(attrs.i64(key))); return;
    case FBX_ATTR_F64: builder.Number(std::bit_cast<uint64_t>(attrs.f64(key))); return;
    case FBX_ATTR_STR: builder.Text(attrs.s(key)); return;
    case FBX_ATTR_DTYPE: builder.Number(static_cast<uint64_t>(attrs.dtype(key, FBX_DTYPE_NONE))); return;
    case FBX_ATTR_SHAPE:
      if (const auto dims = attrs.shape(key)) AddNumbers(builder, *dims);
      else builder.Text("unranked");
      return;
    case FBX_ATTR_TENSOR: AddSource(builder, *attrs.tensor(key).abi(), weights); return;
    case FBX_ATTR_I64S: AddNumbers(builder, attrs.i64s(key)); return;
    case FBX_ATTR_F64S:
      builder.Number(attrs.f64s(key).size());
      for (const double v : attrs.f64s(key)) builder.Number(std::bit_cast<uint64_t>(v));
      return;
    case FBX_ATTR_STRS:
      builder.Number(attrs.strs(key).size());
      for (const std::string_view text : attrs.strs(key)) builder.Text(text);
      return;
    case FBX_ATTR_MAP: AddAttrs(builder, attrs.map(key), weights); return;
    default: throw Error{FBX_NOT_APPLICABLE, "an attribute that is not part of a key"};
  }
}

void AddAttrs(cache::KeyBuilder& builder, const Attrs& attrs, ModelWeights& weights) {
  builder.Number(attrs.size());
  for (size_t i = 0; i < attrs.size(); ++i) AddAttr(builder, attrs, attrs.key(i), weights);
}

void AddNode(cache::KeyBuilder& builder, const GraphNode& node, ModelWeights& weights) {
  builder.Number(static_cast<uint64_t>(node.abi()->kind)).Text(node.op());
  builder.Number(static_cast<uint64_t>(node.version())).Text(node.raw_options());
  AddAttrs(builder, node.attrs(), weights);
  builder.Number(node.in_count()).Number(node.out_count());
  for (uint32_t i = 0; i < node.in_count(); ++i) builder.Number(node.in_id(i));
  for (uint32_t i = 0; i < node.out_count(); ++i) builder.Number(node.out_id(i));
}

}  // namespace

void AddSource(cache::KeyBuilder& builder, const fbx_tensor& source, ModelWeights& weights) {
  if (source.flags & FBX_TENSOR_ABSENT) {
    builder.Text("absent");
    return;
  }
  if (source.data == nullptr || source.rank < 0) throw Error{FBX_INVALID, "a source has no data"};
  AddType(builder, source);
  builder.Buffer(weights.Of(source), source.bytes);
}

void AddGraph(cache::KeyBuilder& builder, const Graph& graph, ModelWeights& weights) {
  builder.Text("graph").Number(graph.value_count()).Number(graph.node_count());
  AddIds(builder, graph.inputs());
  AddIds(builder, graph.outputs());
  for (fbx_value id = 0; id < graph.value_count(); ++id) {
    const fbx_tensor& value = *graph.value(id).abi();
    builder.Number(value.flags);
    if (value.flags & FBX_TENSOR_CONST) AddSource(builder, value, weights);
    else AddType(builder, value);
  }
  for (uint32_t i = 0; i < graph.node_count(); ++i) AddNode(builder, graph.node(i), weights);
}

}  // namespace fusebox::xnnpack
