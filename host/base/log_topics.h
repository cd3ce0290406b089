// SPDX-License-Identifier: Apache-2.0
// The topics of FUSEBOX_LOG.
#pragma once

#include <span>
#include <string_view>

#include "host/base/status.h"

namespace fusebox {

struct LogTopic {
  std::string_view name, what;
};
std::span<const LogTopic> LogTopics();

// A value of FUSEBOX_LOG: "fusion,loader", "all". Error: an unknown topic, with the list of all.
Status CheckLogSetting(std::string_view value);

}  // namespace fusebox
