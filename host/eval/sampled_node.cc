// SPDX-License-Identifier: Apache-2.0
#include "host/eval/sampled_node.h"
#include "host/graph/constants.h"

#include <algorithm>

namespace fusebox {
namespace {

constexpr int64_t kFew = 16;  // elements

bool IsInteger(DType dtype) { return dtype == DType::kI32 || dtype == DType::kI64; }

std::vector<int64_t> At(const Sizes& all, std::span<const int64_t> sizes) {
  std::vector<int64_t> out;
  for (const Size& size : all)
    out.push_back(size.is_number() ? size.offset
                                   : size.factor * sizes[static_cast<size_t>(size.symbol)] + size.offset);
  return out;
}

// Returns whether a kernel cannot distinguish the tensors: without data, or with data if they are constant.
bool AreAlike(const Function& f, ValueId a, const Function& g, ValueId b) {
  if (a == kNoValue || b == kNoValue) return a == b;
  const Value& x = f.value(a);
  const Value& y = g.value(b);
  if (x.type != y.type || x.is_const() != y.is_const()) return false;
  return !x.is_const() || x.data.SameAs(y.data) ||
         (x.data.size() == y.data.size() && x.data.size() <= 256 &&
          std::equal(x.data.data(), x.data.data() + x.data.size(), y.data.data()));
}

}  // namespace

bool IsFewIntegers(const Type& type) {
  const auto count = type.shape.element_count();
  return IsInteger(type.dtype) && count && *count <= kFew;
}

Buffer IntegerBuffer(DType dtype, const std::vector<int64_t>& values) {
  if (dtype == DType::kI64) return Buffer::Of<int64_t>(values);
  return Buffer::Of<int32_t>(std::vector<int32_t>(values.begin(), values.end()));
}

std::vector<int64_t> IntegersIn(const Type& type, const Buffer& data) {
  return ConstInts(type, data).value_or(std::vector<int64_t>());
}

Result<std::unique_ptr<SampledNode>> SampledNode::Create(Registry& registry, SampledForms& forms,
                                                         const Function& f, const Node& node) {
  std::unique_ptr<SampledNode> made(new SampledNode(forms, f, node));
  FUSEBOX_ASSIGN(made->kernel_, ChooseKernel(registry, f, node, made->view_));
  return made;
}

void SampledNode::Show(std::vector<KnownSizes> operands) {
  operands_ = std::move(operands);
  symbols_.clear();
  for (KnownSizes& operand : operands_)
    for (auto* sizes : {&operand.dims, &operand.ints})
      for (size_t i = 0; *sizes && i < (*sizes)->size(); ++i) {
        Size& size = (**sizes)[i];
        if (size.is_number()) continue;
        const auto it = std::ranges::find(symbols_, size.symbol, &Size::symbol);
        const auto index = static_cast<int32_t>(it - symbols_.begin());
        if (it == symbols_.end()) symbols_.push_back({size.symbol, 1, 0});
        size.symbol = index;
      }
}

Fits SampledNode::Find(bool integers) {
  auto& known = forms_.forms_[{node_.op, integers}];
  for (const auto& form : known)
    if (IsLike(form)) return form.fits;
  const auto sample = [&](std::span<const int64_t> sizes) {
    return integers ? Compute(sizes) : Infer(sizes);
  };
  if (known.size() == SampledForms::kMost) known.pop_front();
  known.push_back({&f_, &node_, operands_, FitSizes(symbols_.size(), sample)});
  return known.back().fits;
}

bool SampledNode::IsLike(const SampledForms::Form& form) const {
  const Node& other = *form.node;
  if (other.name != node_.name || other.version != node_.version || other.raw_options != node_.raw_options ||
      other.operands.size() != node_.operands.size() || other.results.size() != node_.results.size() ||
      other.attrs != node_.attrs || form.operands != operands_)
    return false;
  for (size_t i = 0; i < node_.operands.size(); ++i)
    if (!AreAlike(f_, node_.operands[i], *form.f, other.operands[i])) return false;
  for (size_t i = 0; i < node_.results.size(); ++i)
    if (!AreAlike(f_, node_.results[i], *form.f, other.results[i])) return false;
  return true;
}

std::optional<SampledNode::Row> SampledNode::Infer(std::span<const int64_t> sizes) {
  for (size_t i = 0; i < operands_.size(); ++i) {
    TensorView& shown = view_.operand(i);
    const DType dtype = static_cast<DType>(shown.edit().dtype);
    if (operands_[i].dims) {
      const Shape shape(At(*operands_[i].dims, sizes));
      if (!shape.is_static()) return std::nullopt;
      shown.SetType({dtype, shape});
    }
    if (!operands_[i].ints) continue;
    const Row values = At(*operands_[i].ints, sizes);
    const auto fits = [](int64_t v) { return v == static_cast<int32_t>(v); };
    if (dtype == DType::kI32 && !std::ranges::all_of(values, fits)) return std::nullopt;
    buffers_[i] = IntegerBuffer(dtype, values);
    fbx_tensor& tensor = shown.edit();
    tensor.data = const_cast<std::byte*>(buffers_[i].data());
    tensor.bytes = buffers_[i].size();
    tensor.flags = FBX_TENSOR_CONST;
  }
  std::vector<Type> types;
  Inference inference(ProperResults(node_), types);
  const Status known =
      CallInfer(*kernel_.kernel, forms_.calls_.For(*kernel_.plugin), *view_.abi(), inference);
  forms_.calls_.DropDiags();
  if (!known) return std::nullopt;
  Row row;
  for (const Type& type : types) {
    row.push_back(type.shape.rank());
    for (const int64_t dim : type.shape.dims()) row.push_back(dim < 0 ? kNoNumber : dim);
  }
  return row;
}

// Only if the results have their declared shapes, which limits their size.
std::optional<SampledNode::Row> SampledNode::Compute(std::span<const int64_t> sizes) {
  const auto row = Infer(sizes);
  Row declared;
  for (const ValueId result : node_.results) {
    const Shape& shape = f_.value(result).type.shape;
    declared.push_back(shape.rank());
    declared.insert(declared.end(), shape.dims().begin(), shape.dims().end());
  }
  if (!row || *row != declared) return std::nullopt;
  std::vector<Tensor> values(operands_.size());
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (node_.operands[i] == kNoValue) continue;
    const Value& value = f_.value(node_.operands[i]);
    values[i] = {value.type, operands_[i].ints ? buffers_[i] : value.data};
  }
  const auto results = Evaluate(kernel_, forms_.calls_, f_, node_, values);
  forms_.calls_.DropDiags();
  if (!results) return std::nullopt;
  Row out;
  for (const Tensor& result : *results)
    for (const int64_t v : IntegersIn(result.type, result.data)) out.push_back(v);
  return out;
}

}  // namespace fusebox
