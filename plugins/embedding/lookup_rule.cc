// SPDX-License-Identifier: Apache-2.0
#include "plugins/embedding/lookup_rule.h"

#include <string>
#include <vector>

namespace fusebox::embedding {
namespace {

constexpr uint32_t kTable = 0;
constexpr uint32_t kIds = 1;

bool IsInteger(fbx_dtype type) { return type == FBX_I32 || type == FBX_I64; }

std::string Subject(uint32_t operand) { return operand == kTable ? "operand 0 (table)" : "operand 1 (ids)"; }

// Returns whether the body returns each row as a vector, for any rank of the table.
bool HasFlatRows(const Site& site) { return site.in(kTable).rank() == 2 || site.out(0).rank() == 2; }

void RequireResult(const Site& site, int64_t width) {
  const Tensor table = site.in(kTable);
  const Tensor rows = site.out(0);
  const std::string subject = "result 0";
  if (rows.rank() == 2 && table.rank() > 2) {
    const bool flat = rows.dim(1) == width || (rows.dim(0) >= 0 && rows.dim(0) == site.in(kIds).dim(0));
    site.require(flat, "SHAPE", "is not one vector of " + std::to_string(width) + " values per id", subject);
  } else {
    site.require(
        rows.rank() < 0 || rows.rank() == table.rank(), "RANK",
        "has rank " + std::to_string(rows.rank()) + ", expected 2 or " + std::to_string(table.rank()),
        subject);
  }
}

}  // namespace

void LookupRule::match(const Site& site) {
  site.arity(2, 1);
  const Tensor table = site.in(kTable);
  const Tensor ids = site.in(kIds);
  site.require(!(IsInteger(table.dtype()) && ids.present() && !IsInteger(ids.dtype())), "ARITY",
               "is the ids; the table must be operand 0", Subject(kTable));
  site.require(table.present() && table.dtype() == FBX_F32, "DTYPE",
               std::string("is ") + dtype_name(table.dtype()) + ", only f32 is supported", Subject(kTable));
  site.require(ids.present() && ids.dtype() == FBX_I32, "DTYPE",
               std::string("is ") + dtype_name(ids.dtype()) + ", expected i32", Subject(kIds));
  site.require(table.rank() >= 0, "RANK", "has an unknown rank", Subject(kTable));
  site.require(table.rank() >= 2, "RANK", "has rank " + std::to_string(table.rank()) + ", expected 2 or more",
               Subject(kTable));
  site.require(ids.rank() >= 0, "RANK", "has an unknown rank", Subject(kIds));
  site.require(ids.rank() == 1, "RANK", "has rank " + std::to_string(ids.rank()) + ", expected 1",
               Subject(kIds));
  if (table.rank() == 2) return;
  for (int i = 1; i < table.rank(); ++i)
    site.require(table.dim(i) >= 0, "SHAPE", "dimension " + std::to_string(i) + " is not known",
                 Subject(kTable));
  int64_t width = 1;
  for (const int64_t size : table.dims().subspan(1)) width *= size;
  RequireResult(site, width);
  site.require(width > 0 || HasFlatRows(site) || ids.dim(0) >= 0, "SHAPE",
               "has empty rows, and the number of ids is not known", Subject(kTable));
}

void LookupRule::rewrite(const Site& site, Build& build) {
  const Tensor table = site.in(kTable);
  const Value rows = build.in(kTable);
  const Value ids = build.in(kIds);
  if (table.rank() == 2) return build.result(0, build.builtin("EMBEDDING_LOOKUP", {ids, rows})[0]);
  // Rows of several dimensions are flattened for the lookup.
  int64_t width = 1;
  std::vector<int32_t> dims = {-1};
  for (int i = 1; i < table.rank(); ++i) {
    width *= table.dim(i);
    dims.push_back(static_cast<int32_t>(table.dim(i)));
  }
  // For empty rows, -1 cannot be inferred, so the table's row count is written.
  const auto count = static_cast<int32_t>(width == 0 ? table.dim(0) : -1);
  const Value flat = build.reshape(rows, {count, static_cast<int32_t>(width)});
  const Value found = build.builtin("EMBEDDING_LOOKUP", {ids, flat})[0];
  if (HasFlatRows(site)) return build.result(0, found);
  if (width == 0) dims[0] = static_cast<int32_t>(site.in(kIds).dim(0));
  const auto rank = static_cast<int64_t>(dims.size());
  build.result(0, build.builtin("RESHAPE", {found, build.constant<int32_t>(dims, {&rank, 1})})[0]);
}

}  // namespace fusebox::embedding
