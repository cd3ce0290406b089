// SPDX-License-Identifier: Apache-2.0
// A Keras file: its configuration and its stored weights, whatever the container.
//
//   .h5, .hdf5   HDF5 of Keras 1 to 3: configuration in an attribute, weights in one group per layer
//   .keras       zip of Keras 2.12 and later: config.json, metadata.json, model.weights.h5 with one group per object
// What a file is, its first bytes say, not its name.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "converter/import/keras/hdf5.h"
#include "converter/import/keras/object_paths.h"

namespace fusebox::keras {

// True when the file begins as HDF5 or zip do. Errors: it cannot be read.
Result<bool> IsKerasFile(const std::string& path);

class Archive {
 public:
  // Errors: no such file, neither container, no configuration (weights only), unreadable configuration.
  static Result<Archive> Load(const std::string& path);

  const std::string& path() const { return path_; }
  const nlohmann::json& config() const { return config_; }  // {"class_name", "config", ...} of the model
  int major() const { return major_; }                      // of the Keras that wrote it: 1, 2, 3
  // Keras before 2.4, which several backends had: TensorFlow's own adds "-tf" to its version.
  bool multi_backend() const { return multi_backend_; }
  bool by_object() const { return by_object_; }            // weights are found by object, else by layer
  const std::string& backend() const { return backend_; }  // "tensorflow", "theano", ...

  // By layer: the datasets of a layer of the whole model, in Keras' order; nothing when the file knows no
  // such layer.
  Result<std::optional<std::vector<std::string>>> LayerWeights(const std::string& layer) const;
  // By object, whose path has slashes even where the file's own does not.
  bool HasGroup(const std::string& path) const { return objects_->HasGroup(path); }
  // The dataset as the file names it; empty: there is none.
  std::string FindWeight(const std::string& path) const { return objects_->Dataset(path); }

  Result<Type> TypeOf(const std::string& dataset) const { return weights_->TypeOf(dataset); }
  // Floats as f32. Read once: later calls share the bytes.
  Result<Tensor> Read(const std::string& dataset) const;

 private:
  Status LoadHdf5();
  Status LoadZip();
  Status ParseConfig(const std::string& text, const std::string& place);
  Status SetVersion(const std::string& version);

  std::string path_, backend_ = "tensorflow", root_;  // root: the group that holds the layers' groups
  nlohmann::json config_;
  int major_ = 2;
  bool by_object_ = false, multi_backend_ = false;
  std::unique_ptr<Hdf5File> weights_;
  std::optional<ObjectPaths> objects_;  // by object only
  mutable std::map<std::string, Tensor> read_;
};

}  // namespace fusebox::keras
