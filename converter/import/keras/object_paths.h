// SPDX-License-Identifier: Apache-2.0
// Paths of objects in model.weights.h5, however the Keras that wrote it joined their names. On Windows,
// Keras 2.12 to 2.15 and the first of Keras 3 join them by backslashes, which separate nothing in HDF5:
// "layers\lstm\cell" is one group of the root.
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

  // Paths are separated by "/", whatever the file does.
  bool HasGroup(std::string path) const;
  // The dataset as the file names it; empty: there is none.
  std::string Dataset(const std::string& path) const;

 private:
  using Names = std::map<std::string, std::string>;  // with slashes -> as they are

  const Names& NamesOf(const std::string& group) const;
  std::optional<std::string> Search(const std::string& group, std::string_view rest, bool dataset,
                                    int& steps) const;

  const Hdf5File* file_;
  mutable std::map<std::string, Names> names_;  // of groups that were looked into
};

}  // namespace fusebox::keras
