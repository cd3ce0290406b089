// SPDX-License-Identifier: Apache-2.0
// Lookup tables whose content the importer found.
#include "host/graph/npy.h"
#include "tests/converter/import/tables/programs.h"

namespace fusebox::converter {
namespace {

Tensor S(std::vector<int64_t> dims, const std::vector<std::string>& words) {
  return {{DType::kString, Shape(std::move(dims))}, PackStrings(words)};
}

ValueId Table(ProgramWriter& w, const Tensor& keys, const Tensor& values) {
  return w.One("HashTableV2", {}, A("table_id", 0, "keys", keys, "values", values),
               {DType::kResource, Shape::Scalar()});
}

// `asked` of a table; `otherwise` stands for keys that it does not have.
Program Finds(const char* op, const Tensor& keys, const Tensor& values, const Tensor& otherwise,
              const Tensor& asked, std::vector<double> expected) {
  return {
      op,
      [=](ProgramWriter& w) { w.Out(w.One(op, {Table(w, keys, values), w.In(asked.type), w.C(otherwise)})); },
      {asked},
      Are({std::move(expected)})};
}

}  // namespace

std::vector<Program> LookupPrograms() {
  const Tensor words = S({3}, {"a", "bc", ""}), near = L({3}, {4, -1, 2}), far = L({3}, {1LL << 40, -1, 2});
  const Tensor floats = F({3}, {0.5f, 1.5f, 2.5f}), longs = L({3}, {7, 8, 9});
  const Tensor asked = S({4}, {"", "b", "bc", "a"});
  std::vector<Program> programs;
  for (const char* op : {"LookupTableFindV2", "LookupTableFind"}) {
    programs.push_back(Finds(op, near, floats, F({}, {-3}), L({2, 2}, {2, 3, -1, 99}), {2.5, -3, 1.5, -3}));
    programs.push_back(Finds(op, far, longs, L({}, {-3}), L({4}, {2, 3, 1LL << 40, -1}), {9, -3, 7, 8}));
    programs.push_back(Finds(op, words, longs, L({}, {-3}), asked, {9, -3, 8, 7}));
    programs.push_back(Finds(op, words, floats, F({}, {-3}), asked, {2.5, -3, 1.5, 0.5}));
  }
  programs.push_back({"LookupTableFindV2",
                      [=](ProgramWriter& w) {
                        w.Out(w.One("LookupTableFindV2",
                                    {Table(w, near, words), w.In({DType::kI64, {4}}), w.C(S({}, {"none"}))}));
                      },
                      {L({4}, {2, 3, 4, -1})},
                      [](const Program::Outputs& outputs) {
                        ASSERT_EQ(outputs.size(), 1u);
                        const auto found = UnpackStrings(outputs[0].data);
                        ASSERT_TRUE(found) << found.error().message;
                        EXPECT_EQ(*found, (std::vector<std::string>{"", "none", "a", "bc"}));
                      }});
  for (const char* op : {"LookupTableSizeV2", "LookupTableSize"})
    programs.push_back({op,
                        [=](ProgramWriter& w) {
                          w.Out(w.One(op, {Table(w, words, floats)}));
                          w.Out(w.One(op, {Table(w, L({3}, {5, 5, 6}), floats)}));
                        },
                        {},
                        Are({{3}, {2}})});
  for (const char* op : {"LookupTableExportV2", "LookupTableExport"})
    programs.push_back({op,
                        [=](ProgramWriter& w) { w.Out(w.Ops(op, {Table(w, near, floats)}, {}, 2)); },
                        {},
                        Are({{4, -1, 2}, {0.5, 1.5, 2.5}})});
  return programs;
}

}  // namespace fusebox::converter
