// SPDX-License-Identifier: Apache-2.0
// Parses a message from untrusted bytes: no larger than protobuf allows, nested to a bounded depth, and
// without the parser's own chatter on stderr.
#pragma once

#include <google/protobuf/message_lite.h>

#include <cstddef>
#include <span>

namespace fusebox::saved_model {

// False when the bytes are not exactly one such message.
bool ParseMessage(std::span<const std::byte> bytes, google::protobuf::MessageLite& message);

}  // namespace fusebox::saved_model
