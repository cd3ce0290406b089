// SPDX-License-Identifier: Apache-2.0
// Log topics: what a stage does, for people who look for a fault. Results and errors never go here.
//
// FUSEBOX_LOG=loader,plan switches topics on, FUSEBOX_LOG=all every one. Lines go to stderr. Any thread.
#pragma once

#include <spdlog/logger.h>

#include <string_view>

namespace fusebox {

// The topic's logger: level debug when switched on, else warn. Lives as long as the process.
spdlog::logger& Log(std::string_view topic);

}  // namespace fusebox
