// SPDX-License-Identifier: Apache-2.0
// Reads and writes .tflite files. Read(Write(g)) equals g for a graph that passes Verify(kWritable).
// Write(Read(f)) keeps meaning, metadata and an appended zip of f, but not its bytes.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "host/base/status.h"
#include "host/graph/graph.h"

namespace fusebox::tflite {

// Maps the file; constants are spans into the mapping (copied only below element alignment). Never trusts the
// file: FlatBuffer verifier first, then every index, range and recursion. `path` stands in messages.
Result<std::unique_ptr<Module>> ReadFile(const std::string& path);
Result<std::unique_ptr<Module>> Read(Buffer file, const std::string& name);

struct WriteOptions {
  bool deduplicate = true;  // equal constants share a buffer (those that may not, do not)
};

// To `path`, atomically. Weights are streamed from where they lie (mapped shards): memory stays near the
// largest one. Files over 2 GiB are written with buffers outside the FlatBuffer.
Status WriteFile(const Module&, const std::string& path, const WriteOptions& = {});
// The same into a file that the caller commits, once it has looked at it.
Status WriteTo(const Module&, AtomicFile&, const WriteOptions& = {});
Result<std::string> Write(const Module&, const WriteOptions& = {});
// The same into memory that `allocate` returns for the size of the file, or null: Code::kOutOfMemory.
Status WriteInto(const Module&, const std::function<std::byte*(size_t)>& allocate, const WriteOptions& = {});

// The schema default of an option field ("Conv2DOptions", "dilation_w_factor"); monostate when there is no
// such field.
AttrValue OptionDefault(std::string_view table, std::string_view field);
// Returns the fields of an option table, for messages with a did-you-mean.
std::vector<std::string> OptionFields(std::string_view table);

// Checks that the op's option table can hold these attributes; the error names the first that it cannot hold.
Status CheckOptions(Op, const Attrs&);

}  // namespace fusebox::tflite
