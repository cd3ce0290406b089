// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/parse_message.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <climits>

namespace fusebox::saved_model {

bool ParseMessage(std::span<const std::byte> bytes, google::protobuf::MessageLite& message) {
  constexpr int kRecursionLimit = 500;  // function attributes nest
  if (bytes.size() > INT_MAX) return false;
  google::protobuf::LogSilencer silence;
  google::protobuf::io::ArrayInputStream array(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream stream(&array);
  stream.SetTotalBytesLimit(INT_MAX);
  stream.SetRecursionLimit(kRecursionLimit);
  return message.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

}  // namespace fusebox::saved_model
