// SPDX-License-Identifier: Apache-2.0
#include "plugins/embedding/lookup_rule.h"

#include <algorithm>
#include <string>
#include <vector>

namespace fusebox::embedding {
namespace {

constexpr std::string_view kOfLiteRt = "odml.embedding_lookup";

bool IsInteger(fbx_dtype type) { return type == FBX_I32 || type == FBX_I64; }

// The operands of a composite.
class Lookup {
 public:
  explicit Lookup(const Site& site) : site_(site) {
    const bool leads = site.name() == kOfLiteRt && site.in_count() > 2;
    if (!leads) site.arity(2, 1);
    const uint32_t first = site.in_count() - 2;
    for (uint32_t i = 0; i < first; ++i)
      site.require(IsInteger(site.in(i).dtype()) && site.in(i).rank() == 0, "ARITY",
                   "is no size before indices and table", "operand " + std::to_string(i));
    table_at_ = site.name() == kOfLiteRt ? first + 1 : first;
    ids_at_ = site.name() == kOfLiteRt ? first : first + 1;
  }

  uint32_t table_at() const { return table_at_; }
  uint32_t ids_at() const { return ids_at_; }
  Tensor table() const { return site_.in(table_at_); }
  Tensor ids() const { return site_.in(ids_at_); }

  void Check() const {
    site_.require(!(IsInteger(table().dtype()) && ids().present() && !IsInteger(ids().dtype())), "ARITY",
                  "is the ids; the table must be operand " + std::to_string(table_at_), TableSubject());
    CheckTable();
    site_.require(ids().present() && IsInteger(ids().dtype()), "DTYPE",
                  std::string("is ") + dtype_name(ids().dtype()) + ", expected i32 or i64", IdsSubject());
    site_.require(ids().rank() >= 0, "RANK", "has an unknown rank", IdsSubject());
    if (table().rank() > 2 || ids().rank() != 1) CheckRows();
  }

  // Dimensions of the result, -1 if unknown. Some bodies return each row as a vector, for any rank of the
  // table.
  std::vector<int32_t> ResultDims() const {
    std::vector<int32_t> dims;
    for (const int64_t d : ids().dims()) dims.push_back(static_cast<int32_t>(d));
    if (HasFlatRows()) {
      dims.push_back(static_cast<int32_t>(Width()));
      return dims;
    }
    for (const int64_t d : table().dims().subspan(1)) dims.push_back(static_cast<int32_t>(d));
    return dims;
  }

  int64_t Width() const {
    int64_t width = 1;
    for (const int64_t size : table().dims().subspan(1)) width *= size;
    return width;
  }

 private:
  std::string TableSubject() const { return "operand " + std::to_string(table_at_) + " (table)"; }
  std::string IdsSubject() const { return "operand " + std::to_string(ids_at_) + " (ids)"; }

  void CheckTable() const {
    const fbx_dtype type = table().dtype();
    const bool scaled = (type == FBX_I8 || type == FBX_U8 || type == FBX_I4) && table().quant() != nullptr &&
                        site_.out(0).dtype() == FBX_F32;
    site_.require(table().present() && (type == FBX_F32 || scaled), "DTYPE",
                  std::string("is ") + dtype_name(type) +
                      ", expected f32, or 8 or 4 bits with scales and an f32 result",
                  TableSubject());
    const int rank = table().rank();
    site_.require(rank >= 0, "RANK", "has an unknown rank", TableSubject());
    site_.require(rank >= 2, "RANK", "has rank " + std::to_string(rank) + ", expected 2 or more",
                  TableSubject());
    site_.require(rank == 2 || !scaled, "RANK",
                  "has rank " + std::to_string(rank) + " and scales, expected 2", TableSubject());
  }

  bool HasFlatRows() const { return table().rank() == 2 || site_.out(0).rank() == ids().rank() + 1; }

