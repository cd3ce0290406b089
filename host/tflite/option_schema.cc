// SPDX-License-Identifier: Apache-2.0
#include "host/tflite/options.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "host/tflite/dtypes.h"
#include "host/tflite/tflite.h"
#include "tflite_bfbs_generated.h"

namespace fusebox::tflite {
namespace {

OptionField FieldOf(const reflection::Schema& schema, const reflection::Field& field) {
  OptionField out;
  out.name = field.name()->str();
  out.offset = field.offset();
  out.type = field.type()->base_type();
  out.element = field.type()->element();
  out.default_integer = field.default_integer();
  out.default_real = field.default_real();
  if (field.type()->index() >= 0 && out.type != reflection::Obj) {
    out.names = schema.enums()->Get(static_cast<unsigned>(field.type()->index()));
    out.is_dtype = out.names->name()->str() == "tflite.TensorType";
  }
  out.is_function = field.attributes() != nullptr && field.attributes()->LookupByKey("subgraph") != nullptr;
  return out;
}

// Each table is made when it is first asked for: a model has ops of a few kinds, and there are some two
// hundred.
class Tables {
 public:
  const OptionTable* Find(std::string_view name) {
    const std::lock_guard lock(mutex_);
    if (const auto found = tables_.find(name); found != tables_.end()) return found->second.get();
    auto table = Make(OptionUnion::kFirst, name);
    if (table == nullptr) table = Make(OptionUnion::kSecond, name);
    return tables_.emplace(name, std::move(table)).first->second.get();
  }
  const OptionTable* Of(Op op) {
    OfOp& of = by_op_[static_cast<size_t>(op)];
    if (!of.known.load(std::memory_order_acquire)) {
      of.table = Find(Info(op).options);
      of.known.store(true, std::memory_order_release);
    }
    return of.table;
  }
  bool IsKnown(OptionUnion where, uint8_t tag) const {
    const auto& values = *Members(where).values();
    return tag <= values.Get(values.size() - 1)->value();  // they stand in the order of their numbers
  }

 private:
  struct OfOp {
    std::atomic<bool> known = false;
    std::atomic<const OptionTable*> table = nullptr;
  };

  const reflection::Enum& Members(OptionUnion where) const {
    return where == OptionUnion::kFirst ? first_ : second_;
  }

  // Returns null if the union has no such member.
  std::unique_ptr<const OptionTable> Make(OptionUnion where, std::string_view name) const {
    const auto& members = *Members(where).values();
    for (const reflection::EnumVal* member : members) {
      if (member->value() == 0 || member->name()->string_view() != name) continue;
      auto table = std::make_unique<OptionTable>();
      table->name = name;
      table->tag = {where, static_cast<uint8_t>(member->value())};
      const reflection::Object& object =
          *schema_.objects()->Get(static_cast<unsigned>(member->union_type()->index()));
      for (const reflection::Field* field : *object.fields()) {
        table->end = std::max<uint16_t>(table->end, static_cast<uint16_t>(field->offset() + 2));
        if (!field->deprecated()) table->fields.push_back(FieldOf(schema_, *field));
      }
      return table;
    }
    return nullptr;
  }

  const reflection::Schema& schema_ = *reflection::GetSchema(::tflite::ModelBinarySchema::data());
  const reflection::Enum& first_ = *schema_.enums()->LookupByKey("tflite.BuiltinOptions");
  const reflection::Enum& second_ = *schema_.enums()->LookupByKey("tflite.BuiltinOptions2");
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<const OptionTable>, std::less<>> tables_;  // null: there is none
  std::vector<OfOp> by_op_ = std::vector<OfOp>(AllOps().size());
};

Tables& All() {
  static Tables& tables = *new Tables;
  return tables;
}

}  // namespace

const OptionTable* FindTable(std::string_view name) { return All().Find(name); }
const OptionTable* TableOf(Op op) { return All().Of(op); }
bool IsKnownTag(OptionUnion where, uint8_t tag) { return All().IsKnown(where, tag); }

std::optional<std::string> EnumName(const reflection::Enum& names, int64_t value) {
  const reflection::EnumVal* found = names.values()->LookupByKey(value);
  return found == nullptr ? std::nullopt : std::optional(found->name()->str());
}

std::optional<int64_t> EnumValue(const reflection::Enum& names, std::string_view name) {
  for (const reflection::EnumVal* value : *names.values()) {
    if (value->name()->string_view() == name) return value->value();
  }
  return std::nullopt;
}

AttrValue DefaultOf(const OptionField& field) {
  if (field.type == reflection::Vector || field.type == reflection::String || field.is_function) return {};
  if (IsReal(field.type)) return field.default_real;
  if (field.type == reflection::Bool) return field.default_integer != 0;
  if (field.is_dtype) return DTypeOf(static_cast<int>(field.default_integer));
  if (field.names != nullptr) {
    if (auto name = EnumName(*field.names, field.default_integer)) return *std::move(name);
  }
  return field.default_integer;
}

AttrValue OptionDefault(std::string_view table, std::string_view field) {
  const OptionTable* found = FindTable(table);
  if (found == nullptr) return {};
  for (const OptionField& candidate : found->fields) {
    if (candidate.name == field) return DefaultOf(candidate);
  }
  return {};
}

std::vector<std::string> OptionFields(std::string_view table) {
  std::vector<std::string> names;
  const OptionTable* found = FindTable(table);
  if (found == nullptr) return names;
  for (const OptionField& field : found->fields) names.push_back(field.name);
  return names;
}

}  // namespace fusebox::tflite
