// SPDX-License-Identifier: Apache-2.0
#include "host/tflite/option_schema.h"

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

class Tables {
 public:
  Tables() {
    const reflection::Schema& schema = *reflection::GetSchema(::tflite::ModelBinarySchema::data());
    AddUnion(schema, "tflite.BuiltinOptions", OptionUnion::kFirst);
    AddUnion(schema, "tflite.BuiltinOptions2", OptionUnion::kSecond);
    for (const OpInfo& info : AllOps()) by_op_.push_back(Find(info.options));
  }
  const OptionTable* Of(Op op) const { return by_op_[static_cast<size_t>(op)]; }
  const OptionTable* Find(std::string_view name) const {
    const auto found = tables_.find(name);
    return found == tables_.end() ? nullptr : &found->second;
  }
  size_t tags(OptionUnion where) const { return tags_[static_cast<int>(where)]; }

 private:
  void AddUnion(const reflection::Schema& schema, const char* name, OptionUnion where) {
    const reflection::Enum* members = schema.enums()->LookupByKey(name);
    for (const reflection::EnumVal* member : *members->values()) {
      tags_[static_cast<int>(where)] = static_cast<size_t>(member->value()) + 1;
      if (member->value() == 0) continue;
      const reflection::Object& object =
          *schema.objects()->Get(static_cast<unsigned>(member->union_type()->index()));
      OptionTable& table = tables_[member->name()->str()];
      table.name = member->name()->str();
      table.tag = {where, static_cast<uint8_t>(member->value())};
      for (const reflection::Field* field : *object.fields()) {
        table.end = std::max<uint16_t>(table.end, static_cast<uint16_t>(field->offset() + 2));
        if (!field->deprecated()) table.fields.push_back(FieldOf(schema, *field));
      }
    }
  }

  std::map<std::string, OptionTable, std::less<>> tables_;
  std::vector<const OptionTable*> by_op_;
  size_t tags_[2] = {0, 0};
};

const Tables& All() {
  static const Tables& tables = *new Tables;
  return tables;
}

}  // namespace

const OptionTable* FindTable(std::string_view name) { return All().Find(name); }
const OptionTable* TableOf(Op op) { return All().Of(op); }
OptionTag TagOf(const OptionTable& table) { return table.tag; }
bool IsKnownTag(OptionUnion where, uint8_t tag) { return tag < All().tags(where); }

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