  void CheckRows() const {
    for (int i = 1; i < table().rank(); ++i)
      site_.require(table().dim(i) >= 0, "SHAPE", "dimension " + std::to_string(i) + " is not known",
                    TableSubject());
    const Tensor rows = site_.out(0);
    const int flat = ids().rank() + 1;
    const int whole = ids().rank() + table().rank() - 1;
    if (rows.rank() == flat && table().rank() > 2) {
      const bool fits =
          rows.dim(-1) == Width() || (ids().rank() == 1 && rows.dim(0) >= 0 && rows.dim(0) == ids().dim(0));
      site_.require(fits, "SHAPE", "is not one vector of " + std::to_string(Width()) + " values per id",
                    "result 0");
    } else {
      site_.require(rows.rank() < 0 || rows.rank() == whole, "RANK",
                    "has rank " + std::to_string(rows.rank()) + ", expected " + std::to_string(flat) +
                        (whole == flat ? "" : " or " + std::to_string(whole)),
                    "result 0");
    }
  }

  const Site& site_;
  uint32_t table_at_, ids_at_;
};

// i32 ids for the op. Larger ones become the largest i32, which is no row either.
Value Narrowed(Build& build, Value ids, const Tensor& type) {
  if (type.dtype() == FBX_I32) return ids;
  const auto limit = [&](int64_t value) { return build.constant<int64_t>({&value, 1}, {}); };
  const Value above = build.builtin("MAXIMUM", {ids, limit(INT32_MIN)})[0];
  const Value within = build.builtin("MINIMUM", {above, limit(INT32_MAX)})[0];
  const Value narrow = build.builtin("CAST", {within})[0];
  build.dtype(narrow, FBX_I32);
  return narrow;
}

// Returns whether RESHAPE can compute the unknown dimensions: at most one, and no other is empty.
bool Determines(const std::vector<int32_t>& dims) {
  const auto unknown = std::ranges::count(dims, -1);
  return unknown == 0 || (unknown == 1 && std::ranges::count(dims, 0) == 0);
}

// `ids`: the composite's operand, from which unknown dimensions are read.
Value Reshaped(Build& build, Value found, Value ids, int ids_rank, const std::vector<int32_t>& dims) {
  const auto list = [&](std::span<const int32_t> values) {
    const auto count = static_cast<int64_t>(values.size());
    return build.constant<int32_t>(values, {&count, 1});
  };
  if (Determines(dims)) return build.builtin("RESHAPE", {found, list(dims)})[0];
  const Value shape = build.builtin("SHAPE", {ids})[0];
  const Value row = list(std::span(dims).subspan(static_cast<size_t>(ids_rank)));
  const Value both = build.builtin("CONCATENATION", {shape, row}).attr("axis", 0)[0];
  return build.builtin("RESHAPE", {found, both})[0];
}

}  // namespace

void LookupRule::match(const Site& site) { Lookup(site).Check(); }

void LookupRule::rewrite(const Site& site, Build& build) {
  const Lookup lookup(site);
  const int ids_rank = lookup.ids().rank();
  const Value ids = build.in(lookup.ids_at());
  Value list = Narrowed(build, ids, lookup.ids());
  if (ids_rank != 1) list = build.reshape(list, {-1});
  Value rows = build.in(lookup.table_at());
  if (lookup.table().rank() > 2) {
    // For empty rows, -1 cannot be inferred, so the table's row count is written.
    const auto width = static_cast<int32_t>(lookup.Width());
    rows = build.reshape(rows, {width == 0 ? static_cast<int32_t>(lookup.table().dim(0)) : -1, width});
  }
  const Value found = build.builtin("EMBEDDING_LOOKUP", {list, rows})[0];
  build.dtype(found, FBX_F32);
  if (lookup.table().rank() == 2 && ids_rank == 1) return build.result(0, found);
  const std::vector<int32_t> dims = lookup.ResultDims();
  const bool is_found = ids_rank == 1 && dims.size() == 2;
  build.result(0, is_found ? found : Reshaped(build, found, ids, ids_rank, dims));
}

}  // namespace fusebox::embedding
