// SPDX-License-Identifier: Apache-2.0
#include "check/mutate.h"

#include <algorithm>
#include <random>
#include <set>

#include "check/example.h"
#include "host/tflite/tflite.h"

namespace fusebox::check {
namespace {

constexpr size_t kMostBases = 12;
constexpr size_t kMutants = 80;

using Random = std::mt19937_64;

// Copies the node into a separate module; operands that are not constant become inputs.
std::unique_ptr<Module> Isolated(const Function& from, const Node& node) {
  auto module = std::make_unique<Module>();
  Function& main = module->Add("main");
  ValueIds operands;
  std::vector<Type> types;
  for (const ValueId v : node.operands) {
    if (v == kNoValue) {
      operands.push_back(kNoValue);
      continue;
    }
    const Value& value = from.value(v);
    operands.push_back(value.is_const() ? main.AddConst(value.type, value.data) : main.AddInput(value.type));
    main.value(operands.back()).quant = value.quant;
  }
  for (const ValueId v : node.results) types.push_back(v == kNoValue ? Type{} : from.value(v).type);
  Node& copy = main.AddNode(node.op, operands, types, node.attrs);
  copy.name = node.name;
  copy.version = node.version;
  main.outputs.assign(copy.results.begin(), copy.results.end());
  return module;
}

// The schemas of attributes are valid: the manifest is.
std::unique_ptr<Module> TwoOperands(Op op, const std::string& name, const std::string& schema) {
  auto module = std::make_unique<Module>();
  Function& main = module->Add("main");
  const Type type{DType::kF32, {3, 5}};
  Node& node = main.AddNode(op, {main.AddInput(type), main.AddInput(type)}, {type},
                            ExampleAttributes(schema, op != Op::kCustom).value_or(Attrs()));
  node.name = name;
  node.version = 1;
  main.outputs.assign(node.results.begin(), node.results.end());
  return module;
}

void ChangeShape(Shape& shape, Random& random) {
  static constexpr int64_t kDims[] = {-1, 0, 1, 2, 7, int64_t{1} << 40};
  switch (random() % 4) {
    case 0: shape = Shape(); return;
    case 1: shape = Shape::Scalar(); return;
    case 2:
      if (shape.ranked()) shape.dims().push_back(kDims[random() % 5]);
      return;
    default:
      if (shape.rank() > 0) shape.dims()[random() % shape.dims().size()] = kDims[random() % std::size(kDims)];
  }
}

void ChangeType(Function& f, ValueId v, Random& random) {
  static constexpr DType kTypes[] = {DType::kF32,  DType::kF16,    DType::kF64, DType::kI8,      DType::kI32,
                                     DType::kBool, DType::kString, DType::kI4,  DType::kResource};
  Value& value = f.value(v);
  if (value.is_const()) {  // its data would not fit
    const ValueId input = f.AddInput(value.type);
    f.value(input).quant = value.quant;
    f.ReplaceUses(v, input);
    return;
  }
  if (random() % 2 == 0) value.type.dtype = kTypes[random() % std::size(kTypes)];
  else ChangeShape(value.type.shape, random);
  if (value.quant && random() % 2 == 0) value.quant = nullptr;
}

void MakeConstant(Function& f, ValueId v, Random& random) {
  const Type type = f.value(v).type;
  const auto bytes = ByteSize(type);
  if (f.value(v).is_const() || !bytes || *bytes > (1 << 16)) return;
  Buffer data = Buffer::Make(*bytes, [&](std::span<std::byte> out) {
    for (std::byte& b : out) b = static_cast<std::byte>(random() % 3 == 0 ? random() : 0);
  });
  f.ReplaceUses(v, f.AddConst(type, std::move(data)));
}

void ChangeAttribute(Attrs& attrs, Random& random) {
  if (attrs.empty()) return attrs.Set("check", 1);
  const std::string name = (attrs.begin() + static_cast<std::ptrdiff_t>(random() % attrs.size()))->first;
  switch (random() % 5) {
    case 0: return attrs.Erase(name);
    case 1: return attrs.Set(name, -7);
    case 2: return attrs.Set(name, "check");
    case 3: return attrs.Set(name, 1e300);
    default: return attrs.Set(name, std::vector<int64_t>{-1, 1 << 30});
  }
}

// The host checks operands of ops of the format, so only operands of other ops change in number.
void Change(Function& f, Random& random) {
  Node& node = *f.nodes[0];
  const bool any_number = node.is(Op::kCustom) || node.is(Op::kStablehloComposite);
  const size_t kinds = any_number ? 7 : 3;
  const auto pick = [&]() -> ValueId {
    return node.operands.empty() ? kNoValue : node.operands[random() % node.operands.size()];
  };
  const ValueId v = pick();
  switch (random() % kinds) {
    case 0:
      if (v != kNoValue) ChangeType(f, v, random);
      return;
    case 1:
      if (v != kNoValue) MakeConstant(f, v, random);
      return;
    case 2: return ChangeAttribute(node.attrs, random);
    case 3:
      if (!node.operands.empty()) node.operands.pop_back();
      return;
    case 4: node.operands.push_back(f.AddInput({DType::kF32, {3, 5}})); return;
    case 5:
      if (!node.operands.empty()) node.operands[random() % node.operands.size()] = kNoValue;
      return;
    default:
      if (random() % 2 == 0 && node.results.size() > 1) node.results.pop_back();
      else node.results.push_back(f.AddValue({DType::kF32, Shape()}));
  }
}

std::vector<std::unique_ptr<Module>> Mutants(const std::vector<std::unique_ptr<Module>>& bases,
                                             uint64_t seed) {
  std::vector<std::unique_ptr<Module>> all;
  for (size_t i = 0; i < std::min(kMostBases, bases.size()); ++i) {
    for (size_t k = 0; k < kMutants; ++k) {
      Random random(seed * 1000 + k);
      auto mutant = Clone(*bases[i]);
      Function& main = *mutant->functions[0];
      for (uint64_t changes = k == 0 ? 0 : 1 + random() % 3; changes > 0; --changes) Change(main, random);
      // The shapes of a composite's results follow from its operands, which have changed.
      if (k > 0 && main.nodes[0]->is(Op::kStablehloComposite))
        for (const ValueId result : main.nodes[0]->results) main.value(result).type.shape = Shape();
      main.outputs.assign(main.nodes[0]->results.begin(), main.nodes[0]->results.end());
      all.push_back(std::move(mutant));
    }
  }
  return all;
}

// One base per name and set of types.
template <class Wanted>
void AddFromModels(const Subject& subject, const Wanted& wanted,
                   std::vector<std::unique_ptr<Module>>& bases) {
  std::set<std::string> seen;
  for (const std::string& path : subject.models) {
    const auto module = tflite::ReadFile(path);
    if (!module) continue;
    for (const auto& f : (*module)->functions)
      for (const auto& node : f->nodes)
        if (wanted(*node) && seen.insert(ToText(*Isolated(*f, *node))).second)
          bases.push_back(Isolated(*f, *node));
  }
}

bool MatchesName(const std::string& pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return pattern == name;
  return name.starts_with(std::string_view(pattern).substr(0, pattern.size() - 1));
}

}  // namespace

std::vector<std::unique_ptr<Module>> NodesLikeThoseOf(const Subject& subject) {
  std::vector<std::unique_ptr<Module>> bases;
  const auto& ops = subject.manifest.ops;
  AddFromModels(
      subject,
      [&](const Node& node) {
        const bool custom = node.is(Op::kCustom);
        const std::string_view name = custom ? std::string_view(node.name) : Name(node.op);
        return std::ranges::any_of(ops, [&](const ManifestOp& op) {
          return (op.kind == FBX_OP_CUSTOM) == custom && op.name == name;
        });
      },
      bases);
  for (const ManifestOp& op : ops)
    if (op.kind == FBX_OP_CUSTOM) bases.push_back(TwoOperands(Op::kCustom, op.name, op.options_schema));
  return Mutants(bases, subject.options.seed);
}

std::vector<std::unique_ptr<Module>> CompositesLikeThoseOf(const Subject& subject) {
  std::vector<std::unique_ptr<Module>> bases;
  std::vector<std::string> names;
  for (const ManifestRule& rule : subject.manifest.rules)
    names.insert(names.end(), rule.implements.begin(), rule.implements.end());
  AddFromModels(
      subject,
      [&](const Node& node) {
        return node.is(Op::kStablehloComposite) &&
               std::ranges::any_of(names, [&](const auto& name) { return MatchesName(name, node.name); });
      },
      bases);
  for (const ManifestRule& rule : subject.manifest.rules) {
    for (std::string name : rule.implements) {
      if (name.ends_with('*')) name.back() = 'x';
      bases.push_back(TwoOperands(Op::kStablehloComposite, name, rule.when));
    }
  }
  return Mutants(bases, subject.options.seed);
}

}  // namespace fusebox::check
