// SPDX-License-Identifier: Apache-2.0
// A Keras file: its configuration and its stored weights. The first bytes of the file select the format:
//
//   .h5, .hdf5   HDF5 of Keras 1 to 3: configuration in an attribute, weights in one group per layer
//   .keras       zip of Keras 2.12 and later: config.json, metadata.json, model.weights.h5 with one group per object
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "converter/import/keras/hdf5.h"
#include "converter/import/keras/object_paths.h"
#include "converter/import/keras/zip.h"

namespace fusebox::keras {

// True if the file starts with the HDF5 or zip signature. Errors: the file cannot be read.
Result<bool> IsKerasFile(const std::string& path);

class Archive {
 public:
  // Errors: missing file, neither HDF5 nor zip, no configuration (weights only), unreadable configuration.
  static Result<Archive> Load(const std::string& path);

  const std::string& path() const { return path_; }
  const nlohmann::json& config() const { return config_; }  // {"class_name", "config", ...} of the model
  int major() const { return major_; }                      // Keras version that wrote it: 1, 2 or 3
  // Multi-backend Keras before 2.4. tf.keras of these versions appends "-tf" to its version.
  bool multi_backend() const { return multi_backend_; }
  bool by_object() const { return by_object_; }  // weights are looked up by object path, else by layer name
  const std::string& backend() const { return backend_; }  // "tensorflow", "theano", ...

  // Returns, by layer, the datasets of a layer of the whole model, in Keras' order, or nullopt for an unknown
  // layer.
  Result<std::optional<std::vector<std::string>>> LayerWeights(const std::string& layer) const;
  // By object path, always separated by "/".
  bool HasGroup(const std::string& path) const { return objects_->HasGroup(path); }
  // Returns the dataset name as stored in the file, or an empty string if there is none.
  std::string FindWeight(const std::string& path) const { return objects_->Dataset(path); }

  // Returns a text in the folder of assets of a .keras file, or nullopt if it is missing.
  Result<std::optional<std::string>> Asset(const std::string& path) const;

  Result<Type> TypeOf(const std::string& dataset) const { return weights_->TypeOf(dataset); }
  // Floats are converted to f32. Cached: later calls share the bytes.
  Result<Tensor> Read(const std::string& dataset) const;

 private:
  Status LoadHdf5();
  Status LoadZip();
  Status ParseConfig(const std::string& text, const std::string& place);
  Status SetVersion(const std::string& version);

  std::string path_;
  std::string backend_ = "tensorflow";
  std::string root_;  // the group that holds the layers' groups
  nlohmann::json config_;
  int major_ = 2;
  bool by_object_ = false;
  bool multi_backend_ = false;
  std::unique_ptr<ZipFile> zip_;  // null: HDF5
  std::unique_ptr<Hdf5File> weights_;
  std::optional<ObjectPaths> objects_;  // by object only
  mutable std::map<std::string, Tensor> read_;
};

}  // namespace fusebox::keras
