// SPDX-License-Identifier: Apache-2.0
// Object paths in model.weights.h5. On Windows, Keras 2.12 to 2.15 and early Keras 3 join names with
// backslashes, which HDF5 does not treat as separators: "layers\lstm\cell" is one group of the root.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "converter/import/keras/hdf5.h"

namespace fusebox::keras {

class ObjectPaths {
 public:
  explicit ObjectPaths(const Hdf5File& file) : file_(&file) {}

  // Paths are separated by "/", also where the file uses backslashes.
  bool HasGroup(std::string path) const;
  // Returns the dataset name as stored in the file, or an empty string if there is none.
  std::string Dataset(const std::string& path) const;

 private:
  using Names = std::map<std::string, std::string>;  // with slashes -> as stored

  const Names& NamesOf(const std::string& group) const;
  std::optional<std::string> Search(const std::string& group, std::string_view rest, bool dataset,
                                    int& steps) const;

  const Hdf5File* file_;
  mutable std::map<std::string, Names> names_;  // by visited group
};

}  // namespace fusebox::keras
