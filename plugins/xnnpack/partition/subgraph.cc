// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/partition/subgraph.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "plugins/xnnpack/library.h"
#include "plugins/xnnpack/packing/constants.h"

namespace fusebox::xnnpack {

Subgraph::Subgraph(const Network& network, PackProvider& provider, std::span<const fbx_value> between,
                   bool half)
    : network_(network),
      provider_(provider),
      real_(half ? xnn_datatype_fp16 : xnn_datatype_fp32),
      external_ids_(network.graph().value_count(), XNN_INVALID_VALUE_ID),
      ids_(network.graph().value_count(), XNN_INVALID_VALUE_ID) {
  for (const auto& list : {network.graph().inputs(), network.graph().outputs(), between}) {
    first_between_ = external_.size();
    for (const fbx_value id : list) {
      if (external_ids_[id] != XNN_INVALID_VALUE_ID) continue;
      external_ids_[id] = static_cast<uint32_t>(external_.size());
      external_.push_back(id);
    }
  }
  const xnn_status status = xnn_create_subgraph(static_cast<uint32_t>(external_.size()), 0, &subgraph_);
  if (status != xnn_status_success)
    throw Reject{"XNNPACK", std::string("no subgraph: ") + StatusName(status)};
}

Subgraph::~Subgraph() {
  if (subgraph_ != nullptr) xnn_delete_subgraph(subgraph_);
}

void Subgraph::Finish() {
  for (const auto& [half, result] : results_) Convert(half, result);
}

void Subgraph::Defining(const NetworkNode& node) {
  defining_ = std::string(node.op());
  if (const std::string_view where = to_string_view(node.abi()->location); !where.empty())
    defining_ += " (" + std::string(where) + ")";
}

void Subgraph::Check(xnn_status status, const char* what) const {
  if (status != xnn_status_success)
    throw Reject{"XNNPACK", std::string(what) + ": " + StatusName(status), defining_};
}

uint32_t Subgraph::Define(Tensor t, const Dims& dims, const void* data, uint32_t external, uint32_t flags) {
  if (!Quantized(t)) return data ? RealConstant(dims, data) : DefineReal(real_, dims, external, flags);
  uint32_t id = XNN_INVALID_VALUE_ID;
  const TensorQuant q = TensorQuantOf(t);
  Check(xnn_define_quantized_tensor_value(subgraph_, DatatypeOf(t), q.zero_point, q.scale, dims.size(),
                                          dims.data(), data, external, flags, &id));
  return id;
}

uint32_t Subgraph::DefineReal(xnn_datatype datatype, const Dims& dims, uint32_t external, uint32_t flags) {
  uint32_t id = XNN_INVALID_VALUE_ID;
  Check(
      xnn_define_tensor_value(subgraph_, datatype, dims.size(), dims.data(), nullptr, external, flags, &id));
  return id;
}

uint32_t Subgraph::In(const NetworkNode& node, uint32_t operand) {
  const fbx_value value = node.in_id(operand);
  uint32_t& id = ids_[value];
  if (id != XNN_INVALID_VALUE_ID) return id;
  const Tensor t = node.in(operand);
  if (const auto constant = network_.Constant(value)) {
    const void* data = constant->dtype() != t.dtype() ? Keep(ToFloat(*constant)) : constant->data<void>();
    return id = Define(t, DimsOf(t), data, XNN_INVALID_VALUE_ID, 0);
  }
  if (external_ids_[value] >= network_.graph().inputs().size())
    throw Reject{"GRAPH", "an operand without producer", Operand(operand)};
  if (real_ == xnn_datatype_fp32 || Quantized(t))
    return id = Define(t, DimsOf(t), nullptr, external_ids_[value], XNN_VALUE_FLAG_EXTERNAL_INPUT);
  const uint32_t floats =
      DefineReal(xnn_datatype_fp32, DimsOf(t), external_ids_[value], XNN_VALUE_FLAG_EXTERNAL_INPUT);
  id = Temporary(real_, {}, DimsOf(t));
  Convert(floats, id);
  return id;
}

uint32_t Subgraph::Repeated(const NetworkNode& node, uint32_t operand, size_t times) {
  const Tensor t = node.in(operand);
  const Tensor constant = *node.constant(operand);
  const size_t size = static_cast<size_t>(t.count()) * (Quantized(t) ? 1 : sizeof(float));
  const std::vector<uint8_t> real = Quantized(t) ? std::vector<uint8_t>() : ToFloat(constant);
  const uint8_t* const once = Quantized(t) ? t.data<const uint8_t>() : real.data();
  std::vector<uint8_t> bytes;
  bytes.reserve(size * times);
  for (size_t i = 0; i < times; ++i) bytes.insert(bytes.end(), once, once + size);
  return Define(t, {times, static_cast<size_t>(constant.count())}, Keep(std::move(bytes)),
                XNN_INVALID_VALUE_ID, 0);
}

uint32_t Subgraph::Out(const NetworkNode& node, uint32_t result) {
  const fbx_value value = node.out_id(result);
  uint32_t& id = ids_[value];
  if (id != XNN_INVALID_VALUE_ID) return id;
  const uint32_t external = external_ids_[value];
  const Tensor t = node.out(result);
  if (real_ != xnn_datatype_fp32 && external < first_between_ && !Quantized(t)) {
    const uint32_t floats =
        DefineReal(xnn_datatype_fp32, DimsOf(t), external, XNN_VALUE_FLAG_EXTERNAL_OUTPUT);
    id = Temporary(real_, {}, DimsOf(t));
    results_.emplace_back(id, floats);
    return id;
  }
  return id = Define(t, DimsOf(t), nullptr, external,
                     external == XNN_INVALID_VALUE_ID ? 0 : XNN_VALUE_FLAG_EXTERNAL_OUTPUT);
}

uint32_t Subgraph::Temporary(xnn_datatype datatype, TensorQuant affine, const Dims& dims) {
  if (datatype == xnn_datatype_fp32 || datatype == xnn_datatype_fp16)
    return DefineReal(real_, dims, XNN_INVALID_VALUE_ID, 0);
  uint32_t id = XNN_INVALID_VALUE_ID;
  Check(xnn_define_quantized_tensor_value(subgraph_, datatype, affine.zero_point, affine.scale, dims.size(),
                                          dims.data(), nullptr, XNN_INVALID_VALUE_ID, 0, &id));
  return id;
}

void Subgraph::Convert(uint32_t from, uint32_t to) {
  Check(xnn_define_unary(subgraph_, xnn_unary_convert, nullptr, from, to, 0));
}

void Subgraph::Requantize(uint32_t from, uint32_t to, const Dims& dims) {
  const uint32_t real = Temporary(xnn_datatype_fp32, {}, dims);
  Convert(from, real);
  Convert(real, to);
}

uint32_t Subgraph::Dynamic(uint32_t from, const Dims& dims, size_t nonbatch) {
  uint32_t id = XNN_INVALID_VALUE_ID;
  Check(xnn_define_dynamically_quantized_tensor_value(subgraph_, xnn_datatype_qdint8, dims.size(), nonbatch,
                                                      dims.data(), XNN_INVALID_VALUE_ID, 0, &id));
  Convert(from, id);
  return id;
}

uint32_t Subgraph::DynamicImages(const NetworkNode& node, uint32_t operand, uint32_t from) {
  if (node.in(operand).dim(0) < 0) may_grow_ = false;
  return Dynamic(from, DimsOf(node.in(operand)), 3);
}

uint32_t Subgraph::FloatIn(const NetworkNode& node, uint32_t operand) {
  const Tensor t = node.in(operand);
  if (Quantized(t)) {
    if (const auto constant = node.constant(operand))
      return RealConstant(DimsOf(t), Keep(ToFloat(*constant)));
  }
  const uint32_t id = In(node, operand);
  if (!Quantized(t)) return id;
  const uint32_t real = Temporary(xnn_datatype_fp32, {}, DimsOf(node.in(operand)));
  Convert(id, real);
  return real;
}

void Subgraph::FloatOut(const NetworkNode& node, const std::function<void(uint32_t id)>& define) {
  const uint32_t out = Out(node);
  if (!Quantized(node.out(0))) return define(out);
  const uint32_t real = Temporary(xnn_datatype_fp32, {}, DimsOf(node.out(0)));
  define(real);
  Convert(real, out);
}

void Subgraph::WithBias(const NetworkNode& node, uint32_t bias, Range range,
                        const std::function<void(uint32_t out, Range range)>& define) {
  if (!node.has_in(bias) || node.constant(bias)) return define(Out(node), range);
  const uint32_t sum = Temporary(xnn_datatype_fp32, {}, DimsOf(node.out(0)));
  define(sum, {});
  const xnn_binary_params params{range.min, range.max};
  Check(xnn_define_binary(subgraph_, xnn_binary_add, &params, sum, In(node, bias), Out(node), 0));
}

const void* Subgraph::Keep(std::vector<uint8_t> bytes) {
  // Vector loads across cache lines are half as fast.
  constexpr size_t kLine = 64;
  const size_t size = bytes.size();
  bytes.resize(size + kLine + XNN_EXTRA_BYTES);
  uint8_t* const at = bytes.data();
  uint8_t* const aligned = at + (kLine - reinterpret_cast<uintptr_t>(at) % kLine) % kLine;
  std::memmove(aligned, at, size);
  memory_.push_back(std::move(bytes));
  return aligned;
}

uint32_t Subgraph::Constant(xnn_datatype datatype, const Dims& dims, const void* data) {
  uint32_t id = XNN_INVALID_VALUE_ID;
  Check(xnn_define_tensor_value(subgraph_, datatype, dims.size(), dims.data(), data, XNN_INVALID_VALUE_ID, 0,
                                &id));
  return id;
}

uint32_t Subgraph::RealConstant(const Dims& dims, const void* data) {
  if (real_ == xnn_datatype_fp32) return Constant(real_, dims, data);
  size_t count = 1;
  for (const size_t d : dims) count *= d;
  return Constant(real_, dims, Keep(ToHalf({static_cast<const float*>(data), count})));
}

// One scale per channel; repeats a single scale.
const float* Subgraph::Scales(const Weights& w, Tensor filter, size_t count) {
  const fbx_quant& q = *filter.quant();
  if (q.count == count && ScalesAreAtLeast(q, w.least_scale)) return q.scales;
  std::vector<float> scales(count);
  for (size_t i = 0; i < count; ++i) scales[i] = std::max(q.scales[q.count == count ? i : 0], w.least_scale);
  return static_cast<const float*>(Keep(BytesOf(scales)));
}

uint32_t Subgraph::DefineFilter(const Weights& w, Tensor filter, const void* data) {
  uint32_t id = XNN_INVALID_VALUE_ID;
  const size_t channels = w.dims[w.channel_dim];
  switch (w.datatype) {
    case xnn_datatype_fp32: return Constant(xnn_datatype_fp32, w.dims, data);
    case xnn_datatype_qcint8:
    case xnn_datatype_qcint4:
      Check(xnn_define_channelwise_quantized_tensor_value(subgraph_, w.datatype, Scales(w, filter, channels),
                                                          w.dims.size(), w.channel_dim, w.dims.data(), data,
                                                          XNN_INVALID_VALUE_ID, 0, &id));
      return id;
    case xnn_datatype_qbint4: {
      const fbx_quant& q = *filter.quant();
      const void* const scales = Keep(ToBfloat({q.scales, q.count}));
      Check(xnn_define_blockwise_quantized_tensor_value(
          subgraph_, w.datatype, 8, static_cast<const uint16_t*>(scales), w.dims.size(), w.channel_dim,
          static_cast<size_t>(q.block_size), w.dims.data(), data, XNN_INVALID_VALUE_ID, 0, &id));
      return id;
    }
    default:
      Check(xnn_define_quantized_tensor_value(
          subgraph_, w.datatype, static_cast<int32_t>(filter.quant()->zero_points[0]), *Scales(w, filter, 1),
          w.dims.size(), w.dims.data(), data, XNN_INVALID_VALUE_ID, 0, &id));
      return id;
  }
}

uint32_t Subgraph::DefineBias(const NetworkNode& node, const Weights& w) {
  if (w.bias == UINT32_MAX) return XNN_INVALID_VALUE_ID;
  const Tensor bias = *node.constant(w.bias);
  const Dims dims{static_cast<size_t>(bias.count())};
  if (w.datatype == xnn_datatype_fp32 || w.dynamic) {
    if (w.pixels > 1) return Constant(xnn_datatype_fp32, {dims[0] * w.pixels}, Keep(Repeat(bias, w.pixels)));
    const void* data = bias.dtype() == FBX_F32 ? bias.data<void>() : Keep(ToFloat(bias));
    return Constant(xnn_datatype_fp32, dims, data);
  }
  // Its scale is input scale * filter scale; XNNPACK requires a value but ignores it.
  uint32_t id = XNN_INVALID_VALUE_ID;
  const Tensor filter = *node.constant(w.filter);
  if (w.datatype == xnn_datatype_qcint8) {
    Check(xnn_define_channelwise_quantized_tensor_value(subgraph_, xnn_datatype_qcint32,
                                                        Scales(w, filter, dims[0]), 1, 0, dims.data(),
                                                        bias.data<void>(), XNN_INVALID_VALUE_ID, 0, &id));
  } else {
    Check(xnn_define_quantized_tensor_value(subgraph_, xnn_datatype_qint32, 0, *Scales(w, filter, 1), 1,
                                            dims.data(), bias.data<void>(), XNN_INVALID_VALUE_ID, 0, &id));
  }
  return id;
}

namespace {

Form FormOf(const Weights& w, bool half) {
  switch (w.datatype) {
    case xnn_datatype_qcint8: return w.dynamic ? Form::kDynamicInt8 : Form::kInt8;
    case xnn_datatype_quint8: return Form::kUint8;
    case xnn_datatype_qcint4: return Form::kDynamicInt4;
    case xnn_datatype_qbint4: return Form::kDynamicBlocks4;
    default: return half ? Form::kHalf : Form::kFloat;
  }
}

}  // namespace

Subgraph::Ids Subgraph::Pack(const NetworkNode& node, Recipe recipe, const Weights& w) {
  const Tensor filter = *node.constant(w.filter);
  const bool half = w.datatype == xnn_datatype_fp32 && real_ == xnn_datatype_fp16;
  recipe.SetForm(FormOf(w, half));
  recipe.Add(half ? real_ : w.datatype, w.dynamic, w.channel_dim, filter.dtype())
      .AddList(std::span<const size_t>(w.dims));
  PackProvider::Source source;
  source.kernel = filter.abi();
  source.always_packed = w.always_packed;
  if (const fbx_quant* q = filter.quant(); q != nullptr && q->count > 0 && filter.dtype() != FBX_F32) {
    recipe.Add(q->kind, q->axis, q->block_size).AddList(std::span(q->scales, q->count));
    // Other types require filters without zero points.
    if (w.datatype == xnn_datatype_quint8 || w.datatype == xnn_datatype_fp32)
      recipe.AddList(std::span(q->zero_points, q->count));
  }
  if (w.bias != UINT32_MAX) {
    source.bias = node.constant(w.bias)->abi();
    recipe.Add(source.bias->dtype);
  }
  if (w.pixels > 1) {
    recipe.Add(w.pixels, w.step);
    source.unpack = [filter, w] { return SpreadFilter(filter, w.pixels, w.step); };
  } else if (w.datatype == xnn_datatype_fp32 && filter.dtype() != FBX_F32) {
    source.unpack = [filter] { return ToFloat(filter); };
  } else if (w.datatype == xnn_datatype_qbint4) {
    source.unpack = [filter] { return FlipNibbles(filter); };
  }
  const void* data = provider_.Register(recipe, source);
  const uint32_t id = DefineFilter(w, filter, data);
  return {id, DefineBias(node, w)};
}

Subgraph::Ids Subgraph::Private(const NetworkNode& node, const Weights& w) {
  const Tensor filter = *node.constant(w.filter);
  const bool unpack = w.datatype == xnn_datatype_fp32 && filter.dtype() != FBX_F32;
  const void* data = unpack ? provider_.Hold(ToFloat(filter)) : filter.data<void>();
  const uint32_t id = DefineFilter(w, filter, data);
  return {id, DefineBias(node, w)};
}

}  // namespace fusebox::xnnpack
