// SPDX-License-Identifier: Apache-2.0
#include "tests/plugins/nn/site.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "host/fusion/fusion.h"
#include "host/graph/rewriter.h"
#include "host/verify/verify.h"
#include "tests/plugins/composite.h"

namespace fusebox::nn_test {

std::shared_ptr<Registry> NnPlugin() {
  static const auto registry = testing::OnlyPlugin(FUSEBOX_NN);
  return registry;
}

Tensor RandomFloats(const Dims& dims, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> values(-2, 2);
  std::vector<float> all(static_cast<size_t>(Shape(dims).element_count().value_or(0)));
  for (float& value : all) value = values(random);
  return {{DType::kF32, Shape(dims)}, Buffer::Of<float>(all)};
}

std::vector<float> FloatsOf(const Tensor& t) {
  const auto values = t.data.As<float>();
  return {values.begin(), values.end()};
}

Site::Site(std::string name) : name_(std::move(name)) {
  module_.source = "site.tflite";
  module_.Add("main");
  module_.Add("body");
}

ValueId Site::Operand(Dims dims, DType dtype) {
  const Type type{dtype, Shape(dims)};
  operands_.push_back(main().AddInput(type, "in" + std::to_string(operands_.size())));
  return body().AddInput(type);
}

ValueId Site::Constant(const Tensor& value) {
  operands_.push_back(main().AddConst(value));
  return body().AddInput(value.type);
}

void Site::QuantizeOperand(size_t operand, float scale, int64_t zero_point) {
  const auto quant = std::make_shared<Quant>();
  quant->scales = {scale};
  quant->zero_points = {zero_point};
  main().value(operands_[operand]).quant = body().value(body().inputs[operand]).quant = quant;
}

ValueId Site::Add(Op op, std::vector<ValueId> operands, Dims dims, Attrs options) {
  return body().AddNode(op, operands, {{DType::kF32, Shape(dims)}}, std::move(options)).results[0];
}

ValueId Site::Typed(Op op, std::vector<ValueId> operands, Type type, Attrs options) {
  return body().AddNode(op, operands, {std::move(type)}, std::move(options)).results[0];
}

std::vector<ValueId> Site::Split(ValueId v, int32_t axis, int64_t parts) {
  Dims dims = DimsOf(v);
  dims[static_cast<size_t>(axis)] /= parts;
  const std::vector<Type> types(static_cast<size_t>(parts), Type{DType::kF32, Shape(dims)});
  const ValueId dimension = body().AddConst<int32_t>(DType::kI32, Shape::Scalar(), {axis});
  return body().AddNode(Op::kSplit, {dimension, v}, types, MakeAttrs("num_splits", parts)).results;
}

ValueId Site::Floats(Dims dims, std::vector<float> values) {
  return body().AddConst<float>(DType::kF32, Shape(dims), std::move(values));
}

ValueId Site::Ints(std::vector<int32_t> values) {
  const auto count = static_cast<int64_t>(values.size());
  return body().AddConst<int32_t>(DType::kI32, Shape({count}), std::move(values));
}

ValueId Site::Reshape(ValueId v, Dims dims) {
  return Add(Op::kReshape, {v, Ints({dims.begin(), dims.end()})}, dims);
}

ValueId Site::Transpose(ValueId v, const std::vector<int32_t>& permutation) {
  Dims dims;
  for (const int32_t d : permutation) dims.push_back(DimsOf(v)[static_cast<size_t>(d)]);
  return Add(Op::kTranspose, {v, Ints(permutation)}, dims);
}

ValueId Site::Reduce(Op op, ValueId v, const std::vector<int32_t>& axes) {
  Dims dims = DimsOf(v);
  for (const int32_t axis : axes) dims[static_cast<size_t>(axis)] = 1;
  Attrs keep;
  keep.Set("keep_dims", true);
  return Add(op, {v, Ints(axes)}, dims, keep);
}

ValueId Site::Binary(Op op, ValueId a, ValueId b) {
  const Dims x = DimsOf(a), y = DimsOf(b);
  const auto count = [](const Dims& dims) { return Shape(dims).element_count().value_or(INT64_MAX); };
  return Add(op, {a, b}, x.size() > y.size() || (x.size() == y.size() && count(x) >= count(y)) ? x : y);
}

void Site::ReturnAll(std::vector<ValueId> values) {
  std::vector<Type> types;
  for (const ValueId v : values) types.push_back(body().value(v).type);
  body().outputs = std::move(values);
  Node& node = main().AddNode(Op::kStablehloComposite, operands_, types, attrs);
  node.name = name_;
  node.version = 1;
  node.body = "body";
  main().outputs = node.results;
}

std::unique_ptr<Module> Site::Build(bool only_body) const {
  auto module = Clone(module_);
  if (only_body) {
    // Constants of the site become those of the body.
    Function& alone = *module->functions[1];
    const Function& from = *module->functions[0];
    for (size_t i = operands_.size(); i-- > 0;) {
      const Value& value = from.value(operands_[i]);
      if (!value.data) continue;
      alone.ReplaceUses(alone.inputs[i], alone.AddConst(value.type, value.data));
      alone.inputs.erase(alone.inputs.begin() + static_cast<std::ptrdiff_t>(i));
    }
    module->functions.erase(module->functions.begin());
  } else {
    module->functions[0]->nodes[0]->attrs = attrs;
  }
  return module;
}

std::string Site::Verified(uint64_t seed) const {
  const auto registry = NnPlugin();
  const auto module = Build();
  FusionOptions options;
  options.approve = [&](const Candidate& c) -> Result<Approval> {
    FUSEBOX_ASSIGN(const verify::Verdict verdict,
                   verify::VerifyFused(c.module, c.body, c.scratch, c.replacement, c.constants,
                                       c.used_results, c.tolerance, registry, {.all = true, .seed = seed}));
    return Approval{verdict.outcome == verify::Verdict::Outcome::kAgrees, verdict.Summary(), verdict.why};
  };
  const auto sites = Fuse(*module, *registry, options);
  if (!sites) return "error: " + sites.error().message;
  const SiteReport& site = sites->at(0);
  std::string why = site.fused ? site.verification : site.why + "; " + site.verification;
  for (const RuleReport& rule : site.rules)
    for (const std::string& reason : rule.reasons) why += "; " + reason;
  return why;
}

std::string Site::Emitted() const {
  const auto module = Build();
  const auto sites = Fuse(*module, *NnPlugin());
  if (!sites) return "error: " + sites.error().message;
  if (!sites->at(0).fused) return sites->at(0).why;
  const Node& node = *module->functions[0]->nodes.back();
  return node.name + ToString(node.attrs);
}

std::string Site::Ops() const {
  const auto module = Build();
  const auto sites = Fuse(*module, *NnPlugin());
  if (!sites) return "error: " + sites.error().message;
  if (!sites->at(0).fused) return sites->at(0).why;
  std::string ops;
  for (const std::string& op : sites->at(0).emitted) ops += (ops.empty() ? "" : " ") + op;
  return ops;
}

Result<std::vector<Tensor>> Site::Run(const std::vector<Tensor>& inputs, int threads) const {
  FUSEBOX_ASSIGN(const auto model, Model::FromModule(Build(), {.registry = NnPlugin()}));
  if (!model->fusions().at(0).fused) return Invalid(model->fusions()[0].why);
  FUSEBOX_ASSIGN(const auto session, Session::Create(model, {.threads = threads}));
  for (size_t i = 0; i < inputs.size(); ++i) {
    FUSEBOX_TRY(session->Resize(static_cast<int>(i), inputs[i].type.shape));
    FUSEBOX_TRY(session->SetInput(static_cast<int>(i), inputs[i]));
  }
  FUSEBOX_TRY(session->Run());
  FUSEBOX_ASSIGN(const Tensor out, session->output(0));
  return std::vector<Tensor>{{out.type, Buffer::Copy(out.data.bytes())}};
}

}  // namespace fusebox::nn_test
