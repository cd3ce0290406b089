// SPDX-License-Identifier: Apache-2.0
// Contents of a model's lookup tables after its initializers have run: constants, text assets or checkpoint
// values.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "converter/import/saved_model/reader.h"
#include "converter/import/saved_model/variables.h"
#include "host/graph/types.h"

namespace fusebox::saved_model {

struct LookupTable {
  Tensor keys, values;
};

class LookupTables {
 public:
  // Finds the initializer of each table of the main graph; reads no data. Both arguments must outlive this.
  LookupTables(const SavedModel&, const Variables&);

  // Contents of the table at this node of the main graph. Errors: no initializer that can be evaluated, or a
  // bad file.
  Result<LookupTable> Of(const std::string& node) const;

 private:
  // A node list: the main graph, or a function with the call that binds its arguments.
  struct Scope {
    const Scope* caller = nullptr;
    const tf::NodeDef* call = nullptr;
    const tf::FunctionDef* function = nullptr;
  };
  struct Found {
    const tf::NodeDef* node = nullptr;
    const Scope* scope = nullptr;
    int output = 0;
  };
  struct Filler {
    const tf::NodeDef* node;
    const Scope* scope;
    bool restored;          // from the checkpoint
    bool doubtful = false;  // another initializer has other contents
  };
  // Nodes of the main graph or a function by name, and assignments by variable.
  struct Names {
    std::map<std::string_view, const tf::NodeDef*> nodes;
    std::multimap<std::string_view, const tf::NodeDef*> assigned;
  };

  void Visit(const Scope& scope, int depth);
  void Add(const std::string& table, const Filler& filler);
  const Names& NamesOf(const tf::FunctionDef* function);
  Found Source(const Scope* scope, std::string_view input) const;
  Found Source(const Scope* scope, std::string_view input, int& steps) const;
  Found Assigned(const Found& handle, int& steps) const;
  Result<Tensor> Value(const Filler& filler, int input) const;
  Result<Tensor> Restored(const Found& from) const;
  Result<LookupTable> FromFile(const Filler& filler, const tf::NodeDef& table) const;
  Result<std::string> AssetPath(const Filler& filler) const;

  const SavedModel& model_;
  const Variables& variables_;
  std::map<std::string, Filler> fillers_;  // by the table's node
  std::vector<std::unique_ptr<Scope>> scopes_;
  std::map<const tf::FunctionDef*, Names> names_;  // null: main graph
  size_t visited_ = 0;
};

}  // namespace fusebox::saved_model
