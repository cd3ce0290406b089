// SPDX-License-Identifier: Apache-2.0
// Lookup tables with one initializer. TFLite has two kinds: string to i64 and i64 to string. Tables from
// strings to other types look up the entry's index first; tables from numbers to numbers become constants
// and GATHER.
//
// A HASHTABLE stores its contents as attributes (keys and values) until the pass "tables-out".
#include "converter/import/tables/lookup.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "converter/import/tables/translate.h"
#include "host/graph/npy.h"

namespace fusebox::converter {
namespace {

struct Table {
  int64_t id;
  Tensor keys, values;
  int64_t count() const { return *keys.type.shape.element_count(); }
  DType key() const { return keys.type.dtype; }
  DType value() const { return values.type.dtype; }
};

Result<Table> TableOf(Translation& t) {
  if (t.count() == 0) return Invalid("it has no table");
  const Node* const handle = t.producer(t.in(0));
  if (!handle || !handle->is(Op::kOpaque) || !IsLookupTable(handle->name))
    return Unsupported("the source of its table is unknown");
  if (const std::string why = handle->attrs.str("reason", ""); !why.empty()) return Unsupported(why);
  const AttrValue* const keys = handle->attrs.Find("keys");
  const AttrValue* const values = handle->attrs.Find("values");
  if (!keys || !values || !std::holds_alternative<Tensor>(*keys) || !std::holds_alternative<Tensor>(*values))
    return Unsupported("no initializer fills its table before the model runs");
  Table table{handle->attrs.i64("table_id", 0), std::get<Tensor>(*keys), std::get<Tensor>(*values)};
  const auto entries = table.keys.type.shape.element_count();
  if (!entries || table.keys.type.shape.rank() != 1 || table.values.type.shape.rank() != 1 ||
      entries != table.values.type.shape.element_count())
    return Unsupported("its table holds " + ToString(table.keys.type) + " and " +
                       ToString(table.values.type) + "; only lists of equal length are supported");
  return table;
}

std::vector<int64_t> Integers(const Tensor& tensor) {
  return ConstInts(tensor.type, tensor.data).value_or(std::vector<int64_t>());
}

template <class T>
Tensor List(DType dtype, const std::vector<T>& values) {
  return {{dtype, {static_cast<int64_t>(values.size())}}, Buffer::Of<T>(values)};
}

// Looks a key up in one TFLite table. Its contents differ from the source's table: keys or values may be
// entry indices.
ValueId Find(Translation& t, int64_t id, const Tensor& keys, const Tensor& values, ValueId key,
             ValueId otherwise) {
  const ValueId handle = t.Typed(Op::kHashtable, {}, {DType::kResource, Shape::Scalar()},
                                 MakeAttrs("table_id", id, "key_dtype", keys.type.dtype, "value_dtype",
                                           values.type.dtype, "keys", keys, "values", values));
  return t.Value(Op::kHashtableFind, {handle, key, otherwise});
}

// Returns the index of the entry with the requested key; it is -1 if there is none.
ValueId EntryOf(Translation& t, const Table& table) {
  std::vector<int64_t> numbers(static_cast<size_t>(table.count()));
  std::iota(numbers.begin(), numbers.end(), 0);
  return Find(t, 2 * table.id + 1, table.keys, List(DType::kI64, numbers), t.in(1),
              t.Scalar(DType::kI64, -1));
}

Status ByString(Translation& t, const Table& table) {
  if (table.value() == DType::kI64) {
    return t.Return(Find(t, 2 * table.id, table.keys, table.values, t.in(1), t.in(2)));
  }
  const ValueId entry = EntryOf(t, table);
  if (table.value() == DType::kString) {
    std::vector<int64_t> numbers(static_cast<size_t>(table.count()));
    std::iota(numbers.begin(), numbers.end(), 0);
    return t.Return(Find(t, 2 * table.id, List(DType::kI64, numbers), table.values, entry, t.in(2)));
  }
  const ValueId zero = t.Scalar(DType::kI64, 0);
  const ValueId found = t.Value(Op::kGreaterEqual, {entry, zero});
  const ValueId value = t.Value(Op::kGather, {t.Const(table.values), t.Value(Op::kMaximum, {entry, zero})});
  return t.Return(t.Value(Op::kSelectV2, {found, value, t.in(2)}));
}

Status ToString(Translation& t, const Table& table) {
  const Tensor keys = List(DType::kI64, Integers(table.keys));
  return t.Return(Find(t, 2 * table.id, keys, table.values, t.Cast(t.in(1), DType::kI64), t.in(2)));
}

// Dense keys index a list with one extra element at each end; keys outside of the range are clamped to these,
// which count as missing.
Status Dense(Translation& t, const Table& table, const std::vector<int64_t>& keys, int64_t least,
             int64_t most) {
  const auto width = BitsOf(table.value()) / 8;
  if (width == 0) return Unsupported("values of " + std::string(Name(table.value())));
  const auto size = static_cast<size_t>(most - least + 3);
  std::vector<uint8_t> found(size, 0);
  Buffer values = Buffer::Make(size * width, [&](std::span<std::byte> out) {
    for (size_t i = keys.size(); i-- > 0;) {
      const auto at = static_cast<size_t>(keys[i] - least + 1);
      found[at] = 1;
      std::copy_n(table.values.data.data() + i * width, width, out.data() + at * width);
    }
  });
  const DType dtype = table.key();
  const auto key = [&](int64_t value) {
    return t.Const(dtype == DType::kI64
                       ? Tensor{{dtype, Shape::Scalar()}, Buffer::Of<int64_t>(std::vector<int64_t>{value})}
                       : Tensor{{dtype, Shape::Scalar()},
                                Buffer::Of<int32_t>(std::vector<int32_t>{static_cast<int32_t>(value)})});
  };
  const ValueId above = t.Value(Op::kMaximum, {t.in(1), key(least - 1)});
  const ValueId within = t.Value(Op::kMinimum, {above, key(most + 1)});
  const ValueId at = t.Value(Op::kSub, {within, key(least - 1)});
  const ValueId is = t.Value(Op::kGather, {t.Const(List(DType::kBool, found)), at});
  const auto places = static_cast<int64_t>(size);
  const ValueId value = t.Value(Op::kGather, {t.Const({{table.value(), {places}}, std::move(values)}), at});
  return t.Return(t.Value(Op::kSelectV2, {is, value, t.in(2)}));
}

// Sparse keys are compared one by one.
Status Sparse(Translation& t, const Table& table) {
  const ValueId asked = t.Value(Op::kExpandDims, {t.in(1), t.I32Scalar(-1)});
  const ValueId same = t.Value(Op::kEqual, {asked, t.Const(table.keys)});
  const ValueId entry = t.Value(Op::kArgMax, {t.Cast(same, DType::kI32), t.I32Scalar(-1)},
                                MakeAttrs("output_type", DType::kI32));
  const ValueId found = t.Value(Op::kReduceAny, {same, t.I32({-1})});
  const ValueId value = t.Value(Op::kGather, {t.Const(table.values), entry});
  return t.Return(t.Value(Op::kSelectV2, {found, value, t.in(2)}));
}

Status Lookup(Translation& t) {
  FUSEBOX_TRY(t.Arity(3));
  FUSEBOX_ASSIGN(const Table table, TableOf(t));
  if (t.in_type(1).dtype != table.key() || t.in_type(2).dtype != table.value())
    return Unsupported("its operands are not known to be of the table's types");
  if (table.count() == 0 && table.value() != DType::kString) {
    return t.Return(t.Value(Op::kBroadcastTo, {t.in(2), t.ShapeOf(t.in(1))}));
  }
  if (table.key() == DType::kString) return ByString(t, table);
  if (table.key() != DType::kI64 && table.key() != DType::kI32)
    return Unsupported("a table by " + std::string(Name(table.key())));
  if (table.value() == DType::kString) return ToString(t, table);
  const std::vector<int64_t> keys = Integers(table.keys);
  constexpr int64_t kMostCompared = 4096;
  constexpr int64_t kFarthest = int64_t{1} << 30;
  // A list much longer than the table pays off only if there are too many keys to compare.
  const int64_t widest =
      std::max(table.count() <= kMostCompared ? int64_t{4096} : int64_t{1} << 20, 16 * table.count());
  const auto [least, most] = std::ranges::minmax(keys);
  if (least > -kFarthest && most < kFarthest && most - least < widest)
    return Dense(t, table, keys, least, most);
  if (table.count() <= kMostCompared) return Sparse(t, table);
  return Unsupported("a table of " + std::to_string(table.count()) + " sparse keys");
}

template <class T>
int64_t Different(const std::vector<T>& all) {
  return static_cast<int64_t>(std::set<T>(all.begin(), all.end()).size());
}

Status Size(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  FUSEBOX_ASSIGN(const Table table, TableOf(t));
  int64_t size = 0;
  if (table.key() == DType::kString) {
    FUSEBOX_ASSIGN(const auto words, UnpackStrings(table.keys.data));
    size = Different(words);
  } else if (table.key() == DType::kI64 || table.key() == DType::kI32) {
    size = Different(Integers(table.keys));
  } else {
    return Unsupported("a table by " + std::string(Name(table.key())));
  }
  return t.Return(t.Const({{DType::kI64, Shape::Scalar()}, Buffer::Of<int64_t>(std::vector<int64_t>{size})}));
}

Status Export(Translation& t) {
  FUSEBOX_TRY(t.Arity(1));
  FUSEBOX_ASSIGN(const Table table, TableOf(t));
  t.SetResult(0, t.Const(table.keys));
  t.SetResult(1, t.Const(table.values));
  return {};
}

}  // namespace

bool IsLookupTable(std::string_view op) {
  return op == "HashTableV2" || op == "HashTable" || op == "MutableHashTableV2" || op == "MutableHashTable";
}

std::span<const TranslateRow> LookupRows() {
  static constexpr TranslateRow kTable[] = {
      {"LookupTableFindV2", Lookup}, {"LookupTableFind", Lookup},     {"LookupTableSizeV2", Size},
      {"LookupTableSize", Size},     {"LookupTableExportV2", Export}, {"LookupTableExport", Export},
  };
  return kTable;
}

}  // namespace fusebox::converter
