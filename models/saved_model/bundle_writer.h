// SPDX-License-Identifier: Apache-2.0
// Writes tensor bundles: PREFIX.index and PREFIX.data-XXXXX-of-XXXXX, like TensorFlow.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "converter/import/saved_model/checkpoint.pb.h"
#include "host/base/status.h"
#include "models/saved_model/tensor_value.h"

namespace fusebox::models {

class BundleWriter {
 public:
  // shards: number of data files; tensors are distributed in turn.
  explicit BundleWriter(int shards = 1);

  void Add(const std::string& key, const TensorValue& value);
  // Stored in parts of rows_per_part rows along dimension 0.
  void AddPartitioned(const std::string& key, const TensorValue& value, int64_t rows_per_part);
  // Any record, also an invalid one; for tests.
  void AddRecord(const std::string& key, const tf::BundleEntry& entry) { entries_[key] = entry; }
  tf::BundleEntry& entry(const std::string& key) { return entries_[key]; }
  tf::BundleHeader& header() { return header_; }

  std::string IndexBytes() const;
  const std::string& DataBytes(int shard) const { return data_[shard]; }
  Status Write(const std::string& prefix) const;

 private:
  int next_shard_ = 0;
  tf::BundleHeader header_;
  std::map<std::string, tf::BundleEntry> entries_;
  std::vector<std::string> data_;
};

}  // namespace fusebox::models
