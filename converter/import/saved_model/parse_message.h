// SPDX-License-Identifier: Apache-2.0
// Parses a protobuf message from untrusted bytes with limits on size and nesting, and without the parser's
// own output on stderr.
#pragma once

#include <google/protobuf/message_lite.h>

#include <cstddef>
#include <span>

namespace fusebox::saved_model {

// False if the bytes are not exactly one such message.
bool ParseMessage(std::span<const std::byte> bytes, google::protobuf::MessageLite& message);

}  // namespace fusebox::saved_model
